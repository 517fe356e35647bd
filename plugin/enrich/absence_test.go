package enrich

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers"
)

const (
	hangingJob = "fef61425e149c9b56545204c60d72fcc"
	otherJob   = "0d8f937a188237c74c23f86eaeb589a2"
)

// absenceTest is a JobManager whose log an agent reads. Its clock is moved by hand.
type absenceTest struct {
	t       *testing.T
	state   *State
	loc     *time.Location
	source  *parsers.Source
	log     *Log
	teller  Teller
	now     time.Time
	lines   []string // not read yet
	file    string
	offset  int64
	pending bool
	removed bool
	pod     string   // that the events are of
	told    []string // what was made
	id      int      // of the last checkpoint
}

func newAbsenceTest(t *testing.T, zone string) *absenceTest {
	t.Helper()
	a := &absenceTest{t: t, state: NewState(0), file: "/log/jobmanager.log", now: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	var err error
	if a.loc, err = time.LoadLocation(zone); err != nil {
		t.Fatal(err)
	}
	a.begin()
	return a
}

// begin begins to read, as a process that knows nothing but the state.
func (a *absenceTest) begin() {
	parser, err := parsers.New(parsers.Options{Location: a.loc})
	if err != nil {
		a.t.Fatal(err)
	}
	a.source = parser.NewSource(func(e *parsers.Event) {
		e.SetText(parsers.Cluster, []byte("prod"))
		if a.pod != "" {
			e.SetText(parsers.Pod, []byte(a.pod))
		}
		a.log.Event(e)
	})
	a.source.Lesson = func(e *parsers.Event) { a.log.Lesson(e) }
	a.teller.ID = "out"
	a.teller.Emit = func(e *parsers.Event, isMade bool) {
		switch e.Kind {
		case overdueKind:
			at, _ := e.Time(parsers.Time)
			a.told = append(a.told, fmt.Sprintf("%s overdue %s after %s ms, repeat %s, every %s ms %s, last %s",
				at.Format("15:04:05"), value(e, parsers.JobID)[:4], value(e, parsers.QuietMs), value(e, parsers.Repeat),
				value(e, parsers.ExpectedIntervalMs), value(e, parsers.IntervalFrom), value(e, parsers.LastCompletedID)))
		case recoveredKind:
			at, _ := e.Time(parsers.Time)
			a.told = append(a.told, fmt.Sprintf("%s recovered %s by %s after %s ms", at.Format("15:04:05"), value(e, parsers.JobID)[:4], value(e, parsers.CheckpointID), value(e, parsers.OverdueMs)))
			since, _ := e.Int(parsers.OverdueSince)
			if lasted, _ := e.Number(parsers.OverdueMs); lasted > 0 && since != at.UnixMilli()-int64(lasted) {
				a.t.Errorf("overdue since %d", since)
			}
		}
	}
}

func (a *absenceTest) wait(d time.Duration) { a.now = a.now.Add(d) }

// write writes a line now.
func (a *absenceTest) write(class, format string, args ...any) {
	a.lines = append(a.lines, a.now.In(a.loc).Format("2006-01-02 15:04:05,000")+" INFO  org.apache.flink.runtime."+class+" [] - "+fmt.Sprintf(format, args...))
}

const (
	coordinatorClass = "checkpoint.CheckpointCoordinator"
	graphClass       = "executiongraph.ExecutionGraph"
	dispatcherClass  = "dispatcher.StandaloneDispatcher"
)

func (a *absenceTest) jobState(job, from, to string) {
	a.write(graphClass, "Job orders (%s) switched from state %s to %s.", job, from, to)
}

func (a *absenceTest) trigger(job string, id int, kind string) {
	a.write(coordinatorClass, "Triggering checkpoint %d (type=%s) @ %d for job %s.", id, kind, a.now.UnixMilli(), job)
}

func (a *absenceTest) complete(job string, id int) {
	a.write(coordinatorClass, "Completed checkpoint %d for job %s (1234 bytes, checkpointDuration=10 ms, finalizationTime=1 ms).", id, job)
}

// checkpoints makes n checkpoints, one every interval; the last ends now.
func (a *absenceTest) checkpoints(n int, every time.Duration) {
	for range n {
		a.wait(every - time.Second)
		a.id++
		a.trigger(hangingJob, a.id, "CHECKPOINT")
		a.wait(time.Second)
		a.complete(hangingJob, a.id)
	}
}

// property writes that Flink's configuration has a property.
func (a *absenceTest) property(key, value string) {
	a.write("x", "Loading configuration property: execution.checkpointing.%s, %s", key, value)
	last := &a.lines[len(a.lines)-1]
	*last = strings.Replace(*last, "flink.runtime.x", "flink.configuration.GlobalConfiguration", 1)
}

// process writes that a JobManager begins to write the log.
func (a *absenceTest) process() {
	a.write("entrypoint.ClusterEntrypoint", " Starting StandaloneSessionClusterEntrypoint (Version: 1.20.0, Scala: 2.12, Rev:b1fe7b4, Date:2024-07-25T02:14:16+02:00)")
}

// started begins the log with a job that runs and makes checkpoints.
func (a *absenceTest) started(n int, every time.Duration) {
	a.process()
	a.jobState(hangingJob, "CREATED", "RUNNING")
	a.checkpoints(n, every)
}

// chunk reads lines in a pass; records stand at offset.
func (a *absenceTest) chunk(offset int64, lines []string) int64 {
	a.t.Helper()
	a.teller.Tag, a.teller.Now = "jm", a.now
	pass := a.state.Begin(a.teller)
	defer pass.Abandon()
	a.log = pass.Log("prod", a.file, "")
	for _, line := range lines {
		a.log.Line(offset, []byte(line), a.now)
		a.source.Record(parsers.Origin{Offset: offset}, []byte(line))
		offset += int64(len(line)) + 1
	}
	a.source.Flush()
	if err := pass.End(""); err != nil {
		a.t.Fatal(err)
	}
	return offset
}

// read reads what was written since.
func (a *absenceTest) read() {
	a.t.Helper()
	a.offset = a.chunk(a.offset, a.lines)
	a.lines = nil
}

func (a *absenceTest) tick() {
	a.t.Helper()
	pass := a.state.Begin(a.teller)
	defer pass.Abandon()
	pass.Tick(Tick{At: a.now, Pending: func(tag string) bool {
		if tag != "jm" {
			a.t.Errorf("asked for tag %q", tag)
		}
		return a.pending
	}, Owner: func(string) {}, Exists: func(string) (is, known bool) { return !a.removed, true }})
	if err := pass.End(""); err != nil {
		a.t.Fatal(err)
	}
}

// ticks waits, and ticks each minute.
func (a *absenceTest) ticks(d time.Duration) {
	a.t.Helper()
	for end := a.now.Add(d); a.now.Before(end); {
		a.wait(time.Minute)
		a.tick()
	}
}

func (a *absenceTest) expect(want ...string) {
	a.t.Helper()
	if !slices.Equal(a.told, want) {
		a.t.Errorf("told\n\t%s\nwant\n\t%s", strings.Join(a.told, "\n\t"), strings.Join(want, "\n\t"))
	}
	a.told = nil
}

// other writes a line that is about no job of these tests.
func (a *absenceTest) other() { a.jobState(otherJob, "CREATED", "INITIALIZING") }

// TestAbsence_watermark: a job that hangs is told as soon as a later line of the log is read,
// again after twice the time each, and how long it lasted.
func TestAbsence_watermark(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute) // up to 10:12
	a.wait(11 * time.Minute)
	a.other()
	a.read()
	a.expect()
	a.wait(time.Second)
	a.other()
	a.read()
	a.expect("10:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 12")
	a.other()
	a.read()
	a.expect()
	a.wait(3 * time.Hour)
	a.other()
	a.read()
	a.expect(
		"10:34:00 overdue fef6 after 1320000 ms, repeat 1, every 60000 ms observed, last 12",
		"10:56:00 overdue fef6 after 2640000 ms, repeat 2, every 60000 ms observed, last 12",
		"11:40:00 overdue fef6 after 5280000 ms, repeat 3, every 60000 ms observed, last 12",
	)
	a.checkpoints(1, time.Minute)
	a.read()
	a.expect("13:24:01 recovered fef6 by 13 after 10861000 ms")
	a.checkpoints(1, time.Minute)
	a.read()
	a.expect()
}

