package enrich

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"flink-loki/parsers"
)

// story is what is known of a checkpoint's failure, until it is told.
type story struct {
	JobName       string `json:",omitempty"`
	Reason        string `json:",omitempty"`
	FailureReason string `json:",omitempty"`
	Exception     string `json:",omitempty"`
	RootCause     string `json:",omitempty"`
	// Decliner is the task that declined the checkpoint, and Tasks are those that were slow,
	// by attempt or, where a line does not name it, by task.
	Decliner *slowTask           `json:",omitempty"`
	Tasks    map[string]slowTask `json:",omitempty"`
	// Of statistics.
	Incomplete             string `json:",omitempty"`
	Subtasks, Acknowledged int    `json:",omitempty"`
	// Past is what the job's checkpoints had come to, as far as that is certain.
	Past storyPast
	// Told says which outputs have read of the failure, and whether they were told.
	Told map[string]bool `json:",omitempty"`
}

// storyPast is what the line that told a failure first said of the time before.
type storyPast struct {
	HasFailures, HasCompleted bool    `json:",omitempty"`
	Failures, Completed       int64   `json:",omitempty"`
	SinceCompleted            float64 // negative where it is not known
}

// slowTask is a task that names itself in a failure.
type slowTask struct {
	Task        string `json:",omitempty"`
	Subtask     int64
	Parallelism int64
	Attempt     string  `json:",omitempty"`
	Host        string  `json:",omitempty"`
	TM          string  `json:",omitempty"`
	LateBy      float64 `json:",omitempty"` // ms
	Leg         string  `json:",omitempty"`
}

// The legs: which lines named the slow task.
const (
	legDecline    = "decline"
	legLate       = "late_message"
	legAsync      = "async_failure"
	legOvertaken  = "overtaken_barrier"
	legStatistics = "statistics"
)

// legs are what the kinds of events name a slow task by, and in this order they count.
var legs = map[string]string{
	"checkpoint_late_message": legLate,
	"snapshot_async_failed":   legAsync,
	"barrier_overtaken":       legOvertaken,
}

var legOrder = []string{legLate, legAsync, legOvertaken}

const (
	// maxSlowTasks bounds the tasks of one failure that are remembered.
	maxSlowTasks = 1000
	// maxListed bounds those that a summary lists.
	maxListed = 10
	// storyTime is when a story is over at the latest, on the log's clock.
	storyTime = time.Minute
)

func (s *story) size() int {
	n := len(s.Reason) + len(s.Exception) + len(s.RootCause) + len(s.Incomplete)
	for key, t := range s.Tasks {
		n += 200 + len(key) + len(t.Task) + len(t.Attempt) + len(t.Host) + len(t.TM)
	}
	return n
}

// tellStory takes what a line tells of a checkpoint's failure.
func (l *Log) tellStory(c *checkpoint, e *parsers.Event, how int, p place) {
	fill(e, parsers.FailureKey, c.failureKey(p))
	if c.Counted.isZero() {
		return
	}
	keep(&c.JobName, e, parsers.JobName)
	if c.JobName == "" {
		c.JobName = c.job.Name
	}
	if c.Counted == p {
		s := &c.Past
		s.Failures, s.HasFailures = e.Int(parsers.FailuresInARow)
		s.Completed, s.HasCompleted = e.Int(parsers.LastCompletedID)
		if s.SinceCompleted = -1; e.Has(parsers.SinceLastCompletedMs) {
			s.SinceCompleted, _ = e.Number(parsers.SinceLastCompletedMs)
		}
	}
	if how == declined && (e.Has(parsers.TaskName) || e.Has(parsers.TaskAttemptID)) && c.Decliner == nil {
		t := l.taskOf(e)
		t.Leg = legDecline
		c.Decliner = &t
	}
	if c.Reason == "" || how == c.End && e.Has(parsers.Reason) {
		keep(&c.Reason, e, parsers.Reason)
		keep(&c.FailureReason, e, parsers.FailureReason)
		keep(&c.Exception, e, parsers.ExceptionClass)
		keep(&c.RootCause, e, parsers.RootCauseClass)
	}
	if _, seen := c.Told[l.teller.ID]; !seen {
		if c.Told == nil {
			c.Told = map[string]bool{}
		}
		c.Told[l.teller.ID] = false
		l.state.follow(c)
	}
}

// isUntold reports whether an output has yet to be told of the checkpoint's failure.
func (c *checkpoint) isUntold(output string) bool {
	told, seen := c.Told[output]
	return seen && !told
}

// follow follows a checkpoint whose failure an output has yet to be told.
func (s *State) follow(c *checkpoint) {
	for _, told := range c.Told {
		if !told {
			s.stories[c] = struct{}{}
			return
		}
	}
	delete(s.stories, c)
}

func (l *Log) taskOf(e *parsers.Event) slowTask {
	t := slowTask{Task: text(e, parsers.TaskName), Attempt: text(e, parsers.TaskAttemptID), Host: text(e, parsers.Host), TM: text(e, parsers.TMID), Subtask: -1, Parallelism: -1}
	if v, ok := e.Int(parsers.SubtaskIndex); ok {
		t.Subtask = v
	}
	if v, ok := e.Int(parsers.Parallelism); ok {
		t.Parallelism = v
	}
	return t
}

