package enrich

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"flink-loki/parsers"
)

// job is a job: job/<cluster>/<job id>. Its checkpoints are facts of their own.
type job struct {
	base
	// Run counts how often the id was given anew, and RunAt is the line that says so last:
	// checkpoint ids then begin anew. In application mode with high availability, Flink up
	// to 1.15 gives every job the same id.
	Run   int `json:",omitempty"`
	RunAt place
	Name  string `json:",omitempty"`
	Named place  // the line that told it
	// Started is the line that says it starts: what it did before there was no line of.
	Started place
	// State is its last state, and Changed the line that says so.
	State   string `json:",omitempty"`
	Changed place
	// Over is the line that says that its run has ended, and Runs are those that say that it
	// is RUNNING, which may be in several logs.
	Over place
	Runs []place `json:",omitempty"`
	// Before is what is left of the checkpoints that were forgotten.
	Before past

	checkpoints []*checkpoint // by id
}

// past is what a job's checkpoints came to at some place.
type past struct {
	At            place // of the last of them that ended
	LastCompleted int64 `json:",omitempty"`
	CompletedAt   place
	Failures      int `json:",omitempty"` // counted ones with a higher id
}

// How a checkpoint ended. Where several lines tell it, the strongest counts.
const (
	pending   = iota
	suspended // by a restart or the end of its job
	failed
	declined
	expired
	completed
)

var endNames = map[int]string{failed: "failed", declined: "declined", expired: "expired"}

// checkpoint is a checkpoint or savepoint of a run of a job:
// checkpoint/<cluster>/<job>/<checkpoint id>.<run>.
type checkpoint struct {
	base
	Cluster, Job string
	JobKey       string // the job's id, and what tells jobs with that id apart
	ID           int64
	Run          int `json:",omitempty"`
	// Triggered is the line that says it was triggered, TriggerTime its own clock's word
	// for it in ms since 1970.
	Triggered   place
	TriggerTime int64  `json:",omitempty"`
	Type        string `json:",omitempty"`
	Savepoint   bool   `json:",omitempty"`
	// End is how it ended, Ended the first line that says so, Expired the one that its
	// timeout wrote, and Counted the first that says it is a failure of checkpointing.
	End     int `json:",omitempty"`
	Ended   place
	Expired place
	Counted place

	story
	job *job
}

// gone lets the job's checkpoints go with it.
func (j *job) gone(s *State) {
	for len(j.checkpoints) > 0 {
		s.drop(j.checkpoints[0].held)
	}
}

func (j *job) size() int        { return 300 + len(j.Name) + 8*len(j.checkpoints) + 60*len(j.Runs) }
func (c *checkpoint) size() int { return 500 + len(c.Type) + c.story.size() }
func (c *checkpoint) added(s *State) {
	c.job = obtain[*job](s, "job", []byte(c.Cluster), []byte(c.JobKey))
	if c.Run == c.job.Run {
		i, _ := c.job.search(c.ID)
		c.job.checkpoints = slices.Insert(c.job.checkpoints, i, c)
	}
	s.follow(c)
}

func (c *checkpoint) gone(s *State) {
	delete(s.stories, c)
	i, ok := c.job.search(c.ID)
	if !ok || c.job.checkpoints[i] != c {
		return
	}
	c.job.checkpoints = slices.Delete(c.job.checkpoints, i, i+1)
	c.job.Before.add(c)
	if h := c.job.held; s.facts[h.key] == h { // else the job is gone before it
		s.touch(c.job)
	}
}

// beginRun begins a new run of a job: what its checkpoints came to is past. Failures that
// some output has yet to be told are told.
func (s *State) beginRun(j *job, p place) {
	old := j.checkpoints
	*j = job{base: j.base, Run: j.Run + 1, RunAt: p, Started: p}
	for _, c := range old {
		if _, isOpen := s.stories[c]; !isOpen {
			s.drop(c.held)
		}
	}
	s.touch(j)
}

