package enrich

import (
	"bytes"
	"regexp"
	"slices"
	"time"

	jsoniter "github.com/json-iterator/go"

	"flink-loki/parsers"
)

// logFile is what an output remembers of one log: log/<output>/<name>. Files that
// rotation has renamed are the same log.
type logFile struct {
	base
	coverage
	Newest int64 `json:",omitempty"` // time of its newest event, ns since 1970
	Events int64 `json:",omitempty"` // places of events whose records have no offset

	// Of a TaskManager: who it is, since when, and the jobs that live or lived there.
	TM      string `json:",omitempty"`
	Started place
	Jobs    []liveJob `json:",omitempty"`

	// Version and Properties are what the process printed at its start.
	Version    string            `json:",omitempty"`
	Properties map[string]string `json:",omitempty"`

	// Deployed are, by task and subtask, the attempts that were last said to be DEPLOYING.
	Deployed map[string][]deployed `json:",omitempty"`

	// Of a RocksDB.
	Snapshots []snapshot `json:",omitempty"`
	Flushes   []flush    `json:",omitempty"`
	Stalls    []stalls   `json:",omitempty"`
}

// liveJob is a time that a job lives on a TaskManager.
type liveJob struct {
	ID string
	// From and To are the lines that say so; none where they are not known.
	From, To place
}

func (f *logFile) size() int {
	n := 300 + len(f.Spans)*24 + len(f.Jobs)*160 + len(f.Snapshots)*150 + len(f.Flushes)*80
	for k, v := range f.Properties {
		n += len(k) + len(v) + 32
	}
	for k, v := range f.Deployed {
		n += len(k) + 32 + len(v)*250
	}
	for _, s := range f.Stalls {
		n += 100 + len(s.Minutes)*300
	}
	return n
}

// Learner is the output that reads logs only to learn: what it has read of a log is the
// beginning for the other outputs.
const Learner = "learn"

// copy takes over what another output has read of the log.
func (f *logFile) copy(other *logFile) {
	if b, err := jsoniter.Marshal(other); err == nil {
		_ = jsoniter.Unmarshal(b, f) // which it can, as it is its own
	}
}

const (
	maxLiveJobs   = 64
	maxProperties = 64
	maxDeployed   = 4096
)

// Log is one log in a pass.
type Log struct {
	*Pass
	file    *logFile
	id      uint64
	name    string // without what rotation adds
	cluster []byte
	// recordPlaces says that records tell their offsets.
	hasOffsets bool

	from, to  int64 // of what the pass has read; from is negative before the first record
	gap       int64 // the widest between two records that follow each other
	readAt    int64
	unbroken  int64 // offset from which on no line is missing
	wholeHead bool  // nor are there any missing before, in earlier files of the log
	repeated  int64 // lines before this offset were read before
	dirty     bool
}

// rotation is what log4j, logback and logrotate add to a file's name.
var rotation = regexp.MustCompile(`(\.log|\.out|/LOG|_LOG)?((\.old)?\.\d{1,10}|[.-]\d{4}-?\d\d-?\d\d([-.]\d{1,2})?(\.\d+)?|\.\d+)*(\.gz)?$`)

// logName returns the name of the log that a file belongs to.
func logName(name string) string {
	loc := rotation.FindStringSubmatchIndex(name)
	if loc == nil || loc[0] == 0 {
		return name
	}
	if loc[3] > 0 { // the file's own ending
		return name[:loc[3]]
	}
	return name[:loc[0]]
}

// Log returns the log that a file belongs to. cluster is that of its events where they
// do not say.
func (p *Pass) Log(cluster, file string) *Log {
	if l, ok := p.logs[file]; ok {
		return l
	}
	name := logName(file)
	l := &Log{Pass: p, name: name, id: hashName(name), cluster: []byte(cluster), from: -1}
	l.file = find[*logFile](p.state, "log", []byte(p.teller.id), []byte(name))
	if l.file == nil {
		learnt := find[*logFile](p.state, "log", []byte(Learner), []byte(name))
		l.file = obtain[*logFile](p.state, "log", []byte(p.teller.id), []byte(name))
		if learnt != nil {
			l.file.copy(learnt)
		}
	}
	p.logs[file] = l
	return l
}

