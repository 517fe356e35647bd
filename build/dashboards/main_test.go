package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent compares the dashboards that are committed with what is generated.
func TestCurrent(t *testing.T) {
	files, err := render()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.FromSlash("../../rules/dashboards")
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is generated: run \"make golden\" (%v)", name, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(files) {
		t.Errorf("%d files, and %d are generated (%v)", len(entries), len(files), err)
	}
}
