package enrich

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"flink-loki/parsers"
)

// watch is what one output watches of a job in a JobManager's log, so that the absence of
// checkpoints is told: watch/<output>/<log>/<cluster>/<job>.
//
// What it tells is computed from the signs, in the order of their places, when no line
// between them is missing, and has the time at which it became true: it is the same
// whether the lines or a tick bring it to light, and in whatever order they were read.
type watch struct {
	base
	Output, Log          string
	File                 string // key of the file that was read last
	Cluster, Job, JobKey string
	// Signs are those that were not taken in yet, in order.
	Signs []sign `json:",omitempty"`
	// Ref is the last one that was: since then time runs. None where lines are missing.
	// Taken is the same, whatever is missing.
	Ref, Taken place
	// Stopped says that the job does not run.
	Stopped bool `json:",omitempty"`
	// Told is how often it was told that checkpoints are overdue since Ref, and Overdue
	// since when they are, in ns since 1970; 0 where the last one is not.
	Told    int   `json:",omitempty"`
	Overdue int64 `json:",omitempty"`

	due int64 // when there can be something to tell; 0 where that must be found out
}

// sign is a line that says how a job's checkpointing goes on.
type sign struct {
	At place
	Is signKind
	ID int64 `json:",omitempty"` // of the checkpoint
}

type signKind int

const (
	signEnded     signKind = iota + 1 // a checkpoint failed
	signCompleted                     // a checkpoint or savepoint completed
	signWaits                         // something that checkpoints wait for: a savepoint, tasks that do not run
	signTask                          // a task changes its state
	signRunning                       // the job runs
	signStopped                       // it does not
	signOver                          // and will not any more, in this process
)

const (
	// maxSigns bounds the signs that wait for lines that are missing.
	maxSigns = 256
	// maxRepeats is how often overdue checkpoints are told again.
	maxRepeats = 3
	// maxOverdue is how long they are at most, and how long a file is at most thought to
	// be there that says nothing.
	maxOverdue = 24 * time.Hour
	// taskBucket is the time within which one change of a task stands for all.
	taskBucket = 10 * time.Second
)

func (w *watch) size() int {
	return 300 + len(w.Output) + len(w.Log) + len(w.File) + len(w.Cluster) + 2*len(w.JobKey) + len(w.Signs)*80
}

func (w *watch) index() string { return w.Output + "\x00" + w.Log }

func (w *watch) added(s *State) { s.watches[w.index()] = append(s.watches[w.index()], w) }
func (w *watch) gone(s *State) {
	left := slices.DeleteFunc(s.watches[w.index()], func(o *watch) bool { return o == w })
	if len(left) == 0 {
		delete(s.watches, w.index())
	} else {
		s.watches[w.index()] = left
	}
}

// watches returns what the output watches in the log.
func (l *Log) watches() []*watch {
	if l.watchIndex == "" {
		l.watchIndex = (&watch{Output: l.teller.ID, Log: l.name}).index()
	}
	return l.state.watches[l.watchIndex]
}

// watchOf returns the watch of the job that an event is about, nil for none.
func (l *Log) watchOf(e *parsers.Event) *watch {
	key := l.jobKey(e)
	if key == nil {
		return nil
	}
	for _, w := range l.watches() {
		if w.JobKey == string(key) && w.Cluster == string(l.cluster) {
			l.state.order.MoveToBack(w.held.el)
			return w
		}
	}
	w := &watch{Output: l.teller.ID, Log: l.name, Cluster: string(l.cluster), Job: text(e, parsers.JobID), JobKey: string(key)}
	l.state.put(string(l.state.joinKey("watch", [][]byte{[]byte(l.teller.ID), []byte(l.name), l.cluster, key})), w)
	return w
}

// bound takes that a process begins or ends to write the log: what ran before does not.
func (l *Log) bound(p place) {
	if !slices.Contains(l.facts.Bounds, p) {
		bounds := append(l.facts.Bounds, p)
		slices.SortFunc(bounds, comparePlaces)
		l.facts.Bounds, l.changed = bounds[max(0, len(bounds)-maxBounds):], true
	}
}

func comparePlaces(a, b place) int {
	switch {
	case a.before(b):
		return -1
	case b.before(a):
		return 1
	}
	return 0
}

// waits are the reasons for which no checkpoint is triggered while the job is not able to
// make one: it says so each time.
var waits = []string{
	"not_all_required_tasks_running", "blocking_output_exist",
	"checkpoint_coordinator_suspend", "checkpoint_coordinator_shutdown", "periodic_scheduler_shutdown",
}

