package parsers

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzSource reads any text as the lines of a file: nothing panics, whatever comes out
// renders, and reading the lines one by one gives what reading them together does.
func FuzzSource(f *testing.F) {
	addSeeds(f)
	parser := newParser(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		together := readAll(t, parser, [][]byte{text})
		apart := readAll(t, parser, bytes.Split(text, []byte("\n")))
		if len(together) != len(apart) {
			t.Fatalf("%d events, %d where the lines are records of their own", len(together), len(apart))
		}
		for i := range together {
			if together[i] != apart[i] {
				t.Errorf("event %d: %s\nand where the lines are records of their own %s", i, together[i], apart[i])
			}
		}
	})
}

// readAll returns the events of some records as logfmt.
func readAll(t *testing.T, parser *Parser, records [][]byte) []string {
	t.Helper()
	var events []string
	source := parser.NewSource(func(e *Event) {
		if e.Kind == nil || e.Kind.lesson || e.Kind.Name == "unrecognised" {
			t.Fatalf("not an event: %v", e.Kind)
		}
		e.Drop(Part) // says how lines were joined
		line := e.AppendLogfmt(nil)
		if !utf8.Valid(line) {
			t.Errorf("no UTF-8: %q", line)
		}
		for field := range e.All {
			if Fields[field].Lesson {
				t.Errorf("%s has %s", e.Kind.Name, Fields[field].Name)
			}
		}
		_ = e.AppendJSON(nil)
		events = append(events, string(line))
	})
	source.Lesson = func(e *Event) { _ = e.AppendLogfmt(nil) }
	source.Unrecognised = func(e *Event) { _ = e.AppendLogfmt(nil) }
	for i, record := range records {
		source.Record(Origin{Line: i + 1, Offset: -1, Time: time.Unix(1, 0)}, record)
	}
	source.Flush()
	return events
}

// addSeeds adds the golden logs, and lines in all shapes.
func addSeeds(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*/*.log")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden logs: %v", err)
	}
	for _, file := range files {
		log, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(log[:min(len(log), 2000)])
	}
	e := readEntries(f, logsDir+"/2.3.0/declined/jobmanager.log")
	e = e[len(e)-20:]
	for _, s := range shapes {
		for _, w := range wrappings {
			var lines []string
			for _, e := range e[:2] {
				lines = append(lines, w.wrap(s.lines(e), e.time)...)
			}
			f.Add([]byte(strings.Join(lines, "\n")))
		}
	}
}

// FuzzTemplate compares the fast matcher with the naive one on any message.
func FuzzTemplate(f *testing.F) {
	parser, ref := newParser(f), newReference(f, Kinds, lessons)
	for _, s := range catalogue(f) {
		if s.event != "" && len(s.loggers) > 0 {
			f.Add(s.loggers[0], placeholder.ReplaceAllString(s.template, "1"))
		}
	}
	f.Fuzz(func(t *testing.T, logger, text string) {
		if ref[logger] == nil || strings.Count(text, `event": "`) > 1 || len(text) > 5000 {
			return
		}
		text = string(bytes.TrimSpace([]byte(text)))
		if text == "" || strings.Contains(text, "\n") {
			return
		}
		if fault := compareWithReference(parser, ref, logger, []byte(text)); fault != "" {
			t.Errorf("%s: %q\n%s", logger, text, fault)
		}
	})
}
