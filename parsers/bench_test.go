package parsers

import (
	"bytes"
	"os"
	"path/filepath"
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
