package layout

import (
	"bytes"
	"strings"
	"time"

	"flink-loki/parsers/internal/ascii"
)

// stampForms are the times that layouts print, written as Go writes layouts, without
// decimals and zone.
var stampForms = compileStampForms(
	"2006-01-02 15:04:05",  // Flink's own layouts
	"2006-01-02T15:04:05",  // ISO 8601: log4j 2, JSON layouts, container runtimes
	"2006/01/02-15:04:05",  // RocksDB
	"2006/01/02 15:04:05",  //
	"2006.01.02 15:04:05",  //
	"06/01/02 15:04:05",    // Hadoop's and Spark's layouts
	"02 Jan 2006 15:04:05", // log4j's DATE
	"20060102T150405",      // log4j 2's ISO8601_BASIC
	"15:04:05",             // log4j's ABSOLUTE: a time of day, which is no instant
)

// stampForm is one shape of a time.
type stampForm struct {
	text                                   string
	year, month, day, hour, minute, second int // where they stand, -1 for not at all
	yearLen                                int
	name                                   bool // the month is a name
}

func compileStampForms(texts ...string) []stampForm {
	var forms []stampForm
	for _, text := range texts {
		f := stampForm{text: text, hour: strings.Index(text, "15"), minute: strings.Index(text, "04"), second: strings.Index(text, "05")}
		f.year, f.yearLen = strings.Index(text, "2006"), 4
		if f.year < 0 {
			f.year, f.yearLen = strings.Index(text, "06/"), 2
		}
		// "2006" does not hold "01" or "02", but may end in the zero of one.
		after := max(f.year+f.yearLen, 0)
		f.month, f.day = -1, -1
		switch {
		case f.year < 0:
		case strings.Contains(text, "Jan"):
			f.name, f.month, f.day = true, strings.Index(text, "Jan"), strings.Index(text, "02")
		default:
			f.month, f.day = after+strings.Index(text[after:], "01"), after+strings.Index(text[after:], "02")
		}
		forms = append(forms, f)
	}
	return forms
}

// match reports whether s starts with the form.
func (f *stampForm) match(s []byte) bool {
	if len(s) < len(f.text) {
		return false
	}
	for i := range len(f.text) {
		switch c := f.text[i]; {
		case ascii.IsDigit(c):
			if !ascii.IsDigit(s[i]) {
				return false
			}
		case f.name && i >= f.month && i < f.month+3:
			if !ascii.IsAlpha(s[i]) {
				return false
			}
		case c != s[i]:
			return false
		}
	}
	return true
}

// epochLen is the length of a time in milliseconds since 1970, from 2001 to 2286.
const epochLen = len("1795958442924")

// StampLen returns the length of the time that s starts with, decimals and zone
// included; 0 where s starts with none.
func StampLen(s []byte) int {
	if len(s) < len("15:04:05") || !ascii.IsDigit(s[0]) {
		return 0
	}
	n := 0
	for i := range stampForms {
		if f := &stampForms[i]; f.match(s) {
			n = len(f.text)
			n += decimals(s[n:])
			if f.year >= 0 {
				if z, _ := zone(s[n:]); z > 0 {
					n += z
				} else {
					n += zoneName(s[n:])
				}
			}
			break
		}
	}
	if n == 0 && ascii.Span(s, ascii.IsDigit) == epochLen {
		n = epochLen
	}
	if n < len(s) && (ascii.IsAlpha(s[n]) || ascii.IsDigit(s[n])) {
		return 0
	}
	return n
}

// decimals returns the length of ",123", ".123456" or ":123" at the head of s.
func decimals(s []byte) int {
	if len(s) < 2 || s[0] != ',' && s[0] != '.' && s[0] != ':' {
		return 0
	}
	n := ascii.Span(s[1:], ascii.IsDigit)
	if n == 0 || s[0] == ':' && n != 3 {
		return 0
	}
	return 1 + n
}

