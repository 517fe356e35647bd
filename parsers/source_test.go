package parsers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers/layout"
)

// readRecords reads records and returns the events as "line kind field=value …", with the
// fields that are asked for. An empty record flushes. What is kept of the file is bounded.
func readRecords(t *testing.T, source *Source, records []string, show ...Field) []string {
	t.Helper()
	var got []string
	emit := source.emit
	source.emit = func(e *Event) {
		text := fmt.Sprintf("%d %s", e.Origin.Line, e.Kind.Name)
		for _, f := range show {
			if e.Has(f) {
				text += fmt.Sprintf(" %s=%s", Fields[f].Name, e.AppendValue(nil, f))
			}
		}
		got = append(got, text)
		if emit != nil {
			emit(e)
		}
	}
	for i, record := range records {
		if record == "" {
			source.Flush()
			continue
		}
		source.Record(Origin{Line: i + 1, Offset: -1, Time: time.Unix(int64(i+1), 0)}, []byte(record))
		if n := len(source.others); n > maxStreams {
			t.Fatalf("%d streams are kept apart", n)
		}
	}
	source.Flush()
	return got
}

// TestOrphans reads chunks that begin below a header which stood in the chunk before: only
// a sentence that matters is an event, and the metrics of a report.
func TestOrphans(t *testing.T) {
	const (
		words     = "Exceeded checkpoint tolerable failure threshold."
		threshold = "org.apache.flink.util.FlinkRuntimeException: " + words
		frame     = "\tat org.apache.flink.runtime.checkpoint.CheckpointFailureManager.a(SourceFile:66)"
		other     = "java.io.IOException: disk full"
		metric    = "h.jobmanager.orders.numRestarts: 7"
		orphan    = "checkpoint_failure_threshold_exceeded time=1970-01-01T00:00:0%dZ component=jobmanager container=main exception_class=org.apache.flink.util.FlinkRuntimeException reason=" + words
		header    = "2026-11-29 13:37:13,754 INFO  org.apache.flink.runtime.executiongraph.ExecutionGraph [] - Job orders (" + testJob + ") switched from state RUNNING to FAILING."
		plain     = "2026-11-29 13:37:13,754 INFO  com.example.Main [] - x"
	)
	state := "job_state_changed time=2026-11-29T13:37:13.754Z job_id=" + testJob + " component=jobmanager container=main exception_class=org.apache.flink.util.FlinkRuntimeException reason=" + words
	below := "checkpoint_failure_threshold_exceeded time=2026-11-29T13:37:13.754Z job_id=" + testJob + " component=jobmanager container=main exception_class=org.apache.flink.util.FlinkRuntimeException reason=" + words
	for _, c := range []struct {
		name    string
		records []string
		want    []string
	}{
		{"threshold", []string{threshold, frame, frame}, []string{"1 " + fmt.Sprintf(orphan, 1)}},
		{"below frames, as a cause", []string{frame, "\t... 12 more", "Caused by: " + threshold, frame}, []string{"3 " + fmt.Sprintf(orphan, 3)}},
		{"twice in one trace", []string{threshold, frame, "Caused by: " + threshold}, []string{"1 " + fmt.Sprintf(orphan, 1)}},
		{"in one record", []string{frame + "\n" + threshold + "\n" + frame}, []string{"1 " + fmt.Sprintf(orphan, 1)}},
		{"a header behind it", []string{threshold, frame, header, threshold}, []string{"1 " + fmt.Sprintf(orphan, 1), "3 " + state, "3 " + below}},
		{"another exception", []string{other, frame, "Caused by: a.B: c"}, nil},
		{"the words alone", []string{words}, nil},
		{"the words of another", []string{"java.io.IOException: said: " + words}, nil},
		{"no trace", []string{frame, "text", metric + "x"}, nil},

		{"header, trace in other records", []string{header, threshold, frame}, []string{"1 " + state, "1 " + below}},
		{"flushed between", []string{header, "", threshold, frame}, []string{
			"1 job_state_changed time=2026-11-29T13:37:13.754Z job_id=" + testJob + " component=jobmanager container=main",
			"3 " + fmt.Sprintf(orphan, 3)}},
		{"a plain header", []string{plain, "", frame, threshold}, []string{"4 " + fmt.Sprintf(orphan, 4)}},

		{"report", []string{metric, frame, metric, plain, metric}, []string{
			"1 metric_reported time=1970-01-01T00:00:01Z component=metrics container=main metric=numRestarts",
			"3 metric_reported time=1970-01-01T00:00:03Z component=metrics container=main metric=numRestarts"}},
		{"report, below a trace", []string{frame, metric}, []string{"2 metric_reported time=1970-01-01T00:00:02Z component=metrics container=main metric=numRestarts"}},
		{"report behind a header", []string{plain, metric, "", metric}, nil},
	} {
		source := newParser(t).NewSource(nil)
		source.Continues = true
		source.Unrecognised = func(e *Event) { t.Errorf("%s: unrecognised: %s", c.name, e.Text(Message)) }
		source.Known = new(Event)
		source.Known.SetText(Container, []byte("main"))
		got := readRecords(t, source, c.records, Time, JobID, Component, Level, Logger, Container, ExceptionClass, Reason, MetricName)
		for i := range got { // the header's
			got[i] = strings.Replace(got[i], " level=INFO logger=org.apache.flink.runtime.executiongraph.ExecutionGraph", "", 1)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s\ngot  %s\nwant %s", c.name, strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
		}
	}

	// The first lines of a file have no header that was missed.
	if got := readRecords(t, newParser(t).NewSource(nil), []string{metric, metric}); got != nil {
		t.Errorf("a file that begins with metrics: %q", got)
	}
}

