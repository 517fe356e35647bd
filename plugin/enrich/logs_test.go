package enrich

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"time"

	"flink-loki/parsers"
)

// logsDir holds logs of real clusters, one directory a version and scenario, with what
// Flink's REST API said of their checkpoints.
const logsDir = "../../test/logs"

// scenario is one cluster.
type scenario struct {
	dir  string
	TZ   string   `json:"tz"`
	Jobs []string `json:"job_ids"`
}

func (s *scenario) name() string { return strings.TrimPrefix(s.dir, logsDir+"/") }

func (s *scenario) version() string { return filepath.Dir(s.name()) }

func (s *scenario) files(pattern string) []string {
	files, _ := filepath.Glob(filepath.Join(s.dir, pattern))
	return files
}

func scenarios(t testing.TB) (all []*scenario) {
	t.Helper()
	files, err := filepath.Glob(logsDir + "/*/*/scenario.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, file := range files {
		s := &scenario{dir: filepath.Dir(file)}
		readJSON(t, file, s)
		all = append(all, s)
	}
	return all
}

func readJSON(t testing.TB, file string, v any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// item is an event, or a line that only teaches.
type item struct {
	file   string
	lesson bool
	event  *parsers.Event
	at     time.Time // never before that of the item before in the file
}

// read returns the items of a file.
func (s *scenario) read(t testing.TB, file string) (items []item) {
	t.Helper()
	loc, err := time.LoadLocation(s.TZ)
	if err != nil {
		t.Fatal(err)
	}
	parser, err := parsers.New(parsers.Options{Location: loc})
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var last time.Time
	add := func(lesson bool) func(*parsers.Event) {
		return func(e *parsers.Event) {
			if at, ok := e.Time(parsers.Time); ok && at.After(last) {
				last = at
			}
			items = append(items, item{file, lesson, e.Clone(), last})
		}
	}
	source := parser.NewSource(add(false))
	source.Lesson = add(true)
	known := &parsers.Event{}
	parsers.AddFileName(known, []byte(file))
	source.Known = known
	n, offset := 0, int64(0)
	for line := range bytes.Lines(log) {
		n++
		source.Record(parsers.Origin{Line: n, Offset: offset}, bytes.TrimSuffix(line, []byte("\n")))
		offset += int64(len(line))
	}
	source.Flush()
	return items
}

// enriched returns the events of files with what one pass over all of them knows.
func (s *scenario) enriched(t testing.TB, files ...string) (events []*parsers.Event) {
	t.Helper()
	return s.without(t, parsers.Message, files...)
}

// without is enriched for lines that do not tell a field.
func (s *scenario) without(t testing.TB, f parsers.Field, files ...string) (events []*parsers.Event) {
	t.Helper()
	var items []item
	for _, file := range files {
		items = append(items, s.read(t, file)...)
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.at.Compare(b.at) })
	pass := NewState(0).Begin(Teller{Emit: func(e *parsers.Event, _ bool) { events = append(events, e.Clone()) }})
	defer pass.Abandon()
	for _, i := range items {
		log := pass.Log("", i.file, "")
		log.Line(i.event.Origin.Offset, nil, time.Unix(0, 0))
		if !i.lesson {
			i.event.Drop(f)
		}
		if i.lesson {
			log.Lesson(i.event)
		} else {
			log.Event(i.event)
		}
	}
	pass.Finish()
	return events
}

func value(e *parsers.Event, f parsers.Field) string { return string(e.AppendValue(nil, f)) }

// place of an attempt, as lines of the JobManager's log give it.
type attemptTruth struct{ task, subtask, host string }

var (
	deployLine  = regexp.MustCompile(`Deploying (.*) \((\d+)/\d+\) \(attempt #\d+\)(?: with attempt id ([0-9a-f_]+))?.* to \S+ @ (\S+) \(dataPort`)
	changedLine = regexp.MustCompile(` (?:- |\] ?)(.*) \((\d+)/\d+\) \(([0-9a-f]{32}(?:_[0-9a-f_]+)?)\) switched from`)
)

// attempts reads from a JobManager's log, by regular expressions, which attempt is which
// task and where it runs.
func attempts(t *testing.T, file string) map[string]attemptTruth {
	t.Helper()
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	truth := map[string]attemptTruth{}
	deployed := map[string]string{} // attempt by task and subtask
	for line := range strings.Lines(string(log)) {
		if m := changedLine.FindStringSubmatch(line); m != nil {
			task := m[1][strings.LastIndex(m[1], " - ")+1:]
			task = strings.TrimPrefix(task, "- ")
			a := truth[m[3]]
			a.task, a.subtask = task, m[2]
			truth[m[3]] = a
			deployed[task+m[2]] = m[3]
		} else if m := deployLine.FindStringSubmatch(line); m != nil {
			id := m[3]
			if id == "" {
				id = deployed[m[1]+m[2]]
			}
			a := truth[id]
			a.task, a.subtask, a.host = m[1], m[2], m[4]
			truth[id] = a
		}
	}
	return truth
}