// String names a task as Flink does.
func (t *slowTask) String() string {
	name := t.Task
	if name == "" {
		name = "attempt " + t.Attempt
	}
	if t.Parallelism > 0 {
		name += fmt.Sprintf(" (%d/%d)", t.Subtask+1, t.Parallelism)
	}
	if t.Host != "" {
		name += " on " + t.Host
	}
	if t.LateBy > 0 {
		name += fmt.Sprintf(" +%.0f ms", t.LateBy)
	}
	return name
}

// slowTask takes that a line names a task that was slow.
func (l *Log) slowTask(e *parsers.Event, p place) {
	c := l.checkpointOf(e, p, false)
	if c == nil || !e.Has(parsers.TaskName) && !e.Has(parsers.TaskAttemptID) || len(c.Tasks) == maxSlowTasks {
		return
	}
	t := l.taskOf(e)
	t.Leg = legs[e.Kind.Name]
	t.LateBy, _ = e.Number(parsers.LateByMs)
	key := t.Task + "#" + fmt.Sprint(t.Subtask)
	if t.Task == "" {
		key = t.Attempt
	}
	if old, ok := c.Tasks[key]; ok && slices.Index(legOrder, old.Leg) <= slices.Index(legOrder, t.Leg) {
		return
	}
	if c.Tasks == nil {
		c.Tasks = map[string]slowTask{}
	}
	c.Tasks[key] = t
	l.state.touch(c)
}

// statistics takes which vertices had not acknowledged a checkpoint, and says their names.
func (l *Log) statistics(e *parsers.Event, p place) {
	c := l.checkpointOf(e, p, false)
	l.nameVertices(e, parsers.IncompleteVertices, p)
	l.nameVertices(e, parsers.Vertices, p)
	if c == nil || text(e, parsers.Status) != "FAILED" {
		return
	}
	keep(&c.Incomplete, e, parsers.IncompleteVertices)
	keepInt(&c.Subtasks, e, parsers.Subtasks)
	keepInt(&c.Acknowledged, e, parsers.AcknowledgedSubtasks)
	fill(e, parsers.FailureKey, c.failureKey(p))
	l.state.touch(c)
}

// tell makes the summaries that are due at a place.
func (l *Log) tell(e *parsers.Event, p place) {
	if len(l.state.stories) == 0 {
		return
	}
	var over []*checkpoint
	j := l.jobOf(e, false)
	for c := range l.state.stories {
		// The job may have gone on in another log.
		isOurs := c.Counted.Log == l.id || c.job == j || c.Run != c.job.Run
		if c.isUntold(l.teller.ID) && isOurs && l.isOver(c, p) {
			over = append(over, c)
		}
	}
	l.tellAll(over, time.Unix(0, p.At))
}

// isOver reports whether nothing more is to be expected of a failure's story.
func (l *Log) isOver(c *checkpoint, p place) bool {
	age := time.Duration(p.At - c.Counted.At)
	switch missing := c.Subtasks - c.Acknowledged; {
	case c.Run != c.job.Run:
		return true
	case l.hasGap():
		return age > patience
	case age >= storyTime, l.isTerminal(c.job, p):
		return true
	case c.Subtasks > 0 && c.lateTasks() >= missing:
		return true
	}
	return c.job.completedAfter(c, p)
}

func (l *Log) isTerminal(j *job, p place) bool {
	return slices.Contains(terminal, j.State) && j.Changed.notAfter(p)
}

// completedAfter reports whether a later checkpoint completed: then all tasks have
// answered the one before.
func (j *job) completedAfter(c *checkpoint, p place) bool {
	if j.Before.LastCompleted > c.ID {
		return true
	}
	i, _ := j.search(c.ID + 1)
	return slices.ContainsFunc(j.checkpoints[i:], func(o *checkpoint) bool { return o.End == completed && o.Ended.notAfter(p) })
}

func (s *story) lateTasks() (n int) {
	for _, t := range s.Tasks {
		if t.Leg == legLate {
			n++
		}
	}
	return n
}

// Finish makes all events that an output has yet to be told: no more lines come.
func (p *Pass) Finish() {
	var over []*checkpoint
	for c := range p.state.stories {
		if c.isUntold(p.teller.ID) {
			over = append(over, c)
		}
	}
	p.tellAll(over, time.Time{})
	p.finishWatches()
	for _, f := range ownFacts[*logFile](p, "log") {
		p.sumStalls(f, place{}, true, false)
		p.state.touch(f)
	}
}

