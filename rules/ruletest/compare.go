package ruletest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// compare returns how lists of lines differ, "" where they do not: "-" is missing, "+" is
// too much.
func compare(want, got []string) string {
	got = slices.Clone(got)
	var missing []string
	for _, w := range want {
		if i := slices.Index(got, w); i >= 0 {
			got = slices.Delete(got, i, i+1)
		} else {
			missing = append(missing, w)
		}
	}
	return differences(missing, got)
}

func differences(missing, surplus []string) string {
	var b strings.Builder
	slices.Sort(missing)
	slices.Sort(surplus)
	for _, m := range missing {
		fmt.Fprintf(&b, "    - %s\n", m)
	}
	for _, s := range surplus {
		fmt.Fprintf(&b, "    + %s\n", s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// compare returns how the alerts that fire differ from those that are expected.
func (a *AlertTest) compare(got []*alert) string {
	byLabels := map[string]*alert{}
	for _, g := range got {
		byLabels[format(g.labels)] = g
	}
	var missing []string
	var faults strings.Builder
	for _, want := range a.Alerts {
		labels := map[string]string{"alertname": a.Alertname}
		maps.Copy(labels, want.Labels)
		key := format(labels)
		g, ok := byLabels[key]
		if !ok {
			missing = append(missing, key)
			continue
		}
		delete(byLabels, key)
		for _, name := range slices.Sorted(maps.Keys(want.Annotations)) {
			if text := want.Annotations[name]; g.annotations[name] != text {
				fmt.Fprintf(&faults, "\n    %s, annotation %s:\n    - %s\n    + %s", key, name, text, g.annotations[name])
			}
		}
	}
	surplus := slices.Collect(maps.Keys(byLabels))
	return strings.TrimPrefix(differences(missing, surplus)+faults.String(), "\n")
}
