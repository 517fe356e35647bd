package parsers

import (
	"bytes"
	"time"
)

// header is what stands before a line's message.
type header struct {
	stamp   stamp
	level   []byte
	thread  []byte
	logger  []byte
	message []byte
	rocksDB bool
}

// stamp is a time as a line prints it, without a zone.
type stamp struct {
	year, month, day, hour, minute, second, nano int
}

// in returns the instant that the stamp means in a zone.
func (s stamp) in(loc *time.Location) time.Time {
	return time.Date(s.year, time.Month(s.month), s.day, s.hour, s.minute, s.second, s.nano, loc)
}

// parseHeader reads the header of a line: one of Flink's layouts, or RocksDB's LOG.
//
//	2019-09-02 16:26:20,972 INFO  org.apache.flink.….CheckpointCoordinator     - message      log4j 1.2, Flink <= 1.10
//	2026-11-29 13:36:05,010 INFO  org.apache.flink.….CheckpointCoordinator    [] - message    log4j 2, Flink >= 1.11
//	2019-09-02 16:26:20,972 INFO [Checkpoint Timer] org.apache.flink.….CheckpointCoordinator - message
//	2026-11-29 13:57:20.622 [Checkpoint Timer] WARN  org.apache.flink.….CheckpointCoordinator  - message    logback
//	2019/09/10-14:22:55.734684 7fef66ffd700 [utilities/checkpoint/checkpoint_impl.cc:83] message
func parseHeader(line []byte) (h header, ok bool) {
	// A header of any layout starts with a digit; almost every line of a trace does
	// not. Some pages put blanks before lines.
	for len(line) > 0 && line[0] == ' ' {
		line = line[1:]
	}
	if len(line) < len("2006-01-02 15:04:05") || !isDigit(line[0]) {
		return h, false
	}
	if line[4] == '/' {
		return parseRocksDBHeader(line)
	}
	rest, ok := h.stamp.cut(line, '-', ' ')
	if !ok {
		return h, false
	}
	return h, h.cutContext(rest)
}

// cut reads "2006-01-02 15:04:05,000" with any number of decimals after a comma or a
// dot, and returns what follows.
func (s *stamp) cut(line []byte, dateSep, timeSep byte) (rest []byte, ok bool) {
	if line[4] != dateSep || line[7] != dateSep || line[10] != timeSep || line[13] != ':' || line[16] != ':' {
		return nil, false
	}
	year, ok1 := parseInt(line[0:4])
	month, ok2 := parseInt(line[5:7])
	day, ok3 := parseInt(line[8:10])
	hour, ok4 := parseInt(line[11:13])
	minute, ok5 := parseInt(line[14:16])
	second, ok6 := parseInt(line[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || month < 1 || month > 12 || day < 1 || day > 31 ||
		hour > 23 || minute > 59 || second > 60 {
		return nil, false
	}
	*s = stamp{int(year), int(month), int(day), int(hour), int(minute), int(second), 0}
	rest = line[19:]
	if len(rest) > 1 && (rest[0] == ',' || rest[0] == '.') {
		digits := span(rest[1:], isDigit)
		unit := 100_000_000
		for _, c := range rest[1 : 1+digits] {
			s.nano += int(c-'0') * unit
			unit /= 10
		}
		rest = rest[1+digits:]
	}
	return rest, true
}

// cutContext reads level, thread and logger in the orders that layouts have, up to
// the dash before the message.
func (h *header) cutContext(rest []byte) bool {
	for {
		rest = bytes.TrimLeft(rest, " ")
		if len(rest) == 0 {
			return false
		}
		switch {
		case rest[0] == '-' && len(h.logger) > 0 && (len(rest) == 1 || rest[1] == ' '):
			h.message = bytes.TrimSpace(rest[1:])
			return true
		case rest[0] == '[':
			text, after, ok := cutBracket(rest)
			if !ok {
				return false
			}
			if len(h.logger) == 0 { // behind the logger stands log4j's NDC
				h.thread = text
			}
			rest = after
		default:
			word, after := cutWord(rest)
			switch {
			case len(h.level) == 0 && isLevel(word):
				h.level = word
			case len(h.logger) == 0 && len(h.level) > 0 && bytes.IndexByte(word, '.') > 0:
				h.logger = word
			default:
				return false
			}
			rest = after
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
		rest = bytes.TrimLeft(s[from+1:], " ")
		word, _ := cutWord(rest)
		if len(rest) < len(s)-from-1 && (isLevel(word) || string(word) == "-" || isLogger(word)) {
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
	rest, ok := h.stamp.cut(line, '/', '-')
	if !ok || len(rest) < 2 || rest[0] != ' ' {
		return h, false
	}
	h.rocksDB = true
	h.thread, rest = cutWord(rest[1:])
	h.level = []byte("INFO")
	rest = bytes.TrimLeft(rest, " ")
	if level, after, ok := bytes.Cut(rest, []byte("] ")); ok && len(level) > 1 && level[0] == '[' && isLevel(level[1:]) {
		h.level, rest = level[1:], after
	}
	if original, ok := bytes.CutPrefix(rest, []byte("(Original Log Time ")); ok && len(original) >= len("2006/01/02-15:04:05") {
		var s stamp
		if after, ok := s.cut(original, '/', '-'); ok {
			h.stamp = s
			rest = bytes.TrimPrefix(after, []byte(") "))
		}
	}
	if len(rest) > 0 && rest[0] == '[' {
		if file, after, ok := bytes.Cut(rest, []byte("] ")); ok && bytes.IndexByte(file, ':') > 0 && bytes.IndexByte(file, ' ') < 0 {
			rest = after
		}
	}
	h.message = bytes.TrimSpace(rest)
	return h, true
}
