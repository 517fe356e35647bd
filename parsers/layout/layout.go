// Package layout takes lines apart: the layouts of log4j, logback and RocksDB, JSON
// layouts, and what container runtimes and the tools around them put before a line. It
// knows the places of time, level, thread, logger and message, and nothing of what a
// message says.
package layout

import (
	"bytes"
	"encoding/binary"

	"flink-loki/parsers/internal/ascii"
)

// Line is a line taken apart. Its texts alias the line, but those that a JSON layout
// had to unescape.
type Line struct {
	Stamp  []byte // the time as written, see [Clock.Instant]
	Level  []byte // in capitals
	Thread []byte
	Logger []byte // nil where the layout has none
	JobID  []byte // Flink's MDC flink-job-id (1.20 and later)
	// RocksDB says that it is a line of RocksDB's LOG, which has no logger.
	RocksDB bool
	// Below is what stands below the line in the same JSON object: further lines of the
	// message, and the trace.
	Below []byte
	// Apart says, of a line without a logger, that something stands between its level and
	// its message, so that the message's first word can be no class.
	Apart bool

	rest []byte // behind the logger; the message is cut from it when it is wanted
	cut  bool   // rest is the message
}

// Shipped reads the layouts that most lines are in: Flink's own, and RocksDB's.
//
//	2019-09-02 16:26:20,972 INFO  org.apache.flink.….CheckpointCoordinator     - message      log4j 1.2, Flink <= 1.10
//	2026-11-29 13:36:05,010 INFO  org.apache.flink.….CheckpointCoordinator    [] - message    log4j 2, Flink >= 1.11
//	2019/09/10-14:22:55.734684 7fef66ffd700 [utilities/checkpoint/checkpoint_impl.cc:83] message
func Shipped(line []byte) (l Line, ok bool) {
	// Almost every line of a trace starts with no digit. Some pages put blanks before
	// lines.
	line = ascii.TrimLeft(line)
	if len(line) < stampLen || !ascii.IsDigit(line[0]) {
		return l, false
	}
	if line[4] == '/' {
		return rocksDB(line)
	}
	logger, rest := ShippedLogger(line)
	if logger == nil {
		return l, false
	}
	stamp := stampEnd(line)
	l.Stamp, l.Level, l.Logger, l.rest = line[:stamp], ascii.TrimRight(line[stamp+1:stamp+6]), logger, rest
	return l, true
}

// ShippedLogger returns the logger of a line in Flink's own layout and what follows it,
// nil for a line in any other layout. Most lines need no further look.
func ShippedLogger(line []byte) (logger, rest []byte) {
	start := loggerStart(line)
	if start == 0 {
		return nil, nil
	}
	n := bytes.IndexByte(line[start:], ' ')
	if n < 0 {
		return nil, nil
	}
	// Another layout can start in the same way: with a thread, "logger:message", colours.
	logger, rest = line[start:start+n], skipPadding(line[start+n:])
	if len(rest) == 0 || rest[0] != '[' && rest[0] != '-' || !ascii.IsName(logger[n-1]) || endsOddly(logger) {
		return nil, nil
	}
	return logger, rest
}

// loggerStart returns where the logger starts in Flink's own layout, 0 for a line in any
// other: "2019-09-02 16:26:20,972 INFO  ".
func loggerStart(line []byte) int {
	const ms = stampLen + len(",000")
	start := ms + len(" INFO  ")
	if len(line) < start+3 || line[4] != '-' || line[7] != '-' || line[10] != ' ' || line[13] != ':' || line[16] != ':' || !ascii.IsDigit(line[0]) {
		return 0
	}
	if line[stampLen] != ',' || line[ms] != ' ' {
		if start = stampEnd(line) + len(" INFO  "); len(line) < start+3 {
			return 0
		}
	}
	if line[start-7] != ' ' || line[start-1] != ' ' || !ascii.IsAlpha(line[start]) || !isLevelColumn(line[start-6:start-1]) {
		return 0
	}
	return start
}

// Loggers is a set of loggers that is quick to say which ones are not in it. It has a bit
// for a hash of their last eight bytes.
type Loggers struct{ bits [loggerBits / 64]uint64 }

const (
	tailLen    = 8
	loggerBits = 1 << 12
)

