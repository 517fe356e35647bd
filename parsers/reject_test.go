package parsers

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestReject reads lines that look like events and are none.
func TestReject(t *testing.T) {
	files, err := filepath.Glob("testdata/reject/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing to reject: %v", err)
	}
	for _, file := range files {
		log, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(log, []byte("\n"))
		source := newParser(t).NewSource(func(e *Event) {
			t.Errorf("%s: %s is a %s", file, lines[e.Origin.Line-1], e.Kind.Name)
		})
		for i, line := range lines {
			source.Record(Origin{Line: i + 1, Offset: -1}, line)
			if bytes.HasPrefix(line, []byte("2024")) || bytes.HasPrefix(line, []byte("{")) {
				continue
			}
			// And each of the others where a trace could stand.
			source.Record(Origin{Line: i + 1, Offset: -1}, []byte("2024-03-26 10:06:47,823 INFO  com.example.Job [] - x\n"+string(line)))
		}
		source.Flush()
	}
}