// signOf returns what an event says of its job's checkpoints, 0 for nothing.
func signOf(e *parsers.Event) signKind {
	switch e.Kind.Name {
	case "checkpoint_completed":
		return signCompleted
	case "checkpoint_expired", "checkpoint_declined", "checkpoint_discarded", "checkpoint_failed":
		return signEnded
	case "checkpoint_not_triggered":
		if slices.Contains(waits, string(e.Text(parsers.FailureReason))) {
			return signWaits
		}
	case "checkpoint_triggered":
		if isSavepoint, _ := e.Bool(parsers.Savepoint); isSavepoint {
			return signWaits
		}
	case "task_deploying", "task_state_changed":
		return signTask
	case "job_state_changed":
		switch to := text(e, parsers.ToState); {
		case to == "RUNNING":
			return signRunning
		case slices.Contains(terminal, to):
			return signOver
		}
		return signStopped
	}
	return 0
}

// watch takes what a JobManager's line says of its job's checkpoints, and tells what is
// overdue there.
func (l *Log) watch(e *parsers.Event, p place) {
	if l.teller.ID == Learner || string(e.Text(parsers.Component)) != "jobmanager" {
		return
	}
	if is := signOf(e); is != 0 {
		if w := l.watchOf(e); w != nil {
			id, _ := e.Int(parsers.CheckpointID)
			w.take(sign{p, is, id})
			w.File = l.key
			l.state.touch(w)
		}
	}
	if !l.isReadable() {
		return
	}
	for _, w := range l.watches() {
		if len(w.Signs) > 0 || w.due < l.file.Last.At {
			l.judge(w, l.file.Last)
		}
	}
}

// take takes a sign that is yet to be taken in.
func (w *watch) take(s sign) {
	if !w.Taken.isZero() && !w.Taken.before(s.At) {
		return // a line that is read again
	}
	if s.Is == signTask {
		bucket := s.At.At / int64(taskBucket)
		i := slices.IndexFunc(w.Signs, func(o sign) bool {
			return o.Is == signTask && o.At.Log == s.At.Log && o.At.Gen == s.At.Gen && o.At.At/int64(taskBucket) == bucket
		})
		if i >= 0 {
			if !w.Signs[i].At.before(s.At) {
				return
			}
			w.Signs = slices.Delete(w.Signs, i, i+1)
		}
	}
	i := len(w.Signs)
	for i > 0 && s.At.before(w.Signs[i-1].At) {
		i--
	}
	if i > 0 && w.Signs[i-1].At == s.At {
		return
	}
	w.Signs = slices.Insert(w.Signs, i, s)
	if n := len(w.Signs) - maxSigns; n > 0 {
		w.Taken = w.Signs[n-1].At
		w.Signs = slices.Delete(w.Signs, 0, n)
		w.forget()
	}
}

// forget forgets what was, as lines are missing that would tell.
func (w *watch) forget() { w.Ref, w.Stopped, w.Told, w.Overdue, w.due = place{}, false, 0, 0, 0 }

// isReadable reports whether it can be told of the log that lines are absent.
func (l *Log) isReadable() bool {
	return l.teller.Complete || l.hasOffsets && !l.hasGap() && (l.from == 0 || l.file.hasHead())
}

// judge takes in the signs up to a place, and tells what was overdue until then.
func (l *Log) judge(w *watch, until place) {
	if !l.isReadable() {
		return
	}
	hadSigns, ref, told := len(w.Signs), w.Ref, w.Told
	if !w.Ref.isZero() && !l.isWhole(w.Ref) {
		w.forget()
	}
	for _, bound := range l.facts.Bounds {
		if bound.notAfter(until) && (len(w.Signs) > 0 && w.Signs[0].At.before(bound) || !w.Taken.isZero() && w.Taken.before(bound)) {
			w.take(sign{At: bound, Is: signOver})
		}
	}
	for len(w.Signs) > 0 && w.Signs[0].At.notAfter(until) {
		s := w.Signs[0]
		if w.Signs = slices.Delete(w.Signs, 0, 1); len(w.Signs) == 0 {
			w.Signs = nil
		}
		if w.Taken = s.At; l.isWhole(s.At) {
			l.tellOverdue(w, s.At.At)
			l.takeIn(w, s)
		}
	}
	l.tellOverdue(w, until.At)
	if hadSigns != len(w.Signs) || ref != w.Ref || told != w.Told { // all else changes with them
		l.state.touch(w)
	}
}

// takeIn takes in a sign.
func (l *Log) takeIn(w *watch, s sign) {
	switch s.Is {
	case signCompleted:
		if c := l.jobOfWatch(w).find(s.ID); c == nil || !c.Savepoint {
			l.tellRecovered(w, s.At.At, &s.ID)
		}
		w.Stopped = false
	case signRunning:
		w.Stopped = false
	case signStopped:
		w.Stopped = true
	case signOver:
		l.tellRecovered(w, s.At.At, nil)
		w.Stopped = true
	}
	w.Ref, w.Told, w.due = s.At, 0, 0
}

// jobOfWatch returns the job that is watched, an empty one where it is not known.
func (l *Log) jobOfWatch(w *watch) *job {
	if j := find[*job](l.state, "job", []byte(w.Cluster), []byte(w.JobKey)); j != nil {
		return j
	}
	return &job{}
}

