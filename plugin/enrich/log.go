package enrich

import (
	"bytes"
	"regexp"
	"slices"

	jsoniter "github.com/json-iterator/go"

	"flink-loki/parsers"
)

// logFile is what an output remembers of one log: log/<output>/<name>. Files that
// rotation has renamed are the same log; the logs of several containers in one file are
// not.
type logFile struct {
	base
	// Files are those that were read one after the other with nothing missing between.
	Files []uint64 `json:",omitempty"`
	// Began is the line that its process wrote first. Bounds are all such lines, and those
	// that say that the process ends: no job runs across them.
	Began  place
	Bounds []place `json:",omitempty"`
	// File is the key of the file that was read last.
	File string `json:",omitempty"`

	// Of a TaskManager: who it is, since when, and the jobs that live or lived there.
	TM      string `json:",omitempty"`
	Started place
	Jobs    []liveJob `json:",omitempty"`
	Crowded bool      `json:",omitempty"` // there were more of them

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
	n := 300 + len(f.File) + len(f.Files)*8 + len(f.Bounds)*60 + len(f.Jobs)*160 + len(f.Snapshots)*150 + len(f.Flushes)*80
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

const (
	maxLiveJobs   = 64
	maxProperties = 64
	maxDeployed   = 4096
	maxLogFiles   = 32
	maxBounds     = 32
)

// Log is one log in a pass.
type Log struct {
	*Pass
	*reading
	facts   *logFile
	name    string // without what rotation adds
	cluster []byte
	parts   map[string]*Log // logs of containers in the same file
	changed bool

	watchIndex string // empty until it is asked for
}

// rotation is what log4j, logback and logrotate add to a log's name.
var rotation = regexp.MustCompile(`(\.log|\.out|/LOG|_LOG)(\.old)?([.-]\d{1,20}|[.-]\d{4}-?\d\d-?\d\d([-.]\d{1,2})?)*(\.gz)?$`)

// logName returns the name of the log that a file belongs to.
func logName(file string) string {
	if loc := rotation.FindStringSubmatchIndex(file); loc != nil {
		return file[:loc[3]]
	}
	return file
}

// Log returns the log that a file belongs to. Files of the same name, such as those of
// several pods, are told apart by a text. cluster is that of the events where they do not
// say.
func (p *Pass) Log(cluster, file, apart string) *Log {
	key := file + "\x00" + apart
	if l, ok := p.logs[key]; ok {
		return l
	}
	l := p.newLog(p.read(key), logName(file)+apart, cluster)
	p.logs[key] = l
	return l
}

func (p *Pass) newLog(r *reading, name, cluster string) *Log {
	l := &Log{Pass: p, reading: r, name: name, cluster: []byte(cluster)}
	l.facts = ownOf[*logFile](p, "log", name)
	if l.facts.File != r.key {
		l.facts.File, l.changed = r.key, true
	}
	if p.teller.ID == Learner && !slices.Contains(l.facts.Files, r.id) && len(l.facts.Files) < maxLogFiles {
		l.facts.Files, l.changed = append(l.facts.Files, r.id), true
	}
	return l
}

// ownOf returns a fact that each output has of its own, at first what the learner has.
func ownOf[T fact](p *Pass, kind, name string) T {
	_, isKnown := p.state.facts[string(p.state.joinKey(kind, [][]byte{[]byte(p.teller.ID), []byte(name)}))]
	own := obtain[T](p.state, kind, []byte(p.teller.ID), []byte(name))
	if isKnown {
		return own
	}
	if learnt, ok := p.state.facts[string(p.state.joinKey(kind, [][]byte{[]byte(Learner), []byte(name)}))]; ok {
		if b, err := jsoniter.Marshal(learnt.fact); err == nil {
			_ = jsoniter.Unmarshal(b, own) // which it can, as it is its own
		}
	}
	return own
}

// of returns the log that an event is of: a file can hold those of several containers.
func (l *Log) of(e *parsers.Event) *Log {
	pod, container := e.Text(parsers.Pod), e.Text(parsers.Container)
	if pod == nil && container == nil {
		return l
	}
	key := make([]byte, 0, 64)
	key = append(append(append(key, pod...), '/'), container...)
	part, ok := l.parts[string(key)]
	if !ok {
		part = l.newLog(l.reading, l.name+"\x00"+string(key), string(l.cluster))
		if l.parts == nil {
			l.parts = map[string]*Log{}
		}
		l.parts[string(key)] = part
	}
	return part
}

// end notes what the pass has learnt.
func (l *Log) end() {
	if l.changed {
		l.state.touch(l.facts)
	}
	for _, part := range l.parts {
		part.end()
	}
}

// isWhole reports whether no line is missing between a place and the present line.
func (l *Log) isWhole(since place) bool {
	switch {
	case since.isZero():
		return false
	case l.teller.Complete:
		return true
	case since.Log == l.id:
		return l.reading.isWhole(since)
	}
	before, now := slices.Index(l.facts.Files, since.Log), slices.Index(l.facts.Files, l.id)
	return before >= 0 && before < now && l.unbroken == 0
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
		if l.facts.Started.isZero() || l.facts.Started.before(p) {
			l.facts.TM, l.facts.Started, l.changed = text(e, parsers.TMID), p, true
		}
	},
	"execution_graph_created": func(l *Log, e *parsers.Event, p place) {
		l.learnGraph(e.Text(parsers.GraphID), text(e, parsers.JobID), p)
	},
	"property_loaded": func(l *Log, e *parsers.Event, _ place) {
		key, value := e.Text(parsers.Property), e.Text(parsers.PropertyValue)
		if !bytes.HasPrefix(key, []byte("execution.checkpointing.")) && !bytes.HasPrefix(key, []byte("state.")) ||
			len(l.facts.Properties) == maxProperties || l.facts.Properties[string(key)] == string(value) {
			return
		}
		if l.facts.Properties == nil {
			l.facts.Properties = map[string]string{}
		}
		l.facts.Properties[string(key)], l.changed = string(value), true
	},
	"version_logged": func(l *Log, e *parsers.Event, p place) {
		l.bound(p)
		if l.facts.Began.before(p) {
			keep(&l.facts.Version, e, parsers.FlinkVersion)
			l.facts.Began, l.changed = p, true
		}
	},
	"process_ended": func(l *Log, _ *parsers.Event, p place) { l.bound(p) },
}