// Add adds a logger of eight bytes or more.
func (l *Loggers) Add(logger []byte) {
	bit := loggerBit(tail(logger))
	l.bits[bit/64] |= 1 << (bit % 64)
}

// May reports whether a logger can be in the set.
func (l *Loggers) May(logger []byte) bool {
	return len(logger) < tailLen || l.may(tail(logger))
}

func (l *Loggers) may(tail uint64) bool {
	bit := loggerBit(tail)
	return l.bits[bit/64]&(1<<(bit%64)) != 0
}

func tail(logger []byte) uint64 { return binary.LittleEndian.Uint64(logger[len(logger)-tailLen:]) }

func loggerBit(tail uint64) uint64 { return tail * 0x9e3779b97f4a7c15 >> 52 }

// SkipOthers passes over lines in Flink's own layout whose loggers are not in the set, and
// over frames of traces. It returns the last of them, nil for none; the line behind them, which needs a look, and
// the text behind that; and of that line the logger and what follows it, nil where it is
// in another layout.
func (l *Loggers) SkipOthers(text []byte) (last, line, rest, logger, after []byte) {
	for {
		line, rest = text, nil
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, rest = text[:end], text[end+1:]
		}
		start := loggerStart(line)
		if start == 0 {
			if len(rest) > 0 && len(line) > 4 && string(line[:4]) == "\tat " {
				text = rest
				continue
			}
			return last, line, rest, nil, nil
		}
		n := bytes.IndexByte(line[start:], ' ')
		if n < tailLen {
			return last, line, rest, nil, nil
		}
		logger, after = line[start:start+n], skipPadding(line[start+n:])
		tail := tail(logger)
		if isOdd(tail) || len(after) == 0 || after[0] != '[' && after[0] != '-' {
			return last, line, rest, nil, nil
		}
		if l.may(tail) {
			return last, line, rest, logger, after
		}
		if last, text = line, rest; len(text) == 0 {
			return last, nil, nil, nil, nil
		}
	}
}

// skipPadding cuts the blanks off with which layouts pad a logger.
func skipPadding(s []byte) []byte {
	for len(s) >= 8 && string(s[:8]) == "        " {
		s = s[8:]
	}
	return ascii.TrimLeft(s)
}

// endsOddly reports whether a logger does not end as one.
func endsOddly(s []byte) bool { return len(s) >= tailLen && isOdd(tail(s)) }

// isOdd reports whether an escape sequence, the number of a source line behind a colon,
// or a dash, as names of threads have, stands in eight bytes.
func isOdd(tail uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	u, v, w := tail^escape*ones, tail^':'*ones, tail^'-'*ones
	return ((u-ones)&^u|(v-ones)&^v|(w-ones)&^w)&highs != 0 // a byte of u, v or w is zero
}

// ShippedMessage returns the message in what follows a logger in Flink's own layout, nil
// where something else than an empty NDC stands between them.
func ShippedMessage(rest []byte) []byte {
	if len(rest) > 4 && string(rest[:5]) == "[] - " {
		return ascii.TrimRight(ascii.TrimLeft(rest[5:]))
	}
	if len(rest) > 1 && string(rest[:2]) == "- " {
		return ascii.TrimRight(ascii.TrimLeft(rest[2:]))
	}
	return nil
}

func isLevelColumn(s []byte) bool {
	switch string(s) {
	case "INFO ", "WARN ", "DEBUG", "ERROR", "TRACE", "FATAL":
		return true
	}
	return false
}

// stampLen is the length of a time without decimals.
const stampLen = len("2006-01-02 15:04:05")

// isStamp reports whether a line starts with a time: the separators stand where they
// belong. That its numbers are numbers is for the clock to see.
func isStamp(line []byte, dateSep, timeSep byte) bool {
	return line[4] == dateSep && line[7] == dateSep && line[10] == timeSep && line[13] == ':' && line[16] == ':' &&
		ascii.IsDigit(line[18])
}

// stampEnd returns where the time at the head of a line ends, decimals included.
func stampEnd(line []byte) int {
	if len(line) > stampLen+1 && (line[stampLen] == ',' || line[stampLen] == '.') {
		return stampLen + 1 + ascii.Span(line[stampLen+1:], ascii.IsDigit)
	}
	return stampLen
}

// maxItems bounds the parts of a header.
const maxItems = 12

