package ship

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"flink-loki/test/chunk"
	"flink-loki/test/fakeloki"
)

// appendBody appends a record with a body of any shape, as filters and parsers of Fluent
// Bit make it.
func appendBody(t *testing.T, b []byte, body map[string]any) []byte {
	t.Helper()
	b = append(b, 0x92, 0xd7, 0x00) // v1: [time, body]
	b = binary.BigEndian.AppendUint32(b, uint32(now.Unix()))
	b = binary.BigEndian.AppendUint32(b, 0)
	b, err := msgp.AppendIntf(b, body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parsedJSON is a JSON object as Fluent Bit's parser takes it apart.
func parsedJSON(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var body map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return withNumbers(body).(map[string]any)
}

// withNumbers makes numbers of Go's own of JSON's.
func withNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withNumbers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// TestFlush_parsedJSON: it makes no difference whether Fluent Bit's parser has read a
// JSON line, or the plug-in does.
func TestFlush_parsedJSON(t *testing.T) {
	logs, _ := filepath.Glob("../../parsers/testdata/layout/*/*.log")
	answers, _ := filepath.Glob("../../parsers/testdata/rest/*/*.log")
	tested := 0
	for _, name := range slices.Concat(logs, answers) {
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if log[0] != '{' || bytes.Contains(log, []byte(`\n","stream":"`)) { // no JSON, or a line in it
			continue
		}
		tested++
		var text, parsed []byte
		for line := range bytes.Lines(log) {
			text = chunk.Append(text, chunk.Record{Time: now, Line: string(bytes.TrimSpace(line)), Offset: -1})
			parsed = appendBody(t, parsed, parsedJSON(t, line))
		}
		store := func(chunk []byte) []string {
			loki := fakeloki.New(fakeloki.Config{})
			if r := flush(newOutput(t, loki, io.Discard, nil), "t", chunk); r != OK {
				t.Errorf("%s: %v", name, r)
			}
			return stored(loki)
		}
		want, got := store(text), store(parsed)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if tested < 20 {
		t.Errorf("only %d files", tested)
	}
}
