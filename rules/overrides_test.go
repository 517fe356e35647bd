package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOverrides gives a job another threshold: its eight failures are then few, and those of
// other jobs are not.
func TestOverrides(t *testing.T) {
	l := loki(t)
	overrides, err := ReadOverrides(strings.NewReader(`[{name: expiring, job_name: orders exp.*, set: {failures: 9}}]`))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Render(Options{Overrides: overrides})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range files {
		write(t, filepath.Join(dir, f.Name), f.Text)
	}
	logs, err := filepath.Abs("../test/logs/1.20.5")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "tests", "overrides.yaml")
	if err := os.Mkdir(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, name, []byte(`rule_files: [../*.yaml]
tests:
  - name: a job with another threshold
    input_logs: [{file: `+logs+`/expired/*.log}, {file: `+logs+`/declined/*.log}]
    alert_rule_test:
      - alertname: FlinkCheckpointFailuresInWindow
        eval_time: 4m
        exp_alerts: [{exp_labels: {severity: ticket, job_id: f750fc6947c53e3e7c63dbdf8e6ae517, job_name: orders declining}}]
`))
	for _, fault := range faults(t.Context(), t, l, name) {
		t.Error(fault)
	}
}
