package rules

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"flink-loki/rules/ruletest"
)

// inhibition is a rule of Alertmanager's.
type inhibition struct {
	Source []string `yaml:"source_matchers"`
	Target []string `yaml:"target_matchers"`
	Equal  []string `yaml:"equal"`
}

func inhibitions(t *testing.T) []inhibition {
	t.Helper()
	var file struct {
		Rules []inhibition `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal(Alertmanager(), &file); err != nil {
		t.Fatal(err)
	}
	return file.Rules
}

var matcherParts = regexp.MustCompile(`^(\w+)(=~|!~|!=|=)"(.*)"$`)

func matches(matchers []string, labels map[string]string) bool {
	for _, m := range matchers {
		parts := matcherParts.FindStringSubmatch(m)
		if parts == nil {
			return false
		}
		is := labels[parts[1]] == parts[3]
		if strings.Contains(parts[2], "~") {
			is = regexp.MustCompile("^(?:" + parts[3] + ")$").MatchString(labels[parts[1]])
		}
		if is == strings.HasPrefix(parts[2], "!") {
			return false
		}
	}
	return true
}

// audible returns the alerts that Alertmanager does not inhibit.
func audible(rules []inhibition, alerts []map[string]string) (left []map[string]string) {
	for _, target := range alerts {
		muted := slices.ContainsFunc(rules, func(r inhibition) bool {
			return matches(r.Target, target) && slices.ContainsFunc(alerts, func(source map[string]string) bool {
				return matches(r.Source, source) && !matches(r.Target, source) &&
					!slices.ContainsFunc(r.Equal, func(label string) bool { return source[label] != target[label] })
			})
		})
		if !muted {
			left = append(left, target)
		}
	}
	return left
}

// TestInhibition_form checks that the inhibition rules can be read, and name alerts that
// there are.
func TestInhibition_form(t *testing.T) {
	var alerts []string
	for _, file := range rendered(t, Options{}) {
		for _, group := range file.Groups {
			for _, r := range group.Rules {
				alerts = append(alerts, r.Alert)
			}
		}
	}
	for _, r := range inhibitions(t) {
		for _, m := range slices.Concat(r.Source, r.Target) {
			parts := matcherParts.FindStringSubmatch(m)
			if parts == nil {
				t.Errorf("not a matcher: %s", m)
			} else if parts[1] == "alertname" && !slices.ContainsFunc(alerts, func(a string) bool { return matches([]string{m}, map[string]string{"alertname": a}) }) {
				t.Errorf("no alert matches %s", m)
			}
		}
		for _, alert := range alerts {
			labels := map[string]string{"alertname": alert, "severity": "ticket", "job_name": "j"}
			if matches(r.Source, labels) && matches(r.Target, labels) {
				t.Errorf("%s would inhibit itself", alert)
			}
		}
	}
}

// TestInhibition checks on real logs that one failure raises one alert of a severity, and
// many of a job one as well.
func TestInhibition(t *testing.T) {
	l := loki(t)
	file, err := ruletest.Load("tests/expired.yaml") // for its rules
	if err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Abs("../test/logs")
	if err != nil {
		t.Fatal(err)
	}
	rules := inhibitions(t)
	for _, log := range []string{"1.20.5/expired", "1.20.5/declined", "1.20.5/expired-fail", "1.20.5/metric-report", "1.13.6/expired", "1.13.6/skip-current", "1.9.3/alignment-limit", "1.14.6/mixed", "2.3.0/debug-mixed"} {
		test := &ruletest.Test{InputLogs: []ruletest.Input{{File: logs + "/" + log + "/*.log", Labels: map[string]string{"cluster": "c"}}}}
		for _, at := range []time.Duration{25 * time.Second, time.Minute, 5 * time.Minute} {
			alerts, err := file.Firing(t.Context(), l, test, at)
			if err != nil {
				t.Fatal(err)
			}
			var labels []map[string]string
			for _, a := range alerts {
				labels = append(labels, a.Labels)
			}
			left := audible(rules, labels)
			byFailure := map[string][]string{}
			for _, a := range left {
				if name := a["alertname"]; strings.HasPrefix(name, "FlinkCheckpoint") {
					key := fmt.Sprint(a["severity"], " ", strings.ReplaceAll(a["job_name"], ".", "_"), " ", a["checkpoint_id"])
					byFailure[key] = append(byFailure[key], name)
				}
			}
			for failure, names := range byFailure {
				job := strings.TrimRight(failure, "0123456789")
				if len(names) > 1 || failure != job && len(byFailure[job]) > 0 {
					t.Errorf("%s at %s: %s raises %v beside %v", log, at, failure, names, byFailure[job])
				}
			}
			t.Logf("%s at %s: of %d alerts %d are left", log, at, len(alerts), len(left))
		}
	}
}
