package rules

import (
	"slices"
	"strings"
	"testing"
)

func TestRender_refused(t *testing.T) {
	f := func(name, value, want string) {
		t.Helper()
		_, err := Render(Options{Set: map[string]string{name: value}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s=%s: %v does not say %q", name, value, err, want)
		}
	}
	f("failure", "3", `no setting "failure": the settings are in_a_row, `)
	f("failures", "0", `setting failures, value "0": give a whole number above 0`)
	f("failures", "many", "whole number")
	f("window", "10", "such as 10m")
	f("window", "1h30m", "such as 10m")
	f("matchers", "cluster=prod", "matchers of LogQL")
	f("runbook", "rules/runbook.md", "give a URL")
	f("agent_window", "5m", "longer than agent_silence, which is 10m")
	f("agent_silence", "2h", "setting agent_window")
}

func TestRender_set(t *testing.T) {
	files, err := Render(Options{Set: map[string]string{"window": "20m", "failures": "7", "matchers": `cluster="a"`, "runbook": "https://wiki.example/r"}})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, f := range files {
		text += string(f.Text)
	}
	for _, want := range []string{"[20m]))\n          ) >= 7\n", `{event="checkpoint_expired", cluster="a"} | logfmt`, "runbook_url: https://wiki.example/r#flinkcheckpointexpired\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("nowhere is %q", want)
		}
	}
	if strings.Contains(text, "${") {
		t.Error("something is not rendered")
	}
}

// TestSettings checks that each setting is used, and its default allowed.
func TestSettings(t *testing.T) {
	used := map[string]bool{}
	names, _ := templates.ReadDir("templates")
	for _, name := range names {
		text, err := templates.ReadFile("templates/" + name.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range placeholders(string(text)) {
			used[p] = true
			if p != "jobs" && settingByName(p) == nil {
				t.Errorf("%s uses ${%s}, which is no setting", name.Name(), p)
			}
		}
	}
	for _, s := range Settings {
		if !used[s.Name] {
			t.Errorf("no rule uses %s", s.Name)
		}
		if err := check(s.Name, s.Default); err != nil {
			t.Error(err)
		}
	}
}

const someOverrides = `
- {name: nightly, job_name: "nightly .*", set: {failures: 9, window: 1h}}
- {name: slow, job_id: 85d268e6fbc19411185f7e4868a44178, set: {failures: 4, in_a_row: 5}}
`

func TestRender_overrides(t *testing.T) {
	overrides, err := ReadOverrides(strings.NewReader(someOverrides))
	if err != nil {
		t.Fatal(err)
	}
	files := rendered(t, Options{Overrides: overrides})
	exprs := map[string]string{}
	var groups []string
	for _, group := range files["failures.yaml"].Groups {
		groups = append(groups, group.Name)
		for _, r := range group.Rules {
			exprs[group.Name+" "+r.Alert] = r.Expr
			for _, fault := range checkRule(r) {
				t.Errorf("%s: %s", r.Alert, fault)
			}
		}
	}
	want := []string{"flink-checkpoint-failures", "flink-checkpoint-failures-long", "flink-checkpoint-failures-nightly", "flink-checkpoint-failures-slow"}
	if !slices.Equal(groups, want) || len(exprs) != 7+1+2 {
		t.Errorf("groups %v with %d rules", groups, len(exprs))
	}
	const id = "85d268e6fbc19411185f7e4868a44178"
	f := func(rule string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(exprs[rule], want) {
				t.Errorf("%s lacks %s: %s", rule, want, exprs[rule])
			}
		}
	}
	f("flink-checkpoint-failures FlinkCheckpointFailuresInWindow", ` | job_name!~"nightly .*" | job_id!="`+id+`"`, "[10m]", ">= 3")
	f("flink-checkpoint-failures FlinkCheckpointFailuresInARow", ` | savepoint!="true" | job_id!="`+id+`"`, ">= 3")
	f("flink-checkpoint-failures-nightly FlinkCheckpointFailuresInWindow", ` | savepoint!="true" | job_name=~"nightly .*" [1h]`, ">= 9")
	f("flink-checkpoint-failures-slow FlinkCheckpointFailuresInWindow", ` | job_id="`+id+`" | job_name!~"nightly .*" [10m]`, ">= 4")
	f("flink-checkpoint-failures-slow FlinkCheckpointFailuresInARow", ` | job_id="`+id+`" | unwrap`, ">= 5")
}

func TestReadOverrides_refused(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		_, err := ReadOverrides(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", text, err, want)
		}
	}
	f("- {name: a, job_name: b, sets: {failures: 1}}", "sets")
	f("- {job_name: b, set: {failures: 1}}", "override 1: give it a name")
	f("- {name: a, set: {failures: 1}}", "override a: give either job_name or job_id")
	f("- {name: a, job_name: b}", "sets nothing")
	f("- {name: a, job_name: b, set: {failure: 1}}", `no setting "failure"`)
	f("- {name: a, job_name: b, set: {fleet_jobs: 1}}", "one for all jobs")
	f("- {name: a, job_name: b, set: {window: 1}}", "such as 10m")
	f("- {name: a, job_name: '(', set: {failures: 1}}", "override a: job_name: error parsing regexp")
}
