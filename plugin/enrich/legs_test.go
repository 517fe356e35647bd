package enrich

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flink-loki/parsers"
)

var update = flag.Bool("update", false, "rewrite the table of the runbook")

// legCounts are the expired checkpoints of a version, and how many a leg names a task of.
type legCounts struct {
	version                                                     string
	expired, late, statistics, taskManagers, candidates, silent int
}

// expiry is one expired checkpoint.
type expiry struct{ job, checkpoint string }

var lateLine = regexp.MustCompile(`Received late message for now expired checkpoint attempt (\d+) from (?:task )?([0-9a-f_]+) of job ([0-9a-f]{32})`)

// TestLegs counts by which lines the expired checkpoints of the logs have a task named, as
// agents on hosts of their own do, checks the names that the JobManager's give, and that
// the runbook tells the same counts.
func TestLegs(t *testing.T) {
	var versions []*legCounts
	for _, s := range scenarios(t) {
		i := slices.IndexFunc(versions, func(c *legCounts) bool { return c.version == s.version() })
		if i < 0 {
			i = len(versions)
			versions = append(versions, &legCounts{version: s.version()})
		}
		s.countLegs(t, versions[i])
	}
	slices.SortFunc(versions, func(a, b *legCounts) int { return compareVersions(a.version, b.version) })
	var table strings.Builder
	table.WriteString("  | Flink | expired | late messages | statistics | TaskManagers | candidates | none |\n  | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range versions {
		fmt.Fprintf(&table, "  | %s | %d | %d | %d | %d | %d | %d |\n", c.version, c.expired, c.late, c.statistics, c.taskManagers, c.candidates, c.silent)
	}
	t.Logf("\n%s", table.String())

	const runbook, start, end = "../../rules/runbook.md", "<!-- legs -->\n", "<!-- /legs -->"
	text, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := bytes.Cut(text, []byte(start))
	was, after, ok := bytes.Cut(rest, []byte(end))
	switch {
	case !ok:
		t.Fatal("the runbook has no table of legs")
	case *update:
		err = os.WriteFile(runbook, slices.Concat(before, []byte(start+table.String()+end), after), 0o644)
	case string(was) != table.String():
		t.Errorf("the runbook has another table: run \"make golden\"\n%s", was)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func compareVersions(a, b string) int {
	var x, y [3]int
	_, _ = fmt.Sscanf(a, "%d.%d.%d", &x[0], &x[1], &x[2])
	_, _ = fmt.Sscanf(b, "%d.%d.%d", &y[0], &y[1], &y[2])
	return slices.Compare(x[:], y[:])
}

// countLegs counts each expired checkpoint of a cluster once: by the first leg that names
// a task of it.
func (s *scenario) countLegs(t *testing.T, counts *legCounts) {
	known, possible := map[expiry]bool{}, map[expiry]bool{}
	for _, file := range s.files("taskmanager*.log") {
		for _, e := range s.enriched(t, file) {
			if !slices.Contains([]string{"snapshot_async_failed", "snapshot_aborted", "barrier_overtaken"}, e.Kind.Name) || !e.Has(parsers.TaskName) {
				continue
			}
			id := value(e, parsers.CheckpointID)
			known[expiry{value(e, parsers.JobID), id}] = true
			for job := range strings.SplitSeq(value(e, parsers.JobCandidates), ",") {
				possible[expiry{strings.TrimSpace(job), id}] = true
			}
		}
	}
	for _, file := range s.files("jobmanager.log") {
		late := lateTasks(t, file)
		for _, e := range s.enriched(t, file) {
			if e.Kind != summaryKind || value(e, parsers.FailureCause) != "expired" || value(e, parsers.Savepoint) == "true" {
				continue
			}
			counts.expired++
			x := expiry{value(e, parsers.JobID), value(e, parsers.CheckpointID)}
			switch leg := value(e, parsers.NamedBy); {
			case leg == legLate:
				counts.late++
				task := value(e, parsers.TaskName) + "#" + value(e, parsers.SubtaskIndex)
				if !slices.Contains(late[x], task) {
					t.Errorf("%s, checkpoint %s: %s is named, and %q were late", s.name(), x.checkpoint, task, late[x])
				}
			case leg == legStatistics:
				counts.statistics++
			case known[x]:
				counts.taskManagers++
			case possible[x]:
				counts.candidates++
			default:
				counts.silent++
			}
		}
	}
}

// lateTasks reads by a regular expression which tasks were late for each checkpoint.
func lateTasks(t *testing.T, file string) map[expiry][]string {
	t.Helper()
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	truth := attempts(t, file)
	late := map[expiry][]string{}
	for _, m := range lateLine.FindAllStringSubmatch(string(log), -1) {
		a, x := truth[m[2]], expiry{m[3], m[1]}
		var subtask int
		_, _ = fmt.Sscan(a.subtask, &subtask)
		late[x] = append(late[x], fmt.Sprintf("%s#%d", a.task, subtask-1))
	}
	return late
}