// add adds a checkpoint to what is past.
func (b *past) add(c *checkpoint) {
	if c.Savepoint {
		return
	}
	switch {
	case c.End == completed && c.ID > b.LastCompleted:
		b.LastCompleted, b.CompletedAt, b.Failures = c.ID, c.Ended, 0
	case !c.Counted.isZero() && c.ID > b.LastCompleted:
		b.Failures++
	}
	if b.At.before(c.Ended) {
		b.At = c.Ended
	}
}

func (j *job) search(id int64) (int, bool) {
	return slices.BinarySearchFunc(j.checkpoints, id, func(c *checkpoint, id int64) int { return int(c.ID - id) })
}

func (j *job) find(id int64) *checkpoint {
	if i, ok := j.search(id); ok {
		return j.checkpoints[i]
	}
	return nil
}

// maxCheckpoints bounds the checkpoints of a job that are remembered one by one.
const maxCheckpoints = 128

// maxRuns bounds the lines that say that a job is RUNNING, two of each log.
const maxRuns = 32

// zeroID is the job id that Flink gives to jobs in application mode with high
// availability.
var zeroID = []byte("00000000000000000000000000000000")

// jobKey returns the job id of an event, nil for none, and behind one that several jobs
// have what tells them apart: the application, or the log.
func (l *Log) jobKey(e *parsers.Event) []byte {
	id := e.Text(parsers.JobID)
	if !bytes.Equal(id, zeroID) {
		return id
	}
	apart := e.Text(parsers.ApplicationID)
	if apart == nil {
		apart = []byte(l.name)
	}
	return append(append(append(make([]byte, 0, 64), id...), '@'), apart...)
}

// jobOf returns the job that an event is about, nil for none; with add it is made where it
// is not known.
func (l *Log) jobOf(e *parsers.Event, add bool) *job {
	key := l.jobKey(e)
	switch {
	case key == nil:
		return nil
	case add:
		return obtain[*job](l.state, "job", l.cluster, key)
	}
	return find[*job](l.state, "job", l.cluster, key)
}

// checkpointOf returns the checkpoint that an event is about, nil for none; with add it is
// made where it is not known. Those of earlier runs of a job are not known any more.
func (l *Log) checkpointOf(e *parsers.Event, p place, add bool) *checkpoint {
	id, ok := e.Int(parsers.CheckpointID)
	if !ok {
		return nil
	}
	j := l.jobOf(e, add)
	if j == nil || !j.RunAt.isZero() && p.before(j.RunAt) {
		return nil
	}
	if c := j.find(id); c != nil || !add {
		return c
	}
	c := &checkpoint{Cluster: string(l.cluster), Job: text(e, parsers.JobID), JobKey: string(l.jobKey(e)), ID: id, Run: j.Run}
	number := strconv.AppendInt(append(strconv.AppendInt(nil, id, 10), '.'), int64(j.Run), 10)
	l.state.put(string(l.state.joinKey("checkpoint", [][]byte{l.cluster, []byte(c.JobKey), number})), c)
	for i := 0; len(j.checkpoints) > maxCheckpoints; {
		if j.checkpoints[i] == c {
			i++
		}
		l.state.drop(j.checkpoints[i].held)
	}
	return c
}

// jobStarted takes a job's name, and that its log begins.
func (l *Log) jobStarted(e *parsers.Event, p place) {
	j := l.jobOf(e, true)
	if j == nil {
		return
	}
	l.start(j, e, p, slices.Contains(terminal, j.State) && j.Changed.before(p))
	l.state.touch(j)
}

// start takes a line that says that a job starts. It is another job under the same id
// where the one before is over, or had another name.
func (l *Log) start(j *job, e *parsers.Event, p place, isOver bool) {
	isOther := j.Name != "" && e.Has(parsers.JobName) && text(e, parsers.JobName) != j.Name && j.Named.before(p)
	if j.RunAt.before(p) && (isOther || isOver) {
		l.state.beginRun(j, p)
	}
	j.name(e, p)
	if !p.before(j.RunAt) {
		j.Started.earliest(p)
	}
}

