package enrich

import (
	"fmt"
	"slices"
	"time"

	"flink-loki/parsers"
)

// snapshot is a snapshot that a thread of RocksDB takes, or took.
type snapshot struct {
	Thread     string
	Checkpoint int64 `json:",omitempty"`
	Started    place
	Finished   place
}

// flush is a flush by a job of RocksDB.
type flush struct {
	Job     int64
	Started place
}

// maxStarts bounds the snapshots and the flushes of a database that are remembered.
const maxStarts = 64

// snapshotStarted takes that a thread of a database starts a snapshot.
func (l *Log) snapshotStarted(e *parsers.Event, p place) {
	id, _ := e.Int(parsers.CheckpointID)
	s := snapshot{Thread: text(e, parsers.Thread), Checkpoint: id, Started: p}
	l.facts.Snapshots = insert(l.facts.Snapshots, s, func(s snapshot) place { return s.Started })
	l.changed = true
}

// snapshotFinished says which checkpoint's snapshot ended, and how long it took.
func (l *Log) snapshotFinished(e *parsers.Event, p place) {
	thread := text(e, parsers.Thread)
	for i := len(l.facts.Snapshots) - 1; i >= 0; i-- {
		s := &l.facts.Snapshots[i]
		if s.Thread != thread || !s.Started.before(p) {
			continue
		}
		if l.isWhole(s.Started) {
			setMs(e, parsers.DurationMs, p.msSince(s.Started))
			if s.Checkpoint > 0 {
				fillInt(e, parsers.CheckpointID, int(s.Checkpoint))
			}
			s.Finished, l.changed = p, true
		}
		return
	}
}

// flushStarted takes that a flush starts.
func (l *Log) flushStarted(e *parsers.Event, p place) {
	if id, ok := e.Int(parsers.RocksDBJob); ok {
		l.facts.Flushes = insert(l.facts.Flushes, flush{id, p}, func(f flush) place { return f.Started })
		l.changed = true
	}
}

// flushFinished says how long a flush took that started in an earlier chunk.
func (l *Log) flushFinished(e *parsers.Event, p place) {
	id, ok := e.Int(parsers.RocksDBJob)
	if !ok || e.Has(parsers.DurationMs) {
		return
	}
	for _, f := range slices.Backward(l.facts.Flushes) {
		if f.Job == id && f.Started.before(p) && l.isWhole(f.Started) {
			setMs(e, parsers.DurationMs, p.msSince(f.Started))
			return
		}
	}
}

// insert inserts what starts at a place into a list in the order of the places, unless it
// is there; the first go where there are too many.
func insert[T any](list []T, added T, started func(T) place) []T {
	i := len(list)
	for i > 0 && started(added).before(started(list[i-1])) {
		i--
	}
	if i > 0 && started(list[i-1]) == started(added) {
		return list
	}
	list = slices.Insert(list, i, added)
	return list[max(0, len(list)-maxStarts):]
}

// stalls is what RocksDB says of stalled or stopped writes, for one kind and cause.
type stalls struct {
	Kind, Cause string
	Minutes     []stallMinute
}

// stallMinute is one minute of the log's clock.
type stallMinute struct {
	Minute int64 // since 1970
	First  place
	Last   place
	Lines  int
	// Of the last line.
	Value, Limit, Rate int64             `json:",omitempty"`
	Fields             map[string]string `json:",omitempty"` // of the database
	Summed             bool              `json:",omitempty"`
}

// maxMinutes bounds the minutes of a database that are remembered.
const maxMinutes = 30

var stallKinds = map[string]*parsers.Kind{
	"rocksdb_write_stalled": parsers.KindByName("rocksdb_write_stalled"),
	"rocksdb_write_stopped": parsers.KindByName("rocksdb_write_stopped"),
}

func isStall(e *parsers.Event) bool { return stallKinds[e.Kind.Name] != nil }

// databaseFields are what tells a database, which its lines have in common.
var databaseFields = []parsers.Field{
	parsers.Cluster, parsers.ApplicationID, parsers.Namespace, parsers.Pod, parsers.Container, parsers.ContainerID,
	parsers.JobID, parsers.JobName, parsers.OperatorName, parsers.OperatorID, parsers.SubtaskIndex, parsers.Parallelism, parsers.TMID,
	parsers.Node, parsers.Filename,
}

