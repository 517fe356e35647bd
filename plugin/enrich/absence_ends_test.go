package enrich

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"flink-loki/parsers"
)

const hangs = "10:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 12"

// hanging is a job whose checkpoints are overdue, as a tick has told.
func hanging(t *testing.T) *absenceTest {
	t.Helper()
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	a.read()
	a.ticks(13 * time.Minute)
	a.expect(hangs)
	return a
}

// TestAbsence_suspended: a JobManager that gives a job up does not make its checkpoints.
func TestAbsence_suspended(t *testing.T) {
	a := hanging(t)
	a.jobState(hangingJob, "RUNNING", "SUSPENDED")
	a.read()
	a.ticks(3 * time.Hour)
	a.expect("10:25:00 recovered fef6 by  after 120000 ms")
}

// TestAbsence_adaptive: the adaptive scheduler cancels the graph to restart a job, which
// goes on to hang: it is told again, after twice the time.
func TestAbsence_adaptive(t *testing.T) {
	a := hanging(t)
	a.jobState(hangingJob, "RUNNING", "CANCELLING")
	a.jobState(hangingJob, "CANCELLING", "CANCELED")
	a.wait(time.Second)
	a.jobState(hangingJob, "CREATED", "RUNNING")
	a.read()
	a.ticks(3 * time.Hour)
	a.expect(
		"10:47:01 overdue fef6 after 1320000 ms, repeat 1, every 60000 ms observed, last 12",
		"11:09:01 overdue fef6 after 2640000 ms, repeat 2, every 60000 ms observed, last 12",
		"11:53:01 overdue fef6 after 5280000 ms, repeat 3, every 60000 ms observed, last 12",
	)
}

// TestAbsence_loop: a job that restarts again and again without a checkpoint is told no more
// often than one that hangs.
func TestAbsence_loop(t *testing.T) {
	a := hanging(t)
	for range 20 {
		a.jobState(hangingJob, "RUNNING", "RESTARTING")
		a.wait(time.Second)
		a.jobState(hangingJob, "RESTARTING", "RUNNING")
		a.wait(30 * time.Minute)
		a.read()
	}
	a.expect("10:47:01 overdue fef6 after 1320000 ms, repeat 1, every 60000 ms observed, last 12")
	a.checkpoints(1, time.Minute)
	a.read()
	a.expect("20:26:20 recovered fef6 by 13 after 36200000 ms")
}

// TestAbsence_missing: what was told ends, though lines are missing between.
func TestAbsence_missing(t *testing.T) {
	a := hanging(t)
	a.offset += 5000 // lines that never come
	a.other()
	a.read()
	a.wait(12 * time.Minute)
	a.other()
	a.read()
	a.ticks(2 * time.Minute)
	a.checkpoints(1, time.Hour)
	a.read()
	a.tick()
	a.expect("11:39:00 recovered fef6 by 13 after 4560000 ms")
}

// TestAbsence_rotated: the same where the log was rotated while no agent ran.
func TestAbsence_rotated(t *testing.T) {
	dir := t.TempDir()
	a := newAbsenceTest(t, "UTC")
	open := func() {
		state, _, err := OpenState(dir, 0, func(text string) { t.Error(text) })
		if err != nil {
			t.Fatal(err)
		}
		a.state = state
		a.begin()
	}
	open()
	a.started(12, time.Minute)
	a.read()
	a.ticks(13 * time.Minute)
	a.expect(hangs)
	_ = a.state.Close()
	open()
	a.wait(3 * time.Minute)
	a.offset = 0
	a.process()
	a.jobState(hangingJob, "CREATED", "RUNNING")
	a.read()
	a.checkpoints(1, time.Minute)
	a.read()
	a.expect("10:28:00 recovered fef6 by  after 300000 ms")
}

// TestAbsence_otherContainer: a job that hangs, and goes on in another log.
func TestAbsence_otherContainer(t *testing.T) {
	a := hanging(t)
	a.file, a.offset = "/log/jobmanager-2.log", 0
	a.process()
	a.jobState(hangingJob, "CREATED", "RUNNING")
	a.read()
	a.ticks(9 * time.Minute) // not overdue there
	a.checkpoints(1, time.Minute)
	a.read()
	a.expect("10:35:00 recovered fef6 by 13 after 720000 ms")
}

