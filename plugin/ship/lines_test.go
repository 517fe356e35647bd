package ship

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers"
	"flink-loki/test/chunk"
	"flink-loki/test/fakeloki"
)

const coordinator = "org.apache.flink.runtime.checkpoint.CheckpointCoordinator"

// triggered is a line that tells its instant besides the time that its clock shows.
func triggered(id int, at time.Time, ahead time.Duration) string {
	return fmt.Sprintf("%s INFO  %s [] - Triggering checkpoint %d (type=CHECKPOINT) @ %d for job %s.",
		at.Add(ahead).UTC().Format("2006-01-02 15:04:05,000"), coordinator, id, at.UnixMilli(), jobID)
}

// completed is a line that tells no instant.
func completed(id int, at time.Time, ahead time.Duration) string {
	return fmt.Sprintf("%s INFO  %s [] - Completed checkpoint %d for job %s (1 bytes in 2 ms).",
		at.Add(ahead).UTC().Format("2006-01-02 15:04:05,000"), coordinator, id, jobID)
}

func fileChunk(file string, lines ...string) []byte {
	return chunk.FromLog([]byte(strings.Join(lines, "\n")+"\n"), file, now)
}

// times lists the time of each checkpoint's entries, by file.
func times(loki *fakeloki.Loki) []string {
	var all []string
	for _, e := range loki.Entries() {
		_, id, _ := strings.Cut(e.Line, " checkpoint_id=")
		_, file, _ := strings.Cut(e.Line, " filename=")
		id, _, _ = strings.Cut(id, " ")
		file, _, _ = strings.Cut(file, " ")
		all = append(all, fmt.Sprintf("%s %s %s", file, id, e.Time.UTC().Format(time.RFC3339Nano)))
	}
	slices.Sort(all)
	return all
}

func expectTimes(t *testing.T, loki *fakeloki.Loki, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := times(loki); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// at is how times shows an instant.
func at(file string, id int, t time.Time) string {
	return fmt.Sprintf("%s %d %s", file, id, t.UTC().Format(time.RFC3339Nano))
}

// TestFlush_timezoneAuto: what a file's line tells of its clock holds for its later
// chunks, not for those before, nor for other files.
func TestFlush_timezoneAuto(t *testing.T) {
	const ahead = 3 * time.Hour
	start := now.Add(-4 * time.Hour)  // a clock that is ahead shows no time that Loki finds too new
	local := func(id int) time.Time { // that a clock without a zone shows, read by the agent's
		shown := start.Add(time.Duration(id)*time.Minute + ahead).UTC()
		return time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), shown.Second(), 0, time.Local)
	}
	minute := func(id int) time.Time { return start.Add(time.Duration(id) * time.Minute) }
	loki := fakeloki.New(fakeloki.Config{Limits: &fakeloki.Limits{}})
	var log bytes.Buffer
	o := newOutput(t, loki, &log, fakeConfig{"timezone": "auto"})
	for _, c := range [][]byte{
		fileChunk("a", completed(1, minute(1), ahead)),
		fileChunk("a", triggered(2, minute(2), ahead), completed(3, minute(3), ahead)),
		fileChunk("b", completed(4, minute(4), ahead)),
		fileChunk("a", completed(5, minute(5), ahead)),
		fileChunk("a", triggered(6, minute(6), time.Hour), completed(7, minute(7), time.Hour)), // its clock was changed
		fileChunk("a", completed(8, minute(8), time.Hour)),
	} {
		if r := flush(o, "t", c); r != OK {
			t.Fatal(r)
		}
	}
	expectTimes(t, loki, at("a", 1, local(1)), at("a", 2, minute(2)), at("a", 3, minute(3)), at("b", 4, local(4)),
		at("a", 5, minute(5)), at("a", 6, minute(6)), at("a", 7, minute(7)), at("a", 8, minute(8)))
	if strings.Contains(log.String(), "clock") {
		t.Errorf("a zone that is learnt is no fault: %s", log.String())
	}
}

