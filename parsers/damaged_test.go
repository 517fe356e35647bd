package parsers

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parseLine returns the events of a text as logfmt, one a line, without the fields of
// the header.
func parseLine(t testing.TB, text string) string {
	t.Helper()
	var out []string
	source := newParser(t).NewSource(func(e *Event) {
		for _, f := range []Field{Time, Level, Logger, Component, Message, FailureReason, Counted} {
			e.Drop(f)
		}
		out = append(out, string(e.AppendLogfmt(nil)))
	})
	source.Record(Origin{Offset: -1}, []byte(text))
	source.Flush()
	return strings.Join(out, "\n")
}

// line puts a message behind a header of a class.
func line(class *Class, message string) string {
	return "2026-11-29 13:37:13,754 INFO  " + class.Names[0] + " [] - " + message
}

const (
	testJob        = "85d268e6fbc19411185f7e4868a44178"
	testAttempt    = "d222e8d0db480e0d174f53983cb1d19f_516f674de35366be5fccbaf00cb6ed35_1_0"
	testOldAttempt = "0b60f08bf8984085b59f8d9bc74ce2e1"
)

// TestDamaged has lines as they come from web pages and documents, and cut ones: the
// event has the fields that are whole.
func TestDamaged(t *testing.T) {
	f := func(class *Class, message, want string) {
		t.Helper()
		if got := parseLine(t, line(class, message)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", message, got, want)
		}
	}

	// Blanks.
	f(executionGraph, "Map (3/8) ( "+testOldAttempt+" ) switched from  RUNNING to FAILED .",
		`event=task_state_changed task_name=Map subtask_index=2 parallelism=8 task_attempt_id=`+testOldAttempt+` from_state=RUNNING to_state=FAILED`)
	f(coordinator, "Checkpoint  17 of job "+testJob+" expired before  completing.", "event=checkpoint_expired job_id="+testJob+" checkpoint_id=17")
	f(coordinator, "Checkpoint 17 ofjob "+testJob+" expired beforecompleting", "event=checkpoint_expired job_id="+testJob+" checkpoint_id=17")

	f(barrierHandler, "Map (1/2)#0: Received barrier from channel 5  @  17.",
		"event=barrier_received checkpoint_id=17 task_name=Map subtask_index=0 parallelism=2 task_attempt_num=0 channel=5")
	f(barrierBuffer, "Map (1/2)#0: Received barrier from channel 5 .",
		"event=barrier_received task_name=Map subtask_index=0 parallelism=2 task_attempt_num=0 channel=5")

	// Ends.
	f(snapshotStrategy, "Heap backend snapshot (x, asynchronous part) in thread Thread[pool-1,5,main] took 369 m",
		`event=state_backend_async_finished duration_ms=369 backend="Heap backend snapshot"`)
	f(coordinator, "Decline checkpoint 17 by task "+testAttempt+" of job "+testJob,
		"event=checkpoint_declined job_id="+testJob+" checkpoint_id=17 task_attempt_id="+testAttempt)
	f(coordinator, "Received late message for now expired checkpoint attempt 500 from task "+testAttempt+" of job 03759286f640e56d8aca",
		"event=checkpoint_late_message checkpoint_id=500 task_attempt_id="+testAttempt)
	f(coordinator, "Received late message for now expired checkpoint attempt 500 from task "+testAttempt,
		"event=checkpoint_late_message checkpoint_id=500")
	f(coordinator, "Completed checkpoint 12 for job "+testJob+" (4069 bytes, checkpointDuration=39 ms, finalizationTime=1",
		"event=checkpoint_completed job_id="+testJob+" checkpoint_id=12 duration_ms=39 state_size_bytes=4069")

	// Ids cut short in the middle.
	f(coordinator, "Decline checkpoint 17 by task 0b60f08bf89 of job 85d268e at tm-1 @ host-1 (dataPort=41000).",
		"event=checkpoint_declined checkpoint_id=17 tm_id=tm-1 host=host-1 data_port=41000")
	f(coordinator, "Decline checkpoint 17 by task 0b60f0… of job "+testJob+" at Unknown location.", "")

	// Too little is there, or something else.
	f(coordinator, "Checkpoint 17", "")
	f(coordinator, "Checkpoint 17 size: 12Kb, duration: 5ms", "")
	f(coordinator, "Received late", "")
	f(coordinator, "", "")
	f(barrierHandler, "Map (1/2)#0 ("+testAttempt+"): Triggering checkpoint 3 on the first barrier at 1795958877251.", "")
}

// TestDamaged_everyCut cuts lines at each byte: what comes out never contradicts the
// whole line.
func TestDamaged_everyCut(t *testing.T) {
	mayBeWhole := map[string]bool{ // "at tm-1 @ ho" and Flink 1.2's "attempt 50" are whole sentences
		"host=h": true, "host=ho": true, "host=hos": true, "host=host": true, "host=host-": true,
		"checkpoint_id=5": true, "checkpoint_id=50": true,
	}
	for _, whole := range []string{
		line(coordinator, "Received late message for now expired checkpoint attempt 500 from task "+testAttempt+" of job "+testJob+" at tm-1 @ host-1 (dataPort=41000)."),
		line(executionGraph, "Deploying Map -> Sink: out (3/8) (attempt #2) with attempt id "+testAttempt+" and vertex id 516f674de35366be5fccbaf00cb6ed35_2 to tm-1 @ host-1 (dataPort=41000) with allocation id "+testJob),
		line(coordinator, "Completed checkpoint 12345 for job "+testJob+" (40690 bytes, checkpointDuration=3999 ms, finalizationTime=111 ms)."),
	} {
		full := map[string]bool{}
		for _, pair := range strings.Split(parseLine(t, whole), " ") {
			full[pair] = true
		}
		for n := range whole {
			for _, pair := range strings.Fields(parseLine(t, whole[:n])) {
				if !full[pair] && !mayBeWhole[pair] {
					t.Errorf("cut at %d: %s\n%s", n, pair, whole[:n])
				}
			}
		}
	}
}