// Parse reads any other layout of one line: time, level, thread, numbers and MDC in any
// order, in brackets or not, and then a logger, which may be abbreviated or missing.
// known reports whether lines of a logger are wanted; it decides what is a logger where
// the line's shape does not.
//
//	2019-09-02 16:26:20,972 INFO [Checkpoint Timer] org.apache.flink.….CheckpointCoordinator - message
//	2026-11-29 13:57:20.622 [Checkpoint Timer] WARN  o.a.f.r.c.CheckpointCoordinator  - message    logback
//	20:08:21.088 [Checkpoint Timer] INFO org.apache.flink.….CheckpointCoordinator - message
//	4873 [Checkpoint Timer] INFO  org.apache.flink.….CheckpointCoordinator [] - message            log4j's TTCC
//	21/03/11 07:39:09 INFO CheckpointCoordinator: message                                          Hadoop, Spark
func Parse(line []byte, known func(logger []byte) bool) (l Line, ok bool) {
	l.rest = line
	for range maxItems {
		l.rest = ascii.TrimLeft(l.rest)
		if len(l.rest) == 0 {
			return l, false
		}
		switch c := l.rest[0]; {
		case c == '[' || c == '{' || c == '(':
			text, rest, ok := cutBracket(l.rest)
			if !ok || c != '[' && !isMDC(text) {
				return l.message(known)
			}
			l.bracket(text)
			l.rest, l.Apart = rest, true
			continue
		case isSeparator(c):
			if n := ascii.Span(l.rest, isSeparator); n < len(l.rest) && l.rest[n] == ' ' {
				l.rest, l.Apart = l.rest[n:], true
				continue
			}
		case ascii.IsDigit(c):
			if n := StampLen(l.rest); n > 0 && l.Stamp == nil {
				l.Stamp, l.rest = l.rest[:n], l.rest[n:]
				continue
			}
			// Milliseconds since the start, or the number of the process.
			if n := ascii.Span(l.rest, ascii.IsDigit); n < len(l.rest) && l.rest[n] == ' ' {
				l.rest = l.rest[n:]
				continue
			}
		}
		word, rest := ascii.CutWord(l.rest)
		if level := bytes.TrimRight(word, ":,"); l.Level == nil && isLevel(level) {
			l.Level, l.rest, l.Apart = level, rest, len(level) < len(word)
			continue
		}
		return l.message(known)
	}
	return l, false
}

// message reads on at what is no other part of a header: a logger, or the message.
func (l *Line) message(known func([]byte) bool) (Line, bool) {
	n := ascii.Span(l.rest, ascii.IsName)
	logger := l.rest[:n]
	switch {
	case l.Level == nil && l.Stamp == nil:
		// A word and a colon start many lines of traces and messages.
		return l.beheaded(known)
	case n == 0 || !ascii.IsAlpha(logger[0]):
	case bytes.IndexByte(logger, '.') > 0 && (endsLogger(l.rest[n:]) || known(logger)), endsClass(l.rest[n:]) && known(logger):
		l.Logger, l.rest = logger, l.rest[n:]
		return *l, true
	}
	// A thread that is in no brackets, and then the logger.
	if at := indexLogger(l.rest); at > 0 {
		l.Thread, l.rest = bytes.TrimRight(l.rest[:at], " |"), l.rest[at:]
		n := ascii.Span(l.rest, ascii.IsName)
		l.Logger, l.rest = l.rest[:n], l.rest[n:]
		return *l, true
	}
	l.cut = true
	return *l, l.Stamp != nil
}

// endsLogger reports whether a logger can end before s.
func endsLogger(s []byte) bool {
	return len(s) == 0 || s[0] == ' ' || s[0] == '[' || s[0] == '(' || s[0] == ':' && (len(s) == 1 || s[1] == ' ' || ascii.IsDigit(s[1]))
}

// endsClass reports whether s goes on as it does behind a class without its package:
// that can be the first word of a message as well.
func endsClass(s []byte) bool {
	s = ascii.TrimLeft(s)
	return len(s) > 0 && (isSeparator(s[0]) || s[0] == '[')
}

// maxThread bounds how far a logger is looked for behind a thread that is in no
// brackets.
const maxThread = 256