// Line notes that a record of the log is read, before the events of it: its offset,
// negative where it is not known, its length in bytes, and when it was read.
func (l *Log) Line(offset int64, length int, readAt time.Time) {
	if offset < 0 {
		return
	}
	if l.from < 0 {
		l.begin(offset, readAt.UnixNano())
	} else if offset > l.to {
		l.gap = max(l.gap, offset-l.to)
	}
	l.to = max(l.to, offset+int64(length)+1)
}

// begin finds out what was read of the log before the pass.
func (l *Log) begin(offset, readAt int64) {
	c := &l.file.coverage
	l.hasOffsets, l.from, l.to, l.readAt = true, offset, offset, readAt
	if c.isNew(offset, readAt) {
		c.restart(!c.hasGap())
	}
	l.look(offset)
}

func (l *Log) look(offset int64) {
	c := &l.file.coverage
	l.unbroken, l.repeated = offset, offset
	if i := c.find(offset); i >= 0 {
		l.unbroken, l.repeated = c.Spans[i].From, c.Spans[i].To
	}
	l.wholeHead = l.unbroken == 0 && (c.Gen == 0 || c.Carries)
}

// end notes what the pass has read.
func (l *Log) end() {
	if l.from >= 0 {
		l.file.coverage.add(l.from, l.to+l.gap, l.readAt)
		l.dirty = true
	}
	if l.dirty {
		l.state.touch(l.file)
	}
}

// place returns where an event's line stands.
func (l *Log) place(e *parsers.Event) place {
	at, ok := e.Time(parsers.Time)
	if !ok {
		at = time.Unix(0, l.file.Newest)
	}
	if offset := e.Origin.Offset; offset >= 0 && offset < l.repeated && at.UnixNano() > l.file.Newest+int64(time.Second) {
		// Lines that were read before can't be newer than all lines that were read: this is
		// another file under the same name, and its beginning is missing.
		l.file.coverage.restart(false)
		l.look(offset)
		l.from = offset
	}
	p := place{Log: l.id, Gen: l.file.Gen, Pos: e.Origin.Offset, At: at.UnixNano()}
	if p.Pos < 0 {
		l.file.Events++
		p.Pos = l.file.Events
	}
	if p.At > l.file.Newest {
		l.file.Newest, l.dirty = p.At, true
	}
	return p
}

// isWhole reports whether no line is missing between a place and the present line.
func (l *Log) isWhole(since place) bool {
	switch {
	case since.isZero() || since.Log != l.id:
		return false
	case !l.hasOffsets:
		return true
	case since.Gen != l.file.Gen:
		return since.Gen < l.file.Gen && l.wholeHead
	}
	return since.Pos >= l.unbroken || l.unbroken == 0
}

// hasGap reports whether lines of the log are missing that may still come.
func (l *Log) hasGap() bool {
	if !l.hasOffsets || len(l.file.Spans) == 0 {
		return false
	}
	return l.file.hasGap() || l.from > l.file.Spans[len(l.file.Spans)-1].To+slack
}

// isRepeated reports whether an event's line was read before the pass.
func (l *Log) isRepeated(e *parsers.Event) bool {
	return e.Origin.Offset >= 0 && e.Origin.Offset < l.repeated
}

// lessons say what the lines that are no events teach.
var lessons = map[string]func(*Log, *parsers.Event, place){
	"slot_requested": func(l *Log, e *parsers.Event, p place) {
		if s := obtain[*slot](l.state, "slot", l.cluster, e.Text(parsers.AllocationID)); s.Told.isZero() || p.before(s.Told) {
			s.Job, s.Told = text(e, parsers.JobID), p
			l.state.touch(s)
		}
	},
	"job_connected": func(l *Log, e *parsers.Event, p place) {
		l.live(text(e, parsers.JobID), p, true)
	},
	"job_disconnected": func(l *Log, e *parsers.Event, p place) {
		l.live(text(e, parsers.JobID), p, false)
	},
	"taskmanager_started": func(l *Log, e *parsers.Event, p place) {
		if l.file.Started.isZero() || l.file.Started.before(p) {
			l.file.TM, l.file.Started, l.dirty = text(e, parsers.TMID), p, true
		}
	},
	"execution_graph_created": func(l *Log, e *parsers.Event, p place) {
		l.learnGraph(e.Text(parsers.GraphID), text(e, parsers.JobID), p)
	},
	"property_loaded": func(l *Log, e *parsers.Event, _ place) {
		key, value := e.Text(parsers.Property), e.Text(parsers.PropertyValue)
		if !bytes.HasPrefix(key, []byte("execution.checkpointing.")) && !bytes.HasPrefix(key, []byte("state.")) ||
			len(l.file.Properties) == maxProperties || l.file.Properties[string(key)] == string(value) {
			return
		}
		if l.file.Properties == nil {
			l.file.Properties = map[string]string{}
		}
		l.file.Properties[string(key)], l.dirty = string(value), true
	},
	"version_logged": func(l *Log, e *parsers.Event, _ place) {
		l.dirty = keep(&l.file.Version, e, parsers.FlinkVersion) || l.dirty
	},
}

