package enrich

import (
	"bytes"
	"encoding/json"

	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

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
	var items []item
	for _, file := range files {
		items = append(items, s.read(t, file)...)
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.at.Compare(b.at) })
	pass := NewState(0).Begin("", false, func(e *parsers.Event) { events = append(events, e.Clone()) })
	defer pass.Abandon()
	for _, i := range items {
		log := pass.Log("", i.file)
		log.Line(i.event.Origin.Offset, 0, time.Unix(0, 0))
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