var (
	overdueKind   = parsers.KindByName("checkpoint_overdue")
	recoveredKind = parsers.KindByName("checkpoint_recovered")
)

// tellOverdue tells that checkpoints are overdue, as often as that was so before a time.
func (l *Log) tellOverdue(w *watch, until int64) {
	if w.Ref.isZero() || w.Stopped || until <= w.due {
		return
	}
	j := l.jobOfWatch(w)
	x := l.expected(w, j)
	w.due = math.MaxInt64
	for ; w.Told <= maxRepeats && x.limit > 0 && x.limit<<w.Told <= maxOverdue; w.Told++ {
		at := w.Ref.At + int64(x.limit<<w.Told)
		if at >= until {
			w.due = at
			return
		}
		if j.endedElsewhere(w.Ref, at) {
			return
		}
		if w.Overdue == 0 {
			w.Overdue = at
		}
		l.teller.Emit(l.overdue(w, j, x, at), true)
	}
}

// endedElsewhere reports whether the job's checkpoints go on in another log.
func (j *job) endedElsewhere(since place, until int64) bool {
	return slices.ContainsFunc(j.checkpoints, func(c *checkpoint) bool {
		return c.Ended.Log != since.Log && c.Ended.At > since.At && c.Ended.At < until
	})
}

// made returns an event that is made of a watch.
func (w *watch) made(kind *parsers.Kind, level string, j *job, at int64) *parsers.Event {
	e := kind.Made("jobmanager", level, time.Unix(0, at))
	fill(e, parsers.Cluster, w.Cluster)
	fill(e, parsers.JobID, w.Job)
	fill(e, parsers.JobName, j.Name)
	e.SetInt(parsers.OverdueSince, w.Overdue/int64(time.Millisecond))
	return e
}

// overdue tells that checkpoints are overdue at a time.
func (l *Log) overdue(w *watch, j *job, x expected, at int64) *parsers.Event {
	e := w.made(overdueKind, "WARN", j, at)
	quiet := time.Duration(at - w.Ref.At)
	e.SetNumber(parsers.QuietMs, float64(quiet)/1e6)
	e.SetNumber(parsers.ExpectedIntervalMs, float64(x.interval)/1e6)
	fill(e, parsers.IntervalFrom, x.from)
	e.SetNumber(parsers.TimeoutMs, float64(x.timeout)/1e6)
	e.SetInt(parsers.Repeat, int64(w.Told))
	message := fmt.Sprintf("No checkpoint of job %s has completed or failed for %v, one is expected every %v", cmp.Or(j.Name, w.Job), round(quiet), round(x.interval))

	for _, c := range j.checkpoints {
		if isPending := c.Ended.isZero() || c.Ended.At > at; isPending && !c.Savepoint && !c.Triggered.isZero() && c.Triggered.At < at {
			e.SetInt(parsers.CheckpointID, c.ID)
			if c.TriggerTime > 0 {
				e.SetInt(parsers.TriggerTime, c.TriggerTime)
			}
			setMs(e, parsers.SinceTriggerMs, float64(at-c.Triggered.At)/1e6)
			message += fmt.Sprintf("; checkpoint %d was triggered and has no end", c.ID)
			break
		}
	}
	if past, ok := j.pastAt(w.Ref, nil, false); ok && l.isWhole(past.CompletedAt) {
		e.SetInt(parsers.FailuresInARow, int64(past.Failures))
		e.SetInt(parsers.LastCompletedID, past.LastCompleted)
		setMs(e, parsers.SinceLastCompletedMs, float64(at-past.CompletedAt.At)/1e6)
		message += fmt.Sprintf("; the last that completed is %d", past.LastCompleted)
	}
	fill(e, parsers.Message, message)
	return e
}

// tellRecovered tells that checkpoints are not overdue any more: at a time one completed,
// or, where none is given, the job or its process has ended.
func (l *Log) tellRecovered(w *watch, at int64, completed *int64) {
	if w.Overdue == 0 {
		return
	}
	j := l.jobOfWatch(w)
	name, lasted := cmp.Or(j.Name, w.Job), time.Duration(at-w.Overdue)
	e := w.made(recoveredKind, "INFO", j, at)
	setMs(e, parsers.OverdueMs, float64(lasted)/1e6)
	message := fmt.Sprintf("Job %s has ended", name)
	if completed != nil {
		e.SetInt(parsers.CheckpointID, *completed)
		message = fmt.Sprintf("Checkpoint %d of job %s completed", *completed, name)
	}
	fill(e, parsers.Message, fmt.Sprintf("%s; checkpoints were overdue for %v", message, round(lasted)))
	w.Overdue = 0
	l.teller.Emit(e, true)
}

// round leaves out of a duration what nobody reads.
func round(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}