// TestFlush_wrongZone: a configured zone is kept to, and that a file's lines tell another
// is said once for each file.
func TestFlush_wrongZone(t *testing.T) {
	const ahead = 2 * time.Hour
	start := now.Add(-3 * time.Hour)
	loki := fakeloki.New(fakeloki.Config{})
	var log bytes.Buffer
	o := newOutput(t, loki, &log, fakeConfig{"timezone": "UTC"})
	for _, c := range [][]byte{
		fileChunk("wrong", triggered(1, start, ahead), triggered(2, start.Add(time.Minute), ahead)),
		fileChunk("wrong", triggered(3, start.Add(2*time.Minute), ahead)),
		fileChunk("right", triggered(4, start.Add(ahead), 0)),
		fileChunk("silent", completed(5, start, ahead)),
		fileChunk("wrong_too", triggered(6, start, ahead)),
	} {
		if r := flush(o, "t", c); r != OK {
			t.Fatal(r)
		}
	}
	expectTimes(t, loki, at("wrong", 1, start.Add(ahead)), at("wrong", 2, start.Add(ahead+time.Minute)), at("wrong", 3, start.Add(ahead+2*time.Minute)),
		at("right", 4, start.Add(ahead)), at("silent", 5, start.Add(ahead)), at("wrong_too", 6, start.Add(ahead)))
	const warning = "a file's clock is not in the configured zone"
	if n := strings.Count(log.String(), warning); n != 2 {
		t.Errorf("%d warnings, want 2: %s", n, log.String())
	}
	for _, want := range []string{`file="wrong" ahead_of_utc="2h0m0s" timezone="UTC"`, `file="wrong_too" ahead_of_utc="2h0m0s" timezone="UTC"`, "timezone auto"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
}

// TestFlush_clocks: an hour that a zone has twice goes on in the next chunk of the file.
func TestFlush_clocks(t *testing.T) {
	end := time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC) // of summer time in Berlin
	show := func(id int, at time.Time) string {
		ahead := 2 * time.Hour
		if !at.Before(end) {
			ahead = time.Hour
		}
		return completed(id, at, ahead)
	}
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, fakeConfig{"timezone": "Europe/Berlin"})
	first, last, second := end.Add(-50*time.Minute), end.Add(-time.Second), end.Add(10*time.Minute) // 02:10:00, 02:59:59, 02:10:00
	for _, c := range [][]byte{
		fileChunk("a", show(1, first), show(2, last)),
		fileChunk("b", show(3, first)),
		fileChunk("a", show(4, second)),
		fileChunk("b", show(5, last)),
	} {
		if r := flush(o, "t", c); r != OK {
			t.Fatal(r)
		}
	}
	expectTimes(t, loki, at("a", 1, first), at("a", 2, last), at("b", 3, first), at("a", 4, second), at("b", 5, last))
}

// TestFlush_unrecognised: a line of a known logger in unknown words is counted by logger
// and the first is told; it is sent where kinds says so.
func TestFlush_unrecognised(t *testing.T) {
	unknown := func(id int, class string) string {
		return line(time.Duration(id)*time.Millisecond, "WARN", class, fmt.Sprintf("Checkpoint %d has met a fate that no Flink knows.", id))
	}
	const failures = "org.apache.flink.runtime.checkpoint.CheckpointFailureManager"
	chunks := [][]byte{
		makeChunk(unknown(1, coordinator), "\tbelow it", expired(2), unknown(3, "org.example.Unknown"), unknown(4, coordinator)),
		makeChunk(unknown(5, failures), unknown(6, coordinator)),
	}
	for kinds, want := range map[string]int{"": 1, "default,+unrecognised": 5, "+unrecognised": 5, "unrecognised": 4} {
		loki := fakeloki.New(fakeloki.Config{})
		var log bytes.Buffer
		o := newOutput(t, loki, &log, fakeConfig{"kinds": kinds})
		for _, c := range chunks {
			if r := flush(o, "t", c); r != OK {
				t.Fatal(r)
			}
		}
		all := strings.Join(expectStored(t, loki, want), "\n")
		sent := `{event="unrecognised", level="WARN"} time=` + now.Add(6*time.Millisecond).UTC().Format(time.RFC3339Nano) +
			" event=unrecognised level=WARN logger=" + coordinator + " node=host-1 filename=/log/jobmanager.log offset="
		if strings.Contains(all, sent) != (want > 1) || strings.Contains(all, "org.example") {
			t.Errorf("kinds=%s: %s", kinds, all)
		}
		if o.unrecognised[coordinator] != 3 || o.unrecognised[failures] != 1 || len(o.unrecognised) != 2 {
			t.Errorf("kinds=%s: counted %v", kinds, o.unrecognised)
		}
		if n := strings.Count(log.String(), "a line of a known logger is not recognised"); n != 2 {
			t.Errorf("kinds=%s: %d warnings in %s", kinds, n, log.String())
		}
		if want := `logger="` + coordinator + `" file="/log/jobmanager.log" line="Checkpoint 1 has met a fate`; !strings.Contains(log.String(), want) {
			t.Errorf("kinds=%s: no %s in %s", kinds, want, log.String())
		}
	}
}

