package parsers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// logsDir holds logs of real clusters, one directory a version and scenario, with what
// Flink's REST API said of their checkpoints.
const logsDir = "../test/logs"

type scenario struct {
	dir     string
	Version string   `json:"version"`
	JobIDs  []string `json:"job_ids"`
	TZ      string   `json:"tz"`
}

// since reports whether the scenario's Flink is 1.minor or later.
func (s scenario) since(minor int) bool {
	var major, m int
	_, _ = fmt.Sscanf(s.Version, "%d.%d", &major, &m)
	return major > 1 || m >= minor
}

func scenarios(t testing.TB) []scenario {
	t.Helper()
	files, err := filepath.Glob(logsDir + "/*/*/scenario.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	var all []scenario
	for _, file := range files {
		s := scenario{dir: filepath.Dir(file)}
		readJSON(t, file, &s)
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

// checkpoint is what Flink's REST API says of one.
type checkpoint struct {
	ID          int64  `json:"id"`
	Status      string `json:"status"`
	IsSavepoint bool   `json:"is_savepoint"`
	Triggered   int64  `json:"trigger_timestamp"`
	StateSize   int64  `json:"state_size"`
	Duration    int64  `json:"end_to_end_duration"`
	Failure     string `json:"failure_message"`
}

// told is what the events tell of one checkpoint: kind -> events.
type told map[string][]map[Field]string

// parseFile returns the events of a log, each as its fields.
func parseFile(t testing.TB, file string, loc *time.Location) []map[Field]string {
	t.Helper()
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parser, err := New(Options{Location: loc})
	if err != nil {
		t.Fatal(err)
	}
	var events []map[Field]string
	source := parser.NewSource(func(e *Event) {
		m := map[Field]string{}
		for f := range e.All {
			m[f] = string(e.AppendValue(nil, f))
		}
		events = append(events, m)
	})
	n := 0
	for line := range bytes.Lines(log) {
		n++
		source.Record(Origin{Line: n, Offset: -1}, bytes.TrimSuffix(line, []byte("\n")))
	}
	source.Flush()
	return events
}

// score counts checkpoints of one version by how they ended, and those whose events are
// all right.
type score struct {
	logs, checkpoints, completed, expired, late, declined, suspended, other, exempt, right int
}

// TestTruth compares the events of each JobManager's log with what Flink's REST API said
// of the same checkpoints: id, status, trigger time, size, duration, reason, whether it
// counts, late messages; and nothing that contradicts it.
func TestTruth(t *testing.T) {
	scores := map[string]*score{}
	for _, s := range scenarios(t) {
		if scores[s.Version] == nil {
			scores[s.Version] = &score{}
		}
		scores[s.Version].logs++
		loc, err := time.LoadLocation(s.TZ)
		if err != nil {
			t.Fatal(err)
		}
		events := parseFile(t, s.dir+"/jobmanager.log", loc)
		raw, err := os.ReadFile(s.dir + "/jobmanager.log")
		if err != nil {
			t.Fatal(err)
		}
		for n, job := range s.JobIDs {
			var rest struct {
				History []checkpoint `json:"history"`
			}
			readJSON(t, fmt.Sprintf("%s/rest/job-%d-checkpoints.json", s.dir, n+1), &rest)
			byID := map[string]told{}
			for _, e := range events {
				if id := e[CheckpointID]; e[JobID] == job && id != "" {
					if byID[id] == nil {
						byID[id] = told{}
					}
					byID[id][e[EventName]] = append(byID[id][e[EventName]], e)
				}
			}
			for _, c := range rest.History {
				late := lateMessages(raw, job, c.ID)
				faults := judge(s, c, byID[fmt.Sprint(c.ID)], late, scores[s.Version])
				if len(faults) == 0 {
					scores[s.Version].right++
				}
				for _, fault := range faults {
					t.Errorf("%s, job %d, checkpoint %d (%s %s): %s", s.dir, n+1, c.ID, c.Status, c.Failure, fault)
				}
			}
		}
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "Flink\tlogs\tcheckpoints\tcompleted\texpired\tlate messages\tdeclined\tsuspended\tother\texempt\tright\t")
	for _, version := range slices.Sorted(maps.Keys(scores)) {
		c := scores[version]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.0f %%\t\n", version, c.logs, c.checkpoints, c.completed, c.expired,
			c.late, c.declined, c.suspended, c.other, c.exempt, 100*float64(c.right)/float64(c.checkpoints))
	}
	_ = w.Flush()
	t.Logf("\n%s", b.String())
}

// lateMessages counts the late messages for a checkpoint in a log without our parser.
func lateMessages(log []byte, job string, id int64) int {
	pattern := regexp.MustCompile(fmt.Sprintf(`late message for now expired checkpoint attempt %d from (task )?[0-9a-f_]+ of job %s`, id, job))
	return len(pattern.FindAll(log, -1))
}

// maxFinalization is how much longer than in REST a checkpoint may take in the log,
// which adds the finalization.
const maxFinalization = 500

// judge returns what is wrong with the events of one checkpoint.
func judge(s scenario, c checkpoint, got told, late int, n *score) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	// one returns the only event of a kind.
	one := func(kind string) map[Field]string {
		if len(got[kind]) != 1 {
			fault("%d events %s", len(got[kind]), kind)
			return map[Field]string{}
		}
		return got[kind][0]
	}
	is := func(e map[Field]string, f Field, want any) {
		if e[f] != fmt.Sprint(want) {
			fault("%s: %s is %q, want %v", e[EventName], Fields[f].Name, e[f], want)
		}
	}
	none := func(kinds ...string) {
		for _, kind := range kinds {
			if len(got[kind]) > 0 {
				fault("%s contradicts it", kind)
			}
		}
	}

	n.checkpoints++
	triggered := one("checkpoint_triggered")
	is(triggered, TriggerTime, c.Triggered)
	if s.since(11) {
		is(triggered, Savepoint, c.IsSavepoint)
	}
	if n := len(got["checkpoint_late_message"]); n != late {
		fault("%d late messages, the log has %d", n, late)
	}
	failed := func(reason string, counted bool) {
		none("checkpoint_completed")
		if !s.since(14) {
			return // no line of its own
		}
		e := one("checkpoint_failed")
		is(e, Reason, c.Failure)
		is(e, FailureReason, reason)
		is(e, Counted, counted)
	}
	switch {
	case c.Status == "IN_PROGRESS": // when REST was asked; it may have ended since
	case c.Status == "COMPLETED":
		n.completed++
		e := one("checkpoint_completed")
		is(e, StateSizeBytes, c.StateSize)
		var ms int64
		_, _ = fmt.Sscan(e[DurationMs], &ms)
		if ms < c.Duration || ms > c.Duration+maxFinalization {
			fault("duration is %d, REST says %d", ms, c.Duration)
		}
		none("checkpoint_expired", "checkpoint_declined", "checkpoint_discarded", "checkpoint_failed")
	case c.Failure == "Checkpoint expired before completing.":
		n.expired++
		n.late += late
		e := one("checkpoint_expired")
		is(e, FailureReason, "checkpoint_expired")
		is(e, Counted, true)
		none("checkpoint_declined")
		failed("checkpoint_expired", true)
	case c.Failure == "Asynchronous task checkpoint failed.":
		n.declined++
		e := one("checkpoint_declined")
		is(e, Reason, c.Failure)
		is(e, FailureReason, "checkpoint_async_exception")
		is(e, Counted, true)
		none("checkpoint_expired")
		failed("checkpoint_async_exception", true)
	case c.Failure == "The job has failed.": // 1.9's word for a decline whose cause is no CheckpointException
		n.declined++
		is(one("checkpoint_declined"), Counted, true)
		is(one("checkpoint_discarded"), FailureReason, "checkpoint_async_exception")
		failed("", true)
	case strings.HasPrefix(c.Failure, "The checkpoint alignment phase") || c.Failure == "Task received cancellation from one of its inputs":
		n.declined++
		e := one("checkpoint_discarded")
		limit := strings.HasPrefix(c.Failure, "The checkpoint alignment phase")
		is(e, Counted, limit)
		if !strings.HasPrefix(e[Reason], strings.TrimSuffix(c.Failure, " bytes")) {
			fault("reason is %q", e[Reason])
		}
		failed("", limit)
	case c.Failure == "Checkpoint Coordinator is suspending." || c.Failure == "CheckpointCoordinator shutdown.":
		n.suspended++
		reason := "checkpoint_coordinator_suspend"
		if c.Failure == "CheckpointCoordinator shutdown." {
			reason = "checkpoint_coordinator_shutdown"
		}
		if !s.since(14) {
			n.exempt++ // a checkpoint in flight at a restart or cancel ends without a line
		}
		none("checkpoint_expired", "checkpoint_declined")
		failed(reason, false)
	default:
		n.other++
		fault("a reason that this test does not know")
	}
	return faults
}

// TestNothingUnrecognised: every line of the classes that write events is known.
func TestNothingUnrecognised(t *testing.T) {
	files, err := filepath.Glob(logsDir + "/*/*/*manager*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		log, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source := newParser(t).NewSource(func(*Event) {})
		source.Unrecognised = func(e *Event) {
			text := string(e.Text(Logger)) + ": " + string(e.Text(Message))
			if key := regexp.MustCompile(`[0-9a-f]+`).ReplaceAllString(text, ""); !seen[key] {
				seen[key] = true
				t.Errorf("%s: %s", file, text)
			}
		}
		source.Record(Origin{Offset: -1}, log)
		source.Flush()
	}
}
