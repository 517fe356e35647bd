package ship

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flink-loki/test/chunk"
	"flink-loki/test/fakeloki"
)

const jobID = "fef61425e149c9b56545204c60d72fcc"

var now = time.Now().Truncate(time.Second)

// line is a line of Flink's log at a time after now.
func line(after time.Duration, level, class, message string) string {
	return fmt.Sprintf("%s %-5s %-60s [] - %s", now.Add(after).UTC().Format("2006-01-02 15:04:05,000"), level, class, message)
}

func expired(id int) string {
	return line(time.Duration(id)*time.Millisecond, "INFO", "org.apache.flink.runtime.checkpoint.CheckpointCoordinator",
		fmt.Sprintf("Checkpoint %d of job %s expired before completing.", id, jobID))
}

// makeChunk makes a chunk of lines of one file, with their offsets.
func makeChunk(lines ...string) []byte {
	return chunk.FromLog([]byte(strings.Join(lines, "\n")+"\n"), "/log/jobmanager.log", now)
}

// newOutput starts an output that pushes to a fake Loki. What it logs goes to log.
func newOutput(t *testing.T, loki *fakeloki.Loki, log io.Writer, options fakeConfig) *Output {
	t.Helper()
	server := httptest.NewServer(loki)
	// Outputs without a state_path share their state.
	config := fakeConfig{"url": server.URL, "timezone": "UTC", "node": "host-1", "state_path": t.TempDir()}
	for name, value := range options {
		config[name] = value
	}
	cfg, err := ReadConfig(config.get)
	if err != nil {
		t.Fatal(err)
	}
	o, err := New(cfg, NewLogger(log, cfg.LogLevel), "test")
	if err != nil {
		t.Fatal(err)
	}
	o.delivery.Backoff.MaxRetries = 1 // a push that fails is a flush that fails
	t.Cleanup(func() {
		o.Close(time.Second)
		loki.Close()
		server.Close()
	})
	return o
}

func flush(o *Output, tag string, chunk []byte) Result { return o.Flush(tag, chunk, func() {}) }

// stored lists what Loki keeps, one text an entry, in a stable order.
func stored(loki *fakeloki.Loki) []string {
	var all []string
	for _, e := range loki.Entries() {
		all = append(all, e.Labels.String()+" "+e.Line)
	}
	return all
}

func expectStored(t *testing.T, loki *fakeloki.Loki, n int) []string {
	t.Helper()
	all := stored(loki)
	if len(all) != n {
		t.Errorf("%d entries are stored, want %d:\n%s", len(all), n, strings.Join(all, "\n"))
	}
	return all
}

func TestFlush_delivers(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, fakeConfig{"labels": "cluster=prod"})
	result := flush(o, "flink.jm", makeChunk(
		"no header", expired(7),
		line(time.Second, "INFO", "org.apache.flink.runtime.jobmaster.JobMaster", "Trying to recover from a global failure."),
		"org.apache.flink.util.FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold.",
		"\tat org.apache.flink.runtime.checkpoint.CheckpointFailureManager.a(SourceFile:66)",
	))
	if result != OK {
		t.Fatalf("got %v", result)
	}
	all := expectStored(t, loki, 3)
	for i, want := range []string{
		`{cluster="prod", component="jobmanager", event="checkpoint_expired", level="INFO"} time=`,
		`{cluster="prod", component="jobmanager", event="checkpoint_failure_threshold_exceeded", level="INFO"} time=`,
		`{cluster="prod", component="jobmanager", event="job_recovering", level="INFO"} time=`,
	} {
		if i < len(all) && !strings.HasPrefix(all[i], want) {
			t.Errorf("entry %d is %s, want %s…", i, all[i], want)
		}
	}
	if want := " cluster=prod job_id=" + jobID + " checkpoint_id=7 failure_reason=checkpoint_expired counted=true node=host-1 filename=/log/jobmanager.log offset=10 message="; len(all) > 0 && !strings.Contains(all[0], want) {
		t.Errorf("%s has no %q", all[0], want)
	}
	if e := loki.Entries(); len(e) > 0 && !e[0].Time.Equal(now.Add(7*time.Millisecond)) {
		t.Errorf("the entry's time is %v", e[0].Time)
	}
}

// TestFlush_oneStreamAPush: Loki answers a push of several streams with the fate of
// the last one only.
func TestFlush_oneStreamAPush(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, fakeConfig{"label_keys": "event,checkpoint_id"})
	if r := flush(o, "t", makeChunk(expired(1), expired(2), expired(3))); r != OK {
		t.Fatal(r)
	}
	for _, r := range loki.Requests() {
		if len(r.Streams) != 1 {
			t.Errorf("a push has %d streams", len(r.Streams))
		}
	}
	expectStored(t, loki, 3)
}

