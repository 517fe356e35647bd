package ship

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/plugin/enrich"
	"flink-loki/test/chunk"
	"flink-loki/test/fakeloki"
)

const coordinatorClass = "org.apache.flink.runtime.checkpoint.CheckpointCoordinator"

// tickTest is an output whose clock is moved by hand; line's times are after now.
type tickTest struct {
	*Output
	t      *testing.T
	loki   *fakeloki.Loki
	after  time.Duration
	offset int64
}

func newTickTest(t *testing.T, options fakeConfig) *tickTest {
	loki := fakeloki.New(fakeloki.Config{})
	a := &tickTest{t: t, loki: loki, Output: newOutput(t, loki, io.Discard, options)}
	a.now = func() time.Time { return now.Add(a.after) }
	return a
}

// read delivers lines of the JobManager's log, which are written now.
func (a *tickTest) read(messages ...string) Result {
	var b []byte
	for _, message := range messages {
		text := line(a.after, "INFO", coordinatorClass, message)
		b = chunk.Append(b, chunk.Record{Time: a.now(), Line: text, Filename: "/log/jobmanager.log", Offset: a.offset})
		a.offset += int64(len(text)) + 1
	}
	return flush(a.Output, "flink.jobmanager", b)
}

// checkpoints lets the job make checkpoints, one a minute.
func (a *tickTest) checkpoints(n int) {
	a.t.Helper()
	for id := range n {
		a.after += time.Minute
		if a.read(fmt.Sprintf("Triggering checkpoint %d (type=CHECKPOINT) @ %d for job %s.", id+1, a.now().UnixMilli(), jobID),
			fmt.Sprintf("Completed checkpoint %d for job %s (1234 bytes, checkpointDuration=10 ms, finalizationTime=1 ms).", id+1, jobID)) != OK {
			a.t.Fatal("not delivered")
		}
	}
}

func (a *tickTest) tick() Result {
	return flush(a.Output, TickTag, chunk.Append(nil, chunk.Record{Time: a.now(), Line: "Checkpoint 99 of job " + jobID + " expired before completing.", Offset: -1}))
}

// ticks ticks each minute.
func (a *tickTest) ticks(n int) {
	a.t.Helper()
	for range n {
		a.after += time.Minute
		if a.tick() != OK {
			a.t.Fatal("a tick was not delivered")
		}
	}
}

// stored returns the entries of a kind.
func (a *tickTest) stored(kind string) (lines []string) {
	for _, e := range a.loki.Entries() {
		if e.Labels.Get("event") == kind {
			lines = append(lines, e.Line)
		}
	}
	return lines
}

func TestTick_heartbeat(t *testing.T) {
	a := newTickTest(t, fakeConfig{"labels": "cluster=prod"})
	a.startedAt = now
	a.checkpoints(2)
	a.loki.FailNext(2, 500, nil, "down")
	a.after += time.Minute
	if a.read("Checkpoint 3 of job "+jobID+" expired before completing.") != Retry {
		t.Fatal("delivered")
	}
	a.loki.ClearFaults()
	a.after += time.Minute
	// The output lets only a probe through, and that is this.
	if r := a.tick(); r != OK {
		t.Fatalf("got %v", r)
	}
	got := a.stored("agent_heartbeat")
	if len(got) != 1 {
		t.Fatalf("%d heartbeats: %q", len(got), got)
	}
	want := fmt.Sprintf(`time=%s event=agent_heartbeat component=agent level=INFO cluster=prod node=host-1 uptime_ms=240000 records=5 events=5 `+
		`unrecognised=0 failed_flushes=1 dead_letters=0 files=1 pending_chunks=1 message="5 records read of 1 files, 5 events sent"`,
		a.now().UTC().Format(time.RFC3339Nano))
	if got[0] != want {
		t.Errorf("got  %s\nwant %s", got[0], want)
	}
}

// TestTick_restart: what an agent before this one has delivered is not pending, and a job that
// hangs is told.
func TestTick_restart(t *testing.T) {
	a := newTickTest(t, nil)
	a.ticks(1)
	a.checkpoints(12)
	a.Close(time.Second)

	b := newTickTest(t, fakeConfig{"state_path": a.cfg.StatePath, "url": a.cfg.URL.String()})
	b.loki, b.after, b.offset = a.loki, a.after, a.offset
	b.ticks(15)
	if told := b.stored("checkpoint_overdue"); len(told) != 1 {
		t.Errorf("told %q", told)
	}
}

// TestLook: a file system that hangs is waited for once, and lets nobody think that files
// are gone.
func TestLook(t *testing.T) {
	hang := make(chan struct{})
	l := look{stat: func(name string) (os.FileInfo, error) {
		if name == "/mnt/hangs" {
			<-hang
		}
		return os.Stat(name)
	}}
	dir := t.TempDir()
	expect := func(name string, wantIs, wantKnown bool) {
		t.Helper()
		if is, known := l.exists(name); is != wantIs || known != wantKnown {
			t.Errorf("%s: %v, %v", name, is, known)
		}
	}
	noFile := filepath.Join(dir, "no file")
	for range 1000 {
		l.begin()
		expect(dir, true, true)
		expect(noFile, false, true)
	}
	expect("/mnt/hangs", false, false)
	expect(noFile, false, false)
	l.begin()
	expect(noFile, false, false) // nor is it asked again while it hangs
	close(hang)
	for l.busy.Load() {
		time.Sleep(time.Millisecond)
	}
	l.begin()
	expect(noFile, false, true)
}