// stall marks a stall within a running snapshot. Where storms are summed up, it emits the
// first line of each minute and cause, and counts the others.
func (l *Log) stall(e *parsers.Event, p place) {
	for _, s := range l.facts.Snapshots {
		if s.Started.before(p) && (s.Finished.isZero() || p.before(s.Finished)) && l.isWhole(s.Started) {
			e.SetBool(parsers.DuringSnapshot, true)
			if s.Checkpoint > 0 {
				fillInt(e, parsers.CheckpointID, int(s.Checkpoint))
			}
		}
	}
	if !l.teller.SumStalls {
		l.teller.Emit(e, false)
		return
	}
	m := l.stallMinute(e, p)
	isFirst := m.Lines == 0 || m.First == p
	if m.Lines == 0 {
		m.First = p
	}
	if !l.isRepeated(e) || m.Lines == 0 {
		m.Lines++
		m.Last = p
		m.Value, _ = e.Int(parsers.Value)
		m.Limit, _ = e.Int(parsers.Limit)
		m.Rate, _ = e.Int(parsers.Rate)
		l.changed = true
	}
	if isFirst {
		l.teller.Emit(e, false)
	}
	l.changed = l.sumStalls(l.facts, p, false, l.hasGap()) || l.changed
}

// stallMinute returns the minute of an event.
func (l *Log) stallMinute(e *parsers.Event, p place) *stallMinute {
	kind, cause := e.Kind.Name, text(e, parsers.StallCause)
	i := slices.IndexFunc(l.facts.Stalls, func(s stalls) bool { return s.Kind == kind && s.Cause == cause })
	if i < 0 {
		i = len(l.facts.Stalls)
		l.facts.Stalls = append(l.facts.Stalls, stalls{Kind: kind, Cause: cause})
	}
	s := &l.facts.Stalls[i]
	minute := p.At / int64(time.Minute)
	at, ok := slices.BinarySearchFunc(s.Minutes, minute, func(m stallMinute, minute int64) int { return int(m.Minute - minute) })
	if !ok {
		fields := map[string]string{}
		for _, f := range databaseFields {
			if e.Has(f) {
				fields[parsers.Fields[f].Name] = string(e.AppendValue(nil, f))
			}
		}
		s.Minutes = slices.Insert(s.Minutes, at, stallMinute{Minute: minute, Fields: fields})
		if len(s.Minutes) > maxMinutes && at > 0 {
			s.Minutes = slices.Delete(s.Minutes, 0, 1)
			at--
		}
	}
	return &s.Minutes[at]
}

// sumStalls emits the sums of the minutes that are over at a place, or of all where
// nothing more comes, and reports whether there were any. With a gap lines of them may
// still come.
func (p *Pass) sumStalls(f *logFile, at place, all, hasGap bool) (summed bool) {
	for i := range f.Stalls {
		s := &f.Stalls[i]
		for k := range s.Minutes {
			m := &s.Minutes[k]
			age := time.Duration(at.At - (m.Minute+1)*int64(time.Minute))
			if m.Summed || !all && (age < 0 || hasGap && age < patience) {
				continue
			}
			m.Summed, summed = true, true
			if m.Lines > 1 {
				p.teller.Emit(m.sum(s), true)
			}
		}
	}
	return summed
}

// sum returns the event for the stalls of a minute.
func (m *stallMinute) sum(s *stalls) *parsers.Event {
	e := stallKinds[s.Kind].Made("rocksdb", "WARN", time.Unix(0, m.Last.At))
	fill(e, parsers.StallCause, s.Cause)
	for name, value := range m.Fields {
		f, _ := parsers.FieldByName(name)
		e.SetValue(f, []byte(value))
	}
	for f, v := range map[parsers.Field]int64{parsers.Value: m.Value, parsers.Limit: m.Limit, parsers.Rate: m.Rate} {
		if v > 0 {
			e.SetInt(f, v)
		}
	}
	e.SetInt(parsers.Stalls, int64(m.Lines))
	fill(e, parsers.Message, fmt.Sprintf("%d such lines from %s on", m.Lines, time.Unix(m.Minute*60, 0).UTC().Format("15:04")))
	return e
}
