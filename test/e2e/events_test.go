package e2e

import (
	"testing"
	"time"

	"flink-loki/parsers"
	"flink-loki/test/agent"
)

// countEvents returns how many events of the parts are sent by default.
func countEvents(t *testing.T, parts []agent.Part) int {
	t.Helper()
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range parts {
		text, err := p.Text()
		if err != nil {
			t.Fatal(err)
		}
		source := parser.NewSource(func(e *parsers.Event) {
			if !e.Kind.Quiet {
				n++
			}
		})
		source.Record(parsers.Origin{}, []byte(text))
		source.Flush()
	}
	return n
}