// TestAttempts compares the task and host of each decline and late message with what the
// lines above say of the attempt.
func TestAttempts(t *testing.T) {
	seen := map[string]int{}
	for _, s := range scenarios(t) {
		for _, file := range s.files("jobmanager.log") {
			truth := attempts(t, file)
			for _, e := range s.enriched(t, file) {
				switch e.Kind.Name {
				case "checkpoint_declined", "checkpoint_late_message", "checkpoint_late_decline", "checkpoint_unknown_message":
				default:
					continue
				}
				want, ok := truth[value(e, parsers.TaskAttemptID)]
				if !ok {
					if e.Has(parsers.TaskAttemptID) {
						t.Errorf("%s:%d: no line tells of attempt %s", file, e.Origin.Line, value(e, parsers.TaskAttemptID))
					}
					continue
				}
				index, _ := e.Int(parsers.SubtaskIndex)
				got := attemptTruth{value(e, parsers.TaskName), strconv.FormatInt(index+1, 10), value(e, parsers.Host)}
				if got != want {
					t.Errorf("%s:%d %s: got %q, want %q", file, e.Origin.Line, e.Kind.Name, got, want)
				}
				if parts := strings.Split(value(e, parsers.TaskAttemptID), "_"); len(parts) == 4 &&
					(parts[1] != value(e, parsers.VertexID) || parts[2] != value(e, parsers.SubtaskIndex)) {
					t.Errorf("%s:%d: vertex %s subtask %s of attempt %s", file, e.Origin.Line, value(e, parsers.VertexID), value(e, parsers.SubtaskIndex), parts)
				}
				seen[s.version()+" "+e.Kind.Name]++
			}
		}
	}
	for key, n := range seen {
		t.Logf("%s: %d", key, n)
	}
	if len(seen) < 10 {
		t.Errorf("too few to tell: %v", seen)
	}
}

// restCheckpoint is what Flink's REST API says of one.
type restCheckpoint struct {
	ID          int64  `json:"id"`
	Status      string `json:"status"`
	IsSavepoint bool   `json:"is_savepoint"`
	Triggered   int64  `json:"trigger_timestamp"`
	Duration    int64  `json:"end_to_end_duration"`
	Failure     string `json:"failure_message"`
}

func (c *restCheckpoint) ended() int64 { return c.Triggered + c.Duration }

// isCounted reports whether a failure is one of checkpointing, by the words of REST.
func (c *restCheckpoint) isCounted() bool {
	switch {
	case c.Status != "FAILED":
		return false
	case regexp.MustCompile(`suspending|shutdown|Job is (suspended|canceled)|not in state RUNNING|was not running|Task (has )?(not ready|failed)|subsumed|tasks? (is|are) (closing|not running)|superseded`).MatchString(c.Failure):
		return false
	}
	return true
}

// history returns the finished checkpoints of a job, in the order of their ids.
func (s *scenario) history(t testing.TB, job int) (all []restCheckpoint) {
	t.Helper()
	var rest struct {
		History []restCheckpoint `json:"history"`
	}
	readJSON(t, filepath.Join(s.dir, "rest", "job-"+strconv.Itoa(job+1)+"-checkpoints.json"), &rest)
	for _, c := range rest.History {
		if s.version() == "1.9.3" {
			c.IsSavepoint = false // no line of it tells
		}
		if c.Status != "IN_PROGRESS" {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b restCheckpoint) int { return int(a.ID - b.ID) })
	return all
}

// TestFailuresInARow compares failures_in_a_row, the last completed checkpoint and the
// number of summaries with the history in REST.
func TestFailuresInARow(t *testing.T) {
	ends, counted, summaries := 0, 0, 0
	for _, s := range scenarios(t) {
		events := s.enriched(t, s.files("jobmanager.log")...)
		for n, job := range s.Jobs {
			history := s.history(t, n)
			byID := map[int64][]*parsers.Event{}
			told := map[int64]int{}
			for _, e := range events {
				if value(e, parsers.JobID) != job {
					continue
				}
				id, _ := e.Int(parsers.CheckpointID)
				byID[id] = append(byID[id], e)
				if e.Kind.Name == "checkpoint_failure_summary" {
					told[id]++
				}
			}
			for _, c := range history {
				want := 0
				if c.isCounted() {
					want = 1
				}
				if told[c.ID] != want {
					t.Errorf("%s job %d checkpoint %d (%s %s): %d summaries", s.name(), n+1, c.ID, c.Status, c.Failure, told[c.ID])
				}
				counted += want
				summaries += told[c.ID]
				for _, e := range byID[c.ID] {
					got, ok := e.Int(parsers.FailuresInARow)
					if !ok || c.IsSavepoint {
						continue
					}
					inARow, last := restPast(history, &c)
					if int(got) != inARow || value(e, parsers.LastCompletedID) != last {
						t.Errorf("%s:%d job %d checkpoint %d %s: %d in a row after %q, want %d after %q", s.name(), e.Origin.Line, n+1, c.ID, e.Kind.Name,
							got, value(e, parsers.LastCompletedID), inARow, last)
					}
					ends++
				}
			}
		}
	}
	t.Logf("%d ends, %d counted failures, %d summaries", ends, counted, summaries)
	if ends < 500 || counted < 200 {
		t.Error("too few to tell")
	}
}

