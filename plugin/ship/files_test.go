package ship

import (
	"bytes"
	"os"
	"testing"
	"time"

	"flink-loki/parsers"
	"flink-loki/plugin/enrich"
	"flink-loki/plugin/record"
)

// TestSources_chunks cuts a LOG of RocksDB 8.10, which tells the end of a flush in
// two lines, into chunks: each flush is told once.
func TestSources_chunks(t *testing.T) {
	log, err := os.ReadFile("../../test/logs/2.3.0/expired/rocksdb-CoStreamFlatMap-sub2of2.LOG")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	files := &files{cfg: &Config{}, parser: parser}
	state := enrich.NewState(0)
	lines := bytes.Split(bytes.TrimSuffix(log, []byte("\n")), []byte("\n"))
	flushes := func(chunk int) (n int) {
		for at := 0; at < len(lines); at += chunk {
			pass := state.Begin(enrich.Teller{SumStalls: true, Emit: func(e *parsers.Event, _ bool) {
				if e.Kind.Name == "rocksdb_flush_finished" {
					n++
				}
			}})
			sources := sources{files: files, pass: pass, identify: func(string, []byte, *parsers.Event) {}}
			for _, line := range lines[at:min(at+chunk, len(lines))] {
				sources.of(&record.Record{Filename: []byte("LOG"), Offset: -1}).Record(parsers.Origin{Offset: -1}, line)
			}
			sources.flush()
			if err := pass.End(""); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	want := bytes.Count(log, []byte("] Flush lasted "))
	for _, chunk := range []int{1, 2, 3, 5, 7, 11, 100, len(lines)} {
		if got := flushes(chunk); got != want {
			t.Errorf("chunks of %d lines: %d flushes, want %d", chunk, got, want)
		}
	}
}
