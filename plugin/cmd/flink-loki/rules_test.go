package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	dir := t.TempDir()
	overrides := filepath.Join(dir, "jobs.yaml")
	if err := os.WriteFile(overrides, []byte("- {name: nightly, job_name: nightly.*, set: {failures: 9}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "rules")
	said, err := run(renderCommand(), "", "--set", "window=20m", "--set", "failures=5", "--overrides", overrides, "--tenant", "team-a", "-o", out)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(out, "team-a", "failures.yaml")
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(said, name+"\n") {
		t.Fatalf("said %q, %v", said, err)
	}
	for _, want := range []string{"[20m]))\n          ) >= 5", `job_name=~"nightly.*" [20m]))` + "\n          ) >= 9"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("nowhere is %q", want)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(out, "team-a")); len(entries) != 4 {
		t.Errorf("%d files", len(entries))
	}
}

func TestRender_refused(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if _, err := run(renderCommand(), "", append(args, "-o", t.TempDir())...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v does not say %q", args, err, want)
		}
	}
	f(`no setting "windows": the settings are in_a_row`, "--set", "windows=10m")
	f("such as 10m", "--set", "window=ten")
	f("give name=value", "--set", "window")
	f("no such file", "--overrides", "absent.yaml")
	f("no name of a tenant", "--tenant", "../a")
	if _, err := run(renderCommand(), ""); err == nil || !strings.Contains(err.Error(), "output") {
		t.Errorf("without -o: %v", err)
	}
}