// restPast returns how many counted failures a job had in a row when a checkpoint ended, and
// which one completed before.
func restPast(history []restCheckpoint, at *restCheckpoint) (failures int, last string) {
	var completed int64
	for _, c := range history {
		if c.ID < at.ID && c.Status == "COMPLETED" && !c.IsSavepoint && c.ended() <= at.ended() {
			completed = c.ID
		}
	}
	if completed > 0 {
		last = strconv.FormatInt(completed, 10)
	}
	if at.Status == "COMPLETED" {
		return 0, last
	}
	for _, c := range history {
		if c.ID > completed && c.ended() <= at.ended() && c.isCounted() && !c.IsSavepoint {
			failures++
		}
	}
	return failures, last
}

// TestStatistics compares the vertices that a failed checkpoint waited for with REST.
func TestStatistics(t *testing.T) {
	compared := 0
	for _, s := range scenarios(t) {
		for n, job := range s.Jobs {
			file := filepath.Join(s.dir, "rest", "job-"+strconv.Itoa(n+1)+"-failed-vertices.json")
			if _, err := os.Stat(file); err != nil {
				continue
			}
			var failed map[string]map[string][2]int
			readJSON(t, file, &failed)
			for _, e := range s.enriched(t, s.files("jobmanager.log")...) {
				vertices, ok := failed[value(e, parsers.CheckpointID)]
				if value(e, parsers.JobID) != job || !ok || !slices.Contains([]string{"checkpoint_statistics", "checkpoint_failure_summary"}, e.Kind.Name) {
					continue
				}
				var want []string
				for name, n := range vertices {
					if n[0] < n[1] {
						want = append(want, name+" "+strconv.Itoa(n[0])+"/"+strconv.Itoa(n[1]))
					}
				}
				slices.Sort(want)
				// A name can have a comma of its own.
				got := value(e, parsers.IncompleteVertices)
				for _, w := range want {
					before := len(got)
					if got = strings.Replace(got, w, "", 1); len(got) == before {
						t.Errorf("%s job %d checkpoint %s: %q is not in %q", s.name(), n+1, value(e, parsers.CheckpointID), w, got)
					}
				}
				if strings.Trim(got, ", ") != "" {
					t.Errorf("%s job %d checkpoint %s: REST does not know %q", s.name(), n+1, value(e, parsers.CheckpointID), got)
				}
				compared++
			}
		}
	}
	if t.Logf("%d events", compared); compared < 40 {
		t.Error("too few to tell")
	}
}

// TestJobs says of how many events of TaskManagers the job is known, and checks it: where
// the cluster had one job it is that one, and where the layout prints the job it is the
// one that is printed.
func TestJobs(t *testing.T) {
	type count struct{ events, jobs, tasks, candidates int }
	counts := map[string]*count{}
	for _, s := range scenarios(t) {
		files := slices.Concat(s.files("taskmanager-*.log"))
		printed := map[string]string{} // by file and line
		for _, file := range files {
			for _, i := range s.read(t, file) {
				if !i.lesson && i.event.Has(parsers.JobID) {
					printed[file+":"+strconv.Itoa(i.event.Origin.Line)] = value(i.event, parsers.JobID)
				}
			}
		}
		for _, file := range files {
			for _, e := range s.without(t, parsers.JobID, file) {
				if value(e, parsers.Component) != "taskmanager" {
					continue
				}
				job, jobs := value(e, parsers.JobID), "one job"
				if len(s.Jobs) > 1 {
					jobs = "several"
				}
				c := counts[s.version()+"\t"+jobs+"\t"+e.Kind.Name]
				if c == nil {
					c = &count{}
					counts[s.version()+"\t"+jobs+"\t"+e.Kind.Name] = c
				}
				c.events++
				if job != "" {
					c.jobs++
				}
				if e.Has(parsers.TaskName) {
					c.tasks++
				}
				if e.Has(parsers.JobCandidates) {
					c.candidates++
				}
				if want, ok := printed[file+":"+strconv.Itoa(e.Origin.Line)]; ok && job != "" && job != want {
					t.Errorf("%s:%d %s: job %s, the line prints %s", file, e.Origin.Line, e.Kind.Name, job, want)
				}
				if len(s.Jobs) == 1 && job != s.Jobs[0] {
					t.Errorf("%s:%d %s: job %q, and there is only %s", file, e.Origin.Line, e.Kind.Name, job, s.Jobs[0])
				}
			}
		}
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = w.Write([]byte("Flink\tcluster of\tevent\tevents\tjob\tcandidates\ttask\n"))
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		c := counts[key]
		fmt.Fprintf(w, "%s\t%d\t%d %%\t%d %%\t%d %%\n", key, c.events, 100*c.jobs/c.events, 100*c.candidates/c.events, 100*c.tasks/c.events)
	}
	_ = w.Flush()
	t.Logf("\n%s", b.String())
}