// TestAbsence_savepoint: a savepoint is no checkpoint that a job has recovered by.
func TestAbsence_savepoint(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	a.wait(12 * time.Minute)
	a.trigger(hangingJob, 13, "SAVEPOINT")
	a.wait(time.Minute)
	a.complete(hangingJob, 13)
	a.read()
	a.expect("10:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 12")
	a.id = 13
	a.checkpoints(1, time.Minute)
	a.read()
	a.expect("10:26:00 recovered fef6 by 14 after 180000 ms")
}

// TestAbsence_jobEnds: with a job its being overdue ends, by no checkpoint, and another run
// of it begins anew.
func TestAbsence_jobEnds(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	a.wait(12 * time.Minute)
	a.jobState(hangingJob, "RUNNING", "CANCELED")
	a.write(dispatcherClass, "Job %s reached terminal state CANCELED.", hangingJob)
	a.read()
	a.expect("10:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 12", "10:24:00 recovered fef6 by  after 60000 ms")
	a.jobState(hangingJob, "CREATED", "RUNNING")
	a.checkpoints(12, time.Minute)
	a.read()
	a.expect()
}

// TestAbsence_processEnds: a JobManager that is told to end makes no checkpoints, and
// those of its jobs are not overdue any more.
func TestAbsence_processEnds(t *testing.T) {
	for _, text := range []string{
		"RECEIVED SIGNAL 15: SIGTERM. Shutting down as requested.",
		"Shutting StandaloneSessionClusterEntrypoint down with application status UNKNOWN. Diagnostics Cluster entrypoint has been closed externally..",
	} {
		a := newAbsenceTest(t, "UTC")
		a.started(12, time.Minute)
		a.wait(5 * time.Minute)
		a.write("entrypoint.ClusterEntrypoint", "%s", text)
		a.read()
		a.ticks(2 * time.Hour)
		a.expect()
		a.started(12, time.Minute)
		a.wait(12 * time.Minute)
		a.write("entrypoint.ClusterEntrypoint", "%s", text)
		a.other()
		a.read()
		a.expect("12:40:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 24", "12:41:00 recovered fef6 by  after 60000 ms")
	}
}

