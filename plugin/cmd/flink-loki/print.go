package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"flink-loki/parsers"
)

// format renders an event as one line.
type format struct {
	head   string // line before the first event
	render func(b []byte, e *parsers.Event) []byte
	table  bool // columns are separated by tabs
}

// formats are the formats of --format.
var formats = map[string]format{
	"json": {render: func(b []byte, e *parsers.Event) []byte {
		b = append(b, '{')
		if e.Origin.Line > 0 { // events that are made have no line
			b = fmt.Appendf(b, `"line":%d,`, e.Origin.Line)
		}
		return append(e.AppendJSON(b), "}\n"...)
	}},
	"logfmt": {render: func(b []byte, e *parsers.Event) []byte {
		if e.Origin.Line > 0 {
			b = fmt.Appendf(b, "line=%d ", e.Origin.Line)
		}
		return append(e.AppendLogfmt(b), '\n')
	}},
	"table": {table: true, head: "TIME\tEVENT\tCHECKPOINT\tTASK\tHOST\tMS\tREASON\n", render: appendRow},
}

// printer prints events in the order of their lines: that of a header is known only
// when its trace has ended, and lines of several containers can stand in one file.
type printer struct {
	out     *bufio.Writer
	columns *tabwriter.Writer // nil for formats without
	render  func(b []byte, e *parsers.Event) []byte
	pending []printed
	events  int
}

type printed struct {
	line int
	text []byte
}

func newPrinter(w io.Writer, f format) *printer {
	p := &printer{out: bufio.NewWriter(w), render: f.render}
	if f.table {
		p.columns = tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	}
	p.write([]byte(f.head))
	return p
}

func (p *printer) write(text []byte) {
	// An error stays with the buffer, and close returns it.
	if p.columns != nil {
		_, _ = p.columns.Write(text)
	} else {
		_, _ = p.out.Write(text)
	}
}

// add takes an event.
func (p *printer) add(e *parsers.Event) {
	p.events++
	at, _ := slices.BinarySearchFunc(p.pending, e.Origin.Line+1, func(other printed, line int) int { return other.line - line })
	p.pending = slices.Insert(p.pending, at, printed{e.Origin.Line, p.render(nil, e)})
}

// print prints an event.
func (p *printer) print(e *parsers.Event, _ bool) {
	p.events++
	p.write(p.render(nil, e))
}

// release prints the events of the lines before a line.
func (p *printer) release(line int) {
	n := 0
	for ; n < len(p.pending) && p.pending[n].line < line; n++ {
		p.write(p.pending[n].text)
	}
	p.pending = slices.Delete(p.pending, 0, n)
}

func (p *printer) close() error {
	if p.columns != nil {
		_ = p.columns.Flush()
	}
	return p.out.Flush()
}

// appendRow renders the fields that a person looks at first.
func appendRow(b []byte, e *parsers.Event) []byte {
	value := func(f parsers.Field) string { return string(e.AppendValue(nil, f)) }
	when := ""
	if t, ok := e.Time(parsers.Time); ok {
		when = t.Format("2006-01-02 15:04:05.000")
	}
	task := value(parsers.TaskName)
	if index, ok := e.Int(parsers.SubtaskIndex); ok {
		of := "?"
		if e.Has(parsers.Parallelism) {
			of = value(parsers.Parallelism)
		}
		task = fmt.Sprintf("%s (%d/%s)", task, index+1, of)
	}
	return fmt.Appendf(b, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", when, e.Kind.Name, value(parsers.CheckpointID),
		shorten(task, 40), value(parsers.Host), value(parsers.DurationMs), shorten(value(parsers.Reason), 60))
}

func shorten(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}