// TestAbsence_name: what is told of one time has the same name, though the log tells it in
// between.
func TestAbsence_name(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	var names []string
	told := a.teller.Emit
	a.teller.Emit = func(e *parsers.Event, isMade bool) {
		if isMade {
			names = append(names, e.Kind.Name+" "+value(e, parsers.JobName))
		}
		told(e, isMade)
	}
	a.checkpoints(12, time.Minute)
	a.read()
	a.ticks(13 * time.Minute)
	a.jobState(hangingJob, "RUNNING", "RESTARTING")
	a.wait(time.Second)
	a.jobState(hangingJob, "RESTARTING", "RUNNING")
	a.checkpoints(1, time.Minute)
	a.read()
	a.wait(12 * time.Minute)
	a.other()
	a.read()
	want := []string{"checkpoint_overdue ", "checkpoint_recovered ", "checkpoint_overdue orders"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// TestAbsence_savepoints: savepoints that somebody takes do not hide that no checkpoints
// are made; the time that they take does not count.
func TestAbsence_savepoints(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, 30*time.Minute) // up to 16:00
	for range 5 {
		a.wait(20 * time.Minute)
		a.id++
		a.trigger(hangingJob, a.id, "SAVEPOINT")
		a.wait(10 * time.Minute)
		a.complete(hangingJob, a.id)
		a.read()
		a.tick()
	}
	a.expect("18:10:00 overdue fef6 after 7800000 ms, repeat 0, every 1800000 ms observed, last 12")
}

// TestAbsence_clockBack: a clock that is set back between.
func TestAbsence_clockBack(t *testing.T) {
	a := hanging(t)
	a.wait(-2 * time.Hour)
	a.checkpoints(1, time.Minute)
	a.read()
	if len(a.told) != 1 {
		t.Errorf("told %q", a.told)
	}
	a.told = nil
}

// TestAbsence_crowd: tens of thousands of batch tasks do not make the state forget a job with
// hourly checkpoints, and jobs that have ended cost nothing any more.
func TestAbsence_crowd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Hour)
	a.read()
	for j := range 170 {
		a.wait(time.Minute)
		job := fmt.Sprintf("%032x", j+1000)
		a.jobState(job, "CREATED", "RUNNING")
		for n := range 300 {
			a.write(graphClass, "Deploying Source: b (%d/300) (attempt #0) with attempt id %032x_cbc357ccb763df2852fee8c4fc7d55f2_%d_0 and vertex id cbc357ccb763df2852fee8c4fc7d55f2_%d to tm-1.example:41235-eab5d9 @ tm-1.example (dataPort=33341) with allocation id e8d2eb0b4f2f7b6e1d1bd56d1e17e0ea", n+1, j+5000, n, n)
		}
		a.jobState(job, "RUNNING", "FINISHED")
		a.read()
		a.tick()
	}
	if a.state.evicted == 0 {
		t.Error("nothing was forgotten")
	}
	if n := len(a.state.watches["out\x00/log/jobmanager.log"]); n != 1 {
		t.Errorf("%d jobs are watched", n)
	}
	a.ticks(15 * time.Minute)
	a.expect("01:00:00 overdue fef6 after 10800000 ms, repeat 0, every 3600000 ms observed, last 12")
}

// TestAbsence_order: in whichever chunks the lines come, and with each pair of chunks the
// other way round, the same is told.
func TestAbsence_order(t *testing.T) {
	var want []string
	for size := 1; size < 25; size++ {
		for _, swap := range []bool{false, true} {
			a := newAbsenceTest(t, "UTC")
			a.property("interval", "1min")
			a.started(12, time.Minute)
			a.wait(12 * time.Minute)
			a.trigger(hangingJob, 13, "SAVEPOINT")
			a.wait(time.Minute)
			a.complete(hangingJob, 13)
			a.id = 13
			a.wait(30 * time.Minute)
			a.jobState(hangingJob, "RUNNING", "RESTARTING")
			a.wait(time.Minute)
			a.jobState(hangingJob, "RESTARTING", "RUNNING")
			a.wait(30 * time.Minute)
			a.checkpoints(5, time.Minute)
			a.wait(40 * time.Minute)
			for range 3 {
				a.other()
			}
			type part struct {
				at    int64
				lines []string
			}
			var parts []part
			at := int64(0)
			for lines := range slices.Chunk(a.lines, size) {
				parts = append(parts, part{at, lines})
				for _, line := range lines {
					at += int64(len(line)) + 1
				}
			}
			for i := 2; swap && i+1 < len(parts); i += 2 {
				parts[i], parts[i+1] = parts[i+1], parts[i]
			}
			for _, p := range parts {
				a.chunk(p.at, p.lines)
			}
			a.offset, a.lines = at, nil
			for range 2 {
				a.other()
				a.read()
			}
			if want == nil {
				want = a.told
			}
			if !slices.Equal(a.told, want) || len(want) < 3 {
				t.Errorf("chunks of %d lines, other way round %v: told %q, want %q", size, swap, a.told, want)
			}
			a.told = nil
		}
	}
}

