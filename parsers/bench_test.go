package parsers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers/layout"
)

// realLines returns the lines of real logs in the layout that Flink ships, with the traces
// below them: those that are events and those that are none.
func realLines(t testing.TB) (events, plain []byte) {
	t.Helper()
	files, err := filepath.Glob(logsDir + "/*/*/*manager*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, file := range files {
		if strings.Contains(file, "json") || strings.Contains(file, "thread") || strings.Contains(file, "logback") {
			continue
		}
		log, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		isEvent, isMetric := map[int]bool{}, map[int]bool{}
		source := newParser(t).NewSource(func(e *Event) {
			isEvent[e.Origin.Line] = true
			isMetric[e.Origin.Line] = e.Kind.Name == "metric_reported" // which is none without its header
		})
		n := 0
		for line := range bytes.Lines(log) {
			n++
			source.Record(Origin{Line: n, Offset: -1}, bytes.TrimSuffix(line, []byte("\n")))
		}
		source.Flush()
		n = 0
		to := &plain
		for line := range bytes.Lines(log) {
			n++
			if _, ok := layout.Shipped(line); ok { // else it goes with its header
				to = &plain
				if isEvent[n] {
					to = &events
				}
			}
			if !isMetric[n] {
				*to = append(*to, line...)
			}
		}
	}
	return events, plain
}

// timed runs f some times and returns how long one run took at best.
func timed(f func()) time.Duration {
	best := time.Hour
	for range 20 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best
}

// BenchmarkPlain reads real lines that are no events, and compares with looking for the
// ends of the same lines.
func BenchmarkPlain(b *testing.B) {
	_, plain := realLines(b)
	events := 0
	source := newParser(b).NewSource(func(*Event) { events++ })
	read := func() {
		source.Record(Origin{Offset: -1}, plain)
		source.Flush()
	}
	newlines := func() {
		for rest := plain; ; {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				return
			}
			rest = rest[i+1:]
		}
	}
	ratio := float64(timed(read)) / float64(timed(newlines))
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		read()
	}
	if events > 0 {
		b.Errorf("%d events", events)
	}
	b.ReportMetric(ratio, "x/IndexByte")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(bytes.Count(plain, []byte("\n"))), "ns/line")
}

// BenchmarkEvents reads real lines that are events, and compares with a regular
// expression that has an alternative for each form.
func BenchmarkEvents(b *testing.B) {
	log, _ := realLines(b)
	var messages [][]byte
	var lines []byte // without traces, which the regular expression does not read
	for line := range bytes.Lines(log) {
		if l, ok := layout.Shipped(line); ok {
			messages = append(messages, bytes.Clone(l.Message()))
			lines = append(lines, line...)
		}
	}
	events := 0
	source := newParser(b).NewSource(func(*Event) { events++ })
	read := func() {
		source.Record(Origin{Offset: -1}, lines)
		source.Flush()
	}
	read()
	if events < len(messages)*9/10 {
		b.Fatalf("%d events of %d lines", events, len(messages))
	}
	var patterns []string
	for _, forms := range newReference(b, Kinds) {
		for _, f := range forms {
			if p := strings.TrimPrefix(f.pattern.String(), "(?s)"); !slices.Contains(patterns, p) {
				patterns = append(patterns, p)
			}
		}
	}
	alternation := regexp.MustCompile("(?s)" + strings.Join(patterns, "|"))
	sample := messages[:min(len(messages), 200)]
	start := time.Now()
	for _, message := range sample {
		alternation.FindSubmatchIndex(message)
	}
	each := time.Since(start) / time.Duration(len(sample))
	ratio := float64(each) / (float64(timed(read)) / float64(len(messages)))
	allocs := testing.AllocsPerRun(5, read) / float64(len(messages))
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		read()
	}
	b.ReportMetric(ratio, "x-faster-than-regexp")
	b.ReportMetric(allocs, "allocs/event")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(messages)), "ns/event")
}

// BenchmarkLong reads lines that are long, and compares their time for a byte with that
// of lines of a quarter of the length: 1 is linear.
func BenchmarkLong(b *testing.B) {
	for _, c := range []struct {
		name string
		line func(n int) string
	}{
		{"plain", func(n int) string { return entryHead("com.example.Job") + strings.Repeat("a ] (b) ", n/8) }},
		{"event", func(n int) string {
			return entryHead("org.apache.flink.streaming.runtime.tasks.AsyncCheckpointRunnable") + strings.Repeat("x -> (1/2) ", n/11) +
				" (1/4)#3 - asynchronous part of checkpoint 77 could not be completed."
		}},
		{"almost an event", func(n int) string {
			return entryHead("org.apache.flink.streaming.runtime.tasks.AsyncCheckpointRunnable") + strings.Repeat("x (1/2) - asynchronous part of checkpoint ", n/42)
		}},
		{"bracket", func(n int) string { return "2026-11-29 13:37:13,754 INFO [" + strings.Repeat("a] [b", n/5) }},
		{"object", func(n int) string {
			return `{"logger":"a.B","level":"INFO","message":"` + strings.Repeat(`\u003e a`, n/8) + `"}`
		}},
	} {
		for _, n := range []int{28 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dkB", c.name, n>>10), func(b *testing.B) {
				source := newParser(b).NewSource(func(*Event) {})
				source.Unrecognised = func(*Event) {}
				read := func(line []byte) func() {
					return func() {
						source.Record(Origin{Offset: -1}, line)
						source.Flush()
					}
				}
				long, short := []byte(c.line(n)), []byte(c.line(n/4))
				ratio := float64(timed(read(long))) / float64(timed(read(short))) / 4
				b.SetBytes(int64(n))
				for b.Loop() {
					read(long)()
				}
				b.ReportMetric(ratio, "x-of-linear")
			})
		}
	}
}

func entryHead(logger string) string {
	return fmt.Sprintf("2026-11-29 13:37:13,754 INFO  %-60s [] - ", logger)
}