// tellAll makes the summaries of failures, at a time on the log's clock; the zero time is
// when each failed.
func (p *Pass) tellAll(over []*checkpoint, at time.Time) {
	slices.SortFunc(over, func(a, b *checkpoint) int {
		return cmp.Or(cmp.Compare(a.Counted.At, b.Counted.At), cmp.Compare(a.Job, b.Job), cmp.Compare(a.ID, b.ID))
	})
	for _, c := range over {
		c.Told[p.teller.ID] = true
		p.state.follow(c)
		p.teller.Emit(p.summary(c, at), true)
		if _, open := p.state.stories[c]; !open {
			c.Tasks, c.Decliner = nil, nil
		}
		p.state.touch(c)
	}
}

// latest is behind all lines.
var latest = place{At: math.MaxInt64}

var summaryKind = parsers.KindByName("checkpoint_failure_summary")

// summary tells a checkpoint's failure in one event.
func (p *Pass) summary(c *checkpoint, at time.Time) *parsers.Event {
	if at.IsZero() {
		at = time.Unix(0, c.Counted.At)
	}
	e := summaryKind.Made("jobmanager", "WARN", at)
	hasTime := c.Counted.At != 0 // a log may have none
	if !hasTime {
		e.Drop(parsers.Time)
	}
	fill(e, parsers.Cluster, c.Cluster)
	fill(e, parsers.JobID, c.Job)
	fill(e, parsers.JobName, c.JobName)
	e.SetInt(parsers.CheckpointID, c.ID)
	if c.Type != "" {
		fill(e, parsers.CheckpointType, c.Type)
		e.SetBool(parsers.Savepoint, c.Savepoint)
	}
	if c.TriggerTime != 0 {
		e.SetInt(parsers.TriggerTime, c.TriggerTime)
	}
	if hasTime {
		e.SetInt(parsers.FailureTime, c.Counted.At/int64(time.Millisecond))
	}
	fill(e, parsers.FailureKey, c.failureKey(latest))
	cause := cmp.Or(endNames[c.End], "failed")
	fill(e, parsers.FailureCause, cause)
	fill(e, parsers.FailureReason, c.FailureReason)
	e.SetBool(parsers.Counted, true)
	fill(e, parsers.ExceptionClass, c.Exception)
	fill(e, parsers.RootCauseClass, c.RootCause)
	fill(e, parsers.Reason, c.Reason)
	message := fmt.Sprintf("Checkpoint %d of job %s %s", c.ID, cmp.Or(c.JobName, c.Job), cause)

	if c.Past.HasFailures {
		e.SetInt(parsers.FailuresInARow, c.Past.Failures)
		if c.Past.Failures > 1 {
			message += fmt.Sprintf(", %d in a row", c.Past.Failures)
		}
	}
	if c.Past.HasCompleted {
		e.SetInt(parsers.LastCompletedID, c.Past.Completed)
		setMs(e, parsers.SinceLastCompletedMs, c.Past.SinceCompleted)
	}
	if !c.Triggered.isZero() {
		setMs(e, parsers.SinceTriggerMs, c.Counted.msSince(c.Triggered))
	}
	if c.Subtasks > 0 {
		e.SetInt(parsers.Subtasks, int64(c.Subtasks))
		e.SetInt(parsers.AcknowledgedSubtasks, int64(c.Acknowledged))
		fill(e, parsers.IncompleteVertices, c.Incomplete)
	}
	leg, tasks := c.named()
	switch {
	case len(tasks) > 0:
		t := &tasks[0]
		fill(e, parsers.TaskName, t.Task)
		fillInt(e, parsers.SubtaskIndex, int(t.Subtask))
		fillInt(e, parsers.Parallelism, int(t.Parallelism))
		fill(e, parsers.TaskAttemptID, t.Attempt)
		fill(e, parsers.TMID, t.TM)
		fill(e, parsers.Host, t.Host)
		if t.LateBy > 0 {
			e.SetNumber(parsers.LateByMs, t.LateBy)
		}
		if n := c.lateTasks(); n > 0 {
			e.SetInt(parsers.LateTasks, int64(n))
		}
		var names []string
		for i := range tasks[:min(len(tasks), maxListed)] {
			names = append(names, tasks[i].String())
		}
		list := strings.Join(names, "; ")
		if len(tasks) > maxListed {
			list += fmt.Sprintf("; and %d more", len(tasks)-maxListed)
		}
		fill(e, parsers.SlowTasks, list)
		message += ": " + list
	case c.Incomplete != "":
		leg = legStatistics
		message += ": not acknowledged by all of " + c.Incomplete
	}
	fill(e, parsers.NamedBy, leg)
	fill(e, parsers.Message, message)
	return e
}

// named returns the tasks that the best leg names, the slowest first.
func (s *story) named() (leg string, tasks []slowTask) {
	if s.Decliner != nil {
		return legDecline, []slowTask{*s.Decliner}
	}
	for _, leg := range legOrder {
		for _, t := range s.Tasks {
			if t.Leg == leg {
				tasks = append(tasks, t)
			}
		}
		if len(tasks) > 0 {
			slices.SortFunc(tasks, func(a, b slowTask) int {
				return cmp.Or(cmp.Compare(b.LateBy, a.LateBy), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Subtask, b.Subtask))
			})
			return leg, tasks
		}
	}
	return "", nil
}
