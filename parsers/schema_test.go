package parsers

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestGoldenSchema compares what events can have with testdata/schema.golden. Whoever
// changes a line of it, other than by adding one, breaks the rules, dashboards and
// queries of users: then SchemaVersion goes up, and CHANGELOG.md says what to change.
func TestGoldenSchema(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "version %d\n", SchemaVersion)
	for _, kind := range Kinds {
		fmt.Fprintf(&b, "event %s core=%t quiet=%t failure=%t\n", kind.Name, kind.Core, kind.Quiet, kind.Failure)
	}
	for _, f := range Fields {
		if !f.Lesson {
			fmt.Fprintf(&b, "field %s %s %s\n", f.Name, f.Type, f.Unit)
		}
	}
	for _, r := range failureReasons {
		fmt.Fprintf(&b, "failure_reason %s counted=%t\n", r.name, r.counted)
	}
	const file = "testdata/schema.golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("the schema of events has changed; see this test's comment. Got\n%s", got)
	}
}

// TestTables checks what the compiler can't: names are unique and in snake_case, docs
// are sentences.
func TestTables(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, kind := range append(append([]Kind{}, Kinds...), lessons...) {
		if !snake.MatchString(kind.Name) || seen[kind.Name] {
			t.Errorf("kind %q is not in snake_case, or there twice", kind.Name)
		}
		seen[kind.Name] = true
		if !strings.HasSuffix(kind.Doc, ".") {
			t.Errorf("%s: the doc is no sentence", kind.Name)
		}
		if kind.Core && kind.Quiet {
			t.Errorf("%s is core and not shipped", kind.Name)
		}
		for _, form := range kind.Forms {
			if form.Versions == "" {
				t.Errorf("%s: %q names no versions", kind.Name, form.Text)
			}
		}
	}
	seen = map[string]bool{}
	for _, f := range Fields {
		if !snake.MatchString(f.Name) || seen[f.Name] {
			t.Errorf("field %q is not in snake_case, or there twice", f.Name)
		}
		seen[f.Name] = true
		if f.Doc == "" {
			t.Errorf("%s has no doc", f.Name)
		}
	}
	if len(Fields) > maxFields {
		t.Errorf("%d fields", len(Fields))
	}
}

// TestAlsoAccepted has sentences that no version of Flink in the catalogue writes.
func TestAlsoAccepted(t *testing.T) {
	const head = "2019-09-02 16:26:20,972 INFO  org.apache.flink.runtime."
	for line, want := range map[string]string{
		head + "executiongraph.ExecutionGraph     - Deploying Window -> Sink: orders (100/289) (attempt #0) to slot container_e24_1566836790522_8088_04_013155_1 on host-a.example": "task_deploying task_name=\"Window -> Sink: orders\" subtask_index=99 parallelism=289 task_attempt_num=0 tm_id=container_e24_1566836790522_8088_04_013155 host=host-a.example",
		head + "checkpoint.CheckpointCoordinator     - Received late message for now expired checkpoint attempt 17":                                                                 "checkpoint_late_message checkpoint_id=17",
		head + "checkpoint.CheckpointCoordinator     - Checkpoint 17 expired before completing":                                                                                     "checkpoint_expired checkpoint_id=17 failure_reason=checkpoint_expired counted=true",
		head + "checkpoint.savepoint.SavepointCoordinator     - Savepoint with checkpoint ID 4 expired before completing.":                                                          "checkpoint_expired checkpoint_id=4 checkpoint_type=SAVEPOINT savepoint=true failure_reason=checkpoint_expired counted=true",
	} {
		got := ""
		source := newParser(t).NewSource(func(e *Event) {
			for _, f := range []Field{Time, EventName, Component, Level, Logger, Message} {
				e.Drop(f)
			}
			got += e.Kind.Name + " " + string(e.AppendLogfmt(nil))
		})
		source.Record(Origin{Offset: -1}, []byte(line))
		source.Flush()
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", line, got, want)
		}
	}
}
