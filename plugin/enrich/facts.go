package enrich

import (
	"bytes"
	"slices"
	"strconv"
	"unsafe"

	"flink-loki/parsers"
)

// attempt is one execution of a subtask: attempt/<cluster>/<attempt id>.
type attempt struct {
	base
	Job         string `json:",omitempty"`
	Task        string `json:",omitempty"`
	Subtask     int    // -1 where it is not known, as for the next two
	Parallelism int
	Number      int
	Vertex      string `json:",omitempty"`
	TM          string `json:",omitempty"`
	Host        string `json:",omitempty"`
	Port        int    `json:",omitempty"`
	// Named, Placed and Owned are the lines that told its task, its host and its job.
	Named  place
	Placed place
	Owned  place
	// Log is the name of the TaskManager's log that has it, Began the first line there of
	// it, and Ended the one that says it is over.
	Log   string `json:",omitempty"`
	Began place
	Ended place

	tasks *taskIndex // that it is in
}

func (a *attempt) size() int {
	return 200 + len(a.Task) + len(a.Job) + len(a.Vertex) + len(a.TM) + len(a.Host) + len(a.Log)
}

func (a *attempt) added(s *State) { s.index(a) }
func (a *attempt) gone(*State) {
	if a.tasks != nil {
		a.tasks.remove(a)
	}
}

// slot is a slot of a TaskManager: slot/<cluster>/<allocation id>.
type slot struct {
	base
	Job  string
	Told place
}

// graph is an execution graph, whose id begins its attempts' since Flink 1.16:
// graph/<cluster>/<graph id>.
type graph struct {
	base
	Job  string
	Told place
}

// vertex is a vertex of a job: vertex/<cluster>/<job>/<vertex id>; without the job where
// the line did not tell it.
type vertex struct {
	base
	Task string
	Told place
	// Several says that jobs differ in what they call it.
	Several bool `json:",omitempty"`
}

func (f *slot) size() int  { return len(f.Job) }
func (f *graph) size() int { return len(f.Job) }

func (f *vertex) size() int { return len(f.Task) }

// taskIndex finds the attempts of a TaskManager's log by task and subtask.
type taskIndex struct{ byTask map[taskKey][]*attempt }

type taskKey struct {
	task    string
	subtask int
}

func (t *taskIndex) add(a *attempt) {
	if t.byTask == nil {
		t.byTask = map[taskKey][]*attempt{}
	}
	key := taskKey{a.Task, a.Subtask}
	t.byTask[key] = append(t.byTask[key], a)
	a.tasks = t
}

func (t *taskIndex) remove(a *attempt) {
	key := taskKey{a.Task, a.Subtask}
	t.byTask[key] = slices.DeleteFunc(t.byTask[key], func(b *attempt) bool { return a == b })
	if len(t.byTask[key]) == 0 {
		delete(t.byTask, key)
	}
}

// index puts an attempt into the index of its log.
func (s *State) index(a *attempt) {
	if a.Log == "" || a.Task == "" || a.tasks != nil {
		return
	}
	t := s.tasks[a.Log]
	if t == nil {
		t = &taskIndex{}
		s.tasks[a.Log] = t
	}
	t.add(a)
}

// idParts are the parts of an attempt id since Flink 1.16
// (org.apache.flink.runtime.executiongraph.ExecutionAttemptID): graph, vertex, subtask
// and number of the attempt.
type idParts struct {
	graph, vertex   []byte
	subtask, number int
}

func splitAttemptID(id []byte) (p idParts, ok bool) {
	const idLen = 32
	if len(id) < 2*idLen+len("__0_0") || id[idLen] != '_' || id[2*idLen+1] != '_' {
		return p, false
	}
	p.graph, p.vertex = id[:idLen], id[idLen+1:2*idLen+1]
	subtask, number, _ := bytes.Cut(id[2*idLen+2:], []byte("_"))
	var err1, err2 error
	p.subtask, err1 = strconv.Atoi(string(subtask))
	p.number, err2 = strconv.Atoi(string(number))
	return p, err1 == nil && err2 == nil
}