// indexLogger returns where the first word stands that is a class with its package, -1
// where there is none before what can be a message.
func indexLogger(s []byte) int {
	s = s[:min(len(s), maxThread)]
	for i := 1; i < len(s); i++ {
		switch {
		case s[i-1] == ':' || s[i-1] == '-' && s[i] == ' ':
			return -1
		case s[i-1] == ' ' && ascii.IsAlpha(s[i]):
			n := ascii.Span(s[i:], ascii.IsName)
			if isClass(s[i:i+n]) && endsClass(s[i+n:]) {
				return i
			}
		}
	}
	return -1
}

// isClass reports whether a word is a class with its package: two dots or more, and a
// capital behind the last.
func isClass(word []byte) bool {
	dot := bytes.LastIndexByte(word, '.')
	return dot > 0 && dot+1 < len(word) && 'A' <= word[dot+1] && word[dot+1] <= 'Z' && bytes.IndexByte(word[:dot], '.') > 0
}

// beheaded reads a line whose head was cut off, by a terminal that wraps for instance:
// "…-> Sink (1/8)] INFO  org.apache.flink.….StreamTask  - message".
func (l *Line) beheaded(known func([]byte) bool) (Line, bool) {
	s := l.rest
	for {
		i := bytes.Index(s, []byte("] "))
		if i < 0 {
			return *l, false
		}
		s = s[i+2:]
		level, rest := ascii.CutWord(s[:min(len(s), maxThread)])
		if !isLevel(level) {
			continue
		}
		rest = ascii.TrimLeft(rest)
		n := ascii.Span(rest, ascii.IsName)
		if name := rest[:n]; bytes.IndexByte(name, '.') > 0 && known(name) {
			*l = Line{Level: level, Logger: name}
			l.rest = s[bytes.Index(s, name)+n:]
			return *l, true
		}
	}
}

// bracket takes what stands in a pair of brackets.
func (l *Line) bracket(text []byte) {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
	case l.Level == nil && isLevel(text):
		l.Level = text
	case l.Stamp == nil && StampLen(text) == len(text):
		l.Stamp = text
	case isMDC(text):
		l.JobID = mdcJob(text)
	case l.Thread == nil:
		l.Thread = text
	}
}

// jobKey is the MDC key that Flink has set since 1.20 (org.apache.flink.util.MdcUtils).
const jobKey = "flink-job-id"

// isMDC reports whether a text is the job of Flink's MDC, alone or as "key=value".
func isMDC(text []byte) bool { return mdcJob(text) != nil }

func mdcJob(text []byte) []byte {
	if ascii.IsID(text) {
		return text
	}
	if _, value, ok := bytes.Cut(text, []byte(jobKey+"=")); ok && len(value) >= ascii.IDLen && ascii.IsID(value[:ascii.IDLen]) {
		return value[:ascii.IDLen]
	}
	return nil
}

// cutBracket cuts "[text]" off, or the same with other brackets. A text may hold
// brackets of its own: it ends where they are balanced before something that can follow
// it in a header, else at the first bracket before such.
func cutBracket(s []byte) (text, rest []byte, ok bool) {
	open, closing := s[0], s[0]+2 // '[' and ']', '{' and '}'
	if open == '(' {
		closing = ')'
	}
	depth, unbalanced := 0, 0
	for i, c := range s {
		switch c {
		case open:
			depth++
		case closing:
			depth--
			if depth > 0 && unbalanced > 0 || !followsBracket(s[i+1:]) {
				continue
			}
			if depth <= 0 {
				return s[1:i], s[i+1:], true
			}
			unbalanced = i
		}
	}
	if unbalanced > 0 {
		return s[1:unbalanced], s[unbalanced+1:], true
	}
	return nil, nil, false
}

// followsBracket reports whether s can stand behind a bracket of a header.
func followsBracket(s []byte) bool {
	if len(s) == 0 {
		return true
	}
	if s[0] != ' ' && s[0] != '[' && s[0] != ':' {
		return false
	}
	s = ascii.TrimLeft(s)
	if len(s) == 0 || s[0] == '[' || s[0] == '{' || ascii.IsDigit(s[0]) {
		return true
	}
	if isSeparator(s[0]) {
		n := ascii.Span(s, isSeparator)
		return n == len(s) || s[n] == ' '
	}
	word, rest := ascii.CutWord(s[:min(len(s), maxThread)])
	word = bytes.TrimRight(word, ":")
	return isLevel(word) || bytes.IndexByte(word, '.') > 0 && ascii.Span(word, ascii.IsName) == len(word) && ascii.IsAlpha(word[0]) ||
		startsLogger(s) || bytes.HasPrefix(ascii.TrimLeft(rest), []byte("- ")) && ascii.Span(word, ascii.IsName) == len(word)
}

