package enrich

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"flink-loki/parsers"
)

// Expectation is what somebody says of a job's checkpoints.
type Expectation struct {
	Interval, Timeout time.Duration // 0 where not said
	// Off says that none are expected.
	Off bool
}

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
	// live is how late a line may be read of a file that is read as it is written.
	live = time.Minute
	// minLimit is the shortest time that is worth telling.
	minLimit = time.Minute
	// defaultTimeout is Flink's own.
	defaultTimeout = 10 * time.Minute
	// manyGaps are so many times between checkpoints that they tell the interval, whatever
	// is configured; with fewGaps they do where nothing is.
	manyGaps, fewGaps = 10, 3
	// maxSkew is by how much a log's clock may differ from the JobManager's own; zones do by
	// a quarter of an hour at least.
	maxSkew = 10 * time.Minute
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

// expected is what is expected of a job's checkpoints.
type expected struct {
	interval, timeout, limit time.Duration
	from                     string // what tells the interval
}

// expected returns what is expected after a watch's last sign, by the lines up to it; no
// limit where that is not known.
func (l *Log) expected(w *watch, j *job) (x expected) {
	if j.held == nil || !j.RunAt.isZero() && w.Ref.before(j.RunAt) {
		return x
	}
	var said Expectation
	if l.teller.Expect != nil {
		said = l.teller.Expect(w.Job, j.Name)
	}
	seen := j.observe(w.Ref)
	if said.Off || seen.isSkewed {
		return x
	}

	property := func(name string) time.Duration {
		return readDuration(l.facts.Properties["execution.checkpointing."+name])
	}
	switch configured := property("interval"); {
	case said.Interval > 0:
		x.interval, x.from = said.Interval, "file"
	case seen.gaps >= manyGaps, seen.gaps >= fewGaps && configured == 0:
		x.interval, x.from = seen.median, "observed"
	case configured > 0 && seen.gaps > 0:
		// The job's own program may say otherwise, and batch jobs make none.
		x.interval, x.from = max(configured, property("min-pause"), property("interval-during-backlog"), seen.median), "configured"
	default:
		return x
	}
	switch timeout := property("timeout"); {
	case said.Timeout > 0:
		x.timeout = said.Timeout
	case seen.expiry > 0:
		x.timeout = max(seen.expiry, seen.longest)
	default:
		x.timeout = max(cmp.Or(timeout, defaultTimeout), seen.longest)
	}
	if x.interval > maxOverdue || x.timeout > maxOverdue {
		return expected{}
	}
	x.limit = max(3*x.interval, x.timeout+x.interval, minLimit)
	return x
}

// observed is what a job's checkpoints have shown.
type observed struct {
	gaps     int           // between the triggers of completed ones
	median   time.Duration // of the last of them
	longest  time.Duration // that one took to complete
	expiry   time.Duration // after which the last one expired
	isSkewed bool          // the log's clock is not the JobManager's own
}

