package ship

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flink-loki/parsers"
	"flink-loki/plugin/loki"
	"flink-loki/test/fakeloki"
)

// TestFlush_panic: a bug that a record meets, in each position, costs that record: the
// others are delivered, and it is in the dead-letter file.
func TestFlush_panic(t *testing.T) {
	const n = 5
	for poison := range n {
		var log bytes.Buffer
		fake := fakeloki.New(fakeloki.Config{})
		dead := filepath.Join(t.TempDir(), "dead.jsonl")
		o := newOutput(t, fake, &log, fakeConfig{"dead_letter_path": dead})
		o.identified = func(e *parsers.Event) {
			if id, _ := e.Int(parsers.CheckpointID); id == 100 {
				panic("a bug")
			}
		}
		var lines []string
		for i := range n {
			id := i
			if i == poison {
				id = 100
			}
			lines = append(lines, expired(id))
		}
		for range 2 { // the output goes on as before
			if flush(o, "t", makeChunk(lines...)) != OK {
				t.Fatal("not delivered")
			}
		}
		for i := range n {
			want := 1
			if i == poison {
				want = 0
			}
			if got := strings.Count(strings.Join(stored(fake), "\n"), fmt.Sprintf(" checkpoint_id=%d ", i)); got != 2*want && got != want {
				t.Errorf("poison at %d: %d entries of checkpoint %d", poison, got, i)
			}
		}
		content, err := os.ReadFile(dead)
		if err != nil || !strings.Contains(string(content), "a bug") || poison < n-1 && strings.Count(string(content), base64.StdEncoding.EncodeToString([]byte(expired(100)))) != 2 {
			t.Errorf("dead letters: %s, %v", content, err)
		}
		if !strings.Contains(log.String(), "panic_test.go") {
			t.Errorf("the log does not say where: %s", log.String())
		}
	}
}

// TestFlush_malformed: what is no record goes to the dead-letter file, and a disk that
// does not take it keeps the chunk.
func TestFlush_malformed(t *testing.T) {
	fake := fakeloki.New(fakeloki.Config{})
	dead := filepath.Join(t.TempDir(), "dead.jsonl")
	o := newOutput(t, fake, io.Discard, fakeConfig{"dead_letter_path": dead})
	c := append(append(makeChunk(expired(1)), 0xc1, 0xc1, 0xc1), makeChunk(expired(2))...)
	if flush(o, "t", c) != OK {
		t.Fatal("not delivered")
	}
	expectStored(t, fake, 2)
	var got [][]byte
	content, err := os.ReadFile(dead)
	if err == nil {
		err = loki.ReadDeadLetters(bytes.NewReader(content), func(l *loki.DeadLetter) error { got = append(got, l.Bytes); return nil }, func(err error) { t.Error(err) })
	}
	if err != nil || len(got) != 1 || !bytes.Equal(got[0], []byte{0xc1, 0xc1, 0xc1}) {
		t.Errorf("dead letters %x, %v", got, err)
	}
	if err := os.RemoveAll(filepath.Dir(dead)); err != nil { // a disk that fails
		t.Fatal(err)
	}
	if flush(o, "t", append(bytes.Clone(c), makeChunk(expired(3))...)) != Retry {
		t.Error("what can't be put away is let go")
	}
	if err := os.Mkdir(filepath.Dir(dead), 0o700); err != nil { // and is mended
		t.Fatal(err)
	}
	if flush(o, "t", append(bytes.Clone(c), makeChunk(expired(3))...)) != OK {
		t.Error("not put away")
	}
}