// TestAbsence_removed: with its log a job is gone. A file that was never there, as one that
// another host has read, is not removed.
func TestAbsence_removed(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	a.read()
	a.ticks(14 * time.Minute)
	a.expect("10:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 12")
	a.removed = true
	a.ticks(3 * time.Minute)
	a.removed = false // it was rotated
	a.tick()
	a.removed = true
	a.ticks(5 * time.Minute)
	a.expect()
	a.ticks(time.Minute)
	a.expect("10:35:00 recovered fef6 by  after 720000 ms")
	a.ticks(3 * time.Hour)
	a.expect()
	// A file that is still written, though its name is gone.
	a.checkpoints(1, time.Minute)
	a.read()
	a.ticks(3 * time.Hour)
	a.expect()

	a = newAbsenceTest(t, "UTC")
	a.removed = true
	a.started(12, time.Minute)
	a.read()
	a.ticks(13 * time.Minute)
	a.expect("10:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 12")
}

// TestAbsence_removedPod: the file also holds a log that watches nothing, the one of no pod.
func TestAbsence_removedPod(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.pod = "jobmanager-0"
	a.started(12, time.Minute)
	a.read()
	a.ticks(14 * time.Minute)
	a.expect("10:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 12")
	a.removed = true
	a.ticks(6 * time.Minute)
	a.expect("10:32:00 recovered fef6 by  after 540000 ms")
}

