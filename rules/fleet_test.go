package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFleet lets an outage fail a checkpoint of 600 jobs at once. A rule by job is then an
// error in Loki, for more than 500 series; the one without labels fires.
func TestFleet(t *testing.T) {
	if os.Getenv("LOKI_URL") != "" {
		t.Skip("a query frontend limits the parts of a query, which the ruler does not")
	}
	l := loki(t)
	var lines strings.Builder
	for i := range 600 {
		fmt.Fprintf(&lines, "          2026-11-29 13:30:10,000 INFO  org.apache.flink.runtime.checkpoint.CheckpointCoordinator [] - Checkpoint 7 of job %032x expired before completing.\n", i)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "fleet.yaml")
	write(t, name, []byte(fmt.Sprintf(`rule_files: [%s/checkpoint.yaml, %s/failures.yaml]
tests:
  - name: outage
    input_logs:
      - component: jobmanager
        lines: |
%s
    alert_rule_test:
      - alertname: FlinkCheckpointFailuresInFleet
        eval_time: 1m
        exp_alerts:
          - exp_labels: {severity: ticket}
            exp_annotations: {summary: Checkpoints of 600 jobs failed within 10m}
      - {alertname: FlinkCheckpointExpired, eval_time: 1m}
`, here, here, lines.String())))
	got := faults(t.Context(), t, l, name)
	if len(got) != 1 || !strings.Contains(got[0], "FlinkCheckpointExpired at 1m") || !strings.Contains(got[0], "500") || !strings.Contains(got[0], "series") {
		t.Errorf("got %.500q", got)
	}
}