func (j *job) name(e *parsers.Event, p place) {
	if e.Has(parsers.JobName) && !p.before(j.RunAt) && (j.Named.isZero() || p.before(j.Named)) {
		keep(&j.Name, e, parsers.JobName)
		j.Named = p
	}
}

// terminal are the states of a job that can be its last.
var terminal = []string{"FINISHED", "CANCELED", "FAILED"}

// isLast reports whether a job's change of state is its last. The adaptive scheduler, from
// Flink 1.13 on, cancels the job's graph whenever it restarts: a CANCELED counts where it is
// no graph's, which has a state before.
func (l *Log) isLast(e *parsers.Event) bool {
	to := text(e, parsers.ToState)
	if to == "CANCELED" && e.Has(parsers.FromState) {
		var major, minor int
		_, err := fmt.Sscanf(l.facts.Version, "%d.%d.", &major, &minor)
		return err == nil && major == 1 && minor < 13
	}
	return slices.Contains(terminal, to)
}

// jobChanged takes a job's change of state. Up to Flink 1.13 no line says what becomes of
// its checkpoints.
func (l *Log) jobChanged(e *parsers.Event, p place) {
	j := l.jobOf(e, true)
	if j == nil {
		return
	}
	to, from := text(e, parsers.ToState), text(e, parsers.FromState)
	if from == "CREATED" || from == "INITIALIZING" {
		l.start(j, e, p, !j.Over.isZero() && j.Over.before(p))
	} else {
		j.name(e, p)
	}
	if !p.before(j.RunAt) && from == "RUNNING" || slices.Contains(terminal, to) {
		for _, c := range j.checkpoints {
			if c.End == pending && !c.Triggered.isZero() && c.Triggered.before(p) {
				c.end(suspended, p)
				l.state.touch(c)
			}
		}
	}
	if j.Changed.notAfter(p) {
		j.State, j.Changed = to, p
	}
	if l.isLast(e) && j.Over.notAfter(p) {
		j.Over = p
	}
	if to == "RUNNING" && !p.before(j.RunAt) {
		j.runs(p)
	}
	l.state.touch(j)
}

// runs notes a line that says that the job is RUNNING: the first and the last of each log.
func (j *job) runs(p place) {
	first, last := -1, -1
	for i, q := range j.Runs {
		if q.Log != p.Log {
			continue
		}
		if first < 0 || q.before(j.Runs[first]) {
			first = i
		}
		if last < 0 || j.Runs[last].before(q) {
			last = i
		}
	}
	switch {
	case first == last: // none, or one
		if first >= 0 && j.Runs[first] == p {
			return
		}
		j.Runs = append(slices.Clone(j.Runs[max(0, len(j.Runs)+1-maxRuns):]), p)
	case p.before(j.Runs[first]):
		j.Runs[first] = p
	case j.Runs[last].before(p):
		j.Runs[last] = p
	}
}

// end notes a line that says how the checkpoint ended.
func (c *checkpoint) end(how int, p place) {
	if how > c.End {
		c.End = how
	}
	c.Ended.earliest(p)
}

// triggered takes that a checkpoint was triggered.
func (l *Log) triggered(e *parsers.Event, p place) {
	j := l.jobOf(e, true)
	id, ok := e.Int(parsers.CheckpointID)
	if j == nil || !ok {
		return
	}
	at, _ := e.Int(parsers.TriggerTime)
	if j.beginsAnew(id, at, p) {
		l.state.beginRun(j, p)
	}
	c := l.checkpointOf(e, p, true)
	if c == nil {
		return
	}
	if c.Triggered.isZero() {
		c.Triggered, c.TriggerTime = p, at
	}
	if keep(&c.Type, e, parsers.CheckpointType) {
		c.Savepoint, _ = e.Bool(parsers.Savepoint)
	}
	l.state.touch(c)
}