// TestAbsence_tick: where the log says nothing, ticks tell the same, no more than a minute
// late, and lines that come later do not tell it again.
func TestAbsence_tick(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	a.read()
	a.ticks(12 * time.Minute)
	a.expect()
	a.ticks(time.Minute)
	a.expect("10:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 12")
	a.other()
	a.read()
	a.expect()
	a.ticks(48 * time.Hour)
	a.expect(
		"10:34:00 overdue fef6 after 1320000 ms, repeat 1, every 60000 ms observed, last 12",
		"10:56:00 overdue fef6 after 2640000 ms, repeat 2, every 60000 ms observed, last 12",
		"11:40:00 overdue fef6 after 5280000 ms, repeat 3, every 60000 ms observed, last 12",
	)
}

// TestAbsence_end: an interval so long that a day is over before it can be told.
func TestAbsence_end(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, 5*time.Hour)
	a.read()
	a.ticks(100 * time.Hour)
	a.expect("13:00:00 overdue fef6 after 54000000 ms, repeat 0, every 18000000 ms observed, last 12")
	a.other()
	a.read()
	a.expect()
}

// TestAbsence_readAgain: lines that are read again say nothing new.
func TestAbsence_readAgain(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	lines := slices.Clone(a.lines)
	a.read()
	a.wait(time.Second)
	a.ticks(13 * time.Minute)
	a.expect("10:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 12")
	a.chunk(0, lines)
	a.ticks(2 * time.Minute)
	a.expect()
	a.checkpoints(1, time.Minute)
	a.read()
	a.expect("10:28:01 recovered fef6 by 13 after 301000 ms")
}

// TestAbsence_otherLog: a job that goes on in another log, as that of another JobManager is,
// is not overdue in the first.
func TestAbsence_otherLog(t *testing.T) {
	a := newAbsenceTest(t, "UTC")
	a.started(12, time.Minute)
	a.read()
	first := a.offset
	a.file, a.offset = "/log/jobmanager-2.log", 0
	for range 30 {
		a.checkpoints(1, time.Minute)
		a.read()
		a.tick()
	}
	a.expect()
	a.ticks(13 * time.Minute)
	a.expect("10:53:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 42")
	a.file, a.offset = "/log/jobmanager.log", first
	a.other()
	a.read()
	a.expect()
}