// takenOver is a job whose JobManager was killed without a word, and that runs in another
// one, whose log is read from then on. It returns where the first log ends.
func takenOver(t *testing.T) (a *absenceTest, first int64) {
	t.Helper()
	a = newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	a.read()
	a.wait(10 * time.Second)
	first, a.file, a.offset = a.offset, "/log/jobmanager-2.log", 0
	a.process()
	a.jobState(hangingJob, "CREATED", "RUNNING")
	a.read()
	return a, first
}

// TestAbsence_standby: what a JobManager says that a job has left says nothing of the job.
func TestAbsence_standby(t *testing.T) {
	for what, write := range map[string]func(*absenceTest){
		"it is started anew":     func(a *absenceTest) { a.process() },
		"it gives the job up":    func(a *absenceTest) { a.jobState(hangingJob, "RUNNING", "SUSPENDED") },
		"it says something else": func(a *absenceTest) { a.other() },
	} {
		for _, isTold := range []bool{false, true} {
			a, first := takenOver(t)
			if isTold {
				a.ticks(12 * time.Minute)
			} else {
				a.wait(20 * time.Second)
			}
			second := a.offset
			a.file, a.offset = "/log/jobmanager.log", first
			write(a)
			a.read()
			a.file, a.offset = "/log/jobmanager-2.log", second
			a.ticks(20 * time.Minute)
			want := []string{"10:23:10 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last "}
			if isTold {
				want = append(want, "10:34:10 overdue fef6 after 1320000 ms, repeat 1, every 60000 ms observed, last ")
			}
			if !slices.Equal(a.told, want) {
				t.Errorf("%s, told before %v: told %q", what, isTold, a.told)
			}
		}
	}
}

// TestAbsence_twoLogs: in whichever order two logs of a job are read, the same is told.
func TestAbsence_twoLogs(t *testing.T) {
	var want []string
	for _, swap := range []bool{false, true} {
		a := newAbsenceTest(t, "UTC")
		a.started(12, time.Minute)
		a.read()
		at := a.offset
		a.wait(20 * time.Minute)
		a.other()
		first := a.lines
		a.lines = nil
		a.wait(time.Minute)
		a.process()
		a.jobState(hangingJob, "CREATED", "RUNNING")
		a.checkpoints(1, time.Minute)
		second := a.lines
		for i := range 2 {
			if (i == 0) != swap {
				a.file = "/log/jobmanager.log"
				a.chunk(at, first)
			} else {
				a.file = "/log/jobmanager-2.log"
				a.chunk(0, second)
			}
		}
		if want == nil {
			want = a.told
		}
		if !slices.Equal(a.told, want) || len(want) != 2 {
			t.Errorf("told %q, the other way round %q", a.told, want)
		}
	}
}

// TestAbsence_newRun: a line that begins another run of the job tells the same of the time
// before it as ticks do.
func TestAbsence_newRun(t *testing.T) {
	for _, hasTicks := range []bool{true, false} {
		a := newAbsenceTest(t, "UTC")
		a.started(12, time.Minute)
		a.read()
		if hasTicks {
			a.ticks(20 * time.Minute)
		} else {
			a.wait(20 * time.Minute)
		}
		a.process()
		a.id = 0
		a.checkpoints(1, time.Minute)
		a.read()
		a.expect(hangs, "10:32:00 recovered fef6 by  after 540000 ms")
	}
}

// TestAbsence_canceled14: up to Flink 1.12 a graph is canceled for good, and up to 1.4 no
// other line says so.
func TestAbsence_canceled14(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.write("jobmanager.JobManager", " Starting JobManager (Version: 1.4.2, Rev:ee9027e, Date:14.02.2018 @ 14:40:41 UTC)")
	a.jobState(hangingJob, "CREATED", "RUNNING")
	a.checkpoints(12, time.Minute)
	a.read()
	a.ticks(13 * time.Minute)
	a.jobState(hangingJob, "RUNNING", "CANCELLING")
	a.jobState(hangingJob, "CANCELLING", "CANCELED")
	a.read()
	a.expect(hangs, "10:25:00 recovered fef6 by  after 120000 ms")
}