// zone returns the length of a zone at the head of s and how many seconds its clock is
// ahead of UTC: "Z", "+01:00", "+0100", "+01", " UTC", " GMT".
func zone(s []byte) (n, offset int) {
	blank := 0
	if len(s) > 0 && s[0] == ' ' {
		blank = 1
	}
	t := s[blank:]
	switch {
	case bytes.HasPrefix(t, []byte("Z")) && blank == 0:
		return 1, 0
	case bytes.HasPrefix(t, []byte("UTC")) || bytes.HasPrefix(t, []byte("GMT")):
		return blank + 3, 0
	case len(t) >= 3 && (t[0] == '+' || t[0] == '-'):
		hours, ok := ascii.Int(t[1:3])
		if !ok || hours > 14 {
			return 0, 0
		}
		n, minutes := 3, int64(0)
		for _, colon := range []int{0, 1} {
			if len(t) >= 5+colon && (colon == 0 || t[3] == ':') {
				if m, ok := ascii.Int(t[3+colon : 5+colon]); ok && m < 60 {
					n, minutes = 5+colon, m
					break
				}
			}
		}
		if blank == 1 && n < 5 {
			return 0, 0 // " -12" is more likely something else
		}
		offset = int(hours*3600 + minutes*60)
		if t[0] == '-' {
			offset = -offset
		}
		return blank + n, offset
	}
	return 0, 0
}

// zoneName returns the length of the abbreviated name of a zone at the head of s, such as
// " CET". It tells no offset: several zones have the same one.
func zoneName(s []byte) int {
	if len(s) == 0 || s[0] != ' ' {
		return 0
	}
	n := ascii.Span(s[1:], func(c byte) bool { return 'A' <= c && c <= 'Z' })
	name, rest := s[1:1+n], s[1+n:]
	if n < 3 || n > 4 || isLevel(name) || len(rest) == 0 || rest[0] != ' ' {
		return 0
	}
	// Before a level, or the bracket of a thread: other words follow a time, too.
	word, _ := ascii.CutWord(ascii.TrimLeft(rest))
	if !isLevel(word) && (len(word) == 0 || word[0] != '[') {
		return 0
	}
	return 1 + n
}

// civil is a time as written.
type civil struct {
	sec    int64 // since 1970, as if the clock showed UTC
	nano   int
	zoned  bool
	offset int // of the zone, in seconds
}

func (c civil) utc() time.Time { return time.Unix(c.sec-int64(c.offset), int64(c.nano)) }

// readStamp reads a time. A time of day is none.
func readStamp(s []byte) (c civil, ok bool) {
	if len(s) == epochLen {
		if ms, ok := ascii.Int(s); ok {
			return civil{sec: ms / 1000, nano: int(ms%1000) * 1e6, zoned: true}, true
		}
	}
	for i := range stampForms {
		f := &stampForms[i]
		if f.year < 0 || !f.match(s) {
			continue
		}
		number := func(at, n int) int { v, _ := ascii.Int(s[at : at+n]); return int(v) }
		year, month, day := number(f.year, f.yearLen), 0, number(f.day, 2)
		if f.yearLen == 2 {
			year += 2000
		}
		if f.name {
			month = monthByName(s[f.month : f.month+3])
		} else {
			month = number(f.month, 2)
		}
		hour, minute, second := number(f.hour, 2), number(f.minute, 2), number(f.second, 2)
		if month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60 {
			return c, false
		}
		date := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
		if day > 28 && second < 60 && date.Day() != day { // the 30th of February
			return c, false
		}
		c.sec = date.Unix()
		rest := s[len(f.text):]
		n := decimals(rest)
		unit := 100_000_000
		for _, d := range rest[min(1, n):n] {
			c.nano += int(d-'0') * unit
			unit /= 10
		}
		n, c.offset = zone(rest[n:])
		c.zoned = n > 0
		return c, true
	}
	return c, false
}

func monthByName(name []byte) int {
	for m := time.January; m <= time.December; m++ {
		if m.String()[:3] == string(name) {
			return int(m)
		}
	}
	return 0
}

// appendStamp returns an instant as a time that readStamp reads.
func appendStamp(sec, nano int64) []byte {
	return time.Unix(sec, nano).UTC().AppendFormat(nil, time.RFC3339Nano)
}
