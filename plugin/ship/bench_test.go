package ship

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"flink-loki/parsers"
	"flink-loki/plugin/record"
	"flink-loki/test/chunk"
)

// BenchmarkRender renders a chunk of real lines without events: go test -bench Render ./plugin/ship
func BenchmarkRender(b *testing.B) {
	c := plainChunk(b)
	cfg, err := ReadConfig(fakeConfig{"timezone": "UTC"}.get)
	if err != nil {
		b.Fatal(err)
	}
	o, err := New(cfg, NewLogger(io.Discard, cfg.LogLevel), "test")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(c)))
	b.ReportAllocs()
	for b.Loop() {
		if _, requests, _ := o.read("t", c); requests != nil {
			b.Fatalf("%d requests", len(requests))
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	c := plainChunk(b)
	cfg, _ := ReadConfig(fakeConfig{"timezone": "UTC"}.get)
	b.SetBytes(int64(len(c)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		record.Decode(c, cfg.Keys, func(*record.Record) { n++ })
	}
}

// plainChunk is a chunk of 2 MB of the lines of a real log that are no event, and teach
// nothing.
func plainChunk(b *testing.B) []byte {
	b.Helper()
	log, err := os.ReadFile("../../test/logs/2.3.0/expired/taskmanager-2.log")
	if err != nil {
		b.Fatal(err)
	}
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	if err != nil {
		b.Fatal(err)
	}
	var plain []byte
	for line := range bytes.Lines(log) {
		isEvent := false
		source := parser.NewSource(func(*parsers.Event) { isEvent = true })
		source.Lesson = func(*parsers.Event) { isEvent = true }
		source.Record(parsers.Origin{}, bytes.TrimSuffix(line, []byte("\n")))
		source.Flush()
		if !isEvent {
			plain = append(plain, line...)
		}
	}
	return chunk.FromLog(bytes.Repeat(plain, 1+2<<20/len(plain)), "/log/taskmanager.log", time.Now())
}

// BenchmarkEvents renders a chunk in which each header is an event.
func BenchmarkEvents(b *testing.B) {
	log, err := os.ReadFile("../../test/logs/2.3.0/expired/jobmanager.log")
	if err != nil {
		b.Fatal(err)
	}
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	if err != nil {
		b.Fatal(err)
	}
	var events []byte
	n := 0
	for line := range bytes.Lines(log) {
		source := parser.NewSource(func(*parsers.Event) { events = append(events, line...); n++ })
		source.Record(parsers.Origin{}, bytes.TrimSuffix(line, []byte("\n")))
		source.Flush()
	}
	c := chunk.FromLog(events, "/log/jobmanager.log", time.Now())
	cfg, err := ReadConfig(fakeConfig{"timezone": "UTC", "labels": "cluster=prod"}.get)
	if err != nil {
		b.Fatal(err)
	}
	o, err := New(cfg, NewLogger(io.Discard, cfg.LogLevel), "test")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		fingerprint, _, _ := o.read("t", c)
		o.kept.journal.Release(fingerprint)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
}
