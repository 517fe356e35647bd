package rules

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"flink-loki/rules/ruletest"
)

var (
	chapter = regexp.MustCompile(`(?m)^## (Flink\w+)$`)
	query   = regexp.MustCompile("(?s)```logql\n(.*?)```")
)

// chapters returns what the runbook says of each alert.
func chapters(t *testing.T) map[string]string {
	t.Helper()
	text := string(read(t, "runbook.md"))
	starts := append(chapter.FindAllStringSubmatchIndex(text, -1), []int{len(text)})
	byAlert := map[string]string{}
	for i, start := range starts[:len(starts)-1] {
		byAlert[text[start[2]:start[3]]] = text[start[1]:starts[i+1][0]]
	}
	return byAlert
}

// TestRunbook checks that the runbook has a chapter on each alert, on no other, and that
// none lacks a part.
func TestRunbook(t *testing.T) {
	byAlert := chapters(t)
	var alerts []string
	for _, file := range rendered(t, Options{}) {
		for _, group := range file.Groups {
			for _, r := range group.Rules {
				alerts = append(alerts, r.Alert)
			}
		}
	}
	slices.Sort(alerts)
	if written := slices.Sorted(maps.Keys(byAlert)); !slices.Equal(alerts, written) {
		t.Errorf("there are %v, and chapters on %v", alerts, written)
	}
	for alert, text := range byAlert {
		for _, part := range []string{"**Means.** ", "**Why, and what follows.** ", "**Ask.**", "**Change.** ", "**Harmless.** "} {
			if strings.Count(text, part) != 1 {
				t.Errorf("%s has not one %s", alert, part)
			}
		}
		queries := query.FindAllStringSubmatch(text, -1)
		if len(queries) != 3 {
			t.Errorf("%s has %d queries", alert, len(queries))
		}
		for _, q := range queries {
			for _, fault := range checkRecipe(q[1]) {
				t.Errorf("%s: %s: %s", alert, strings.TrimSpace(q[1]), fault)
			}
		}
	}
}

// TestRecipes_form checks the README's queries as far as they can be without a Loki.
func TestRecipes_form(t *testing.T) {
	for _, q := range query.FindAllStringSubmatch(string(read(t, "../README.md")), -1) {
		for _, fault := range checkRecipe(q[1]) {
			t.Errorf("%s: %s", strings.TrimSpace(q[1]), fault)
		}
	}
}

// checkRecipe returns what is wrong with a query for people: those of rules apart from
// what their results must be like.
func checkRecipe(q string) (faults []string) {
	if strings.HasPrefix(q, "{") { // as a rule would have it
		q = "sum by (job_id) (count_over_time(" + strings.TrimSpace(lineFormat.ReplaceAllString(q, "")) + " [1h]))"
	}
	for _, fault := range checkExpr(q) {
		if !strings.Contains(fault, "names no event") { // a person may ask for all of a component
			faults = append(faults, fault)
		}
	}
	return faults
}

var lineFormat = regexp.MustCompile(`\| line_format "[^"]*"`)

// placeholders of the runbook's queries, and the labels of the alert that stand for them.
var fromAlert = map[string]string{"JOB": "job_id", "CHECKPOINT": "checkpoint_id", "TM": "tm_id", "NAME": "job_name"}

// TestRunbook_queries runs the runbook's queries on the logs that raise their alert: each
// finds something there.
func TestRunbook_queries(t *testing.T) {
	l := loki(t)
	byAlert := chapters(t)
	found := map[string]bool{}
	for _, name := range testFiles(t) {
		file, err := ruletest.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		var tests []ruletest.Test
		var asked [][]string // by test
		for _, test := range file.Tests {
			raised := map[string]bool{}
			for _, a := range test.Alerts {
				if len(a.Alerts) == 0 || raised[a.Alertname] {
					continue
				}
				raised[a.Alertname] = true
				labels := a.Alerts[len(a.Alerts)-1].Labels
				for i, q := range query.FindAllStringSubmatch(byAlert[a.Alertname], -1) {
					tests = append(tests, ruletest.Test{
						Name: test.Name, InputLogs: test.InputLogs,
						Exprs: []ruletest.ExprTest{{Expr: asMetric(q[1], labels), EvalTime: max(a.EvalTime, model.Duration(10*time.Minute))}},
					})
					asked = append(asked, []string{a.Alertname, fmt.Sprint(i), q[1]})
				}
			}
		}
		file.Tests = tests
		results, err := file.Run(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			key := asked[i][0] + " " + asked[i][1] + "\n" + asked[i][2]
			found[key] = found[key] || len(r.Faults) > 0 // nothing is expected
			for _, fault := range r.Faults {
				if strings.Contains(fault, "loki answers") {
					t.Errorf("%s: %s", asked[i][0], fault)
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if !found[key] {
			t.Errorf("finds nothing: %s", key)
		}
	}
	if len(found) != 3*len(byAlert) {
		t.Errorf("%d queries ran, of %d", len(found), 3*len(byAlert))
	}
}

// asMetric returns a query with an alert's labels put in; one for lines counts them.
func asMetric(q string, labels map[string]string) string {
	for placeholder, label := range fromAlert {
		q = strings.ReplaceAll(q, `"`+placeholder+`"`, fmt.Sprintf("%q", labels[label]))
		q = strings.ReplaceAll(q, `".*`+placeholder+`.*"`, fmt.Sprintf("%q", ".*"+labels[label]+".*"))
	}
	if strings.HasPrefix(q, "{") {
		return "sum(count_over_time(" + strings.TrimSpace(q) + " [1h]))"
	}
	return q
}
