package layout

import (
	"bytes"

	"flink-loki/parsers/internal/ascii"
)

// Wrapper is what a container runtime, or a tool that shows its logs, put before a line.
// The zero Wrapper is none.
type Wrapper struct {
	Stamp     []byte // the time; a stamp without a zone is UTC
	Container []byte
	Pod       []byte
	Output    []byte // stdout or stderr
	// Partial says that the line goes on in the next one of the same output.
	Partial bool
}

// Unwrap takes one wrapper off a line; ok is false where it has none.
//
//	2025-01-20T03:04:05.678123456Z stdout P text          CRI
//	2025-01-20T03:04:05.678123456Z text                   kubectl logs --timestamps, docker logs -t
//	2026-02-03T13:38:02.123000+00:00 log-stream text      aws logs tail; with --format short no stream
//	jobmanager-1  | text                                  docker compose logs
//	[pod/flink-jobmanager-0/main] text                    kubectl logs --prefix
//
// A time of three decimals or less is a wrapper's only where it stands before what
// starts a line, or where stamped says that this file's lines have one.
func (w *Wrapper) Unwrap(text []byte, stamped bool) (inner []byte, ok bool) {
	if len(text) == 0 {
		return text, false
	}
	switch c := text[0]; {
	case ascii.IsDigit(c):
		return w.stamp(text, stamped)
	case c == '[':
		return w.kubectl(text)
	case ascii.IsName(c) || c == '-':
		return w.compose(text)
	}
	return text, false
}

func (w *Wrapper) stamp(text []byte, stamped bool) (inner []byte, ok bool) {
	const timeSep = len("2006-01-02")
	n := StampLen(text)
	if n < stampLen || text[timeSep] != 'T' || w.Stamp != nil || n < len(text) && text[n] != ' ' {
		return text, false
	}
	stamp, inner := text[:n], text[min(n+1, len(text)):]
	word, rest := ascii.CutWord(inner[:min(len(inner), maxThread)])
	switch {
	case (string(word) == "stdout" || string(word) == "stderr") && len(rest) > 2:
		// The tags, of which the first says whether the line is whole.
		tags, _ := ascii.CutWord(rest[1:])
		if tag, _, _ := bytes.Cut(tags, []byte(":")); len(tag) != 1 || tag[0] != 'P' && tag[0] != 'F' {
			return text, false
		}
		w.Output, w.Partial = word, tags[0] == 'P'
		inner = inner[min(len(inner), len(word)+1+len(tags)+1):]
	case bytes.HasPrefix(inner, []byte("{")) || StampLen(inner) > 0:
	case len(rest) > 1 && (rest[1] == '{' || StampLen(rest[1:]) > 0) && !isLevel(bytes.Trim(word, "[]:")):
		inner = inner[len(word)+1:] // the name of a log stream
	case stamped || bytes.IndexByte(stamp, '.') == stampLen && ascii.Span(stamp[stampLen+1:], ascii.IsDigit) >= 6:
	default:
		return text, false
	}
	w.Stamp = stamp
	return inner, true
}

func (w *Wrapper) kubectl(text []byte) (inner []byte, ok bool) {
	name, ok := bytes.CutPrefix(text, []byte("[pod/"))
	if !ok || w.Pod != nil {
		return text, false
	}
	name, inner, ok = bytes.Cut(name, []byte("] "))
	if !ok {
		return text, false
	}
	w.Pod, w.Container, ok = bytes.Cut(name, []byte("/"))
	return inner, ok
}

// maxName bounds the name of a container.
const maxName = 128

func (w *Wrapper) compose(text []byte) (inner []byte, ok bool) {
	n := ascii.Span(text[:min(len(text), maxName)], func(c byte) bool { return ascii.IsName(c) || c == '-' })
	rest := ascii.TrimLeft(text[n:])
	if n == 0 || len(rest) == 0 || rest[0] != '|' || w.Container != nil {
		return text, false
	}
	w.Container = text[:n]
	return bytes.TrimPrefix(rest[1:], []byte(" ")), true
}

// Clean returns a line without what does not belong to its text: a byte order mark,
// the NUL bytes of a file that was cut at its head, and colours. It copies the line
// only where colours stand in it.
func Clean(line []byte) []byte {
	line = bytes.TrimLeft(bytes.TrimPrefix(line, []byte("\ufeff")), "\x00")
	if bytes.IndexByte(line, escape) < 0 {
		return line
	}
	plain := make([]byte, 0, len(line))
	for len(line) > 0 {
		i := bytes.IndexByte(line, escape)
		if i < 0 {
			return append(plain, line...)
		}
		plain = append(plain, line[:i]...)
		line = line[i+escapeLen(line[i:]):]
	}
	return plain
}

// HasColours reports whether a text holds what [Clean] takes out.
func HasColours(text []byte) bool { return bytes.IndexByte(text, escape) >= 0 }

const escape = 0x1b

// escapeLen returns the length of the escape sequence that s starts with (ECMA-48):
// "ESC [", parameters, and a final byte; ESC alone where it is no such sequence.
func escapeLen(s []byte) int {
	if len(s) < 2 || s[1] != '[' {
		return 1
	}
	n := 2 + ascii.Span(s[2:], func(c byte) bool { return 0x20 <= c && c <= 0x3f })
	if n < len(s) && 0x40 <= s[n] && s[n] <= 0x7e {
		n++
	}
	return n
}