// observe returns what a job's checkpoints have shown up to a place.
func (j *job) observe(p place) (o observed) {
	var gaps []time.Duration
	var last int64
	var newest *checkpoint
	for _, c := range j.checkpoints { // in the order of their ids
		if !c.Triggered.toldBy(p) {
			continue
		}
		if newest == nil || newest.Triggered.before(c.Triggered) {
			newest = c
		}
		if c.Savepoint || !c.Ended.toldBy(p) {
			continue
		}
		at := c.Triggered.At
		if c.TriggerTime > 0 {
			at = c.TriggerTime * int64(time.Millisecond)
		}
		switch took := time.Duration(c.Ended.At - at); c.End {
		case completed:
			o.longest = max(o.longest, took)
			if last > 0 && at > last {
				gaps = append(gaps, time.Duration(at-last))
			}
			last = at
		case expired:
			o.expiry = took
		}
	}
	if newest != nil && newest.TriggerTime > 0 {
		skew := time.Duration(newest.Triggered.At - newest.TriggerTime*int64(time.Millisecond))
		o.isSkewed = skew.Abs() > maxSkew
	}
	if o.gaps = len(gaps); o.gaps > 0 {
		gaps = gaps[max(0, o.gaps-manyGaps):]
		slices.Sort(gaps)
		o.median = gaps[len(gaps)/2]
	}
	return o
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

// readDuration reads a duration as Flink's configuration has it
// (org.apache.flink.util.TimeUtils): a number and a unit, milliseconds without one. 0 is
// what can't be read.
func readDuration(text string) time.Duration {
	text = strings.ToLower(strings.TrimSpace(text))
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	unit, ok := durationUnits[strings.TrimSpace(text[digits:])]
	if err != nil || !ok || n > int64(math.MaxInt64/unit) {
		return 0
	}
	return time.Duration(n) * unit
}

var durationUnits = func() map[string]time.Duration {
	units := map[string]time.Duration{}
	for unit, names := range map[time.Duration]string{
		24 * time.Hour:   "d day days",
		time.Hour:        "h hour hours",
		time.Minute:      "min m minute minutes",
		time.Second:      "s sec secs second seconds",
		time.Millisecond: "ms milli millis millisecond milliseconds",
		time.Microsecond: "µs micro micros microsecond microseconds",
		time.Nanosecond:  "ns nano nanos nanosecond nanoseconds",
	} {
		for name := range strings.FieldsSeq(names) {
			units[name] = unit
		}
	}
	units[""] = time.Millisecond
	return units
}()

// Tick is a tick of the agent's clock.
type Tick struct {
	At time.Time
	// Pending reports whether chunks of a tag are known that are not delivered.
	Pending func(tag string) bool
	// Owner is told whose file the events are made of that come next.
	Owner func(owner string)
	// Exists reports whether there is a file of a name.
	Exists func(file string) bool
}

// Tick tells what has become true by the passing of time, of files that are read as they
// are written, or that say nothing: a backlog tells it itself.
func (p *Pass) Tick(t Tick) {
	logs := p.logsByFile()
	for _, f := range ownFacts[*readFile](p, "file") {
		key := strings.TrimPrefix(f.held.key, p.ownPrefix("file"))
		silent := t.At.Sub(time.Unix(0, f.ReadOn))
		if f.ReadOn == 0 || silent >= maxOverdue || t.Pending(f.Tag) {
			continue
		}
		t.Owner(f.Owner)
		isLive, isRemoved := f.isLive(), p.isRemoved(f, key, t.Exists)
		at := place{Log: hashName(key), Gen: f.Gen, Pos: math.MaxInt64, At: t.At.Add(-live).UnixNano()}
		p.tickStories(f, at, t.At, silent)
		for _, l := range logs[key] {
			switch {
			case isLive:
				l.changed = p.sumStalls(l.facts, at, false, l.hasGap()) || l.changed
			case silent >= storyTime:
				l.changed = p.sumStalls(l.facts, place{}, true, false) || l.changed
			}
			for _, w := range slices.Clone(l.watches()) {
				switch {
				case w.File != key:
				case isRemoved:
					l.abandon(w, t.At)
				case isLive:
					l.judge(w, at)
				}
			}
			if l.changed {
				p.state.touch(l.facts)
			}
		}
	}
}

// isRemoved reports whether the file that a key names was there at an earlier tick and is
// not any more.
func (p *Pass) isRemoved(f *readFile, key string, exists func(file string) bool) bool {
	name, _, _ := strings.Cut(key, "\x00")
	isThere := exists(name)
	if isThere && !f.Seen {
		f.Seen = true
		p.state.touch(f)
	}
	return f.Seen && !isThere
}

// abandon ends the watch of a job whose log is removed.
func (l *Log) abandon(w *watch, at time.Time) {
	if !w.Stopped {
		l.tellRecovered(w, at.UnixNano(), nil)
		w.Stopped = true
		l.state.touch(w)
	}
}

// isLive reports whether the file is read as it is written, as far as its last event tells.
func (f *readFile) isLive() bool { return time.Duration(f.Lag).Abs() <= live }

func (p *Pass) ownPrefix(kind string) string {
	return string(p.state.joinKey(kind, [][]byte{[]byte(p.teller.ID), nil}))
}

// ownFacts returns the facts of a kind that are the output's own, in the order of their keys.
func ownFacts[F fact](p *Pass, kind string) (own []F) {
	prefix := p.ownPrefix(kind)
	for key, h := range p.state.facts {
		if f, ok := h.fact.(F); ok && strings.HasPrefix(key, prefix) {
			own = append(own, f)
		}
	}
	slices.SortFunc(own, func(a, b F) int { return cmp.Compare((*a.where()).key, (*b.where()).key) })
	return own
}

// logsByFile returns the output's logs, by the keys of the files that hold them.
func (p *Pass) logsByFile() map[string][]*Log {
	prefix := p.ownPrefix("log")
	logs := map[string][]*Log{}
	for _, l := range ownFacts[*logFile](p, "log") {
		file := l.File
		if p.state.facts[p.ownPrefix("file")+file] == nil {
			continue
		}
		r := p.read(file)
		r.resume()
		logs[file] = append(logs[file], p.newLog(r, strings.TrimPrefix(l.held.key, prefix), ""))
	}
	return logs
}

// tickStories tells the failures of a file that nothing more is to be expected of.
func (p *Pass) tickStories(f *readFile, at place, now time.Time, silent time.Duration) {
	wait := storyTime
	if f.hasGap() {
		wait = patience
	}
	isLive := f.isLive()
	var over []*checkpoint
	for c := range p.state.stories {
		if !c.isUntold(p.teller.ID) || c.Counted.Log != at.Log {
			continue
		}
		if isLive && now.Sub(time.Unix(0, c.Counted.At)) >= wait || silent >= wait {
			over = append(over, c)
		}
	}
	p.tellAll(over, now)
}

// finishWatches tells what was overdue up to the last lines.
func (p *Pass) finishWatches() {
	logs := p.logsByFile()
	for _, f := range ownFacts[*readFile](p, "file") {
		key := strings.TrimPrefix(f.held.key, p.ownPrefix("file"))
		for _, l := range logs[key] {
			for _, w := range slices.Clone(l.watches()) {
				if w.File == key {
					l.judge(w, f.Last)
				}
			}
		}
	}
}
