// Package ascii has the small scans that lines are read with. Texts are UTF-8, of which
// every byte above 127 is none of the bytes that are looked for.
package ascii

import "bytes"

// IsHex reports whether c is a digit of Flink's ids.
func IsHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsAlpha reports whether c is a letter.
func IsAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// IsName reports whether c can be in the name of a Java class with its package.
func IsName(c byte) bool { return IsAlpha(c) || IsDigit(c) || c == '.' || c == '_' || c == '$' }

// IsBlank reports whether c is a blank or a tab.
func IsBlank(c byte) bool { return c == ' ' || c == '\t' }

// Span returns how many bytes at the head of s are such.
func Span(s []byte, is func(byte) bool) int {
	for i, c := range s {
		if !is(c) {
			return i
		}
	}
	return len(s)
}

// TrimLeft cuts blanks off the head; unlike bytes.TrimLeft it is small enough to be
// inlined.
func TrimLeft(s []byte) []byte {
	for len(s) > 0 && s[0] == ' ' {
		s = s[1:]
	}
	return s
}

// TrimRight cuts blanks, tabs and a carriage return off the end.
func TrimRight(s []byte) []byte {
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\r' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// CutWord splits s at its first blank, which stays with the rest.
func CutWord(s []byte) (word, rest []byte) {
	if i := bytes.IndexByte(s, ' '); i >= 0 {
		return s[:i], s[i:]
	}
	return s, nil
}

// Int reads a whole number without a sign that fits into an int64.
func Int(v []byte) (int64, bool) {
	if len(v) == 0 || len(v) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range v {
		if !IsDigit(c) {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return int64(n), n <= 1<<63-1
}

// IDLen is the length of Flink's ids (AbstractID): hexadecimal digits in lower case.
const IDLen = 32

// IsID reports whether s is an id and nothing else.
func IsID(s []byte) bool { return len(s) == IDLen && Span(s, IsHex) == IDLen }
