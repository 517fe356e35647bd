package rules

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"flink-loki/rules/ruletest"
)

// TestCounts checks on all real logs that the rules count each failure once, however many
// lines tell it: as many as there are summaries, for each job.
func TestCounts(t *testing.T) {
	l := loki(t)
	dirs, err := filepath.Glob("../test/logs/*/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	counted := strings.NewReplacer("${matchers}", "", "${jobs}", "").Replace(phrases["failed"])
	rule := `count by (job_id) (sum by (job_id, checkpoint_id, failure_key) (count_over_time(` + counted + ` [1d])))`
	summaries := `sum by (job_id) (count_over_time({event="checkpoint_failure_summary"} | logfmt | counted="true" | savepoint!="true" [1d]))`
	file := &ruletest.File{}
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		test := ruletest.Test{Name: dir, InputLogs: []ruletest.Input{{File: dir + "/*.[lL]*"}}}
		for _, operator := range []string{"%[1]s != %[2]s", "%[1]s unless %[2]s", "%[2]s unless %[1]s"} {
			test.Exprs = append(test.Exprs, ruletest.ExprTest{Expr: fmt.Sprintf(operator, rule, summaries), EvalTime: 60 * 60 * 1e9})
		}
		file.Tests = append(file.Tests, test)
	}
	results, err := file.Run(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		for _, fault := range r.Faults {
			t.Errorf("%s: %s", r.Test, fault)
		}
	}
}
