package ruletest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"gopkg.in/yaml.v3"
)

// File is a file of tests.
type File struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []Test         `yaml:"tests"`

	dir   string
	rules []Rule
}

// Test is one of them.
type Test struct {
	Name string `yaml:"name"`
	// Start is the start of the clock; the zero Time is the minute of the first event.
	Start     time.Time   `yaml:"start"`
	InputLogs []Input     `yaml:"input_logs"`
	Alerts    []AlertTest `yaml:"alert_rule_test"`
	Exprs     []ExprTest  `yaml:"logql_expr_test"`
}

// Input is a log, or several that a pattern names.
type Input struct {
	// File is a path or pattern, relative to the file of tests; or Lines are the lines.
	File  string `yaml:"file"`
	Lines string `yaml:"lines"`
	// Name is what the file of the lines is called: its name can tell ids.
	Name string `yaml:"name"`
	// Component names the log where Name does not: the logs of a test are told apart by it.
	Component string `yaml:"component"`
	// URL is where a REST answer was fetched from.
	URL string `yaml:"url"`
	// Node is the host that the lines were read on, by an agent that knows nothing of others.
	Node string `yaml:"node"`
	// Labels are static labels of its streams.
	Labels     map[string]string `yaml:"labels"`
	TimeOffset model.Duration    `yaml:"time_offset"`
	// Heartbeats, in place of lines, is how long the agent on the node tells that it lives:
	// each minute from the start of the clock, or from time_offset, on.
	Heartbeats model.Duration `yaml:"heartbeats"`
}

// AlertTest says which alerts of a rule fire at a time.
type AlertTest struct {
	EvalTime  model.Duration  `yaml:"eval_time"`
	Alertname string          `yaml:"alertname"`
	Alerts    []ExpectedAlert `yaml:"exp_alerts"`
}

// ExpectedAlert is an alert that fires.
type ExpectedAlert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// ExprTest says what a query gives at a time.
type ExprTest struct {
	Expr     string           `yaml:"expr"`
	EvalTime model.Duration   `yaml:"eval_time"`
	Samples  []ExpectedSample `yaml:"exp_samples"`
}

// ExpectedSample is an element of a query's result.
type ExpectedSample struct {
	Labels map[string]string `yaml:"labels"`
	Value  float64           `yaml:"value"`
}

// Rule is an alert rule of Loki's ruler.
type Rule struct {
	Alert         string            `yaml:"alert"`
	Expr          string            `yaml:"expr"`
	For           model.Duration    `yaml:"for"`
	KeepFiringFor model.Duration    `yaml:"keep_firing_for"`
	Labels        map[string]string `yaml:"labels"`
	Annotations   map[string]string `yaml:"annotations"`

	interval time.Duration
}

type ruleFile struct {
	Groups []struct {
		Name     string         `yaml:"name"`
		Interval model.Duration `yaml:"interval"`
		Rules    []Rule         `yaml:"rules"`
	} `yaml:"groups"`
}

// Load reads a file of tests and the rule files that it names.
func Load(name string) (*File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &File{dir: filepath.Dir(name), EvaluationInterval: model.Duration(time.Minute)}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (f *File) check() error {
	if f.EvaluationInterval <= 0 {
		return errors.New("evaluation_interval is not above 0")
	}
	for _, pattern := range f.RuleFiles {
		names, err := f.glob(pattern)
		if err != nil {
			return fmt.Errorf("rule_files: %w", err)
		}
		for _, name := range names {
			if err := f.addRules(name); err != nil {
				return err
			}
		}
	}
	for i := range f.Tests {
		if err := f.Tests[i].check(f); err != nil {
			return fmt.Errorf("test %q: %w", f.Tests[i].Name, err)
		}
	}
	return nil
}

func (t *Test) check(f *File) error {
	if t.Name == "" {
		return errors.New("it has no name")
	}
	for i, in := range t.InputLogs {
		given := 0
		for _, is := range []bool{in.File != "", in.Lines != "", in.Heartbeats != 0} {
			if is {
				given++
			}
		}
		if given != 1 {
			return fmt.Errorf("input_logs, number %d: give either file, lines or heartbeats", i+1)
		}
		if in.Heartbeats != 0 && in.Node == "" {
			return fmt.Errorf("input_logs, number %d: give the heartbeats' node", i+1)
		}
	}
	for _, a := range t.Alerts {
		if len(f.rulesOf(a.Alertname)) == 0 {
			return fmt.Errorf("alertname: no rule of the rule_files is called %q", a.Alertname)
		}
	}
	return nil
}

// glob returns the files that a pattern names, which are some.
func (f *File) glob(pattern string) ([]string, error) {
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(f.dir, pattern)
	}
	names, err := filepath.Glob(pattern)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no file is called %s", pattern)
	}
	return names, err
}

// addRules adds the rules of a rule file. What else stands there is the ruler's.
func (f *File) addRules(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var rules ruleFile
	if err := yaml.Unmarshal(text, &rules); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			if r.interval = time.Duration(group.Interval); r.interval == 0 {
				r.interval = time.Duration(f.EvaluationInterval)
			}
			if r.Alert != "" { // else it records
				f.rules = append(f.rules, r)
			}
		}
	}
	return nil
}

// rulesOf returns the rules of an alert: overrides for some jobs have its name too.
func (f *File) rulesOf(alert string) (rules []*Rule) {
	for i := range f.rules {
		if f.rules[i].Alert == alert {
			rules = append(rules, &f.rules[i])
		}
	}
	return rules
}
