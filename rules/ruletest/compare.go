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
	var b strings.Builder
	for _, w := range slices.Sorted(slices.Values(want)) {
		if i := slices.Index(got, w); i >= 0 {
			got = slices.Delete(got, i, i+1)
		} else {
			fmt.Fprintf(&b, "    - %s\n", w)
		}
	}
	slices.Sort(got)
	for _, g := range got {
		fmt.Fprintf(&b, "    + %s\n", g)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// compare returns how the alerts that fire differ from those that are expected. Those that
// are missing stand beside the one that is most like them.
func (a *AlertTest) compare(got []*alert) string {
	var b strings.Builder
	left := map[string]*alert{}
	for _, g := range got {
		left[format(g.labels)] = g
	}
	var missing []map[string]string
	for _, want := range a.Alerts {
		labels := map[string]string{"alertname": a.Alertname}
		maps.Copy(labels, want.Labels)
		key := format(labels)
		g, ok := left[key]
		if !ok {
			missing = append(missing, labels)
			continue
		}
		delete(left, key)
		for _, name := range slices.Sorted(maps.Keys(want.Annotations)) {
			if text := want.Annotations[name]; g.annotations[name] != text {
				fmt.Fprintf(&b, "    %s, annotation %s:\n    - %s\n    + %s\n", key, name, text, g.annotations[name])
			}
		}
	}
	for _, labels := range missing {
		fmt.Fprintf(&b, "    - %s\n", format(labels))
		if key, different := nearest(labels, left); key != "" {
			fmt.Fprintf(&b, "    + %s\n      they differ in %s\n", key, strings.Join(different, ", "))
			delete(left, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(&b, "    + %s\n", key)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// nearest returns the alert that differs from labels in the fewest of them, and in which;
// none where they have little in common.
func nearest(labels map[string]string, alerts map[string]*alert) (key string, different []string) {
	for _, candidate := range slices.Sorted(maps.Keys(alerts)) {
		d := differences(labels, alerts[candidate].labels)
		if len(d) <= len(labels)/2 && (key == "" || len(d) < len(different)) {
			key, different = candidate, d
		}
	}
	return key, different
}

// differences returns the names of the labels in which two sets differ.
func differences(a, b map[string]string) (names []string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	return names
}