// TestTick_noLine: a tick is no log line, whatever its record says.
func TestTick_noLine(t *testing.T) {
	a := newTickTest(t, nil)
	a.ticks(3)
	for _, entry := range stored(a.loki) {
		if !strings.Contains(entry, "event=agent_heartbeat") {
			t.Errorf("stored: %s", entry)
		}
	}
	expectStored(t, a.loki, 3)
	// It is one where its tag is another.
	flush(a.Output, "flink.tick", makeChunk(expired(99)))
	expectStored(t, a.loki, 4)
}

// TestTick_retry: a tick that is tried again sends the same bytes.
func TestTick_retry(t *testing.T) {
	a := newTickTest(t, nil)
	a.loki.StoreButLoseReply(2)
	if a.tick() != Retry {
		t.Fatal("delivered")
	}
	a.loki.ClearFaults()
	if a.tick() != OK {
		t.Fatal("not delivered")
	}
	expectStored(t, a.loki, 1)
}

func TestTick_overdue(t *testing.T) {
	a := newTickTest(t, nil)
	a.ticks(1)
	a.checkpoints(12)
	a.ticks(12)
	if got := a.stored("checkpoint_overdue"); len(got) > 0 {
		t.Errorf("too early: %q", got)
	}
	a.ticks(1)
	got := a.stored("checkpoint_overdue")
	if len(got) != 1 || !strings.Contains(got[0], " quiet_ms=660000 ") || !strings.Contains(got[0], " node=host-1 ") {
		t.Errorf("got %q", got)
	}
}

// TestTick_notOverdue: what ticks do not tell.
func TestTick_notOverdue(t *testing.T) {
	for name, run := range map[string]func(*tickTest){
		"nothing": nil,
		"a chunk of the log is not delivered": func(a *tickTest) {
			a.loki.FailNext(2, 500, nil, "down")
			if a.read("Checkpoint 13 of job "+jobID+" expired before completing.") != Retry {
				a.t.Fatal("delivered")
			}
			a.loki.ClearFaults()
			a.ticks(20)
		},
		"ticks come anew": func(a *tickTest) {
			a.ticks(1)
			a.after += 20 * time.Minute // the host slept
			a.ticks(2)
			a.after += 20 * time.Minute
			a.ticks(2)
			a.after += 20 * time.Minute
		},
		"ticks come late": func(a *tickTest) {
			for range 30 {
				a.after += time.Minute
				at := a.now().Add(-2 * time.Minute)
				flush(a.Output, TickTag, chunk.Append(nil, chunk.Record{Time: at, Line: "tick", Offset: -1}))
			}
			a.after = 0 // the ticks below are those of a clock that was set back
		},
	} {
		a := newTickTest(t, nil)
		a.checkpoints(12)
		if run != nil {
			run(a)
		}
		a.ticks(1)
		if name != "nothing" {
			if got := a.stored("checkpoint_overdue"); len(got) > 0 {
				t.Errorf("%s: told %q", name, got)
			}
			continue
		}
		if a.ticks(20); len(a.stored("checkpoint_overdue")) == 0 {
			t.Error("an overdue checkpoint is not told at all")
		}
	}
}

// TestTick_story: a tick ends the story of a failure that nothing follows, but not before a
// late message can have come.
func TestTick_story(t *testing.T) {
	a := newTickTest(t, nil)
	a.ticks(3)
	a.read(fmt.Sprintf("Triggering checkpoint 1 (type=CHECKPOINT) @ %d for job %s.", a.now().UnixMilli(), jobID))
	a.after += 30 * time.Second
	a.read("Checkpoint 1 of job " + jobID + " expired before completing.")
	a.after += 30 * time.Second
	a.tick()
	if got := a.stored("checkpoint_failure_summary"); len(got) > 0 {
		t.Errorf("too early: %q", got)
	}
	a.ticks(1)
	if got := a.stored("checkpoint_failure_summary"); len(got) != 1 || !strings.Contains(got[0], "failure_cause=expired") {
		t.Errorf("got %q", got)
	}
	a.ticks(3)
	if got := a.stored("checkpoint_failure_summary"); len(got) != 1 {
		t.Errorf("told again: %q", got)
	}
}

