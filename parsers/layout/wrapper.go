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

// Clone returns a copy that has its own memory.
func (w *Wrapper) Clone() Wrapper {
	return Wrapper{bytes.Clone(w.Stamp), bytes.Clone(w.Container), bytes.Clone(w.Pod), bytes.Clone(w.Output), w.Partial}
}

// Prefixes is what the lines of one file have shown of what stands before them.
type Prefixes struct {
	stamped bool   // a time of a wrapper's
	stream  []byte // behind it the name of a log stream
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
// starts a line, or where other lines of the file had one.
func (p *Prefixes) Unwrap(text []byte, w *Wrapper) (inner []byte, ok bool) {
	if len(text) == 0 {
		return text, false
	}
	switch c := text[0]; {
	case ascii.IsDigit(c):
		return p.stamp(text, w)
	case c == '[':
		return w.kubectl(text)
	case ascii.IsName(c) || c == '-':
		return w.compose(text)
	}
	return text, false
}

func (p *Prefixes) stamp(text []byte, w *Wrapper) (inner []byte, ok bool) {
	const timeSep = len("2006-01-02")
	n := StampLen(text)
	if n < stampLen || text[timeSep] != 'T' || w.Stamp != nil || n < len(text) && text[n] != ' ' {
		return text, false
	}
	stamp, inner := text[:n], text[min(n+1, len(text)):]
	word, rest := ascii.CutWord(inner[:min(len(inner), maxThread)])
	sure := p.stamped || bytes.IndexByte(stamp, '.') == stampLen && ascii.Span(stamp[stampLen+1:], ascii.IsDigit) >= 6
	switch {
	case (string(word) == "stdout" || string(word) == "stderr") && len(rest) > 2:
		// The tags, of which the first says whether the line is whole.
		tags, _ := ascii.CutWord(rest[1:])
		if tag, _, _ := bytes.Cut(tags, []byte(":")); len(tag) != 1 || tag[0] != 'P' && tag[0] != 'F' {
			return text, false
		}
		w.Output, w.Partial = word, tags[0] == 'P'
		inner = inner[min(len(inner), len(word)+1+len(tags)+1):]
	case p.stream != nil && bytes.Equal(word, p.stream) && len(inner) > len(word):
		inner = inner[len(word)+1:]
	case startsLine(inner, sure):
	case len(rest) > 1 && startsLine(rest[1:], sure) && isStreamName(word):
		p.stream = bytes.Clone(word)
		inner = inner[len(word)+1:]
	case !sure:
		return text, false
	}
	w.Stamp = stamp
	p.stamped = true
	return inner, true
}

// startsLine reports whether s starts as few but lines do: with an object, or with a
// time, behind a level or in brackets. Behind what is surely a wrapper's time a level
// alone, or a number and a bracket, will do as well.
func startsLine(s []byte, sure bool) bool {
	s = bytes.TrimLeft(Clean(s[:min(len(s), maxThread)]), "[")
	if len(s) == 0 {
		return false
	}
	if s[0] == '{' || StampLen(s) > 0 {
		return true
	}
	word, rest := ascii.CutWord(s)
	rest = bytes.TrimLeft(rest, " [")
	if isLevel(bytes.TrimRight(word, "]:")) {
		return sure || StampLen(rest) > 0
	}
	n := ascii.Span(s, ascii.IsDigit)
	return sure && n > 0 && bytes.HasPrefix(s[n:], []byte(" ["))
}

// isStreamName reports whether a word can be the name of a log stream: names of threads
// are in brackets, or follow a level.
func isStreamName(word []byte) bool { return !isLevel(word) && bytes.IndexByte(word, '[') != 0 }

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

// CleanHead is [Clean] for a line with such a thing at its head. Of a part of a line,
// the colours in its middle may not be whole.
func CleanHead(line []byte) []byte {
	if len(line) > 0 && (line[0] == escape || line[0] == 0 || line[0] == "\ufeff"[0]) {
		return Clean(line)
	}
	return line
}

// PlainBlanks returns a line with blanks in the place of those that web pages and PDFs
// put into a copied text, and reports whether there were any.
func PlainBlanks(line []byte) ([]byte, bool) {
	found := false
	for _, odd := range oddBlanks {
		if bytes.Contains(line, odd.text) {
			line, found = bytes.ReplaceAll(line, odd.text, odd.plain), true
		}
	}
	return line, found
}

var oddBlanks = []struct{ text, plain []byte }{
	{[]byte("\u00a0"), []byte(" ")}, // no-break space
	{[]byte("\u202f"), []byte(" ")}, // narrow no-break space
	{[]byte("\u200b"), nil},         // zero width space
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
