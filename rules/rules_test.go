package rules

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"flink-loki/parsers"
)

var update = flag.Bool("update", false, "write the rule files that the templates give")

type ruleFile struct {
	Groups []struct {
		Name     string `yaml:"name"`
		Interval string `yaml:"interval"`
		Rules    []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// paging are the only alerts that wake somebody up.
var paging = []string{"FlinkAgentSilent", "FlinkCheckpointFailuresInARow", "FlinkCheckpointFailureThresholdExceeded", "FlinkCheckpointsOverdue"}

// rendered returns the files that options give, decoded.
func rendered(t *testing.T, o Options) map[string]ruleFile {
	t.Helper()
	files, err := Render(o)
	if err != nil {
		t.Fatal(err)
	}
	decoded := map[string]ruleFile{}
	for _, f := range files {
		var r ruleFile
		d := yaml.NewDecoder(bytes.NewReader(f.Text))
		d.KnownFields(true)
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%s: %v\n%s", f.Name, err, f.Text)
		}
		decoded[f.Name] = r
	}
	return decoded
}

// TestRendered compares the rule files that stand here with what the templates give.
func TestRendered(t *testing.T) {
	files, err := Render(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		head := "# Rendered from templates/" + f.Name + " with the default settings: \"make golden\" writes it.\n#\n"
		want := head + string(f.Text)
		if *update {
			if err := os.WriteFile(f.Name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(f.Name)
		if err != nil || string(got) != want {
			t.Errorf("%s is not what its template gives: run \"make golden\" (%v)", f.Name, err)
		}
	}
}

// TestRules checks the form of each rule, that it speaks of events and fields that exist,
// that the runbook has a chapter on it, and tests/ a test.
func TestRules(t *testing.T) {
	alerts := map[string]bool{}
	groups := map[string]bool{}
	var pages []string
	for file, rules := range rendered(t, Options{}) {
		for _, group := range rules.Groups {
			if groups[group.Name] {
				t.Errorf("%s: two groups %s", file, group.Name)
			}
			groups[group.Name] = true
			for _, r := range group.Rules {
				if alerts[r.Alert] {
					t.Errorf("%s: two rules %s", file, r.Alert)
				}
				alerts[r.Alert] = true
				for _, fault := range checkRule(r) {
					t.Errorf("%s: %s: %s", file, r.Alert, fault)
				}
				if r.Labels["severity"] == "page" {
					pages = append(pages, r.Alert)
				}
			}
		}
	}
	slices.Sort(pages)
	if !slices.Equal(pages, slices.Sorted(slices.Values(paging))) {
		t.Errorf("these page: %v, and these may: %v", pages, paging)
	}
	for what, name := range map[string]string{"inhibition": "alertmanager.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, alert := range regexp.MustCompile(`alertname="(\w+)"`).FindAllStringSubmatch(string(text), -1) {
			if !alerts[alert[1]] {
				t.Errorf("%s speaks of %s, which there is not", what, alert[1])
			}
		}
	}
}

var (
	alertName  = regexp.MustCompile(`^Flink[A-Z][A-Za-z]+$`)
	eventName  = regexp.MustCompile(`event=(~?)"([^"]*)"`)
	byLabels   = regexp.MustCompile(`\b(?:by|without) \(([^)]*)\)`)
	template   = regexp.MustCompile(`\$labels\.(\w+)`)
	selector   = regexp.MustCompile(`\{[^}]*\}`)
	pipeline   = regexp.MustCompile(`\{[^}]*\}([^\[]*)\[\w+\]`)
	labelName  = regexp.MustCompile(`^\s*(\w+)\s*(=~|!~|!=|=|>=|<=|>|<)`)
	tooNew     = regexp.MustCompile(`\b(offset|on|ignoring|group_left|group_right|last_over_time|first_over_time|vector|drop|keep|decolorize|bytes_over_time|absent_over_time)\b\s*\(?`)
	quotedText = regexp.MustCompile(`"([^"\\]|\\.)*"`)
)

// checkRule returns what is wrong with a rule.
func checkRule(r rule) (faults []string) {
	add := func(fault string) { faults = append(faults, fault) }
	if !alertName.MatchString(r.Alert) {
		add("the name is bad")
	}
	if !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) {
		add("severity is " + r.Labels["severity"])
	}
	for _, name := range []string{"summary", "description"} {
		if r.Annotations[name] == "" {
			add("no " + name)
		}
	}
	if want := "#" + strings.ToLower(r.Alert); !strings.HasSuffix(r.Annotations["runbook_url"], want) {
		add("runbook_url does not end in " + want)
	}
	faults = append(faults, checkExpr(r.Expr)...)
	result := byLabels.FindStringSubmatch(r.Expr)
	for name, text := range r.Annotations {
		for _, used := range template.FindAllStringSubmatch(text, -1) {
			optional := strings.Contains(text, "with $labels."+used[1]) // a shared phrase
			if !optional && (result == nil || !slices.Contains(names(result[1]), used[1])) {
				add(name + " uses " + used[1] + ", which the query aggregates away")
			}
		}
		if strings.Contains(text, "${") {
			add(name + " is not rendered")
		}
	}
	return faults
}

// checkExpr returns what is wrong with a query: selectors name an event (Loki logs
// queries: a rule without one could match its own), events and fields exist, fields are
// read from the line, entries without the field that is unwrapped are left out, and no
// word is newer than Loki 2.2.1.
func checkExpr(expr string) (faults []string) {
	add := func(fault string) { faults = append(faults, fault) }
	for _, s := range selector.FindAllString(expr, -1) {
		name := eventName.FindStringSubmatch(s)
		if name == nil {
			add(s + " names no event")
			continue
		}
		known := func(k parsers.Kind) bool { return k.Name == name[2] }
		if name[1] == "~" {
			pattern := regexp.MustCompile("^(" + name[2] + ")$")
			known = func(k parsers.Kind) bool { return pattern.MatchString(k.Name) }
		}
		for _, one := range alternatives(name[2]) {
			pattern := regexp.MustCompile("^(" + one + ")$")
			if !slices.ContainsFunc(parsers.Kinds, func(k parsers.Kind) bool { return pattern.MatchString(k.Name) }) {
				add("no event " + one)
			}
		}
		if !slices.ContainsFunc(parsers.Kinds, known) {
			add("no event " + name[2])
		}
	}
	for _, labels := range byLabels.FindAllStringSubmatch(expr, -1) {
		for _, label := range names(labels[1]) {
			if _, ok := parsers.FieldByName(label); !ok {
				add("no field " + label)
			}
		}
	}
	for _, p := range pipeline.FindAllStringSubmatch(expr, -1) {
		stages := strings.Split(quotedText.ReplaceAllStringFunc(p[1], func(s string) string { return strings.ReplaceAll(s, "|", "/") }), "|")[1:]
		if len(stages) == 0 || strings.TrimSpace(stages[0]) != "logfmt" {
			add("a pipeline does not begin with logfmt:" + p[1])
			continue
		}
		for i, stage := range stages[1:] {
			stage = strings.TrimSpace(stage)
			if field, ok := strings.CutPrefix(stage, "unwrap "); ok {
				if _, known := parsers.FieldByName(field); !known {
					add("no field " + field)
				}
				if i+2 >= len(stages) || strings.TrimSpace(stages[i+2]) != `__error__=""` {
					add("no __error__=\"\" behind unwrap " + field)
				}
				continue
			}
			label := labelName.FindStringSubmatch(stage)
			switch {
			case label == nil:
				add("an unknown stage: " + stage)
			case label[1] == "__error__":
			default:
				if _, known := parsers.FieldByName(label[1]); !known {
					add("no field " + label[1])
				}
			}
		}
	}
	if !strings.Contains(expr, "by (") && !strings.HasPrefix(strings.TrimSpace(expr), "count(") {
		add("the query does not say by which labels it aggregates")
	}
	for _, word := range tooNew.FindAllString(quotedText.ReplaceAllString(expr, `""`), -1) {
		add(strings.TrimRight(word, " (") + " is newer than Loki 2.2.1")
	}
	return faults
}

// alternatives returns the texts that a simple regular expression matches: a|b(c|d).
func alternatives(pattern string) []string {
	if prefix, rest, ok := strings.Cut(pattern, "("); ok && !strings.Contains(prefix, "|") {
		inner, suffix, _ := strings.Cut(rest, ")")
		var all []string
		for _, one := range strings.Split(inner, "|") {
			all = append(all, prefix+one+suffix)
		}
		return all
	}
	if first, rest, ok := strings.Cut(pattern, "|"); ok {
		return append([]string{first}, alternatives(rest)...)
	}
	return []string{pattern}
}

func names(list string) []string { return regexp.MustCompile(`,\s*`).Split(list, -1) }

// TestCheckRule_faults breaks a good rule on purpose: each fault is found.
func TestCheckRule_faults(t *testing.T) {
	var good rule
	for _, group := range rendered(t, Options{})["failures.yaml"].Groups {
		for _, r := range group.Rules {
			if r.Alert == "FlinkCheckpointFailuresInARow" {
				good = r
			}
		}
	}
	if faults := checkRule(good); len(faults) > 0 {
		t.Fatal(faults)
	}
	f := func(old, broken, want string) {
		t.Helper()
		bad := good
		bad.Labels, bad.Annotations = maps.Clone(good.Labels), maps.Clone(good.Annotations)
		bad.Expr = strings.ReplaceAll(good.Expr, old, broken)
		for name, text := range bad.Annotations {
			bad.Annotations[name] = strings.ReplaceAll(text, old, broken)
		}
		for name, text := range bad.Labels {
			bad.Labels[name] = strings.ReplaceAll(text, old, broken)
		}
		if faults := strings.Join(checkRule(bad), "; "); !strings.Contains(faults, want) {
			t.Errorf("%q for %q gives %q, want %q", broken, old, faults, want)
		}
	}
	f(" | logfmt", "", "does not begin with logfmt")
	f(` | __error__=""`, "", "no __error__")
	f("failures_in_a_row |", "failures_in_row |", "no field failures_in_row")
	f("job_id", "jobid", "no field jobid")
	f("savepoint!=", "is_savepoint!=", "no field is_savepoint")
	f("checkpoint_completed", "checkpoint_complete", "no event checkpoint_complete")
	f("(expired|", "(expires|", "no event checkpoint_expires")
	f(`event="checkpoint_completed"`, `component="jobmanager"`, "names no event")
	f("[1h]", "[1h] offset 1m", "offset is newer")
	f("unless", "unless on (job_id)", "on is newer")
	f("page", "warning", "severity is warning")
	f("{{ $value }}", "{{ $value }} {{ $labels.host }}", "uses host")
	f("#flinkcheckpointfailuresinarow", "", "runbook_url")
}