// TestAbsence_savepointUnseen: a savepoint whose end no line tells does not make the agent
// patient for ever.
func TestAbsence_savepointUnseen(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	a.id++
	a.trigger(hangingJob, a.id, "SAVEPOINT")
	a.checkpoints(60, time.Minute)
	a.read()
	a.ticks(13 * time.Minute)
	a.expect("11:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 73")
}

// TestAbsence_standbyTwice: nor does it end what is overdue elsewhere, however often it
// ends and begins.
func TestAbsence_standbyTwice(t *testing.T) {
	a, first := takenOver(t)
	a.ticks(13 * time.Minute)
	a.expect("10:23:10 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last ")
	second := a.offset
	a.file, a.offset = "/log/jobmanager.log", first
	a.write("entrypoint.ClusterEntrypoint", "RECEIVED SIGNAL 15: SIGTERM. Shutting down as requested.")
	a.wait(time.Second)
	a.process()
	a.read()
	a.file, a.offset = "/log/jobmanager-2.log", second
	a.ticks(20 * time.Minute)
	a.expect("10:34:10 overdue fef6 after 1320000 ms, repeat 1, every 60000 ms observed, last ")
}

// TestAbsence_givenUp: a JobManager that gives a job up late ends its pending checkpoints, which
// is no sign that the job is there.
func TestAbsence_givenUp(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	a.trigger(hangingJob, 13, "CHECKPOINT")
	a.read()
	a.wait(10 * time.Second)
	first := a.offset
	a.file, a.offset = "/log/jobmanager-2.log", 0
	a.process()
	a.jobState(hangingJob, "CREATED", "RUNNING")
	a.read()
	a.wait(20 * time.Second)
	second := a.offset
	a.file, a.offset = "/log/jobmanager.log", first
	a.jobState(hangingJob, "RUNNING", "SUSPENDED")
	a.read()
	a.file, a.offset = "/log/jobmanager-2.log", second
	a.ticks(13 * time.Minute)
	a.expect("10:23:10 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last ")
}

// TestAbsence_nextFile: a job that goes on in the next file of a log has not left it.
func TestAbsence_nextFile(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.teller.Complete = true
	a.file = "/log/jobmanager.log.1"
	a.started(12, time.Minute)
	a.read()
	a.file, a.offset = "/log/jobmanager.log", 0
	a.wait(time.Minute)
	a.trigger(hangingJob, 13, "CHECKPOINT")
	a.wait(11 * time.Minute)
	a.other()
	a.read()
	a.expect(hangs)
}

// TestAbsence_endsElsewhere: a job that has ended in a log that is read first.
func TestAbsence_endsElsewhere(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	a.read()
	first := a.offset
	a.wait(20 * time.Minute)
	a.other()
	lines := a.lines
	a.lines = nil
	a.file, a.offset = "/log/jobmanager-2.log", 0
	a.process()
	a.jobState(hangingJob, "CREATED", "RUNNING")
	a.wait(time.Minute)
	a.jobState(hangingJob, "RUNNING", "FINISHED")
	a.read()
	a.file = "/log/jobmanager.log"
	a.chunk(first, lines)
	a.expect(hangs, "10:33:00 recovered fef6 by  after 600000 ms")
}

// TestAbsence_manyRuns: when a job left a log is known, however often it restarts elsewhere.
func TestAbsence_manyRuns(t *testing.T) {
	a, first := takenOver(t)
	for range 40 {
		a.wait(2 * time.Minute)
		a.jobState(hangingJob, "RUNNING", "RESTARTING")
		a.wait(time.Second)
		a.jobState(hangingJob, "RESTARTING", "RUNNING")
	}
	a.read()
	a.file, a.offset = "/log/jobmanager.log", first
	a.other()
	a.read()
	a.expect()
}

// TestAbsence_missingElsewhere: the end of a job ends what is overdue in the log that it has
// left, though lines of its present one are missing.
func TestAbsence_missingElsewhere(t *testing.T) {
	a := hanging(t)
	a.file, a.offset = "/log/jobmanager-2.log", 0
	a.process()
	a.jobState(hangingJob, "CREATED", "RUNNING")
	a.read()
	a.wait(time.Minute)
	a.offset += 5000
	a.other()
	a.read()
	a.wait(20 * time.Minute)
	a.other()
	a.read()
	a.jobState(hangingJob, "RUNNING", "FINISHED")
	a.read()
	a.other()
	a.read()
	a.expect("10:46:00 recovered fef6 by  after 1380000 ms")
}
