package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
	said, err := run(renderCommand(), "", "--set", "window=20m", "--set", "failures=5", "--overrides", overrides, "--tenant", "team-a", "--alertmanager", filepath.Join(dir, "inhibit.yaml"), "-o", out)
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
	if text, err := os.ReadFile(filepath.Join(dir, "inhibit.yaml")); err != nil || !strings.Contains(string(text), "\ninhibit_rules:\n") {
		t.Errorf("inhibition: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Join(out, "team-a")); len(entries) != 6 {
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

// fakeLoki takes all pushes, and answers all queries with one sample, or an error.
func fakeLoki(t *testing.T, answer func() (status int, body string)) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/loki/api/v1/push", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Scope-OrgID") != "team-a" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/loki/api/v1/status/buildinfo", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"3.9.9"}`) })
	mux.HandleFunc("/loki/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Query().Get("query"), "{"+`rules_test="`) {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		status, body := answer()
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestRulesTest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rules.yaml": `groups: [{name: g, rules: [{alert: Expired, expr: 'count_over_time({event="x"}[5m])', annotations: {summary: "{{ $labels.id }}: {{ $value }}"}}]}]`,
		"tests.yaml": `
rule_files: [rules.yaml]
tests:
  - name: one
    input_logs: [{lines: "` + strings.TrimSpace(expired) + `"}]
    alert_rule_test:
      - alertname: Expired
        eval_time: 1m
        exp_alerts: [{exp_labels: {id: "7"}, exp_annotations: {summary: "7: 2"}}]
    logql_expr_test:
      - {expr: 'sum(rate({a="b"}[1m]))', eval_time: 1m, exp_samples: [{labels: {id: "7"}, value: 2}]}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sample := func(id string) func() (int, string) {
		return func() (int, string) {
			return 200, `{"data":{"resultType":"vector","result":[{"metric":{"id":"` + id + `","empty":"","rules_test":"x"},"value":[1,"2"]}]}}`
		}
	}
	tests := filepath.Join(dir, "tests.yaml")
	f := func(answer func() (int, string), wantErr string, wants ...string) {
		t.Helper()
		said, err := run(rulesTestCommand(), "", "--loki-url", fakeLoki(t, answer), "--tenant", "team-a", tests)
		if got := fmt.Sprint(err); got != wantErr {
			t.Errorf("error %q, want %q", got, wantErr)
		}
		for _, want := range wants {
			if !strings.Contains(said, want) {
				t.Errorf("said\n%s\nwithout %q", said, want)
			}
		}
	}
	f(sample("7"), "<nil>", "ALERT      TESTS  PASS  LOKI\n", "Expired    1      1     3.9.9\n", "(queries)  1      1     3.9.9\n")
	f(sample("8"), "tests failed", "FAIL "+tests+": one\n  Expired at 1m:\n    - {alertname=\"Expired\", id=\"7\"}\n    + {alertname=\"Expired\", id=\"8\"}\n      they differ in id\n", "Expired    1      0")
	f(func() (int, string) { return 400, "parse error at line 1" }, "tests failed", "loki answers 400: parse error at line 1")
	f(func() (int, string) { return 200, `{"data":{"resultType":"streams","result":[]}}` }, "tests failed", "gives streams, and a rule needs a number")
}

func TestRulesTest_refused(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if _, err := run(rulesTestCommand(), "", args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v does not say %q", args, err, want)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f("give a Loki to test in", empty)
	f("give a Loki to test in", "--loki-url", "http://localhost:1", "--loki-bin", "loki", empty)
	f("no such file", "--loki-url", "http://localhost:1", "absent.yaml")
	f("--loki-url: ", "--loki-url", "http://127.0.0.1:1", empty)
	f("--loki-bin: ", "--loki-bin", "/absent/loki", empty)
	f("at least 1 arg", "--loki-bin", "/absent/loki")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f("--loki-bin: ", "--loki-bin", program, empty)
}
