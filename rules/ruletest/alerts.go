package ruletest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// alert is one that is pending or fires.
type alert struct {
	labels, annotations map[string]string
	// since is when its condition began to hold, last when it held last.
	since, last time.Time
	firing      bool
}

// machine is the state of a rule's alerts as the ruler has it.
type machine struct {
	rule   *Rule
	active map[string]*alert // by the labels of the sample
}

// query evaluates an expression at a time.
type query func(ctx context.Context, expr string, at time.Time) ([]sample, error)

// sample is an element of a result.
type sample struct {
	labels map[string]string
	value  float64
}

// stateless reports whether what was before does not matter.
func (r *Rule) stateless() bool { return r.For == 0 && r.KeepFiringFor == 0 }

// firing returns the alerts of a rule that fire at the last evaluation up to a time.
func (r *Rule) firing(ctx context.Context, ask query, start time.Time, until time.Duration) ([]*alert, error) {
	m := machine{rule: r, active: map[string]*alert{}}
	first := time.Duration(0)
	if r.stateless() {
		first = until.Truncate(r.interval)
	}
	for at := first; at <= until; at += r.interval {
		samples, err := ask(ctx, r.Expr, start.Add(at))
		if err == nil {
			err = m.step(samples, start.Add(at))
		}
		if err != nil {
			return nil, fmt.Errorf("evaluation at %s: %w", at, err)
		}
	}
	var firing []*alert
	for _, key := range slices.Sorted(maps.Keys(m.active)) {
		if a := m.active[key]; a.firing {
			firing = append(firing, a)
		}
	}
	return firing, nil
}

// step takes the result of an evaluation.
func (m *machine) step(samples []sample, at time.Time) error {
	for _, s := range samples {
		labels, annotations, err := m.rule.texts(s)
		if err != nil {
			return err
		}
		key := format(s.labels)
		a, ok := m.active[key]
		if !ok {
			a = &alert{since: at}
			m.active[key] = a
		}
		a.labels, a.annotations, a.last = labels, annotations, at
		a.firing = a.firing || at.Sub(a.since) >= time.Duration(m.rule.For)
	}
	for key, a := range m.active {
		if a.last != at && (!a.firing || at.Sub(a.last) >= time.Duration(m.rule.KeepFiringFor)) {
			delete(m.active, key)
		}
	}
	return nil
}

// texts returns the labels and annotations of an alert.
func (r *Rule) texts(s sample) (labels, annotations map[string]string, err error) {
	labels, annotations = maps.Clone(s.labels), map[string]string{}
	for name, template := range r.Labels {
		if labels[name], err = expand(template, s.labels, s.value); err != nil {
			return nil, nil, fmt.Errorf("label %s: %w", name, err)
		}
	}
	for name, template := range r.Annotations {
		if annotations[name], err = expand(template, s.labels, s.value); err != nil {
			return nil, nil, fmt.Errorf("annotation %s: %w", name, err)
		}
	}
	labels["alertname"] = r.Alert
	return labels, annotations, nil
}

// format writes labels as LogQL does.
func format(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if labels[name] != "" {
			parts = append(parts, fmt.Sprintf("%s=%q", name, labels[name]))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