// beginsAnew reports whether a job's checkpoint ids begin anew with one that is triggered
// at a place: the job had a higher one before, or the same.
func (j *job) beginsAnew(id, at int64, p place) bool {
	for _, c := range slices.Backward(j.checkpoints) {
		if c.ID < id {
			return false
		}
		if !c.Triggered.isZero() && c.Triggered.before(p) {
			return c.ID > id || c.TriggerTime != at
		}
	}
	return false
}

// ends are the kinds that say how a checkpoint ended.
var ends = map[string]int{
	"checkpoint_completed": completed,
	"checkpoint_expired":   expired,
	"checkpoint_declined":  declined,
	"checkpoint_discarded": failed,
	"checkpoint_failed":    failed,
}

// reasonEnds are what a failure_reason says of the end of a checkpoint that a line only
// calls failed.
var reasonEnds = map[string]int{
	"checkpoint_expired":              expired,
	"checkpoint_coordinator_suspend":  suspended,
	"checkpoint_coordinator_shutdown": suspended,
	"job_failure":                     suspended,
	"job_failover_region":             suspended,
}

// ended takes the end of a checkpoint, and says how it came about: when, after what.
func (l *Log) ended(e *parsers.Event, p place) {
	c := l.checkpointOf(e, p, true)
	if c == nil {
		return
	}
	how := ends[e.Kind.Name]
	if other, ok := reasonEnds[text(e, parsers.FailureReason)]; ok && how == failed {
		how = other
	}
	c.end(how, p)
	if e.Kind.Name == "checkpoint_expired" {
		c.Expired.earliest(p)
	}
	if counted, _ := e.Bool(parsers.Counted); counted {
		c.Counted.earliest(p)
	}
	if c.Triggered.toldBy(p) {
		setMs(e, parsers.SinceTriggerMs, p.msSince(c.Triggered))
		if before := c.job.before(c); before != nil {
			setMs(e, parsers.IntervalMs, c.Triggered.msSince(before.Triggered))
		}
	}
	l.addPast(e, c, p)
	l.tellStory(c, e, how, p)
	l.state.touch(c)
}

// setMs sets a time that has passed. A clock that was set back tells none.
func setMs(e *parsers.Event, f parsers.Field, ms float64) {
	if ms >= 0 {
		e.SetNumber(f, ms)
	}
}

// before returns the checkpoint that was triggered before one, nil where that is not
// certain.
func (j *job) before(c *checkpoint) *checkpoint {
	for id := c.ID - 1; ; id-- {
		switch b := j.find(id); {
		case b == nil || b.Triggered.isZero():
			return nil
		case !b.Savepoint:
			return b
		}
	}
}

// addPast says what was before the end of a checkpoint at a place. Savepoints are apart.
func (l *Log) addPast(e *parsers.Event, c *checkpoint, p place) {
	if c.Savepoint {
		return
	}
	isCompleted := c.End == completed
	past, ok := c.job.pastAt(p, c, isCompleted)
	if !ok {
		return
	}
	hasCompleted := l.isWhole(past.CompletedAt)
	if isCompleted || hasCompleted || past.CompletedAt.isZero() && l.isWhole(c.job.Started) {
		e.SetInt(parsers.FailuresInARow, int64(past.Failures))
	}
	if hasCompleted {
		e.SetInt(parsers.LastCompletedID, past.LastCompleted)
		setMs(e, parsers.SinceLastCompletedMs, p.msSince(past.CompletedAt))
	}
}