// TestFlush_splits: a request over 4 MiB would get 500 for ever.
func TestFlush_splits(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, nil)
	var lines []string
	for i := range 280 {
		lines = append(lines, line(time.Duration(i)*time.Millisecond, "INFO", "org.apache.flink.runtime.executiongraph.ExecutionGraph",
			fmt.Sprintf("Job %s (%s) switched from state RUNNING to FAILING.", strings.Repeat("long name ", 800), jobID)))
	}
	if r := flush(o, "t", makeChunk(lines...)); r != OK {
		t.Fatal(r)
	}
	expectStored(t, loki, 280)
	if n := len(loki.Requests()); n < 4 {
		t.Errorf("%d requests", n)
	}
}

func TestFlush_nothingToSend(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, nil)
	for name, c := range map[string][]byte{"empty": nil, "no event": makeChunk("hello"), "malformed": {0xc1}} {
		if r := flush(o, "t", c); r != OK {
			t.Errorf("%s: %v", name, r)
		}
	}
	if n := len(loki.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestFlush_sameChunkTwice(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, nil)
	c := makeChunk(expired(1), expired(2), expired(2))
	for range 2 {
		if r := flush(o, "t", c); r != OK {
			t.Fatal(r)
		}
	}
	expectStored(t, loki, 3) // the two equal lines stand at different offsets
}

// TestFlush_equalLinesWithoutOffset: seq tells them apart, in one chunk and across two.
func TestFlush_equalLinesWithoutOffset(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, nil)
	record := chunk.Record{Time: now, Line: expired(1), Offset: -1}
	two := chunk.Append(chunk.Append(nil, record), record)
	record.Line = expired(2)
	for _, c := range [][]byte{two, chunk.Append(two, record)} {
		if r := flush(o, "t", c); r != OK {
			t.Fatal(r)
		}
	}
	all := expectStored(t, loki, 5)
	for seq := range 4 {
		if want := fmt.Sprintf(" seq=%d ", seq); !slices.ContainsFunc(all, func(e string) bool { return strings.Contains(e, want) }) {
			t.Errorf("no entry with%s", want)
		}
	}
}

// TestFlush_retries: each answer but 2xx and those that refuse what is in the chunk keeps
// it, and the retry sends the same bytes even if other chunks came between.
func TestFlush_retries(t *testing.T) {
	for _, status := range []int{301, 401, 403, 404, 405, 408, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			loki := fakeloki.New(fakeloki.Config{})
			var log bytes.Buffer
			o := newOutput(t, loki, &log, nil)
			a, b := makeChunk(expired(1), expired(1)), makeChunk(expired(2))
			loki.FailNext(1, status, nil, "the reason")
			if r := flush(o, "t", a); r != Retry {
				t.Fatalf("got %v", r)
			}
			if !strings.Contains(log.String(), "the reason") {
				t.Errorf("the log does not say why: %s", log.String())
			}
			if r := flush(o, "t", b); r != OK {
				t.Fatalf("got %v", r)
			}
			if r := flush(o, "t", a); r != OK {
				t.Fatalf("got %v", r)
			}
			expectStored(t, loki, 3)
			if r := loki.Requests(); len(r) != 3 || !bytes.Equal(r[0].Body, r[2].Body) {
				t.Error("the retry has other bytes")
			}
			if !o.kept.journal.Empty() {
				t.Error("the journal is not empty after OK")
			}
		})
	}
}

// TestFlush_retriesWhatIsLeft: pushes that Loki has stored are not sent again.
func TestFlush_retriesWhatIsLeft(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, fakeConfig{"label_keys": "event,checkpoint_id", "state_path": t.TempDir()})
	c := makeChunk(expired(1), expired(2), expired(3))
	loki.Pass(1)
	loki.FailNext(1, 500, nil, "")
	if flush(o, "t", c) != Retry {
		t.Fatal("delivered")
	}
	expectStored(t, loki, 1)
	if flush(o, "t", c) != OK {
		t.Fatal("not delivered")
	}
	expectStored(t, loki, 3)
	if n := len(loki.Requests()); n != 4 { // one, one that failed, and the two that were left
		t.Errorf("%d requests", n)
	}
}

// TestFlush_retryAfterRestart: with a state_path, a retry in another process sends the
// bytes of the first try, though the line numbers would differ.
func TestFlush_retryAfterRestart(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	state := t.TempDir()
	record := chunk.Record{Time: now, Line: expired(1), Offset: -1}
	older, newer := chunk.Append(nil, record), chunk.Append(chunk.Append(nil, record), record)

	first := newOutput(t, loki, io.Discard, fakeConfig{"state_path": state})
	if flush(first, "t", older) != OK {
		t.Fatal("not delivered")
	}
	loki.StoreButLoseReply(1)
	if flush(first, "t", newer) != Retry { // rendered with seq 1 and 2
		t.Fatal("delivered")
	}
	first.Close(time.Second)

	second := newOutput(t, loki, io.Discard, fakeConfig{"state_path": state, "url": first.cfg.URL.String()})
	if flush(second, "t", newer) != OK {
		t.Fatal("not delivered")
	}
	expectStored(t, loki, 3)
}