// TestAbsence_nearMisses: what looks like a job that hangs, and is none.
func TestAbsence_nearMisses(t *testing.T) {
	const hang = 40 * time.Minute
	for name, run := range map[string]func(*absenceTest){
		"a backlog is not judged by the clock": func(a *absenceTest) {
			a.started(12, time.Minute)
			a.wait(time.Hour) // until Fluent Bit reads it
			a.read()
			a.ticks(hang)
		},
		"a chunk of the tag is pending": func(a *absenceTest) {
			a.started(12, time.Minute)
			a.read()
			a.pending = true
			a.ticks(hang)
		},
		"lines are missing": func(a *absenceTest) {
			a.started(12, time.Minute)
			a.read()
			a.checkpoints(20, time.Minute)
			backlog := a.lines
			at := a.offset
			for _, line := range backlog {
				at += int64(len(line)) + 1
			}
			a.lines = nil
			a.wait(time.Minute)
			a.other()
			a.chunk(at, a.lines)
			a.lines = nil
			a.chunk(a.offset, backlog)
			a.tick()
		},
		"the job fails over": func(a *absenceTest) {
			a.started(12, time.Minute)
			a.jobState(hangingJob, "RUNNING", "RESTARTING")
			a.read()
			a.ticks(hang)
			a.other()
			a.read()
		},
		"the job has ended": func(a *absenceTest) {
			a.started(12, time.Minute)
			a.jobState(hangingJob, "RUNNING", "FINISHED")
			a.read()
			a.ticks(hang)
		},
		"the JobManager was started anew": func(a *absenceTest) {
			a.started(12, time.Minute)
			a.wait(time.Minute)
			a.process()
			a.other()
			a.read()
			a.ticks(hang)
		},
		"its tasks are not running, as the coordinator says": func(a *absenceTest) {
			a.started(12, time.Minute)
			for range 40 {
				a.wait(time.Minute)
				a.write("checkpoint.CheckpointFailureManager", "Failed to trigger checkpoint for job %s since Checkpoint triggering task Source (1/2) of job %s is not being executed at the moment. Aborting checkpoint. Failure reason: Not all required tasks are currently running..", hangingJob, hangingJob)
				a.read()
				a.tick()
			}
		},
		"its tasks are being restored": func(a *absenceTest) {
			a.started(12, time.Minute)
			graph := strings.Repeat("ab", 16)
			a.write(graphClass, "Created execution graph %s for job %s.", graph, hangingJob)
			for i := range 4 {
				a.wait(10 * time.Minute)
				a.write(graphClass, "Source: orders (1/1) (%s_cbc357ccb763df2852fee8c4fc7d55f2_0_%d) switched from DEPLOYING to INITIALIZING.", graph, i)
				a.read()
				a.tick()
			}
		},
		"it fails, and says so": func(a *absenceTest) {
			a.started(12, time.Minute)
			for range 4 {
				a.id++
				a.trigger(hangingJob, a.id, "CHECKPOINT")
				a.wait(10 * time.Minute)
				a.write(coordinatorClass, "Checkpoint %d of job %s expired before completing.", a.id, hangingJob)
				a.read()
				a.tick()
			}
		},
		"a savepoint is being taken": func(a *absenceTest) {
			a.started(12, time.Minute)
			a.wait(10 * time.Minute)
			a.trigger(hangingJob, 13, "SAVEPOINT")
			a.wait(10 * time.Minute)
			a.complete(hangingJob, 13)
			a.id = 13
			a.read()
			a.tick()
			a.checkpoints(1, time.Minute)
			a.read()
		},
		"the interval is not known": func(a *absenceTest) {
			a.started(3, time.Minute)
			a.read()
			a.ticks(hang)
		},
		"its checkpoints take longer than the default timeout": func(a *absenceTest) {
			a.started(3, time.Minute)
			for range 3 {
				a.id++
				a.trigger(hangingJob, a.id, "CHECKPOINT")
				a.wait(19 * time.Minute)
				a.complete(hangingJob, a.id)
				a.wait(time.Minute)
			}
			a.id++
			a.read()
			a.told = nil // the first was longer than what was known
			a.trigger(hangingJob, a.id, "CHECKPOINT")
			a.wait(18 * time.Minute)
			a.other()
			a.read()
		},
		"configured, but the program does otherwise": func(a *absenceTest) {
			a.property("interval", "10s")
			a.started(2, time.Hour)
			a.read()
			a.ticks(hang)
		},
		"a longer interval during a backlog": func(a *absenceTest) {
			a.property("interval", "1min")
			a.property("interval-during-backlog", "30min")
			a.started(60, time.Minute)
			a.checkpoints(3, 30*time.Minute)
			a.read()
		},
		"none during a backlog": func(a *absenceTest) {
			a.property("interval-during-backlog", "0")
			a.started(60, time.Minute)
			a.read()
			a.ticks(hang)
		},
		"a timeout that is longer since the JobManager's start": func(a *absenceTest) {
			a.started(12, time.Minute)
			a.id++
			a.trigger(hangingJob, a.id, "CHECKPOINT")
			a.wait(10 * time.Minute)
			a.write(coordinatorClass, "Checkpoint %d of job %s expired before completing.", a.id, hangingJob)
			a.process()
			a.property("timeout", "1h")
			a.jobState(hangingJob, "CREATED", "RUNNING")
			a.checkpoints(3, time.Minute)
			a.id++
			a.trigger(hangingJob, a.id, "CHECKPOINT")
			a.wait(59 * time.Minute)
			a.complete(hangingJob, a.id)
			a.read()
		},
		"a checkpoint's completion is logged behind the job's stop": func(a *absenceTest) {
			a.started(12, time.Minute)
			a.id++
			a.trigger(hangingJob, a.id, "CHECKPOINT")
			a.jobState(hangingJob, "RUNNING", "RESTARTING")
			a.complete(hangingJob, a.id)
			a.read()
			a.ticks(hang)
		},
		"it is restored in another container": func(a *absenceTest) {
			a.file = "/var/log/containers/jm-1_ns_main-aaa.log"
			a.started(12, time.Minute)
			a.read()
			a.wait(time.Second)
			a.file, a.offset = "/var/log/containers/jm-1_ns_main-bbb.log", 0
			a.process()
			a.jobState(hangingJob, "CREATED", "RUNNING")
			for range 20 {
				a.wait(time.Minute)
				a.write("checkpoint.CheckpointFailureManager", "Failed to trigger checkpoint for job %s since Checkpoint triggering task Source (1/2) of job %s is not being executed at the moment. Aborting checkpoint. Failure reason: Not all required tasks are currently running..", hangingJob, hangingJob)
				a.read()
				a.tick()
			}
		},
		"configured, but the job makes none": func(a *absenceTest) {
			a.property("interval", "10s")
			a.started(0, time.Hour)
			a.read()
			a.ticks(hang)
		},
		"the file is said to expect none": func(a *absenceTest) {
			a.teller.Expect = func(string, string) Expectation { return Expectation{Off: true} }
			a.started(12, time.Minute)
			a.read()
			a.ticks(hang)
		},
	} {
		a := newAbsenceTest(t, "UTC")
		run(a)
		if len(a.told) > 0 {
			t.Errorf("%s: told\n\t%s", name, strings.Join(a.told, "\n\t"))
		}
		// The same job hangs after all.
		before := len(a.told)
		a.pending = false
		a.teller.Expect = func(string, string) Expectation { return Expectation{Interval: time.Minute, Timeout: 2 * time.Minute} }
		a.jobState(hangingJob, "CREATED", "RUNNING")
		a.read()
		a.ticks(hang)
		if len(a.told) <= before {
			t.Errorf("%s: and would not be told either where it hangs", name)
		}
	}
}