// Lesson takes what a line teaches that is no event.
func (l *Log) Lesson(e *parsers.Event) {
	if learn := lessons[e.Kind.Name]; learn != nil {
		l = l.of(e)
		learn(l, e, l.place(e))
	}
}

// live notes that a job begins or ends to live on the TaskManager.
func (l *Log) live(jobID string, p place, begins bool) {
	jobs := l.facts.Jobs
	if slices.ContainsFunc(jobs, func(j liveJob) bool { return j.ID == jobID && (j.From == p || j.To == p) }) {
		return // a line that is read again
	}
	l.changed = true
	if begins {
		if len(jobs) == maxLiveJobs {
			// Those that are over go first; where none is, it is not certain any more who lives
			// here.
			i := slices.IndexFunc(jobs, func(j liveJob) bool { return !j.To.isZero() })
			if i < 0 {
				l.facts.Crowded = true
				return
			}
			jobs = slices.Delete(jobs, i, i+1)
		}
		l.facts.Jobs = append(jobs, liveJob{ID: jobID, From: p})
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
	l = l.of(e)
	p := l.place(e)
	if c := e.Text(parsers.Cluster); c != nil && !bytes.Equal(c, l.cluster) {
		l.cluster = bytes.Clone(c)
	}
	isJobManager := false
	switch string(e.Text(parsers.Component)) {
	case "taskmanager":
		if l.facts.TM != "" && l.facts.Started.before(p) {
			fill(e, parsers.TMID, l.facts.TM)
		}
		l.addAttempt(e, p)
		l.addJob(e, p)
	case "kafka":
		l.addJob(e, p)
	default:
		isJobManager = true
		// The line may begin another run of a job: what was overdue before it is told by the
		// time before it.
		l.judgeAll(place{Log: p.Log, Gen: p.Gen, Pos: p.Pos - 1, At: p.At})
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
		l.teller.Emit(e, false)
	}
	if isJobManager {
		l.tell(e, p)
		l.watch(e, p)
	}
}
