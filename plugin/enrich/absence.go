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
	// Signs are those that were not taken in yet, in order, and Taken is the last that was.
	Signs []sign `json:",omitempty"`
	Taken place
	watched

	due      int64 // when there can be something to tell; 0 where that must be found out
	isListed bool  // in the state's watches
}

// watched is what the signs have come to.
type watched struct {
	// Ref is the sign since which time runs, none where lines are missing.
	Ref place
	// Stopped is the line by which the job does not run, none while it does.
	Stopped place `json:"StoppedAt"`
	// Savepoint is the savepoint that is being taken, and Paused how long others have taken
	// since Ref, in ns: the coordinator triggers no checkpoint meanwhile.
	Savepoint sign
	Paused    int64 `json:",omitempty"`
	// Overdue is since when checkpoints are overdue, in ns since 1970; 0 where they are not.
	// Told is how often that was told, and Name by which name of the job.
	Overdue int64  `json:",omitempty"`
	Told    int    `json:",omitempty"`
	Name    string `json:",omitempty"`
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
	signWaits                         // tasks do not run, which checkpoints wait for
	signSavepoint                     // a savepoint is triggered
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
	// MaxOverdue is how long they are at most until it is told, and how long a file is at most
	// thought to be there that says nothing.
	MaxOverdue = 24 * time.Hour
	// askAgain is when it is asked again what is expected, where that is not known.
	askAgain = time.Minute
	// taskBucket is the time within which one change of a task stands for all.
	taskBucket = 10 * time.Second
)

func (w *watch) size() int {
	return 300 + len(w.Output) + len(w.Log) + len(w.File) + len(w.Cluster) + 2*len(w.JobKey) + len(w.Signs)*80
}

// logIndex and jobIndex are what the state finds watches by.
func (w *watch) logIndex() string { return w.Output + "\x00" + w.Log }
func (w *watch) jobIndex() string { return w.Output + "\x00" + w.Cluster + "\x00" + w.JobKey }

func (w *watch) added(s *State) {
	s.watchesOfJob[w.jobIndex()] = append(s.watchesOfJob[w.jobIndex()], w)
	s.list(w)
}

func (w *watch) gone(s *State) {
	remove(s.watchesOfJob, w.jobIndex(), func(o *watch) bool { return o == w })
	remove(s.watches, w.logIndex(), func(o *watch) bool { return o == w })
}

// isIdle reports whether there is nothing to tell before the next sign.
func (w *watch) isIdle() bool {
	return len(w.Signs) == 0 && w.Overdue == 0 && (w.Ref.isZero() || !w.Stopped.isZero())
}

// list lists a watch with those of its log that are judged.
func (s *State) list(w *watch) {
	if !w.isListed && !w.isIdle() {
		s.watches[w.logIndex()] = append(s.watches[w.logIndex()], w)
		w.isListed = true
	}
}

// unlist takes those of a log from the list that are idle: most jobs of a session have ended.
func (s *State) unlist(log string) {
	remove(s.watches, log, func(w *watch) bool {
		w.isListed = !w.isIdle()
		return !w.isListed
	})
}

func remove(from map[string][]*watch, index string, which func(*watch) bool) {
	if from[index] = slices.DeleteFunc(from[index], which); len(from[index]) == 0 {
		delete(from, index)
	}
}

// watches returns what the output watches in the log, and is not idle.
func (l *Log) watches() []*watch {
	if l.watchIndex == "" {
		l.watchIndex = (&watch{Output: l.teller.ID, Log: l.name}).logIndex()
	}
	return l.state.watches[l.watchIndex]
}