// TestSource_interleaved reads the lines of many containers that stand in one file by
// turns: none gets the trace of another, and only so many are kept apart.
func TestSource_interleaved(t *testing.T) {
	header := func(i int) string {
		return fmt.Sprintf("tm-%d | %s", i, line(coordinator, fmt.Sprintf("Decline checkpoint %d by task %s of job %s at tm-%d @ host (dataPort=1).", i, testAttempt, testJob, i)))
	}
	trace := func(i int) string { return fmt.Sprintf("tm-%d | org.example.E%d: words %d", i, i, i) }
	frame := func(i int) string { return fmt.Sprintf("tm-%d | \tat org.example.Main.main(Main.java:%d)", i, i) }
	event := func(i int, withTrace bool) string {
		text := fmt.Sprintf("checkpoint_declined checkpoint_id=%d container=tm-%d", i, i)
		if withTrace {
			text += fmt.Sprintf(" exception_class=org.example.E%d reason=words %d", i, i)
		}
		return text
	}
	for _, c := range []struct {
		containers int
		withTrace  func(i int) bool // of those that read their trace last first
	}{
		{2, func(int) bool { return true }},
		{maxStreams, func(int) bool { return true }},
		{maxStreams + 1, func(i int) bool { return i >= 1 }},
		{3 * maxStreams, func(i int) bool { return i >= 2*maxStreams }},
	} {
		source := newParser(t).NewSource(func(*Event) {})
		var records, want []string
		for i := range c.containers {
			records = append(records, header(i))
			want = append(want, event(i, c.withTrace(i)))
		}
		for _, part := range []func(int) string{trace, frame} {
			for i := c.containers - 1; i >= 0; i-- {
				records = append(records, part(i))
			}
		}
		got := readRecords(t, source, records, CheckpointID, Container, ExceptionClass, Reason)
		for i := range got {
			_, got[i], _ = strings.Cut(got[i], " ")
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%d containers: got\n%s\nwant\n%s", c.containers, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestSource_partial reads lines that a container runtime cut in parts and whose last part
// never comes.
func TestSource_partial(t *testing.T) {
	const cri = "2026-11-29T13:37:13.754000000Z std%s %s %s"
	expired := func(n int) string {
		return line(coordinator, fmt.Sprintf("Checkpoint %d of job %s expired before completing.", n, testJob))
	}
	half := len(expired(1)) / 2
	many := make([]string, maxStreams)
	for i := range many {
		many[i] = fmt.Sprintf("tm-%d | %s", i, expired(100+i))
	}
	for _, c := range []struct {
		name    string
		records []string
		want    int // events
	}{
		{"the end is missing", []string{fmt.Sprintf(cri, "out", "P", expired(1))}, 1},
		{"and another output goes on", []string{fmt.Sprintf(cri, "out", "P", expired(1)), fmt.Sprintf(cri, "err", "F", expired(2))}, 2},
		{"a line that is wrapped twice", []string{fmt.Sprintf(cri, "out", "P", "tm-1 | "+expired(1))}, 1},
		{"and others", append(slices.Clone(many[:3]), fmt.Sprintf(cri, "out", "P", "tm-1 | "+expired(1)), fmt.Sprintf(cri, "err", "F", expired(2))), 5},
		{"as many as are kept apart", append([]string{fmt.Sprintf(cri, "out", "P", "tm-1 | "+expired(1))}, many[:maxStreams-1]...), maxStreams},
		{"more than are kept apart", append([]string{fmt.Sprintf(cri, "out", "P", "tm-1 | "+expired(1))}, many...), maxStreams + 1},
		{"the end comes when more than are kept apart did", slices.Concat([]string{fmt.Sprintf(cri, "out", "P", expired(1)[:half])}, many,
			[]string{fmt.Sprintf(cri, "out", "F", expired(1)[half:])}), maxStreams},
	} {
		source := newParser(t).NewSource(func(*Event) {})
		got := readRecords(t, source, c.records, CheckpointID)
		if len(got) != c.want {
			t.Errorf("%s: %d events, want %d: %q", c.name, len(got), c.want, got)
		}
	}

	// A line that never ends.
	source := newParser(t).NewSource(func(e *Event) {
		if n := len(e.Text(Message)); n > maxPartial {
			t.Errorf("a message of %d bytes", n)
		}
	})
	part := line(coordinator, "Decline checkpoint 1 by task "+testAttempt+" of job "+testJob+" at ") + strings.Repeat("x", 16<<10)
	records := slices.Repeat([]string{fmt.Sprintf(cri, "out", "P", part)}, 2*maxPartial/len(part))
	for _, record := range records {
		source.Record(Origin{}, []byte(record))
		if n := len(source.others[0].partial); n > maxPartial {
			t.Fatalf("%d bytes of a line are kept", n)
		}
	}
	if got := readRecords(t, source, nil, CheckpointID); !slices.Equal(got, []string{"0 checkpoint_declined checkpoint_id=1"}) {
		t.Errorf("a line that never ends: %q", got)
	}
}

// TestUnrecognised: a line of a known class that is neither event nor known otherwise is
// reported with its logger as written; one of a class that may be another is not, and of
// another product's class nothing is read.
func TestUnrecognised(t *testing.T) {
	const (
		packages = "org.apache.flink.runtime.checkpoint."
		words    = "Checkpoint 17 was reworded by Flink 9."
		event    = "Checkpoint 17 of job " + testJob + " expired before completing."
	)
	for _, c := range []struct {
		name, logger, message, want string
	}{
		{"reworded", packages + "CheckpointCoordinator", words, "unrecognised"},
		{"packages shortened", "o.a.f.r.c.CheckpointCoordinator", words, "unrecognised"},
		{"another class", "org.apache.flink.runtime.taskmanager.Task", "Map (1/2)#0 was reworded.", "unrecognised"},
		{"event", packages + "CheckpointCoordinator", event, "checkpoint_expired"},
		{"damaged event", packages + "CheckpointCoordinator", "Checkpoint  17 of job " + testJob + " expired before", "checkpoint_expired"},
		{"silent", packages + "CheckpointCoordinator", "No checkpoint found to restore from.", ""},
		{"nothing", packages + "CheckpointCoordinator", "", ""},
		{"lesson", "org.apache.flink.configuration.GlobalConfiguration", "Loading configuration property: a, b", ""},
		{"class that writes only lessons", "org.apache.flink.configuration.GlobalConfiguration", words, ""},
		{"class alone", "CheckpointCoordinator", words, ""},
		{"another package of Flink", "org.apache.flink.table.CheckpointCoordinator", words, ""},
		{"another product", "org.apache.seatunnel.engine.server.checkpoint.CheckpointCoordinator", words, ""},
		{"another product's event", "org.apache.seatunnel.engine.server.checkpoint.CheckpointCoordinator", event, ""},
		{"another product, shortened", "o.a.s.e.s.c.CheckpointCoordinator", words, ""},
		{"another product's task", "com.example.taskmanager.Task", words, ""},
		{"a longer name", packages + "MyCheckpointCoordinator", words, ""},
		{"a longer name's event", packages + "MyCheckpointCoordinator", event, ""},
		{"another package's event", "org.apache.flink.table.CheckpointCoordinator", event, "checkpoint_expired"},
		{"a class unknown", packages + "PendingCheckpoint", words, ""},
	} {
		for _, head := range []string{
			"2026-11-29 13:37:13,754 WARN  %-60s [] - %s\njava.io.IOException: x",
			`{"@timestamp":"2026-11-29T13:37:13.754Z","log.level":"WARN","log.logger":%q,"message":%q}`,
		} {
			var got []string
			source := newParser(t).NewSource(func(e *Event) { got = append(got, e.Kind.Name) })
			source.Unrecognised = func(e *Event) { got = append(got, string(e.AppendLogfmt(nil))) }
			source.Record(Origin{Offset: -1}, fmt.Appendf(nil, head, c.logger, c.message))
			source.Flush()
			want := c.want
			if want == "unrecognised" {
				want = "time=2026-11-29T13:37:13.754Z event=unrecognised level=WARN logger=" + c.logger + ` message="` + c.message + `"`
			}
			if got := strings.Join(got, "\n"); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", c.name, got, want)
			}
		}
	}
}

// TestSource_clock reads a file in chunks: the clock goes from one source to the next, and
// with it the zone that lines have told and which of two equal local times it is.
func TestSource_clock(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(stamp string) string {
		return stamp + " INFO  " + coordinator.Names[0] + " [] - Checkpoint 17 of job " + testJob + " expired before completing."
	}
	// 13:00 UTC.
	tells := func(stamp string) string {
		return stamp + " INFO  " + coordinator.Names[0] + " [] - Triggering checkpoint 17 (type=CHECKPOINT) @ 1795957200000 for job " + testJob + "."
	}
	for _, c := range []struct {
		name   string
		learn  bool
		chunks [2]string
		// The times of the second chunk's lines, with the clock of the first and with one
		// of its own.
		shared, own string
	}{
		{"a zone that was learnt", true, [2]string{tells("2026-11-29 13:00:00,010"), at("2026-11-29 13:00:01,000")}, "13:00:01", "12:00:01"},
		{"and is not to be", false, [2]string{tells("2026-11-29 13:00:00,010"), at("2026-11-29 13:00:01,000")}, "12:00:01", "12:00:01"},
		{"a zone that is learnt anew", true, [2]string{tells("2026-11-29 13:00:00,010"), tells("2026-11-29 15:00:00,020") + "\n" + at("2026-11-29 15:00:01,000")},
			"13:00:00.02 13:00:01", "13:00:00.02 13:00:01"},
		{"summer time's last hour", false, [2]string{at("2026-10-25 02:59:59,000"), at("2026-10-25 02:00:01,000") + "\n" + at("2026-10-25 02:30:00,000")}, "01:00:01 01:30:00", "00:00:01 00:30:00"},
		{"the same, a line late", false, [2]string{at("2026-10-25 02:10:00,000"), at("2026-10-25 02:09:58,000")}, "00:09:58", "00:09:58"},
		{"a clock that jumps back", false, [2]string{at("2026-11-29 15:00:00,000"), at("2026-11-29 13:00:00,000") + "\n" + at("2026-11-29 12:59:00,000")}, "12:00:00 11:59:00", "12:00:00 11:59:00"},
		{"and back into summer", false, [2]string{at("2026-11-29 15:00:00,000"), at("2026-07-29 13:00:00,000")}, "11:00:00", "11:00:00"},
		{"a learnt one that jumps back", true, [2]string{tells("2026-11-29 13:00:00,010"), at("2026-11-29 11:00:00,000")}, "11:00:00", "10:00:00"},
	} {
		parser, err := New(Options{Location: berlin, LearnZone: c.learn})
		if err != nil {
			t.Fatal(err)
		}
		read := func(clock *layout.Clock, chunk string) string {
			var times []string
			source := parser.NewSource(func(e *Event) {
				at, _ := e.Time(Time)
				times = append(times, at.Format("15:04:05.999"))
			})
			source.Clock = clock
			source.Record(Origin{Offset: -1}, []byte(chunk))
			source.Flush()
			return strings.Join(times, " ")
		}
		clock := parser.NewClock()
		read(clock, c.chunks[0])
		if got := read(clock, c.chunks[1]); got != c.shared {
			t.Errorf("%s: %s, want %s", c.name, got, c.shared)
		}
		if got := read(parser.NewClock(), c.chunks[1]); got != c.own {
			t.Errorf("%s, with a clock of its own: %s, want %s", c.name, got, c.own)
		}
	}
}