// text returns a field as a string that outlives the event.
func text(e *parsers.Event, f parsers.Field) string { return string(e.Text(f)) }

// fill sets a text field that the event does not have.
func fill(e *parsers.Event, f parsers.Field, value string) {
	if value != "" && !e.Has(f) {
		e.SetText(f, bytesOf(value))
	}
}

// bytesOf returns the bytes of a string, which nobody changes: texts of events are only
// read.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// fillInt sets a whole number that the event does not have, unless it is negative.
func fillInt(e *parsers.Event, f parsers.Field, value int) {
	if value >= 0 && !e.Has(f) {
		e.SetInt(f, int64(value))
	}
}

// keep remembers in a string what a field says, and reports whether that is new.
func keep(to *string, e *parsers.Event, f parsers.Field) bool {
	if v := e.Text(f); v != nil && *to != string(v) {
		*to = string(v)
		return true
	}
	return false
}

func keepInt(to *int, e *parsers.Event, f parsers.Field) bool {
	if v, ok := e.Int(f); ok && *to != int(v) {
		*to = int(v)
		return true
	}
	return false
}

// attemptOf returns the attempt that an event names, nil where none is known; with add it
// is made if the event tells something of it.
func (l *Log) attemptOf(e *parsers.Event, add bool) *attempt {
	id := e.Text(parsers.TaskAttemptID)
	switch {
	case id == nil:
		return nil
	case add && (e.Has(parsers.TaskName) || e.Has(parsers.Host) || e.Has(parsers.JobID)):
		return obtain[*attempt](l.state, "attempt", l.cluster, id)
	}
	return find[*attempt](l.state, "attempt", l.cluster, id)
}

// learnAttempt takes what an event tells of the attempt that it names.
func (l *Log) learnAttempt(e *parsers.Event, p place) *attempt {
	a := l.attemptOf(e, true)
	if a == nil {
		return nil
	}
	changed := a.own(e.Text(parsers.JobID), p)
	if keep(&a.TM, e, parsers.TMID) || e.Has(parsers.Host) && p.before(a.Placed) {
		keep(&a.Host, e, parsers.Host)
		keepInt(&a.Port, e, parsers.DataPort)
		keepInt(&a.Number, e, parsers.TaskAttemptNum)
		a.Placed.earliest(p)
		changed = true
	}
	if e.Has(parsers.TaskName) && (a.Named.isZero() || p.before(a.Named)) {
		if a.tasks == nil {
			keep(&a.Task, e, parsers.TaskName)
			keepInt(&a.Subtask, e, parsers.SubtaskIndex)
			keepInt(&a.Parallelism, e, parsers.Parallelism)
		}
		a.Named, changed = p, true
	}
	changed = keep(&a.Vertex, e, parsers.VertexID) || changed
	parts, isLong := splitAttemptID(e.Text(parsers.TaskAttemptID))
	if isLong && a.Vertex == "" {
		a.Vertex, a.Number, changed = string(parts.vertex), parts.number, true
	}
	if id := e.Text(parsers.AllocationID); id != nil {
		if s := find[*slot](l.state, "slot", l.cluster, id); s != nil && s.Told.notAfter(p) {
			changed = a.own(bytesOf(s.Job), p) || changed
		}
	}
	if isLong && a.Job == "" {
		if g := find[*graph](l.state, "graph", l.cluster, parts.graph); g != nil && g.Told.notAfter(p) {
			changed = a.own(bytesOf(g.Job), p) || changed
		}
	}
	if !changed {
		return a
	}
	if isLong && a.Job != "" {
		l.learnGraph(parts.graph, a.Job, p)
	}
	if a.Vertex != "" && a.Task != "" {
		l.learnVertex(a, p)
	}
	l.state.touch(a)
	return a
}