// eachStatement calls f with each statement of the catalogue that is an event, rendered with
// plain values.
func eachStatement(t *testing.T, f func(s statement, message string, want map[Field]string)) {
	t.Helper()
	n := 0
	for _, s := range catalogue(t) {
		if s.event != "" {
			message, want := render(t, s, plain)
			f(s, message, want)
			n++
		}
	}
	if n < 100 {
		t.Fatalf("only %d statements", n)
	}
}

// TestDamaged_catalogue copies every statement badly, in ways that leave each of its
// values whole: nothing is lost.
func TestDamaged_catalogue(t *testing.T) {
	parser := newParser(t)
	inParentheses := regexp.MustCompile(`\(([0-9a-f_]{32,}|\d+/\d+|dataPort=\d+|type=\w+)\)`)
	for _, damage := range []struct {
		name  string
		apply func(message string) string
	}{
		{"no final dot", func(m string) string { return strings.TrimSuffix(m, ".") }},
		{"a blank behind (", func(m string) string { return inParentheses.ReplaceAllString(m, "( $1)") }},
		{"a blank before )", func(m string) string { return inParentheses.ReplaceAllString(m, "($1 )") }},
		{"blanks in ()", func(m string) string { return inParentheses.ReplaceAllString(m, "( $1 )") }},
		{"a unit with a blank", func(m string) string { return strings.ReplaceAll(m, "369 ms", "369 m s") }},
		{"a unit without a blank", func(m string) string { return strings.ReplaceAll(m, "369 ms", "369ms") }},
	} {
		n := 0
		eachStatement(t, func(s statement, message string, want map[Field]string) {
			damaged := damage.apply(message)
			if damaged == message {
				return
			}
			n++
			if damage.name == "no final dot" && want[Reason] != "" { // whose dot it was
				want[Reason] = strings.TrimSuffix(want[Reason], ".")
			}
			if strings.Contains(damage.name, "unit") && strings.HasSuffix(message, ": true") { // which may be cut
				delete(want, Unaligned)
			}
			if fault := compareFields(parser, lineOf(s, damaged, 0), s.event, want); fault != "" {
				t.Errorf("%s: %s (%s)\n%s\n%s", damage.name, s.id, s.versions, shorten(damaged), fault)
			}
		})
		if n < 20 {
			t.Errorf("%s: only %d statements", damage.name, n)
		}
	}
}

// TestDamaged_units cuts every statement between two words, and in its units, and breaks
// its durations in two: no value comes out that the whole line does not have.
func TestDamaged_units(t *testing.T) {
	parser := newParser(t)
	events := 0
	check := func(s statement, message string, want map[Field]string) {
		source := parser.NewSource(func(e *Event) {
			events++
			for f := range e.All {
				if value := string(e.AppendValue(nil, f)); Fields[f].Type != Text && !slices.Contains(fromHeader, f) && value != want[f] {
					t.Errorf("%s (%s): %s=%s\n%s", s.id, s.versions, Fields[f].Name, value, shorten(message))
				}
			}
		})
		source.Record(Origin{Offset: -1}, []byte(lineOf(s, message, 0)))
		source.Flush()
	}
	inWord := regexp.MustCompile(`^\w[\w.]`)
	eachStatement(t, func(s statement, message string, want map[Field]string) {
		for n := len(message) - 1; n > 0; n-- {
			if !inWord.MatchString(message[n-1:]) || strings.HasPrefix(message[n-1:], "ms") {
				check(s, message[:n], want)
			}
		}
		check(s, strings.ReplaceAll(message, "369", "36 9"), want)
	})
	if events < 1000 {
		t.Errorf("only %d events", events)
	}
}

// TestDamaged_blanks: a line that was copied from a web page or a PDF has other blanks.
func TestDamaged_blanks(t *testing.T) {
	const line = "2026-11-29 13:36:22,860 INFO  org.apache.flink.runtime.checkpoint.CheckpointCoordinator [] - Checkpoint 3 of job fef61425e149c9b56545204c60d72fcc expired before completing."
	for _, blank := range []string{"\u00a0", "\u202f"} {
		var got []string
		source := newParser(t).NewSource(func(e *Event) { got = append(got, string(e.AppendLogfmt(nil))) })
		source.Record(Origin{Offset: -1}, []byte("\u200b"+strings.ReplaceAll(line, " ", blank)))
		source.Flush()
		if len(got) != 1 || !strings.Contains(got[0], "time=2026-11-29T13:36:22.86Z event=checkpoint_expired") || !strings.Contains(got[0], "checkpoint_id=3 ") {
			t.Errorf("%q: got %q", blank, got)
		}
	}
}
