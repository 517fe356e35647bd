// Command dashboards writes Grafana's dashboards, rules/dashboards/*.json. "make golden" runs it, and the test
// here checks that they are current.
//
// The queries keep to what the rules do: the LogQL that Loki 2.2.1 and 3.x share, fields behind "| logfmt",
// __error__="" behind unwrap, failures that count and are no savepoints. A test of package rules runs each.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	dir := filepath.FromSlash("../../rules/dashboards")
	files, err := render()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

// render returns the files by their names.
func render() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, builder := range map[string]*dashboard.DashboardBuilder{
		"fleet.json":   fleet(),
		"job.json":     job(),
		"rocksdb.json": rocksDB(),
	} {
		built, err := builder.Build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		number := uint32(0)
		for _, p := range built.Panels { // ids, which Grafana would give otherwise: each time anew
			number++
			if p.Panel != nil {
				p.Panel.Id = cog.ToPtr(number)
			}
			if p.RowPanel != nil {
				p.RowPanel.Id = number
			}
		}
		for i := range built.Links {
			built.Links[i].Placement = nil // the SDK's only value hides links in a menu
		}
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(built); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = text.Bytes()
	}
	return files, nil
}