// TestAbsence_intervals: what tells the interval and the timeout.
func TestAbsence_intervals(t *testing.T) {
	property := func(a *absenceTest, key, value string) {
		a.write("x", "Loading configuration property: execution.checkpointing.%s, %s", key, value)
		last := len(a.lines) - 1
		a.lines[last] = strings.Replace(a.lines[last], "flink.runtime.x", "flink.configuration.GlobalConfiguration", 1)
	}
	for name, test := range map[string]struct {
		run  func(*absenceTest)
		want string
	}{
		"configured": {func(a *absenceTest) {
			property(a, "interval", "10 s")
			property(a, "timeout", "30 min")
			a.started(2, 5*time.Second)
		}, "10:30:20 overdue fef6 after 1810000 ms, repeat 0, every 10000 ms configured, last 2"},
		"configured, and the job takes longer": {func(a *absenceTest) {
			property(a, "interval", "10 s")
			a.started(3, 8*time.Minute)
		}, "10:48:00 overdue fef6 after 1440000 ms, repeat 0, every 480000 ms configured, last 3"},
		"configured, and the pause is longer": {func(a *absenceTest) {
			property(a, "interval", "10000")
			property(a, "min-pause", "5min")
			a.started(2, time.Minute)
		}, "10:17:00 overdue fef6 after 900000 ms, repeat 0, every 300000 ms configured, last 2"},
		"observed, though another is configured": {func(a *absenceTest) {
			property(a, "interval", "10 s")
			a.started(11, 2*time.Minute)
		}, "10:34:00 overdue fef6 after 720000 ms, repeat 0, every 120000 ms observed, last 11"},
		"few, where none is configured": {func(a *absenceTest) {
			a.started(4, time.Minute)
		}, "10:15:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 4"},
		"said": {func(a *absenceTest) {
			a.teller.Expect = func(id, name string) Expectation {
				if id == hangingJob && name == "orders" {
					return Expectation{Interval: time.Minute, Timeout: time.Minute}
				}
				return Expectation{}
			}
			a.started(0, time.Minute)
		}, "10:03:00 overdue fef6 after 180000 ms, repeat 0, every 60000 ms file, last "},
		"an expired one tells the timeout": {func(a *absenceTest) {
			a.started(11, time.Minute)
			a.trigger(hangingJob, 12, "CHECKPOINT")
			a.wait(3 * time.Minute)
			a.write(coordinatorClass, "Checkpoint 12 of job %s expired before completing.", hangingJob)
		}, "10:18:00 overdue fef6 after 240000 ms, repeat 0, every 60000 ms observed, last 11"},
		"never within a minute": {func(a *absenceTest) {
			a.started(11, 2*time.Second)
			a.trigger(hangingJob, 12, "CHECKPOINT")
			a.wait(time.Second)
			a.write(coordinatorClass, "Checkpoint 12 of job %s expired before completing.", hangingJob)
		}, "10:01:23 overdue fef6 after 60000 ms, repeat 0, every 2000 ms observed, last 11"},
	} {
		a := newAbsenceTest(t, "UTC")
		test.run(a)
		a.read()
		for range 120 {
			if a.ticks(time.Minute); len(a.told) > 0 {
				break
			}
		}
		if len(a.told) != 1 || a.told[0] != test.want {
			t.Errorf("%s: told %q, want %q", name, a.told, test.want)
		}
	}
}