// TestFlush_unrecognisedRetry: a chunk that comes again is counted once.
func TestFlush_unrecognisedRetry(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, nil)
	c := makeChunk(line(0, "INFO", coordinator, "Words that no Flink has."), expired(1))
	loki.FailNext(1, 500, nil, "")
	if flush(o, "t", c) != Retry || flush(o, "t", c) != OK {
		t.Fatal("not retried, or not delivered")
	}
	if n := o.unrecognised[coordinator]; n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// TestCountUnrecognised_bound: what counts loggers has an end.
func TestCountUnrecognised_bound(t *testing.T) {
	var log bytes.Buffer
	o := newOutput(t, fakeloki.New(fakeloki.Config{}), &log, nil)
	for range 2 {
		for i := range maxUnrecognised + 10 {
			var e parsers.Event
			e.SetText(parsers.Logger, fmt.Append(nil, "a.B", i))
			o.countUnrecognised(nil, &e)
		}
	}
	if len(o.unrecognised) != maxUnrecognised+1 || o.unrecognised["a.B0"] != 2 || o.unrecognised["others"] != 20 {
		t.Errorf("%d loggers, %d others", len(o.unrecognised), o.unrecognised["others"])
	}
	if n := strings.Count(log.String(), "not recognised"); n != maxUnrecognised+1 {
		t.Errorf("%d warnings", n)
	}
}

// TestFlush_cri: lines as the container runtime writes them.
func TestFlush_cri(t *testing.T) {
	file := "/var/log/containers/flink-jm-0_prod_main-" + strings.Repeat("0123456789abcdef", 4) + ".log"
	cri := func(after time.Duration, stream, tag, text string) string {
		return now.Add(after).UTC().Format("2006-01-02T15:04:05.000000000Z ") + stream + " " + tag + " " + text
	}
	failed := line(2*time.Second, "WARN", "org.apache.flink.runtime.checkpoint.CheckpointFailureManager",
		"Failed to trigger or complete checkpoint 8 for job "+jobID+". (0 consecutive failed attempts so far)")
	c := fileChunk(file,
		cri(1e6, "stdout", "F", expired(7)),
		cri(2*time.Second+1e6, "stdout", "P", failed[:60]),
		cri(2*time.Second+2e6, "stderr", "F", "java.lang.Error: of another stream"),
		cri(2*time.Second+3e6, "stdout", "P", failed[60:90]),
		cri(2*time.Second+4e6, "stdout", "F", failed[90:]),
		cri(2*time.Second+5e6, "stdout", "F", "java.io.IOException: of this one"),
		cri(3*time.Second, "stdout", "F", "12:00:00,000 INFO  "+coordinator+" - Checkpoint 9 of job "+jobID+" expired before completing."),
	)
	utc := func(after time.Duration) string { return now.Add(after).UTC().Format(time.RFC3339Nano) }
	loki := fakeloki.New(fakeloki.Config{})
	if r := flush(newOutput(t, loki, io.Discard, nil), "t", c); r != OK {
		t.Fatal(r)
	}
	where := " namespace=prod pod=flink-jm-0 container=main filename=" + file
	expectTexts(t, stored(loki),
		"time="+utc(7e6)+" record_time="+utc(1e6)+" event=checkpoint_expired checkpoint_id=7 offset=0"+where,
		"time="+utc(3*time.Second)+" record_time="+utc(3*time.Second)+" event=checkpoint_expired checkpoint_id=9 !thread="+where,
		"time="+utc(2*time.Second)+" record_time="+utc(2*time.Second+1e6)+" event=checkpoint_failed checkpoint_id=8 exception_class=java.io.IOException"+
			" offset="+fmt.Sprint(len(cri(0, "stdout", "F", expired(7)))+1)+where,
	)
}
