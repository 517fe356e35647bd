// Package rules tests the shipped rule files as data: their form, and that they speak
// of events and fields that exist. Whether they fire is tested end to end.
package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"gopkg.in/yaml.v3"

	"flink-loki/parsers"
)

type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

var (
	alertName = regexp.MustCompile(`^Flink[A-Z][A-Za-z]+$`)
	eventName = regexp.MustCompile(`event="([^"]*)"`)
	byLabels  = regexp.MustCompile(`by \(([^)]*)\)`)
	template  = regexp.MustCompile(`\$labels\.(\w+)`)
	selector  = regexp.MustCompile(`\{[^}]*\}`)
)

func TestRules(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	alerts := map[string]bool{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var rules ruleFile
		d := yaml.NewDecoder(f)
		d.KnownFields(true)
		if err := d.Decode(&rules); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				where := file + " " + rule.Alert
				if !alertName.MatchString(rule.Alert) || alerts[rule.Alert] {
					t.Errorf("%s: the name is bad or used twice", where)
				}
				alerts[rule.Alert] = true
				if !slices.Contains([]string{"page", "ticket"}, rule.Labels["severity"]) {
					t.Errorf("%s: severity is %q", where, rule.Labels["severity"])
				}
				if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
					t.Errorf("%s: no summary or description", where)
				}
				checkExpr(t, where, rule.Expr)
				labels := byLabels.FindStringSubmatch(rule.Expr)
				for _, text := range rule.Annotations {
					for _, used := range template.FindAllStringSubmatch(text, -1) {
						if labels == nil || !slices.Contains(regexp.MustCompile(`,\s*`).Split(labels[1], -1), used[1]) {
							t.Errorf("%s: an annotation uses %s, which the query aggregates away", where, used[1])
						}
					}
				}
			}
		}
	}
}

// checkExpr checks that selectors name an event (Loki logs queries: a rule without one
// could match its own), and that events and fields exist.
func checkExpr(t *testing.T, where, expr string) {
	t.Helper()
	for _, s := range selector.FindAllString(expr, -1) {
		name := eventName.FindStringSubmatch(s)
		if name == nil {
			t.Errorf("%s: %s names no event", where, s)
			continue
		}
		if !slices.ContainsFunc(parsers.Kinds, func(k parsers.Kind) bool { return k.Name == name[1] }) {
			t.Errorf("%s: no event %s", where, name[1])
		}
	}
	for _, labels := range byLabels.FindAllStringSubmatch(expr, -1) {
		for _, label := range regexp.MustCompile(`,\s*`).Split(labels[1], -1) {
			if _, ok := parsers.FieldByName(label); !ok {
				t.Errorf("%s: no field %s", where, label)
			}
		}
	}
}