// Lesson takes what a line teaches that is no event.
func (l *Log) Lesson(e *parsers.Event) {
	if learn := lessons[e.Kind.Name]; learn != nil {
		learn(l, e, l.place(e))
	}
}

// live notes that a job begins or ends to live on the TaskManager.
func (l *Log) live(jobID string, p place, begins bool) {
	jobs := l.file.Jobs
	if slices.ContainsFunc(jobs, func(j liveJob) bool { return j.ID == jobID && (j.From == p || j.To == p) }) {
		return // a line that is read again
	}
	l.dirty = true
	if begins {
		l.file.Jobs = append(jobs, liveJob{ID: jobID, From: p})
		if len(l.file.Jobs) > maxLiveJobs {
			l.file.Jobs = slices.Delete(l.file.Jobs, 0, 1)
		}
		return
	}
	// It ends the last time that began before.
	for i := len(jobs) - 1; i >= 0; i-- {
		if j := &jobs[i]; j.ID == jobID && j.From.before(p) && j.To.isZero() {
			j.To = p
			return
		}
	}
}

// handler learns from an event of a kind and adds to it.
type handler func(*Log, *parsers.Event, place)

// handlers are what the kinds of events tell beyond what all do.
var handlers map[string]handler

func init() {
	handlers = map[string]handler{
		"job_submitted":     (*Log).jobStarted,
		"job_state_changed": (*Log).jobChanged,

		"task_deploying":     (*Log).deploying,
		"task_state_changed": (*Log).taskChanged,
		"task_received":      (*Log).taskReceived,

		"checkpoint_triggered":                  (*Log).triggered,
		"checkpoint_completed":                  (*Log).ended,
		"checkpoint_expired":                    (*Log).ended,
		"checkpoint_declined":                   (*Log).ended,
		"checkpoint_discarded":                  (*Log).ended,
		"checkpoint_failed":                     (*Log).ended,
		"checkpoint_statistics":                 (*Log).statistics,
		"checkpoint_late_message":               (*Log).late,
		"checkpoint_late_decline":               (*Log).lateDecline,
		"checkpoint_failure_threshold_exceeded": (*Log).thresholdExceeded,

		"snapshot_async_failed": (*Log).slowTask,
		"barrier_overtaken":     (*Log).slowTask,

		"rocksdb_snapshot_started":  (*Log).snapshotStarted,
		"rocksdb_snapshot_finished": (*Log).snapshotFinished,
		"rocksdb_snapshot_failed":   (*Log).snapshotFinished,
		"rocksdb_flush_started":     (*Log).flushStarted,
		"rocksdb_flush_finished":    (*Log).flushFinished,
	}
}

// Event takes what an event tells, adds what is known to it, and emits it, and behind it
// those that it lets be made. The event must have the cluster that its line told.
func (l *Log) Event(e *parsers.Event) {
	p := l.place(e)
	if c := e.Text(parsers.Cluster); c != nil && !bytes.Equal(c, l.cluster) {
		l.cluster = bytes.Clone(c)
	}
	isJobManager := false
	switch string(e.Text(parsers.Component)) {
	case "taskmanager":
		if l.file.TM != "" && l.file.Started.before(p) {
			fill(e, parsers.TMID, l.file.TM)
		}
		l.addAttempt(e, p)
		l.addJob(e, p)
	case "kafka":
		l.addJob(e, p)
	default:
		isJobManager = true
		l.learnAttempt(e, p)
		l.addAttempt(e, p)
	}
	if handle := handlers[e.Kind.Name]; handle != nil {
		handle(l, e, p)
	}
	l.addCheckpoint(e, p)
	if isStall(e) {
		l.stall(e, p)
	} else {
		l.emit(e, false)
	}
	if isJobManager {
		l.tell(p)
	}
}
