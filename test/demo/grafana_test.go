package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// TestProvisioning checks that what is mounted into Grafana is there, and where the
// provisioning files say.
func TestProvisioning(t *testing.T) {
	const root = "../.."
	var mounted []string
	args := dockerArgs(root, "http://127.0.0.1:3100")
	for i, arg := range args {
		if arg == "--volume" {
			parts := strings.Split(args[i+1], ":")
			mounted = append(mounted, parts[1])
			if entries, err := os.ReadDir(parts[0]); err != nil || len(entries) == 0 {
				t.Errorf("%s: %d files, %v", parts[0], len(entries), err)
			}
		}
	}
	var dashboards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	var sources struct {
		Datasources []struct{ Type, URL string }
	}
	for name, into := range map[string]any{"dashboards/flink-loki.yaml": &dashboards, "datasources/loki.yaml": &sources} {
		text, err := os.ReadFile(root + "/build/grafana/provisioning/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	if len(dashboards.Providers) != 1 || !slices.Contains(mounted, dashboards.Providers[0].Options.Path) {
		t.Errorf("%v are mounted, and Grafana looks in %v", mounted, dashboards)
	}
	if len(sources.Datasources) != 1 || sources.Datasources[0].Type != "loki" || sources.Datasources[0].URL != "$LOKI_URL" {
		t.Errorf("%v", sources)
	}
}
