package enrich

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers"
)

// Lines of a JobManager, told shortly: their class stands in front.
func trigger(id int, job string, at int) string {
	return coordinator + fmt.Sprintf("Triggering checkpoint %d (type=CHECKPOINT) @ %d for job %s.", id, 1795959970000+at, job)
}

func completes(id int, job string) string {
	return coordinator + fmt.Sprintf("Completed checkpoint %d for job %s (1 bytes, checkpointDuration=1 ms, finalizationTime=1 ms).", id, job)
}

func expires(id int, job string) string {
	return coordinator + fmt.Sprintf("Checkpoint %d of job %s expired before completing.", id, job)
}

func submitted(name, job string) string {
	return fmt.Sprintf("INFO  org.apache.flink.runtime.dispatcher.StandaloneDispatcher [] - Received JobGraph submission '%s' (%s).", name, job)
}

func switches(name, job, from, to string) string {
	return executionGraph + fmt.Sprintf("Job %s (%s) switched from state %s to %s.", name, job, from, to)
}

const (
	zero     = "00000000000000000000000000000000"
	taskExec = "INFO  org.apache.flink.runtime.taskexecutor.TaskExecutor [] - "
	runner   = "INFO  org.apache.flink.runtime.taskexecutor.TaskManagerRunner [] - "
	aborted  = "INFO  org.apache.flink.streaming.runtime.tasks.SubtaskCheckpointCoordinatorImpl [] - Checkpoint %d has been notified as aborted, would not trigger any checkpoint."
)

// of lists a field of the events of a kind.
func of(events []*parsers.Event, kind string, fields ...parsers.Field) (all []string) {
	for _, e := range events {
		if e.Kind.Name == kind {
			var values []string
			for _, f := range fields {
				values = append(values, value(e, f))
			}
			all = append(all, strings.Join(values, " "))
		}
	}
	return all
}

