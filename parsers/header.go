package parsers

import (
	"bytes"
	"time"
)

// header is what stands before a line's message.
type header struct {
	stamp  []byte // the time as written, see readStamp
	level  []byte
	thread []byte
	logger []byte
	// rest starts behind the logger; message is cut from it when it is wanted.
	rest    []byte
	rocksDB bool
}

// parseHeader reads the header of a line: one of Flink's layouts, or RocksDB's LOG.
//
//	2019-09-02 16:26:20,972 INFO  org.apache.flink.….CheckpointCoordinator     - message      log4j 1.2, Flink <= 1.10
//	2026-11-29 13:36:05,010 INFO  org.apache.flink.….CheckpointCoordinator    [] - message    log4j 2, Flink >= 1.11
//	2019-09-02 16:26:20,972 INFO [Checkpoint Timer] org.apache.flink.….CheckpointCoordinator - message
//	2026-11-29 13:57:20.622 [Checkpoint Timer] WARN  org.apache.flink.….CheckpointCoordinator  - message    logback
//	2019/09/10-14:22:55.734684 7fef66ffd700 [utilities/checkpoint/checkpoint_impl.cc:83] message
func parseHeader(line []byte) (h header, ok bool) {
	// A header starts with a digit; almost every line of a trace does not. Some pages
	// put blanks before lines.
	line = trimLeft(line)
	if len(line) < stampLen || !isDigit(line[0]) {
		return h, false
	}
	if line[4] == '/' {
		return parseRocksDBHeader(line)
	}
	if !isStamp(line, '-', ' ') {
		return h, false
	}
	end := stampEnd(line)
	h.stamp = line[:end]
	// The layout that Flink ships: the level in five columns, then the logger.
	if rest := line[end:]; len(rest) > 8 && rest[0] == ' ' && rest[6] == ' ' && isLevel(trimRight(rest[1:6])) && isAlpha(rest[7]) {
		h.level = trimRight(rest[1:6])
		h.logger, h.rest = cutWord(rest[7:])
		return h, true
	}
	return h, h.cutContext(line[end:])
}

// stampLen is the length of a time without decimals.
const stampLen = len("2006-01-02 15:04:05")

// isStamp reports whether a line starts with a time: the separators stand where they
// belong. That its numbers are numbers is for readStamp to see.
func isStamp(line []byte, dateSep, timeSep byte) bool {
	return line[4] == dateSep && line[7] == dateSep && line[10] == timeSep && line[13] == ':' && line[16] == ':' &&
		isDigit(line[18])
}

// stampEnd returns where the time at the head of a line ends, decimals included.
func stampEnd(line []byte) int {
	if len(line) > stampLen+1 && (line[stampLen] == ',' || line[stampLen] == '.') {
		return stampLen + 1 + span(line[stampLen+1:], isDigit)
	}
	return stampLen
}

