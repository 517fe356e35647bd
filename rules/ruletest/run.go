package ruletest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Result is how one test went for one alert, or for its queries.
type Result struct {
	Test string
	// Alert is the alert, "" for queries.
	Alert string
	// Faults are what is not as expected, each with its differences on lines of their own.
	Faults []string
}

// Run runs the tests of a file in a Loki. The error is that of a log that can't be read or
// a Loki that can't be used; what Loki says of a query is a fault.
func (f *File) Run(ctx context.Context, l *Loki) ([]Result, error) {
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	var results []Result
	for i := range f.Tests {
		t := &f.Tests[i]
		its, err := f.run(ctx, t, l.room(run, i))
		if err != nil {
			return results, fmt.Errorf("test %q: %w", t.Name, err)
		}
		results = append(results, its...)
	}
	return results, nil
}

// Alert is one that fires.
type Alert struct {
	Labels, Annotations map[string]string
}

// Firing returns the alerts of all rules that fire at a time of a test's clock.
func (f *File) Firing(ctx context.Context, l *Loki, t *Test, at time.Duration) ([]Alert, error) {
	r := l.room(strconv.FormatInt(time.Now().UnixNano(), 36), 0)
	start, err := f.fill(ctx, t, r)
	if err != nil {
		return nil, err
	}
	var all []Alert
	for i := range f.rules {
		firing, err := f.rules[i].firing(ctx, r.query, start, at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.rules[i].Alert, err)
		}
		for _, a := range firing {
			all = append(all, Alert{a.labels, a.annotations})
		}
	}
	return all, nil
}

// fill stores the logs of a test, moved to the present, and returns when its clock starts.
func (f *File) fill(ctx context.Context, t *Test, r room) (start time.Time, err error) {
	entries, err := f.entries(t)
	if err != nil {
		return start, err
	}
	start = t.start(entries)
	by := time.Since(t.end(start, entries)).Truncate(time.Millisecond)
	return start.Add(by), r.push(ctx, encode(entries, r.labels(), r.Metadata, by))
}

func (f *File) run(ctx context.Context, t *Test, r room) ([]Result, error) {
	start, err := f.fill(ctx, t, r)
	if err != nil {
		return nil, err
	}
	var results []Result
	result := func(alert string) *Result {
		i := slices.IndexFunc(results, func(r Result) bool { return r.Alert == alert })
		if i < 0 {
			i = len(results)
			results = append(results, Result{Test: t.Name, Alert: alert})
		}
		return &results[i]
	}
	for _, a := range t.Alerts {
		into := result(a.Alertname)
		into.Faults = append(into.Faults, a.run(ctx, f.rulesOf(a.Alertname), r.query, start)...)
	}
	for _, e := range t.Exprs {
		into := result("")
		into.Faults = append(into.Faults, e.run(ctx, r.query, start)...)
	}
	return results, nil
}

// start returns the start of a test's clock.
func (t *Test) start(entries []entry) time.Time {
	start := t.Start
	for _, e := range entries {
		if first := e.at.Truncate(time.Minute); t.Start.IsZero() && (start.IsZero() || first.Before(start)) {
			start = first
		}
	}
	if start.IsZero() {
		return time.Now().Truncate(time.Minute)
	}
	return start
}

// end returns when all of a test has happened, whose clock starts at a time.
func (t *Test) end(start time.Time, entries []entry) time.Time {
	end := start
	for _, e := range entries {
		end = later(end, e.at)
	}
	for _, a := range t.Alerts {
		end = later(end, start.Add(time.Duration(a.EvalTime)))
	}
	for _, e := range t.Exprs {
		end = later(end, start.Add(time.Duration(e.EvalTime)))
	}
	return end
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (a *AlertTest) run(ctx context.Context, rules []*Rule, ask query, start time.Time) []string {
	var got []*alert
	for _, rule := range rules {
		firing, err := rule.firing(ctx, ask, start, time.Duration(a.EvalTime))
		if err != nil {
			return []string{fmt.Sprintf("%s at %s: %v", a.Alertname, a.EvalTime, err)}
		}
		got = append(got, firing...)
	}
	if diff := a.compare(got); diff != "" {
		return []string{fmt.Sprintf("%s at %s:\n%s", a.Alertname, a.EvalTime, diff)}
	}
	return nil
}

func (e *ExprTest) run(ctx context.Context, ask query, start time.Time) []string {
	samples, err := ask(ctx, e.Expr, start.Add(time.Duration(e.EvalTime)))
	if err != nil {
		return []string{fmt.Sprintf("%s at %s: %v", strings.TrimSpace(e.Expr), e.EvalTime, err)}
	}
	var got, want []string
	for _, s := range samples {
		got = append(got, fmt.Sprintf("%s %s", format(s.labels), number64(s.value)))
	}
	for _, s := range e.Samples {
		want = append(want, fmt.Sprintf("%s %s", format(s.Labels), number64(s.Value)))
	}
	if diff := compare(want, got); diff != "" {
		return []string{fmt.Sprintf("%s at %s:\n%s", strings.TrimSpace(e.Expr), e.EvalTime, diff)}
	}
	return nil
}

// number64 writes a number: values that differ in rounding only are one.
func number64(v float64) string {
	if v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 12, 64)
}