func expectAll(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestZeroID: applications whose jobs have the same id are apart.
func TestZeroID(t *testing.T) {
	for _, files := range [][2]string{
		{"/log/application_1_0001/container_1_0001_01_000001/jobmanager.log", "/log/application_1_0002/container_1_0002_01_000001/jobmanager.log"},
		{"/log/a/jobmanager.log", "/log/b/jobmanager.log"},
	} {
		l := newLines(t, NewState(0))
		var a, b []*parsers.Event
		read := func(n int, text func(job string) string) {
			l.pos = int64(n) * 1000
			a = append(a, l.read(files[0], text("A"))...)
			l.pos = int64(n) * 1000
			b = append(b, l.read(files[1], text("B"))...)
		}
		read(0, func(name string) string { return submitted("app"+name, zero) })
		for i := range 3 {
			read(2*i+1, func(string) string { return trigger(i+1, zero, i) })
			read(2*i+2, func(string) string { return expires(i+1, zero) })
		}
		for name, events := range map[string][]*parsers.Event{"appA": a, "appB": b} {
			want := []string{name + " 1", name + " 2", name + " 3"}
			// Between the records are gaps, so what is certain is the name only.
			if got := of(events, "checkpoint_expired", parsers.JobName, parsers.CheckpointID); !slices.Equal(got, want) {
				t.Errorf("%s of %s: got %q", name, files, got)
			}
		}
	}
}

// TestRuns: a job id that is given anew begins anew, with its name, its checkpoints and
// its failures; those of the run before are told.
func TestRuns(t *testing.T) {
	for _, completed := range []int{0, 3, 150} {
		for _, end := range []string{"canceled", "other name", "only its checkpoints"} {
			l := newLines(t, NewState(0))
			var all []string
			all = append(all, submitted("first", jobA), switches("first", jobA, "CREATED", "RUNNING"))
			id := 1
			for ; id <= completed; id++ {
				all = append(all, trigger(id, jobA, id), completes(id, jobA))
			}
			all = append(all, trigger(id, jobA, id), expires(id, jobA))
			if end == "canceled" {
				all = append(all, switches("first", jobA, "CANCELLING", "CANCELED"))
			}
			name := "first"
			if end == "other name" {
				name = "second"
			}
			if end != "only its checkpoints" {
				all = append(all, submitted(name, jobA), switches(name, jobA, "CREATED", "RUNNING"))
			}
			all = append(all, trigger(1, jobA, 9001), completes(1, jobA))
			for id := 2; id <= 3; id++ {
				all = append(all, trigger(id, jobA, 9000+id), expires(id, jobA))
			}
			all = append(all, trigger(4, jobA, 9004), completes(4, jobA))
			events := l.read("/log/jobmanager.log", all...)
			what := fmt.Sprintf("%d completed, %s", completed, end)
			last := ""
			if completed > 0 {
				last = fmt.Sprint(completed)
			}
			want := []string{fmt.Sprintf("%d 1 %s", id, last), "2 1 1", "3 2 1"}
			expectAll(t, what, of(events, "checkpoint_expired", parsers.CheckpointID, parsers.FailuresInARow, parsers.LastCompletedID), want...)
			if completed == 0 && end == "only its checkpoints" {
				continue // the same id with the same name, and nothing that ended it: its story goes with the new run
			}
			expectAll(t, what, of(events, "checkpoint_failure_summary", parsers.CheckpointID, parsers.FailuresInARow, parsers.LastCompletedID), want...)
			names := of(events, "checkpoint_failure_summary", parsers.JobName)
			if end != "only its checkpoints" {
				expectAll(t, what, names, "first", name, name)
			}
		}
	}
}

// TestVertexOfAnotherJob: vertices of different jobs have the same id.
func TestVertexOfAnotherJob(t *testing.T) {
	l := newLines(t, NewState(0))
	const vertex = "cbc357ccb763df2852fee8c4fc7d55f2"
	graph := strings.Repeat("1", 32)
	other := strings.Repeat("2", 32)
	events := l.read("/log/jobmanager.log",
		executionGraph+"Deploying Source: Orders (1/1) (attempt #0) with attempt id "+graph+"_"+vertex+"_0_0 and vertex id "+vertex+"_0 to tm-1 @ host-1 (dataPort=1) with allocation id "+jobB,
		coordinator+"Decline checkpoint 7 by task "+other+"_"+vertex+"_0_0 of job "+jobB+" at tm-1 @ host-1 (dataPort=1).")
	expectAll(t, "another job's", of(events, "checkpoint_declined", parsers.TaskName, parsers.SubtaskIndex, parsers.VertexID), " 0 "+vertex)
}

// TestContainersInOneFile: lines of several containers in one file, and files of the same
// name in several pods, are apart.
func TestContainersInOneFile(t *testing.T) {
	start := func(tm string) []string {
		return []string{runner + "Starting TaskManager with ResourceID: " + tm, taskExec + "Establish JobManager connection for job " + strings.Repeat(tm[len(tm)-1:], 32) + "."}
	}
	s := NewState(0)
	var got []string
	pass := s.Begin(Teller{ID: "out", Emit: func(e *parsers.Event, _ bool) {
		if e.Kind.Name == "snapshot_aborted" {
			got = append(got, value(e, parsers.TMID)+" "+value(e, parsers.JobID)[:1])
		}
	}})
	defer pass.Abandon()
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	logs := []*Log{pass.Log("", "/log/taskmanager.log", "pod-a"), pass.Log("", "/log/taskmanager.log", "pod-b"), pass.Log("", "/log/compose.txt", "")}
	read := func(log *Log, prefix string, n int, texts ...string) {
		source := parser.NewSource(log.Event)
		source.Lesson = log.Lesson
		for i, text := range texts {
			source.Record(parsers.Origin{Offset: -1}, []byte(prefix+"2026-11-29 12:00:0"+fmt.Sprint(n+i)+",000 "+text))
		}
		source.Flush()
	}
	read(logs[0], "", 0, start("tm-a")...)
	read(logs[1], "", 0, start("tm-b")...)
	read(logs[2], "taskmanager-1  | ", 0, start("tm-c")...)
	read(logs[2], "taskmanager-2  | ", 0, start("tm-d")...)
	for i, prefix := range []string{"", "", "taskmanager-1  | ", "taskmanager-2  | "} {
		read(logs[min(i, 2)], prefix, 5, fmt.Sprintf(aborted, 7))
	}
	expectAll(t, "tm_id and job", got, "tm-a a", "tm-b b", "tm-c c", "tm-d d")
}

// TestRotationWhileDown: what was written to the old file between a stop and a start of
// the agent is not known; while it runs, a rotation loses nothing.
func TestRotationWhileDown(t *testing.T) {
	for _, restart := range []bool{false, true} {
		dir := t.TempDir()
		s, _, _ := openState(t, dir)
		l := newLines(t, s)
		l.read("/log/jobmanager.log", submitted("a", jobA), trigger(10, jobA, 1), completes(10, jobA), trigger(11, jobA, 2), expires(11, jobA))
		if restart {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			l.state, _, _ = openState(t, dir)
		}
		l.pos = 0
		events := l.read("/log/jobmanager.log", trigger(14, jobA, 3), expires(14, jobA), trigger(15, jobA, 4), completes(15, jobA))
		want := "2 10"
		if restart {
			want = " "
		}
		what := fmt.Sprintf("restart %v", restart)
		expectAll(t, what, of(events, "checkpoint_expired", parsers.FailuresInARow, parsers.LastCompletedID), want)
		if got := of(events, "checkpoint_failure_summary", parsers.FailuresInARow, parsers.LastCompletedID); got[len(got)-1] != want {
			t.Errorf("%s: summaries %q", what, got)
		}
	}
}

// TestGap: what lines that are missing may tell is absent, on events and summaries.
func TestGap(t *testing.T) {
	l := newLines(t, NewState(0))
	l.read("/log/jobmanager.log", submitted("a", jobA), trigger(12, jobA, 1), completes(12, jobA))
	l.pos += 5000
	events := l.read("/log/jobmanager.log", trigger(15, jobA, 2), expires(15, jobA), trigger(16, jobA, 3), expires(16, jobA), trigger(17, jobA, 4), completes(17, jobA), trigger(18, jobA, 5), expires(18, jobA))
	expectAll(t, "events", of(events, "checkpoint_expired", parsers.FailuresInARow, parsers.LastCompletedID), " ", " ", "1 17")
	l.at = l.at.Add(patience)
	events = l.read("/log/jobmanager.log", trigger(19, jobA, 6), completes(19, jobA))
	expectAll(t, "summaries", of(events, "checkpoint_failure_summary", parsers.CheckpointID, parsers.FailuresInARow, parsers.LastCompletedID), "15  ", "16  ", "18 1 17")
}

// TestClockSetBack: no time that has passed is negative.
func TestClockSetBack(t *testing.T) {
	l := newLines(t, NewState(0))
	l.read("/log/jobmanager.log", submitted("a", jobA), trigger(1, jobA, 1), completes(1, jobA), trigger(2, jobA, 2))
	l.at = l.at.Add(-time.Hour)
	events := l.read("/log/jobmanager.log", expires(2, jobA), trigger(3, jobA, 3), completes(3, jobA))
	for _, kind := range []string{"checkpoint_expired", "checkpoint_failure_summary"} {
		expectAll(t, kind, of(events, kind, parsers.FailuresInARow, parsers.SinceTriggerMs, parsers.SinceLastCompletedMs), "1  ")
	}
}

// TestManyJobs: more jobs on a TaskManager than are remembered leave no wrong certainty.
func TestManyJobs(t *testing.T) {
	l := newLines(t, NewState(0))
	texts := []string{runner + "Starting TaskManager with ResourceID: tm-1", taskExec + "Establish JobManager connection for job " + jobA + "."}
	for i := range 2 * maxLiveJobs {
		job := fmt.Sprintf("%032x", i)
		texts = append(texts, taskExec+"Establish JobManager connection for job "+job+".", fmt.Sprintf(aborted, i), taskExec+"Close JobManager connection for job "+job+".")
	}
	events := l.read("/log/taskmanager.log", texts...)
	for i, jobs := range of(events, "snapshot_aborted", parsers.JobID, parsers.JobCandidates) {
		if !strings.HasPrefix(jobs, " ") || !strings.Contains(jobs, jobA) && strings.Count(jobs, ",") < maxCandidates-1 {
			t.Fatalf("the %dth: %q", i, jobs)
		}
	}
}

// TestThreshold_whichJob: a sentence without a job is a job's only where no other can be
// meant.
func TestThreshold_whichJob(t *testing.T) {
	version := "INFO  org.apache.flink.runtime.entrypoint.ClusterEntrypoint [] -  Starting StandaloneSessionClusterEntrypoint (Version: 1.13.6, Scala: 2.12, Rev:x, Date:y)"
	sentence := "INFO  org.apache.flink.runtime.jobmaster.JobMaster [] - Trying to recover from a global failure.\norg.apache.flink.util.FlinkRuntimeException: Exceeded checkpoint tolerable failure threshold."
	for _, c := range []struct {
		name  string
		texts []string
		want  string
	}{
		{"one job", []string{version, submitted("a", jobA), sentence}, jobA},
		{"two jobs", []string{version, submitted("a", jobA), submitted("b", jobB), sentence}, ""},
		{"another job, that began before the log", []string{version, completes(70, jobB), submitted("a", jobA), sentence}, ""},
		{"a log that begins in the middle", []string{submitted("a", jobA), sentence}, ""},
		{"the other job has ended", []string{version, submitted("a", jobA), submitted("b", jobB), switches("b", jobB, "FAILING", "FAILED"), sentence}, jobA},
	} {
		events := newLines(t, NewState(0)).read("/log/jobmanager.log", c.texts...)
		expectAll(t, c.name, of(events, "checkpoint_failure_threshold_exceeded", parsers.JobID), c.want)
	}
}

// TestLogName: what rotation adds to a file's name is no part of the log's.
func TestLogName(t *testing.T) {
	for file, want := range map[string]string{
		"/log/jobmanager.log":               "/log/jobmanager.log",
		"/log/jobmanager.log.1":             "/log/jobmanager.log",
		"/log/jobmanager.log.2026-11-29":    "/log/jobmanager.log",
		"/log/jobmanager.log.2026-11-29-13": "/log/jobmanager.log",
		"/log/jobmanager.log.3.gz":          "/log/jobmanager.log",
		"/log/jobmanager.log-20261129.gz":   "/log/jobmanager.log",
		"/log/jobmanager.out.2":             "/log/jobmanager.out",
		"/db/LOG":                           "/db/LOG",
		"/db/LOG.old.1795958442924":         "/db/LOG",
		"/log/tm.1":                         "/log/tm.1",
		"/log/tm-2":                         "/log/tm-2",
		"/log/container_1_0001_01_000002":   "/log/container_1_0001_01_000002",
		"/var/log/pods/a_b_c/main/0.log":    "/var/log/pods/a_b_c/main/0.log",
	} {
		if got := logName(file); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}