// readStamp returns the instant that a time means in a zone: "2006-01-02
// 15:04:05,000", with other separators, and any number of decimals.
func readStamp(s []byte, loc *time.Location) (time.Time, bool) {
	if len(s) < stampLen {
		return time.Time{}, false
	}
	year, ok1 := parseInt(s[0:4])
	month, ok2 := parseInt(s[5:7])
	day, ok3 := parseInt(s[8:10])
	hour, ok4 := parseInt(s[11:13])
	minute, ok5 := parseInt(s[14:16])
	second, ok6 := parseInt(s[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || month < 1 || month > 12 || day < 1 || day > 31 ||
		hour > 23 || minute > 59 || second > 60 {
		return time.Time{}, false
	}
	nano, unit := 0, 100_000_000
	for _, c := range s[min(stampLen+1, len(s)):] {
		nano += int(c-'0') * unit
		unit /= 10
	}
	return time.Date(int(year), time.Month(month), int(day), int(hour), int(minute), int(second), nano, loc), true
}

// message cuts what stands between the logger and the message off: log4j's NDC in
// brackets, and a dash.
func (h *header) message() []byte {
	rest := trimLeft(h.rest)
	if h.rocksDB {
		return trimRight(rest)
	}
	if len(rest) > 0 && rest[0] == '[' {
		i := bytes.IndexByte(rest, ']')
		if i < 0 {
			return nil
		}
		rest = trimLeft(rest[i+1:])
	}
	if len(rest) == 0 || rest[0] != '-' {
		return nil
	}
	return trimRight(trimLeft(rest[1:]))
}

// cutContext reads level, thread and logger in the orders that layouts have.
func (h *header) cutContext(rest []byte) bool {
	for {
		rest = trimLeft(rest)
		if len(rest) == 0 {
			return false
		}
		if rest[0] == '[' {
			text, after, ok := cutBracket(rest)
			if !ok {
				return false
			}
			h.thread, rest = text, after
			continue
		}
		word, after := cutWord(rest)
		switch {
		case len(h.level) == 0 && isLevel(word):
			h.level, rest = word, after
		case len(h.level) > 0 && isLogger(word):
			h.logger, h.rest = word, after
			return true
		default:
			return false
		}
	}
}

// cutBracket cuts "[text]" off. A text may hold brackets of its own: it ends at the
// first "] " before something that can follow it in a header.
func cutBracket(s []byte) (text, rest []byte, ok bool) {
	for from := 1; ; from++ {
		i := bytes.IndexByte(s[from:], ']')
		if i < 0 {
			return nil, nil, false
		}
		from += i
		rest = trimLeft(s[from+1:])
		word, _ := cutWord(rest)
		if len(rest) < len(s)-from-1 && (isLevel(word) || isLogger(word)) {
			return s[1:from], rest, true
		}
	}
}

func cutWord(s []byte) (word, rest []byte) {
	if i := bytes.IndexByte(s, ' '); i >= 0 {
		return s[:i], s[i:]
	}
	return s, nil
}

func isLevel(word []byte) bool {
	switch string(word) {
	case "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL":
		return true
	}
	return false
}

// isLogger reports whether a word looks like a class with its package.
func isLogger(word []byte) bool {
	return bytes.IndexByte(word, '.') > 0 &&
		span(word, func(c byte) bool { return isAlpha(c) || isDigit(c) || c == '.' || c == '_' || c == '$' }) == len(word)
}

// parseRocksDBHeader reads a line of RocksDB's LOG, as db/…/auto_roll_logger.cc and
// env/env_posix.cc write it:
//
//	YYYY/MM/DD-HH:MM:SS.uuuuuu <thread> [LEVEL] (Original Log Time …) [file:line] message
//
// The level is printed only when it is not INFO; "Original Log Time" is the true time
// of a line that was buffered; lines of the options and of EVENT_LOG_v1 have no file.
func parseRocksDBHeader(line []byte) (h header, ok bool) {
	if !isStamp(line, '/', '-') {
		return h, false
	}
	end := stampEnd(line)
	h.stamp = line[:end]
	h.rocksDB = true
	h.level = infoLevel
	var rest []byte
	h.thread, rest = cutWord(trimLeft(line[end:]))
	rest = trimLeft(rest)
	if level, after, ok := bytes.Cut(rest, []byte("] ")); ok && len(level) > 1 && level[0] == '[' && isLevel(level[1:]) {
		h.level, rest = level[1:], after
	}
	if original, ok := bytes.CutPrefix(rest, []byte("(Original Log Time ")); ok && len(original) > stampLen && isStamp(original, '/', '-') {
		end := stampEnd(original)
		h.stamp = original[:end]
		rest = bytes.TrimPrefix(original[end:], []byte(") "))
	}
	if len(rest) > 0 && rest[0] == '[' {
		if file, after, ok := bytes.Cut(rest, []byte("] ")); ok && bytes.IndexByte(file, ':') > 0 && bytes.IndexByte(file, ' ') < 0 {
			rest = after
		}
	}
	h.rest = rest
	return h, true
}

var infoLevel = []byte("INFO")

// trimLeft and trimRight cut blanks off; unlike those of package bytes they are small
// enough to be inlined.
func trimLeft(s []byte) []byte {
	for len(s) > 0 && s[0] == ' ' {
		s = s[1:]
	}
	return s
}

func trimRight(s []byte) []byte {
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\r' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}