// pastAt returns what a job's checkpoints had come to at a place, with the line there; ok
// is false where that is forgotten. Where one completes there, the failures in a row are
// none, and the last completed one is the one before.
func (j *job) pastAt(p place, c *checkpoint, completes bool) (sum past, ok bool) {
	sum = j.Before
	if !sum.At.notAfter(p) {
		return past{}, false
	}
	for _, other := range j.checkpoints { // in the order of their ids
		if !other.Ended.toldBy(p) || completes && other == c {
			continue
		}
		asOf := checkpoint{ID: other.ID, End: other.End, Ended: other.Ended, Savepoint: other.Savepoint}
		if other.Counted.toldBy(p) {
			asOf.Counted = other.Counted
		}
		sum.add(&asOf)
	}
	if completes {
		sum.Failures = 0
	}
	return sum, true
}

// late takes that a task answered a checkpoint after its end, and says which end that was.
func (l *Log) late(e *parsers.Event, p place) {
	c := l.checkpointOf(e, p, false)
	if c == nil {
		return
	}
	switch isOver := c.Ended.toldBy(p); {
	case isOver && c.End == expired:
		fill(e, parsers.After, "expired")
		if c.Expired.toldBy(p) {
			setMs(e, parsers.LateByMs, p.msSince(c.Expired))
		}
	case isOver && (c.End == declined || c.End == failed && !c.Counted.isZero()):
		fill(e, parsers.After, "declined")
	case isOver && c.End == suspended:
		fill(e, parsers.After, "suspended")
	case l.isWhole(c.Triggered):
		fill(e, parsers.After, "unknown")
	}
	l.slowTask(e, p)
	fill(e, parsers.FailureKey, c.failureKey(p))
}

func (l *Log) lateDecline(e *parsers.Event, p place) {
	if c := l.checkpointOf(e, p, false); c != nil {
		fill(e, parsers.FailureKey, c.failureKey(p))
	}
}

// thresholdExceeded says which job it was whose sentence a chunk's end has parted from its
// header, where the log is known from its beginning and only one job is.
func (l *Log) thresholdExceeded(e *parsers.Event, p place) {
	if e.Has(parsers.JobID) || !l.isWhole(l.facts.Began) {
		return
	}
	only := ""
	prefix := string(l.state.joinKey("job", [][]byte{l.cluster, nil}))
	for key, h := range l.state.facts {
		j, ok := h.fact.(*job)
		if !ok || !strings.HasPrefix(key, prefix) || slices.Contains(terminal, j.State) && j.Changed.before(p) {
			continue
		}
		if only != "" || !l.isWhole(j.Started) || !j.Started.before(p) {
			return
		}
		only = strings.TrimPrefix(key, prefix)
	}
	only, _, _ = strings.Cut(only, "@")
	fill(e, parsers.JobID, only)
}

// addCheckpoint adds what is known of the checkpoint and job that an event is about.
func (l *Log) addCheckpoint(e *parsers.Event, p place) {
	j := l.jobOf(e, false)
	if j == nil || p.before(j.RunAt) {
		return
	}
	if j.Named.toldBy(p) {
		fill(e, parsers.JobName, j.Name)
	}
	id, ok := e.Int(parsers.CheckpointID)
	if !ok {
		return
	}
	c := j.find(id)
	if c == nil || !c.Triggered.toldBy(p) {
		return
	}
	if c.Type != "" && !e.Has(parsers.CheckpointType) {
		fill(e, parsers.CheckpointType, c.Type)
		if !e.Has(parsers.Savepoint) {
			e.SetBool(parsers.Savepoint, c.Savepoint)
		}
	}
}

// failureKey names one failure, which Flink tells in several lines; "" where no line
// before a place tells when the checkpoint was triggered, or that it failed.
func (c *checkpoint) failureKey(p place) string {
	if c.TriggerTime == 0 || !c.Triggered.toldBy(p) || !c.Ended.toldBy(p) || c.End == completed {
		return ""
	}
	return c.Cluster + "/" + c.Job + "/" + strconv.FormatInt(c.ID, 10) + "/" + strconv.FormatInt(c.TriggerTime, 10)
}