func TestFlush_tornJournal(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	state := t.TempDir()
	var log bytes.Buffer
	o := newOutput(t, loki, &log, fakeConfig{"state_path": state})
	c := makeChunk(expired(1))
	loki.FailNext(1, 500, nil, "")
	if flush(o, "t", c) != Retry {
		t.Fatal("delivered")
	}
	files, _ := filepath.Glob(filepath.Join(state, "journal", "*.chunk"))
	if len(files) != 1 {
		t.Fatalf("journal files: %v", files)
	}
	if err := os.Truncate(files[0], 40); err != nil {
		t.Fatal(err)
	}
	if flush(o, "t", c) != OK {
		t.Fatal("not delivered")
	}
	expectStored(t, loki, 1)
	if !strings.Contains(log.String(), "torn") {
		t.Errorf("the log does not name the torn file: %s", log.String())
	}
	if bad, _ := filepath.Glob(filepath.Join(state, "journal", "*.bad")); len(bad) != 1 {
		t.Errorf("set aside: %v", bad)
	}
}

// TestFlush_poisonedChunk overwrites the chunk's memory as soon as the flush says that
// it has read it: what is pushed does not change.
func TestFlush_poisonedChunk(t *testing.T) {
	log, err := os.ReadFile("../../test/logs/2.3.0/declined/jobmanager.log")
	if err != nil {
		t.Fatal(err)
	}
	push := func(read func([]byte)) [][]byte {
		loki := fakeloki.New(fakeloki.Config{})
		o := newOutput(t, loki, io.Discard, fakeConfig{"structured_metadata": "on"})
		c := chunk.FromLog(log, "/log/jobmanager.log", now)
		if r := o.Flush("t", c, func() { read(c) }); r != OK {
			t.Fatal(r)
		}
		var bodies [][]byte
		for _, r := range loki.Requests() {
			bodies = append(bodies, r.Body)
		}
		return bodies
	}
	clean := push(func([]byte) {})
	poisoned := push(func(c []byte) {
		for i := range c {
			c[i] = 0xa5
		}
	})
	if len(clean) == 0 || !slices.EqualFunc(clean, poisoned, bytes.Equal) {
		t.Errorf("%d pushes change with the chunk's memory", len(clean))
	}
}

// TestFlush_deadline: a Loki that does not answer costs the configured time and gives
// Retry; closing the output ends it at once.
func TestFlush_deadline(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, fakeConfig{"timeout": "50ms"})
	loki.HangNext(1)
	if r := flush(o, "t", makeChunk(expired(1))); r != Retry {
		t.Errorf("got %v", r)
	}
}

func TestClose_endsFlushes(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, fakeConfig{"timeout": "1h"})
	loki.HangNext(1)
	result := make(chan Result)
	go func() { result <- flush(o, "t", makeChunk(expired(1))) }()
	for loki.FaultsLeft() > 0 {
		time.Sleep(time.Millisecond)
	}
	o.Close(time.Minute)
	if r := <-result; r != Retry {
		t.Errorf("got %v", r)
	}
	if r := flush(o, "t", makeChunk(expired(2))); r != Retry {
		t.Errorf("a closed output gives %v", r)
	}
}

func TestFlush_concurrent(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, fakeConfig{"state_path": t.TempDir()})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if r := flush(o, fmt.Sprint("t", i%3), makeChunk(expired(i), expired(i+1000))); r != OK {
				t.Errorf("chunk %d: %v", i, r)
			}
		})
	}
	wg.Wait()
	expectStored(t, loki, 40)
}

func TestNew_statePathCantBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := ReadConfig(fakeConfig{"state_path": file}.get)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(cfg, NewLogger(io.Discard, cfg.LogLevel), "test"); err == nil || !strings.Contains(err.Error(), "state_path") {
		t.Errorf("got %v", err)
	}
}

// TestOutputs_samePath: outputs whose state_path is written differently share one state.
func TestOutputs_samePath(t *testing.T) {
	dir := t.TempDir()
	a := newOutput(t, fakeloki.New(fakeloki.Config{}), io.Discard, fakeConfig{"state_path": dir})
	b := newOutput(t, fakeloki.New(fakeloki.Config{}), io.Discard, fakeConfig{"state_path": dir + "/./"})
	if a.kept != b.kept {
		t.Error("two states")
	}
}