// TestAbsence_restart: an agent that is started anew goes on where it was.
func TestAbsence_restart(t *testing.T) {
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
	restart := func() {
		if err := a.state.Close(); err != nil {
			t.Fatal(err)
		}
		open()
	}
	open()
	a.started(12, time.Minute)
	a.read()
	restart()
	a.ticks(13 * time.Minute)
	a.expect("10:23:00 overdue fef6 after 660000 ms, repeat 0, every 60000 ms observed, last 12")
	restart()
	a.ticks(5 * time.Minute)
	a.expect()
	restart()
	a.checkpoints(1, time.Minute)
	a.read()
	a.expect("10:31:00 recovered fef6 by 13 after 480000 ms")
}

// TestAbsence_clockChanges: neither the ends of summer time nor a wrong zone make an absence.
func TestAbsence_clockChanges(t *testing.T) {
	for _, start := range []time.Time{
		time.Date(2026, 10, 24, 23, 50, 0, 0, time.UTC), // 01:50, and at 03:00 it is 02:00 again
		time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC),
		time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC), // 01:30, and at 02:00 it is 03:00
	} {
		for _, restarts := range []bool{false, true} {
			a := newAbsenceTest(t, "Europe/Berlin")
			a.now = start
			a.started(0, time.Minute)
			for range 150 {
				a.checkpoints(1, time.Minute)
				a.read()
				a.tick()
				if restarts {
					a.begin()
				}
			}
			a.expect()
			a.wait(time.Hour) // and then it hangs
			a.other()
			a.read()
			if len(a.told) == 0 {
				t.Errorf("%v: a job that hangs is not told", start)
			}
		}
	}
	a := newAbsenceTest(t, "UTC")
	a.loc = time.FixedZone("", 3600) // of the JobManager
	a.started(12, time.Minute)
	a.read()
	a.ticks(time.Hour)
	a.expect()
}

func TestReadDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10s": 10 * time.Second, "10 s": 10 * time.Second, "5 min": 5 * time.Minute, "600000": 10 * time.Minute, "1 Hour": time.Hour,
		"2 d": 48 * time.Hour, "0": 0, "": 0, "ten": 0, "10 parsecs": 0, "-5 s": 0, "9223372036854775807 ms": 0, "99999999999999999999": 0,
	} {
		if got := readDuration(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// TestAbsence_realLogs: no job of the real logs stops to make checkpoints.
func TestAbsence_realLogs(t *testing.T) {
	watched := 0
	for _, s := range scenarios(t) {
		for _, file := range s.files("jobmanager.log") {
			watching := false
			for _, e := range s.enriched(t, file) {
				switch e.Kind {
				case overdueKind, recoveredKind:
					t.Errorf("%s: %s", file, e.AppendLogfmt(nil))
				}
				watching = watching || e.Kind.Name == "checkpoint_completed"
			}
			if watching {
				watched++
			}
		}
	}
	if watched < 20 {
		t.Errorf("only %d logs", watched)
	}
}