// own notes a line that says whose the attempt is, and reports whether that is new.
func (a *attempt) own(jobID []byte, p place) bool {
	if jobID == nil || !a.Owned.isZero() && !p.before(a.Owned) {
		return false
	}
	a.Job, a.Owned = string(jobID), p
	return true
}

func (l *Log) learnGraph(id []byte, jobID string, p place) {
	g := obtain[*graph](l.state, "graph", l.cluster, id)
	if g.Told.isZero() || p.before(g.Told) {
		g.Job, g.Told = jobID, p
		l.state.touch(g)
	}
}

// learnVertex remembers what a vertex is called, by its job and, for lines that do not
// tell the job, without.
func (l *Log) learnVertex(a *attempt, p place) {
	for _, jobID := range slices.Compact([]string{a.Job, ""}) {
		v := obtain[*vertex](l.state, "vertex", l.cluster, bytesOf(jobID), bytesOf(a.Vertex))
		if v.Told.isZero() {
			v.Task = a.Task
		}
		if isOther := v.Task != a.Task && !v.Several; isOther || v.Told.isZero() || p.before(v.Told) {
			v.Several = v.Several || isOther
			v.Told.earliest(p)
			l.state.touch(v)
		}
	}
}

// vertexName returns what a vertex of a job is called, "" where no line before a place
// tells; without a job, what it is called where no line tells the job.
func (l *Log) vertexName(jobID, id []byte, p place) string {
	// Jobs have vertices of the same id, so the name is that of the job's own.
	if v := find[*vertex](l.state, "vertex", l.cluster, jobID, id); v != nil && !v.Several && v.Told.notAfter(p) {
		return v.Task
	}
	return ""
}

// addAttempt adds to an event what lines before it tell of the attempt that it names.
func (l *Log) addAttempt(e *parsers.Event, p place) {
	id := e.Text(parsers.TaskAttemptID)
	if id == nil {
		return
	}
	if a := l.attemptOf(e, false); a != nil {
		if a.Named.toldBy(p) {
			fill(e, parsers.TaskName, a.Task)
			fillInt(e, parsers.SubtaskIndex, a.Subtask)
			fillInt(e, parsers.Parallelism, a.Parallelism)
		}
		if a.Owned.toldBy(p) {
			fill(e, parsers.JobID, a.Job)
		}
		if a.Placed.toldBy(p) {
			fillInt(e, parsers.TaskAttemptNum, a.Number)
			fill(e, parsers.TMID, a.TM)
			if a.Host != "" {
				fill(e, parsers.Host, a.Host)
				fillInt(e, parsers.DataPort, a.Port)
			}
		}
	}
	if parts, ok := splitAttemptID(id); ok {
		if g := find[*graph](l.state, "graph", l.cluster, parts.graph); g != nil && g.Told.notAfter(p) {
			fill(e, parsers.JobID, g.Job)
		}
		if !e.Has(parsers.VertexID) {
			e.SetText(parsers.VertexID, parts.vertex)
		}
		fillInt(e, parsers.SubtaskIndex, parts.subtask)
		fillInt(e, parsers.TaskAttemptNum, parts.number)
		if !e.Has(parsers.TaskName) {
			fill(e, parsers.TaskName, l.vertexName(e.Text(parsers.JobID), parts.vertex, p))
		}
	}
}

// nameVertices puts names in the place of ids in a list like "<vertex id> 1/2, …".
func (l *Log) nameVertices(e *parsers.Event, f parsers.Field, p place) {
	list := e.Text(f)
	if list == nil {
		return
	}
	jobID := e.Text(parsers.JobID)
	var named []byte
	for i, item := range bytes.Split(list, []byte(", ")) {
		if i > 0 {
			named = append(named, ", "...)
		}
		id, rest, ok := bytes.Cut(item, []byte(" "))
		if name := l.vertexName(jobID, id, p); ok && name != "" {
			named = append(append(append(named, name...), ' '), rest...)
		} else {
			named = append(named, item...)
		}
	}
	e.SetText(f, named)
}
