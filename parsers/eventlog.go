package parsers

import (
	"bytes"
	"math"
	"time"

	jsoniter "github.com/json-iterator/go"

	"flink-loki/parsers/internal/ascii"
)

// EVENT_LOG_v1 lines of RocksDB's LOG, as logging/event_logger.h (util/event_logger.h
// up to 5.17) writes them: JSON without escapes, its time, job and name in front.
//
//	EVENT_LOG_v1 {"time_micros": 1795961513607868, "job": 2, "event": "flush_started", "num_memtables": 1, …}

// eventLogName is what stands before an event's name.
var eventLogName = []byte(`"event": "`)

// eventLogHole is the JSON of one event. The name decides before anything is decoded:
// most lines are of events that are not kept.
func eventLogHole(name string) hole {
	quoted := []byte(name + `"`)
	return hole{fill: fillEventLog, valid: func(v []byte) bool {
		i := bytes.Index(v, eventLogName)
		return i >= 0 && bytes.HasPrefix(v[i+len(eventLogName):], quoted)
	}}
}

// eventLogJSON has the keys that are kept of four events. Their other keys differ by
// version and options.
type eventLogJSON struct {
	TimeMicros       int64  `json:"time_micros"`
	Job              *int64 `json:"job"`
	FlushReason      string `json:"flush_reason"`
	MemoryUsage      *int64 `json:"memory_usage"`
	CompactionReason string `json:"compaction_reason"`
	InputDataSize    *int64 `json:"input_data_size"`
	CompactionMicros *int64 `json:"compaction_time_micros"`
	TotalOutputSize  *int64 `json:"total_output_size"`
}

func fillEventLog(e *Event, v []byte) {
	// A line that went through LogBuffer is cut at 512 bytes up to 5.17 (8192 and 1024
	// later). A number at the cut is no whole one.
	if v[len(v)-1] != '}' {
		v = v[:max(bytes.LastIndexByte(v, ','), 0)]
	}
	var j eventLogJSON
	_ = jsoniter.Unmarshal(v, &j) // what stands before a fault is kept
	if j.TimeMicros > 0 && j.TimeMicros <= math.MaxInt64/1000 {
		e.SetTime(Time, time.UnixMicro(j.TimeMicros))
	}
	for _, size := range [...]*int64{j.MemoryUsage, j.InputDataSize, j.TotalOutputSize} { // an event has one of them
		if size != nil && *size >= 0 {
			e.SetInt(Bytes, *size)
		}
	}
	if j.Job != nil && *j.Job >= 0 {
		e.SetInt(RocksDBJob, *j.Job)
	}
	if j.CompactionMicros != nil {
		setMicroseconds(e, *j.CompactionMicros)
	}
	e.SetText(Reason, []byte(j.FlushReason+j.CompactionReason)) // an event has one of them
}

func fillMicroseconds(e *Event, v []byte) {
	if n, ok := ascii.Int(v); ok {
		setMicroseconds(e, n)
	}
}

func setMicroseconds(e *Event, n int64) {
	if n >= 0 {
		e.SetNumber(DurationMs, float64(n)/1000)
	}
}

// lastFlush is what a source has read of its database's last flush. Up to RocksDB 6.20
// the event flush_finished tells that a flush is over, and how long it took shows in
// the time since flush_started. 8.10 writes "Flush lasted" first, about a millisecond
// before flush_finished: it has the column family and the duration, so that it is the
// event there, and flush_finished says nothing new.
//
// One flush is enough: its lines come from one thread, and a database runs its flushes
// one after the other unless it is given 8 background jobs or more (Flink gives 2). A
// second one at the same time costs no more than a duration.
type lastFlush struct {
	job     int64
	thread  []byte
	started time.Time // the zero Time when not known
	told    bool      // "Flush lasted" was read
}

// repeats reports whether an event is the end of a flush that another line has told
// already. It gives the end of a flush its duration, where only the start of it tells.
// In a source that continues another, the line before may have been read there.
func (f *lastFlush) repeats(e *Event, thread []byte, continues bool) bool {
	isStart := e.Kind.Name == "rocksdb_flush_started"
	if !isStart && e.Kind.Name != "rocksdb_flush_finished" {
		return false
	}
	job, _ := e.Int(RocksDBJob)
	isSame := f.job == job && bytes.Equal(f.thread, thread)
	at, isEventLog := e.Time(Time)
	switch {
	case isStart:
		*f = lastFlush{job: job, thread: append(f.thread[:0], thread...), started: at}
	case !isEventLog:
		*f = lastFlush{job: job, thread: append(f.thread[:0], thread...), told: true}
	case isSame && f.told, !isSame && continues && isDecimalThread(thread):
		return true
	case isSame && !f.started.IsZero():
		setMicroseconds(e, at.Sub(f.started).Microseconds())
	}
	return false
}

// isDecimalThread tells a thread of the newer versions, which print a pointer of 48 bits
// in decimal, 15 digits. Up to 6.24, the first with "Flush lasted", it was hexadecimal,
// 12 digits.
func isDecimalThread(thread []byte) bool { return len(thread) > 12 }
