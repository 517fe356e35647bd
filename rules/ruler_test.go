package rules

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"flink-loki/rules/ruletest"
	"flink-loki/test/lokitest"
)

// seldom are the alerts whose group the ruler evaluates every five minutes, which may be now.
var seldom = []string{"FlinkCheckpointFailuresOnPlatform", "FlinkCheckpointFailuresReported", "FlinkCheckpointFailuresInTotal",
	"FlinkSameSubtaskLate", "FlinkDurationNearTimeout", "FlinkDurationReachesInterval", "FlinkSnapshotStartsLate"}

// TestRuler gives the rules to a real ruler, and the same logs to it and to the tester of
// rules: both raise the same alerts.
func TestRuler(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a Loki")
	}
	names, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "alertmanager.yaml" })
	server, err := lokitest.Start(t.Context(), lokitest.Options{RuleFiles: names})
	if errors.Is(err, lokitest.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(server.LogTail())
		}
		_ = server.Stop()
	})
	logs, err := filepath.Abs("../test/logs/1.20.5")
	if err != nil {
		t.Fatal(err)
	}
	file, err := ruletest.Load("tests/expired.yaml") // for its rules
	if err != nil {
		t.Fatal(err)
	}
	test := &ruletest.Test{InputLogs: []ruletest.Input{
		{File: logs + "/expired/*.log", Labels: map[string]string{"cluster": "a"}},
		{File: logs + "/declined/*.log", Labels: map[string]string{"cluster": "b"}},
	}}
	alerts, err := file.Firing(t.Context(), &ruletest.Loki{URL: server.URL()}, test, 2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, a := range alerts {
		want = append(want, describe(a.Labels)+describe(a.Annotations))
	}
	slices.Sort(want)
	var got []string
	for range 100 {
		raised, err := server.Alerts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, a := range raised {
			if a.State == "firing" && !slices.Contains(seldom, a.Labels["alertname"]) {
				got = append(got, describe(a.Labels)+describe(a.Annotations))
			}
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			t.Logf("%d alerts, Loki %s", len(got), server.Version())
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Error("the ruler does not raise", w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Error("the tester does not raise", g)
		}
	}
}

// describe writes labels in order.
func describe(labels map[string]string) (s string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if labels[name] != "" {
			s += name + "=" + labels[name] + " "
		}
	}
	return s
}
