package ruletest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

// TestFiring steps a clock over rules as the ruler does.
func TestFiring(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 29, 13, 30, 0, 0, time.UTC)
	// holds has, minute by minute, the values that the query gives; - is no sample.
	f := func(rule Rule, holds string, want string) {
		t.Helper()
		rule.Alert, rule.Expr, rule.interval = "A", "q", time.Minute
		asked := 0
		ask := func(_ context.Context, expr string, at time.Time) ([]sample, error) {
			asked++
			values := strings.Fields(holds)
			switch value := values[int(at.Sub(start)/time.Minute)]; value {
			case "-":
				return nil, nil
			default:
				return []sample{{map[string]string{"job": value}, 1}}, nil
			}
		}
		var got []string
		for i := range strings.Fields(holds) {
			firing, err := rule.firing(t.Context(), ask, start, time.Duration(i)*time.Minute+59*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			var jobs []string
			for _, a := range firing {
				jobs = append(jobs, a.labels["job"])
			}
			got = append(got, strings.Join(append(jobs, "-")[:max(1, len(jobs))], ","))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s with for %s: got %s, want %s", holds, rule.For, s, want)
		}
	}
	f(Rule{}, "- a a - a", "- a a - a")
	f(Rule{For: model.Duration(2 * time.Minute)}, "a a a a - a a a", "- - a a - - - a")
	f(Rule{For: model.Duration(2 * time.Minute)}, "a a b a a a", "- - - - - a")
	f(Rule{For: model.Duration(time.Second)}, "a a", "- a")
	f(Rule{KeepFiringFor: model.Duration(2 * time.Minute)}, "a - - - b", "a a - - b")
}

func TestExpand(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		got, err := expand(text, map[string]string{"job": "orders of today", "none": ""}, 12345.678)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	f("{{ $labels.job }}: {{ $value }}", "orders of today: 12345.678")
	f("{{ .Labels.job }} {{ .Value }}", "orders of today 12345.678")
	f("<{{ $labels.absent }}>{{ with $labels.none }}no{{ else }}yes{{ end }}", "<>yes")
	f("{{ humanize $value }} {{ humanize1024 $value }} {{ humanizeDuration $value }} {{ humanizePercentage 0.5 }}", "12.35k 12.06ki 3h 25m 45s 50%")
	f("{{ humanize 0.0123 }} {{ humanize 0.0 }} {{ humanize1024 0.5 }} {{ humanizeTimestamp 0.0 }}", "12.3m 0 0.5 1970-01-01 00:00:00 +0000 UTC")
	f(`{{ title $labels.job }} {{ toUpper "a" }} {{ toLower "A" }} {{ reReplaceAll "o(.)d" "$1" $labels.job }} {{ match "^ord" $labels.job }}`, "Orders Of Today A a rers of today true")
	f(`{{ printf "%.1f" $value }}`, "12345.7")
	for _, bad := range []string{"{{ $labels.job", "{{ query `up` }}", `{{ reReplaceAll "(" "" "" }}`} {
		if got, err := expand(bad, nil, 0); err == nil {
			t.Errorf("%s gives %q", bad, got)
		}
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	f := func(expr, want string) {
		t.Helper()
		got, err := within(expr, `t="1"`)
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", expr, got, err, want)
		}
	}
	f(`{a="b"} | logfmt`, `{t="1", a="b"} | logfmt`)
	f(`sum(rate({a="{}"}[1m])) / sum(rate({ }[1m]))`, `sum(rate({t="1", a="{}"}[1m])) / sum(rate({t="1" }[1m]))`)
	f("{a=`{`} |~ \"\\\"{\" # {x}\n| json", "{t=\"1\", a=`{`} |~ \"\\\"{\" \n| json")
	f("vector(1) # {", "vector(1) ")
	if _, err := within(`{a="b`, `t="1"`); err == nil {
		t.Error("a quoted text without an end is taken")
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	test := AlertTest{Alertname: "A", Alerts: []ExpectedAlert{
		{Labels: map[string]string{"x": "1"}, Annotations: map[string]string{"summary": "one"}},
		{Labels: map[string]string{"x": "2"}},
	}}
	one := &alert{labels: map[string]string{"alertname": "A", "x": "1"}, annotations: map[string]string{"summary": "one", "more": "is fine"}}
	two := &alert{labels: map[string]string{"alertname": "A", "x": "2"}}
	if diff := test.compare([]*alert{two, one}); diff != "" {
		t.Error(diff)
	}
	three := &alert{labels: map[string]string{"alertname": "A", "x": "3", "y": ""}}
	far := &alert{labels: map[string]string{"alertname": "A", "x": "4", "z": "5"}}
	other := &alert{labels: one.labels, annotations: map[string]string{"summary": "uno"}}
	want := `    {alertname="A", x="1"}, annotation summary:
    - one
    + uno
    - {alertname="A", x="2"}
    + {alertname="A", x="3"}
      they differ in x
    + {alertname="A", x="4", z="5"}`
	if diff := test.compare([]*alert{other, far, three}); diff != want {
		t.Errorf("got\n%s\nwant\n%s", diff, want)
	}
	if diff := compare([]string{"b 1", "a 1", "a 1"}, []string{"a 1", "b 2"}); diff != "    - a 1\n    - b 1\n    + b 2" {
		t.Error(diff)
	}
}

func TestLoad_refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rules := "groups: [{name: g, rules: [{alert: A, expr: '1', some_day: new}, {record: r, expr: '1'}]}]"
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(text, want string) {
		t.Helper()
		name := filepath.Join(dir, "tests.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(name)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v does not say %q", text, err, want)
		}
	}
	f("rule_files: [rules.yaml]\ntests: [{name: n, input_logs: [{lines: x}], alert_rule_test: [{alertname: A, eval_time: 1m}]}]", "")
	f("rule_files: [other.yaml]", "no file is called")
	f("rule_files: [tests.yaml]\ntests: [{name: n, alert_rule_test: [{alertname: B, eval_time: 1m}]}]", `no rule of the rule_files is called "B"`)
	f("tests: [{name: n, input_series: []}]", "input_series")
	f("tests: [{input_logs: []}]", "has no name")
	f("tests: [{name: n, input_logs: [{file: a, lines: b}]}]", "give either file, lines or heartbeats")
	f("tests: [{name: n, input_logs: [{component: a}]}]", "give either file, lines or heartbeats")
	f("tests: [{name: n, input_logs: [{heartbeats: 1h, lines: x, node: n}]}]", "give either file, lines or heartbeats")
	f("tests: [{name: n, input_logs: [{heartbeats: 1h}]}]", "give the heartbeats' node")
	f("evaluation_interval: 0s", "not above 0")
	f("evaluation_interval: soon", "soon")
}
