package parsers

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden parses each testdata/<source>/<version>/<kind>.log, cut from a log as it
// was written, and compares with the .golden beside it: for each line of the log its
// event as logfmt, or "-" where the line is none, and a second event of one line with
// "+ " before it. "go test ./parsers -run TestGolden -update" rewrites them.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*/*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden pairs: %v", err)
	}
	kinds := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".log")
		kind := filepath.Base(name)
		kinds[kind] = true
		t.Run(strings.TrimPrefix(name, "testdata/"), func(t *testing.T) {
			log, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := golden(t, log)
			if !bytes.Contains(got, []byte("event="+kind+" ")) {
				t.Errorf("no %s in it", kind)
			}
			if *update {
				if err := os.WriteFile(name+".golden", got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name + ".golden")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	for _, kind := range Kinds {
		if len(kind.Forms) > 0 && !kinds[kind.Name] {
			t.Errorf("no golden pair for %s", kind.Name)
		}
	}
}

// golden returns the golden text of a log.
func golden(t *testing.T, log []byte) []byte {
	t.Helper()
	lines := bytes.Split(bytes.TrimSuffix(log, []byte("\n")), []byte("\n"))
	byLine := make([][]byte, len(lines)+1)
	source := newParser(t).NewSource(func(e *Event) {
		at := &byLine[e.Origin.Line]
		if *at != nil {
			*at = append(*at, "\n+ "...)
		}
		*at = e.AppendLogfmt(*at)
	})
	for i, line := range lines {
		source.Record(Origin{Line: i + 1, Offset: -1}, line)
	}
	source.Flush()
	var out bytes.Buffer
	for _, text := range byLine[1:] {
		if text == nil {
			text = []byte("-")
		}
		out.Write(text)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

func newParser(t testing.TB) *Parser {
	t.Helper()
	p, err := New(Options{Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