// startsLogger reports whether s starts with a class and its package, and a colon.
func startsLogger(s []byte) bool {
	n := ascii.Span(s, ascii.IsName)
	return n > 0 && n < len(s) && s[n] == ':' && bytes.IndexByte(s[:n], '.') > 0
}

// isSeparator reports whether c stands between the parts of a header.
func isSeparator(c byte) bool { return c == '-' || c == '|' || c == ':' }

func isLevel(word []byte) bool {
	switch string(word) {
	case "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL":
		return true
	}
	return false
}

// Message returns the line's message. It reads what stands between logger and message,
// which can be a level, a thread and the MDC: call it before those are read.
func (l *Line) Message() []byte {
	if l.cut {
		return ascii.TrimRight(ascii.TrimLeft(l.rest))
	}
	rest := skipPadding(l.rest)
	if message := ShippedMessage(rest); message != nil {
		return message
	}
	for range maxItems {
		rest = ascii.TrimLeft(rest)
		if len(rest) == 0 {
			return nil
		}
		switch c := rest[0]; {
		case c == '[' && len(rest) > 1 && rest[1] == ']':
			rest = rest[2:]
			continue
		case c == '[' || c == '{' || c == '(':
			if text, after, ok := cutBracket(rest); ok && len(after) > 0 {
				if c == '[' || isMDC(text) {
					l.bracket(text)
				}
				rest = after
				continue
			}
		case isSeparator(c):
			n := ascii.Span(rest, isSeparator)
			if digits := ascii.Span(rest[n:], ascii.IsDigit); c == ':' && n == 1 && digits > 0 {
				rest = rest[1+digits:] // the number of a source line
				continue
			}
			return ascii.TrimRight(ascii.TrimLeft(rest[n:]))
		default:
			word, after := ascii.CutWord(rest)
			if l.Level == nil && isLevel(word) {
				l.Level, rest = word, after
				continue
			}
			if l.JobID == nil && ascii.IsID(word) {
				l.JobID, rest = word, after
				continue
			}
		}
		break
	}
	return ascii.TrimRight(rest)
}

// rocksDB reads a line of RocksDB's LOG, as db/…/auto_roll_logger.cc and
// env/env_posix.cc write it:
//
//	YYYY/MM/DD-HH:MM:SS.uuuuuu <thread> [LEVEL] (Original Log Time …) [file:line] message
//
// The level is printed only when it is not INFO; "Original Log Time" is the true time
// of a line that was buffered; lines of the options and of EVENT_LOG_v1 have no file.
func rocksDB(line []byte) (l Line, ok bool) {
	if !isStamp(line, '/', '-') {
		return l, false
	}
	end := stampEnd(line)
	l.Stamp, l.RocksDB, l.cut = line[:end], true, true
	l.Level = infoLevel
	var rest []byte
	l.Thread, rest = ascii.CutWord(ascii.TrimLeft(line[end:]))
	rest = ascii.TrimLeft(rest)
	if level, after, ok := bytes.Cut(rest, []byte("] ")); ok && len(level) > 1 && level[0] == '[' && isLevel(level[1:]) {
		l.Level, rest = level[1:], after
	}
	if original, ok := bytes.CutPrefix(rest, []byte("(Original Log Time ")); ok && len(original) > stampLen && isStamp(original, '/', '-') {
		end := stampEnd(original)
		l.Stamp = original[:end]
		rest = bytes.TrimPrefix(original[end:], []byte(") "))
	}
	if len(rest) > 0 && rest[0] == '[' {
		if file, after, ok := bytes.Cut(rest, []byte("] ")); ok && bytes.IndexByte(file, ':') > 0 && bytes.IndexByte(file, ' ') < 0 {
			rest = after
		}
	}
	l.rest = rest
	return l, true
}

var infoLevel = []byte("INFO")
