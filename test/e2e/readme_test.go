package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"flink-loki/test/agent"
	"flink-loki/test/lokitest"
)

// TestRecipes runs every LogQL recipe of the README on the logs of the demo: each parses
// and finds something.
func TestRecipes(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	recipes := regexp.MustCompile("(?s)```logql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(recipes) == 0 {
		t.Fatal("no recipes")
	}
	loki := startLoki(t, lokitest.Options{Own: true})
	a := startAgent(t, agent.Options{"url": loki.URL(), "label_keys": strictOrder})
	for _, p := range shifted(t, "2.3.0/expired/jobmanager.log", 1) {
		send(t, a, p)
	}
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
	for _, recipe := range recipes {
		query := strings.TrimSpace(recipe[1])
		if strings.HasPrefix(query, "{") {
			streams, err := loki.QueryRange(t.Context(), query, time.Now().Add(-time.Hour), time.Now().Add(time.Minute), 100)
			if err != nil || len(streams) == 0 {
				t.Errorf("%s\nfinds %d streams, %v", query, len(streams), err)
			}
			continue
		}
		samples, err := loki.Query(t.Context(), query, time.Now())
		if err != nil || len(samples) == 0 {
			t.Errorf("%s\nfinds %d samples, %v", query, len(samples), err)
		}
	}
}