// watchOf returns the watch of the job that an event is about, nil for none.
func (l *Log) watchOf(e *parsers.Event) *watch {
	jobKey := l.jobKey(e)
	if jobKey == nil {
		return nil
	}
	parts := [][]byte{[]byte(l.teller.ID), []byte(l.name), l.cluster, jobKey}
	if w := find[*watch](l.state, "watch", parts...); w != nil {
		return w
	}
	w := &watch{Output: l.teller.ID, Log: l.name, Cluster: string(l.cluster), Job: text(e, parsers.JobID), JobKey: string(jobKey)}
	l.state.put(string(l.state.joinKey("watch", parts)), w)
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
func (l *Log) signOf(e *parsers.Event) signKind {
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
			return signSavepoint
		}
	case "task_deploying", "task_state_changed":
		return signTask
	case "job_state_changed":
		switch to := text(e, parsers.ToState); {
		case to == "RUNNING":
			return signRunning
		case l.isLast(e), to == "SUSPENDED": // it may go on in another JobManager
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
	if is := l.signOf(e); is != 0 {
		if w := l.watchOf(e); w != nil {
			id, _ := e.Int(parsers.CheckpointID)
			w.take(sign{p, is, id})
			w.File = l.key
			l.state.touch(w)
			l.state.list(w)
		}
	}
	l.judgeAll(l.file.Last)
}

// judgeAll judges what is watched in the log, up to a place.
func (l *Log) judgeAll(until place) {
	if !l.isReadable() {
		return
	}
	for _, w := range l.watches() {
		if len(w.Signs) > 0 || w.due < until.At {
			l.judge(w, until)
		}
	}
	l.state.unlist(l.watchIndex)
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

// forget forgets what was, as lines are missing that would tell. What was told stays so
// until something ends it.
func (w *watch) forget() {
	w.watched, w.due = watched{Overdue: w.Overdue, Told: w.Told, Name: w.Name}, 0
}

// isReadable reports whether it can be told of the log that lines are absent.
func (l *Log) isReadable() bool {
	return l.teller.Complete || l.hasOffsets && !l.hasGap() && (l.from == 0 || l.file.hasHead())
}

// judge takes in the signs up to a place, and tells what was overdue until then.
func (l *Log) judge(w *watch, until place) {
	if !l.isReadable() {
		return
	}
	hadSigns, was := len(w.Signs), w.watched
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
		w.Taken = s.At
		isWhole := l.isWhole(s.At)
		if isWhole {
			l.tellOverdue(w, s.At.At)
		}
		l.settle(w, s)
		if isWhole {
			l.takeIn(w, s)
		}
	}
	l.tellOverdue(w, until.At)
	if hadSigns != len(w.Signs) || was != w.watched {
		l.state.touch(w)
	}
}

// settle takes that a sign may end what is overdue: in this log, and in those in which the
// job was before.
func (l *Log) settle(w *watch, s sign) {
	var ended *int64 // by a checkpoint that completed
	switch s.Is {
	case signCompleted:
		if c := l.jobOfWatch(w).find(s.ID); c != nil && c.Savepoint || w.Savepoint.ID == s.ID {
			return
		}
		ended = &s.ID
	case signOver:
	default:
		return
	}
	l.tellRecovered(w, s.At.At, ended)
	since := w.Ref
	if since.isZero() {
		since = s.At
	}
	if isGone := s.Is == signOver && !w.Stopped.isZero(); isGone || l.leftAt(l.jobOfWatch(w), since) < s.At.At {
		return // the job is in another log by now
	}
	for _, other := range l.state.watchesOfJob[w.jobIndex()] {
		if other != w && other.Overdue < s.At.At {
			l.tellRecovered(other, s.At.At, ended)
		}
	}
}

// takeIn takes in a sign.
func (l *Log) takeIn(w *watch, s sign) {
	w.due = 0
	switch isEnd := s.Is == signCompleted || s.Is == signEnded; {
	case s.Is == signSavepoint:
		if w.Savepoint = s; !w.Ref.isZero() {
			return
		}
	case isEnd && w.Savepoint.Is != 0 && w.Savepoint.ID == s.ID:
		w.Paused += s.At.At - max(w.Savepoint.At.At, w.Ref.At)
		w.Savepoint = sign{}
		return
	case s.Is == signCompleted:
		// The end of a checkpoint that was triggered before can come behind the job's stop.
		if c := l.jobOfWatch(w).find(s.ID); c != nil && !c.Triggered.isZero() {
			if w.Stopped.before(c.Triggered) {
				w.Stopped = place{}
			}
			if w.Savepoint.At.before(c.Triggered) { // its end was not seen
				w.Savepoint = sign{}
			}
		}
	case s.Is == signRunning:
		w.Stopped, w.Savepoint = place{}, sign{}
	case s.Is == signStopped, s.Is == signOver:
		w.Stopped, w.Savepoint = s.At, sign{}
	}
	if w.Ref, w.Paused = s.At, 0; w.Overdue == 0 {
		w.Told = 0
	}
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
	if w.Ref.isZero() || !w.Stopped.isZero() || until <= w.due {
		return
	}
	j := l.jobOfWatch(w)
	x := l.expected(w, j)
	if x.limit == 0 { // which may be known later
		w.due = until + int64(askAgain)
		return
	}
	w.due = math.MaxInt64
	left := l.leftAt(j, w.Ref)
	paused := w.Paused
	if w.Savepoint.Is != 0 { // it may hang as well
		paused += int64(x.limit)
	}
	for ; w.Told <= maxRepeats && x.limit<<w.Told <= MaxOverdue; w.Told++ {
		at := w.Ref.At + paused + int64(x.limit<<w.Told)
		if at > left {
			break
		}
		if at >= until {
			w.due = at
			return
		}
		if w.Overdue == 0 {
			w.Overdue, w.Name = at, j.Name
		}
		l.teller.Emit(l.overdue(w, j, x, at), true)
	}
	if w.Overdue != 0 {
		l.settleElsewhere(w, j)
	}
}

// isOther reports whether a line stands in another log than one before it, which may be in
// another file of the same log.
func (s *State) isOther(p, before place) bool {
	if p.isZero() || p.Log == before.Log || p.At <= before.At {
		return false
	}
	name, isKnown := s.logOf[p.Log]
	return !isKnown || name != s.logOf[before.Log]
}

// leftAt returns when a job was first seen in another log than that of a place, behind it; the
// end of time where it was not.
func (l *Log) leftAt(j *job, since place) int64 {
	left := int64(math.MaxInt64)
	see := func(p place) {
		if l.state.isOther(p, since) {
			left = min(left, p.At)
		}
	}
	for _, p := range j.Runs {
		see(p)
	}
	for _, c := range j.checkpoints {
		see(c.Triggered)
		if c.End == completed { // other ends may be told by a JobManager that gives the job up
			see(c.Ended)
		}
	}
	return left
}

// settleElsewhere tells that what is overdue in a log has ended in another, by lines that were
// read before.
func (l *Log) settleElsewhere(w *watch, j *job) {
	end := place{At: math.MaxInt64}
	var ended *int64
	for _, c := range j.checkpoints {
		if c.End == completed && !c.Savepoint && c.Ended.At > w.Overdue && c.Ended.At < end.At && l.state.isOther(c.Ended, w.Ref) {
			end, ended = c.Ended, &c.ID
		}
	}
	if j.Over.At > w.Overdue && j.Over.At < end.At && l.state.isOther(j.Over, w.Ref) {
		end, ended = j.Over, nil
	}
	if end.Log != 0 {
		l.tellRecovered(w, end.At, ended)
	}
}

// made returns an event that is made of a watch.
func (w *watch) made(kind *parsers.Kind, level string, at int64) *parsers.Event {
	e := kind.Made("jobmanager", level, time.Unix(0, at))
	fill(e, parsers.Cluster, w.Cluster)
	fill(e, parsers.JobID, w.Job)
	fill(e, parsers.JobName, w.Name)
	e.SetInt(parsers.OverdueSince, w.Overdue/int64(time.Millisecond))
	return e
}

// overdue tells that checkpoints are overdue at a time.
func (l *Log) overdue(w *watch, j *job, x expected, at int64) *parsers.Event {
	e := w.made(overdueKind, "WARN", at)
	quiet := time.Duration(at - w.Ref.At)
	e.SetNumber(parsers.QuietMs, float64(quiet)/1e6)
	e.SetNumber(parsers.ExpectedIntervalMs, float64(x.interval)/1e6)
	fill(e, parsers.IntervalFrom, x.from)
	e.SetNumber(parsers.TimeoutMs, float64(x.timeout)/1e6)
	e.SetInt(parsers.Repeat, int64(w.Told))
	message := fmt.Sprintf("No checkpoint of job %s has completed or failed for %v, one is expected every %v", cmp.Or(w.Name, w.Job), round(quiet), round(x.interval))

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
	name, lasted := cmp.Or(w.Name, w.Job), time.Duration(max(0, at-w.Overdue)) // clocks are set
	e := w.made(recoveredKind, "INFO", at)
	setMs(e, parsers.OverdueMs, float64(lasted)/1e6)
	message := fmt.Sprintf("Job %s has ended", name)
	if completed != nil {
		e.SetInt(parsers.CheckpointID, *completed)
		message = fmt.Sprintf("Checkpoint %d of job %s completed", *completed, name)
	}
	fill(e, parsers.Message, fmt.Sprintf("%s; checkpoints were overdue for %v", message, round(lasted)))
	w.Overdue, w.Told, w.Name = 0, 0, ""
	l.state.touch(w)
	l.teller.Emit(e, true)
}

// round leaves out of a duration what nobody reads.
func round(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}
