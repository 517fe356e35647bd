package rules

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"flink-loki/rules/ruletest"
)

// panel is one of a dashboard's, with its queries.
type panel struct {
	Dashboard string `json:"-"`
	Title     string `json:"title"`
	Targets   []struct {
		Expr      string `json:"expr"`
		QueryType string `json:"queryType"`
	} `json:"targets"`
}

// panels returns the panels of all dashboards that have queries.
func panels(t *testing.T) (panels []panel) {
	t.Helper()
	names, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(names) != 3 {
		t.Fatalf("dashboards: %v, %v", names, err)
	}
	for _, name := range names {
		var d struct {
			Panels []panel `json:"panels"`
		}
		if err := json.Unmarshal(read(t, name), &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, p := range d.Panels {
			p.Dashboard = filepath.Base(name)
			if len(p.Targets) > 0 {
				panels = append(panels, p)
			}
		}
	}
	return panels
}

// withVariables returns a panel's query as Grafana would send it.
func withVariables(q, job string) string {
	return strings.NewReplacer("$cluster", ".*", "$job", job, "$__interval", "1h", "$__range", "1h").Replace(q)
}

// TestDashboards_form checks the queries as far as they can be without a Loki: events and
// fields exist, and no word is newer than Loki 2.2.1.
func TestDashboards_form(t *testing.T) {
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			q := withVariables(target.Expr, ".*")
			if strings.Contains(q, "$") {
				t.Errorf("%s: %s: a variable that is not known: %s", p.Dashboard, p.Title, q)
			}
			for _, fault := range checkRecipe(q) {
				if !strings.Contains(fault, "by which labels") { // one number for all is meant
					t.Errorf("%s: %s: %s", p.Dashboard, p.Title, fault)
				}
			}
			over := "[$__interval]"
			if target.QueryType == "instant" {
				over = "[$__range]"
			}
			if !strings.HasPrefix(q, "{") && strings.Count(target.Expr, "[") != strings.Count(target.Expr, over) {
				t.Errorf("%s: %s: a range other than %s", p.Dashboard, p.Title, over)
			}
		}
	}
}

// demoLogs are what "make demo" replays, and its job.
const demoLogs, demoJob = "2.3.0/expired", "fef61425e149c9b56545204c60d72fcc"

// elsewhere are the panels about what the demo's logs do not tell, and the logs that do: a
// directory, or a test of tests/absence.yaml.
var elsewhere = map[string]struct{ logs, job string }{
	"Root causes":                   {"2.3.0/declined", ".*"},
	"Restarts and failures of jobs": {"2.3.0/declined-fail", ".*"},
	"Lost TaskManagers":             {"2.3.0/tm-killed", ".*"},
	"Jobs without checkpoints":      {"it hangs again", ".*"},
	"Agents":                        {"agents that are late by less", ".*"},
	"Start delay":                   {"1.20.5/metric-report", "orders report v1.2"},
	"Alignment":                     {"2.3.0/debug-mixed", "70bf24b61e376150bfdc49887393933d"},
	"Synchronous part":              {"2.3.0/debug-mixed", "70bf24b61e376150bfdc49887393933d"},
	"Asynchronous part":             {"2.3.0/debug-mixed", "70bf24b61e376150bfdc49887393933d"},
	"Unfinished snapshots":          {"2.3.0/debug-mixed", "70bf24b61e376150bfdc49887393933d"},
	"Write stalls and stops":        {"1.20.5/rocksdb-stalls", ".*"},
	"Stalls and stops by cause":     {"1.20.5/rocksdb-stalls", ".*"},
	"Column families":               {"1.20.5/rocksdb-stalls", ".*"},
	"Stalls, stops and errors":      {"1.20.5/rocksdb-stalls", ".*"},
}

// TestDashboards_queries runs each query: it finds something in the demo's logs, or in
// those that tell of what it asks.
func TestDashboards_queries(t *testing.T) {
	l := loki(t)
	logs, err := filepath.Abs("../test/logs")
	if err != nil {
		t.Fatal(err)
	}
	absence, err := ruletest.Load("tests/absence.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := panels(t)
	byLogs := map[string]*ruletest.Test{}
	asked := map[string][]string{}
	ask := func(dir, job string, p panel) {
		if byLogs[dir] == nil {
			byLogs[dir] = &ruletest.Test{Name: dir, InputLogs: []ruletest.Input{{File: logs + "/" + dir + "/*.[lL]*", Node: "host-1"}}}
			for _, test := range absence.Tests {
				if test.Name == dir {
					byLogs[dir] = &ruletest.Test{Name: dir, InputLogs: test.InputLogs}
				}
			}
		}
		for _, target := range p.Targets {
			byLogs[dir].Exprs = append(byLogs[dir].Exprs, ruletest.ExprTest{Expr: asMetric(withVariables(target.Expr, job), nil), EvalTime: 40 * 60 * 1e9})
			asked[dir] = append(asked[dir], p.Dashboard+": "+p.Title)
		}
	}
	for _, p := range all {
		other, ok := elsewhere[p.Title]
		switch {
		case ok:
			ask(other.logs, other.job, p)
		case p.Dashboard == "rocksdb.json": // the names of these files do not tell the job
			ask(demoLogs, ".*", p)
		default:
			ask(demoLogs, demoJob, p)
		}
	}
	queries := 0
	for dir, test := range byLogs {
		for i, expr := range test.Exprs {
			one := *test
			one.Exprs = []ruletest.ExprTest{expr}
			results, err := (&ruletest.File{Tests: []ruletest.Test{one}}).Run(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			queries++
			faults := fmt.Sprint(results[0].Faults) // nothing is expected
			if len(results[0].Faults) == 0 || strings.Contains(faults, "loki answers") {
				t.Errorf("%s finds nothing in %s: %s %s", asked[dir][i], dir, expr.Expr, faults)
			}
		}
	}
	for title := range elsewhere {
		if !slices.ContainsFunc(all, func(p panel) bool { return p.Title == title }) {
			t.Errorf("no panel is called %s", title)
		}
	}
	t.Logf("%d queries of %d panels", queries, len(all))
}