// TestTick_stalls: a tick sums up a storm of write stalls that nothing follows.
func TestTick_stalls(t *testing.T) {
	a := newTickTest(t, nil)
	a.ticks(3)
	var b []byte
	offset := int64(0)
	for i := range 5 {
		text := now.Add(a.after+time.Duration(i)*time.Millisecond).UTC().Format("2006/01/02-15:04:05.000000") +
			" 140213 [WARN] [/column_family.cc:922] [default] Stalling writes because we have 4 immutable memtables (waiting for flush), max_write_buffer_number is set to 5 rate 16777216"
		b = chunk.Append(b, chunk.Record{Time: a.now(), Line: text, Filename: "/tmp/db/LOG", Offset: offset})
		offset += int64(len(text)) + 1
	}
	flush(a.Output, "flink.rocksdb", b)
	if got := a.stored("rocksdb_write_stalled"); len(got) != 1 {
		t.Fatalf("got %q", got)
	}
	a.ticks(3)
	got := a.stored("rocksdb_write_stalled")
	if len(got) != 2 || !slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, " stalls=5 ") }) {
		t.Errorf("got %q", got)
	}
}

// TestTick_tenant: what a tick makes of a file goes where its lines went; a heartbeat is
// nobody's.
func TestTick_tenant(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{MultiTenant: true})
	a := &tickTest{t: t, loki: loki, Output: newOutput(t, loki, io.Discard, fakeConfig{"tenant_id": "all", "tenant_id_key": "team"})}
	a.now = func() time.Time { return now.Add(a.after) }
	for i, team := range []string{"red", "blue"} {
		// Each record is of the time that now is.
		text := strings.Replace(line(a.after, "INFO", coordinatorClass, "Checkpoint 1 of job "+jobID+" expired before completing."), jobID, fmt.Sprintf("%032d", i+1), 1)
		flush(a.Output, "flink.jobmanager", appendBody(t, nil, map[string]any{"log": text, "team": team, "filename": "/log/" + team + ".log", "offset": 0}))
	}
	a.ticks(4)
	tenants := map[string]map[string]int{}
	for _, e := range loki.Entries() {
		if tenants[e.Tenant] == nil {
			tenants[e.Tenant] = map[string]int{}
		}
		tenants[e.Tenant][e.Labels.Get("event")]++
	}
	const want = "map[all:map[agent_heartbeat:4] blue:map[checkpoint_expired:1 checkpoint_failure_summary:1] red:map[checkpoint_expired:1 checkpoint_failure_summary:1]]"
	if got := fmt.Sprint(tenants); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestIntervals(t *testing.T) {
	list, err := readIntervals([]byte(`
- {job_id: ` + jobID + `, interval: off}
- {job_name: nightly .*, interval: 1h, timeout: 2h}
- {job_name: batch, interval: off}
- {job_name: ".*", timeout: 30m}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		id, name string
		want     enrich.Expectation
	}{
		{jobID, "nightly one", enrich.Expectation{Off: true}},
		{"x", "nightly one", enrich.Expectation{Interval: time.Hour, Timeout: 2 * time.Hour}},
		{"x", "a nightly one", enrich.Expectation{Timeout: 30 * time.Minute}},
		{"x", "batch", enrich.Expectation{Off: true}},
		{"x", "", enrich.Expectation{Off: true}}, // it may be batch
	} {
		if got := list.expect(test.id, test.name); got != test.want {
			t.Errorf("%s %s: got %+v, want %+v", test.id, test.name, got, test.want)
		}
	}
	for text, want := range map[string]string{
		"":                               "^$",
		"- {interval: 1m}":               "^entry 1: give either job_name or job_id$",
		"- {job_name: a, job_id: b}":     "^entry 1: give either job_name or job_id$",
		"- {job_name: a}":                "^entry 1: it says nothing: give interval, timeout or both$",
		"- {job_name: (, interval: 1m}":  "^entry 1: job_name: ",
		"- {job_name: a, interval: 5}":   `^entry 1: interval "5": give a duration like 90s or 1h30m, or off$`,
		"- {job_name: a, interval: 9h}":  `^entry 1: what is overdue for more than 24h0m0s is not told: give an interval of 8h or less, or off$`,
		"- {job_name: a, timeout: -5s}":  `^entry 1: timeout "-5s": give a duration`,
		"- {job_name: a, intervals: 5s}": "(?s)^it is a list of job_name or job_id, interval and timeout: .*intervals",
		"job_name: a":                    "(?s)^it is a list of ",
	} {
		_, err := readIntervals([]byte(text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%q: got %q, want %s", text, got, want)
		}
	}
	path := filepath.Join(t.TempDir(), "intervals.yaml")
	if err := os.WriteFile(path, []byte("- {job_id: "+jobID+", interval: 1m, timeout: 1m}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newTickTest(t, fakeConfig{"intervals_path": path})
	a.checkpoints(1)
	a.ticks(5)
	if got := a.stored("checkpoint_overdue"); len(got) != 1 || !strings.Contains(got[0], " expected_interval_ms=60000 interval_from=file timeout_ms=60000 ") {
		t.Errorf("got %q", got)
	}
	if _, err := ReadConfig(fakeConfig{"intervals_path": path + ".not"}.get); err == nil || !strings.Contains(err.Error(), "option intervals_path") {
		t.Errorf("a file that is not there: %v", err)
	}
}
