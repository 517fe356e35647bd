package parsers

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	jsoniter "github.com/json-iterator/go"
)

// restAPI stands for Flink's REST API, whose answers come as JSON without a header. The
// text of its forms is the path that gives the answer.
var restAPI = class(rest)

// restKinds are the events of answers alone; checkpoint_statistics are in the
// JobManager's log as well.
var restKinds = []Kind{
	{
		Name: "backpressure_sampled", Core: true,
		Doc: "Flink's REST API told how back-pressured a subtask is: ok up to a ratio of 0.10, low up to 0.50, else high.",
		Forms: []Form{
			{Versions: "1.3-2.3", By: by(restAPI), Text: "/jobs/:jobid/vertices/:vertexid/backpressure"},
		},
	},
}

// restAnswer has the keys of the answers that are read. Which one it is shows in those
// that are there.
type restAnswer struct {
	checkpointJSON // checkpoints/details/:checkpointid, and with Subtasks …/subtasks/:vertexid

	History *[]checkpointJSON `json:"history"` // checkpoints

	// vertices/:vertexid/backpressure; the older key and, since 1.15, the newer.
	Level      string        `json:"backpressure-level"`
	LevelSince string        `json:"backpressureLevel"`
	EndTime    int64         `json:"end-timestamp"`
	Subtasks   []subtaskJSON `json:"subtasks"`
}

// checkpointJSON is CheckpointStatistics of Flink's REST API. Keys that a version does
// not have stay nil.
type checkpointJSON struct {
	ID               *int64                `json:"id"`
	Status           string                `json:"status"`
	IsSavepoint      *bool                 `json:"is_savepoint"`
	SavepointFormat  string                `json:"savepointFormat"`
	TriggerTimestamp *int64                `json:"trigger_timestamp"`
	LatestAck        *int64                `json:"latest_ack_timestamp"`
	CheckpointedSize *int64                `json:"checkpointed_size"`
	StateSize        *int64                `json:"state_size"`
	Duration         *int64                `json:"end_to_end_duration"`
	AlignmentBuffer  *int64                `json:"alignment_buffered"`
	ProcessedData    *int64                `json:"processed_data"`
	PersistedData    *int64                `json:"persisted_data"`
	NumSubtasks      *int64                `json:"num_subtasks"`
	NumAcknowledged  *int64                `json:"num_acknowledged_subtasks"`
	CheckpointType   string                `json:"checkpoint_type"`
	Tasks            map[string]vertexJSON `json:"tasks"`
	ExternalPath     string                `json:"external_path"`
	FailureTimestamp *int64                `json:"failure_timestamp"`
	FailureMessage   string                `json:"failure_message"`
}

type vertexJSON struct {
	NumSubtasks     int64 `json:"num_subtasks"`
	NumAcknowledged int64 `json:"num_acknowledged_subtasks"`
	Duration        int64 `json:"end_to_end_duration"`
}

// subtaskJSON is SubtaskBackPressureInfo. Ratios can be "NaN".
type subtaskJSON struct {
	Subtask    *int64              `json:"subtask"`
	Level      string              `json:"backpressure-level"`
	LevelSince string              `json:"backpressureLevel"`
	Ratio      jsoniter.RawMessage `json:"ratio"`
	IdleRatio  jsoniter.RawMessage `json:"idleRatio"`
	BusyRatio  jsoniter.RawMessage `json:"busyRatio"`
	Attempt    *int64              `json:"attempt-number"`
	Others     []subtaskJSON       `json:"other-concurrent-attempts"` // 1.16 and later
}

// IsAnswerKey reports whether a key is one that answers of Flink's REST API have, and
// which tells that they are read.
func IsAnswerKey(key []byte) bool {
	switch string(key) {
	case "backpressure-level", "backpressureLevel", "history", "trigger_timestamp":
		return true
	}
	return false
}

// restEvents calls emit for each event of an answer. The answer's ids are in its URL.
func (t *table) restEvents(answer, url []byte, e *Event, emit func(*Event)) {
	var a restAnswer
	if jsoniter.Unmarshal(answer, &a) != nil {
		return
	}
	job, vertex := urlIDs(url)
	one := func(kind *Kind, fill func()) {
		e.Reset()
		e.Kind = kind
		e.SetText(Component, []byte(rest))
		e.SetText(JobID, job)
		e.SetText(VertexID, vertex)
		fill()
		emit(e)
	}
	switch {
	case a.History != nil:
		for i := range *a.History {
			one(t.statistics, func() { (*a.History)[i].fill(e); (*a.History)[i].fillTime(e) })
		}
	case a.ID != nil && a.TriggerTimestamp != nil || a.ID != nil && a.NumSubtasks != nil:
		one(t.statistics, func() { a.checkpointJSON.fill(e); a.fillTime(e) })
	case a.Level != "" || a.LevelSince != "":
		for _, s := range a.Subtasks {
			for _, attempt := range append([]subtaskJSON{s}, s.Others...) {
				one(t.backPressure, func() { attempt.fill(e, a.EndTime) })
			}
		}
	}
}

// urlIDs takes the ids from ".../jobs/<id>/vertices/<id>/backpressure" and
// ".../jobs/<id>/checkpoints/details/<n>/subtasks/<id>".
func urlIDs(url []byte) (job, vertex []byte) {
	id := func(before string) []byte {
		if _, rest, ok := bytes.Cut(url, []byte(before)); ok {
			return rest[:scanID(rest)]
		}
		return nil
	}
	if vertex = id("/vertices/"); vertex == nil {
		vertex = id("/subtasks/")
	}
	return id("/jobs/"), vertex
}

// fillStatistics reads the JSON of CheckpointStatsTracker's line.
func fillStatistics(e *Event, v []byte) {
	var c checkpointJSON
	if jsoniter.Unmarshal(v, &c) == nil {
		c.fill(e)
	}
}

func (c *checkpointJSON) fill(e *Event) {
	for f, v := range map[Field]*int64{
		CheckpointID: c.ID, TriggerTime: c.TriggerTimestamp, StateSizeBytes: c.StateSize, Subtasks: c.NumSubtasks,
		AcknowledgedSubtasks: c.NumAcknowledged, CheckpointedSizeBytes: c.CheckpointedSize, AlignmentBytes: c.AlignmentBuffer,
		ProcessedBytes: c.ProcessedData, PersistedBytes: c.PersistedData, LatestAckTime: c.LatestAck, FailureTime: c.FailureTimestamp,
	} {
		if v != nil && *v >= 0 {
			e.SetInt(f, *v)
		}
	}
	if c.Duration != nil && *c.Duration >= 0 {
		e.SetNumber(DurationMs, float64(*c.Duration))
	}
	if c.IsSavepoint != nil {
		e.SetBool(Savepoint, *c.IsSavepoint)
	}
	for f, v := range map[Field]string{
		Status: c.Status, CheckpointType: c.CheckpointType, SavepointFormat: c.SavepointFormat, Reason: c.FailureMessage,
	} {
		e.SetText(f, []byte(v))
	}
	fillLocation(e, []byte(c.ExternalPath))
	c.fillVertices(e)
}

// fillTime sets the time of a checkpoint in an answer, which has no time of its own.
func (c *checkpointJSON) fillTime(e *Event) {
	for _, ms := range []*int64{c.FailureTimestamp, c.LatestAck, c.TriggerTimestamp} {
		if ms != nil && *ms > 0 {
			e.SetTime(Time, time.UnixMilli(*ms))
			return
		}
	}
}

func (c *checkpointJSON) fillVertices(e *Event) {
	var all, incomplete []byte
	for _, id := range slices.Sorted(maps.Keys(c.Tasks)) {
		v := c.Tasks[id]
		all = fmt.Appendf(all, ", %s %d/%d %d", id, v.NumAcknowledged, v.NumSubtasks, v.Duration)
		if v.NumAcknowledged < v.NumSubtasks {
			incomplete = fmt.Appendf(incomplete, ", %s %d/%d", id, v.NumAcknowledged, v.NumSubtasks)
		}
	}
	e.SetText(Vertices, bytes.TrimPrefix(all, []byte(", ")))
	e.SetText(IncompleteVertices, bytes.TrimPrefix(incomplete, []byte(", ")))
}

func (s *subtaskJSON) fill(e *Event, endTime int64) {
	if s.Subtask != nil {
		e.SetInt(SubtaskIndex, *s.Subtask)
	}
	if s.Attempt != nil {
		e.SetInt(TaskAttemptNum, *s.Attempt)
	}
	e.SetText(BackpressureLevel, []byte(cmp.Or(s.LevelSince, s.Level)))
	for f, v := range map[Field]jsoniter.RawMessage{Ratio: s.Ratio, IdleRatio: s.IdleRatio, BusyRatio: s.BusyRatio} {
		if n, err := strconv.ParseFloat(string(v), 64); err == nil && n >= 0 {
			e.SetNumber(f, n)
		}
	}
	if endTime > 0 {
		e.SetTime(Time, time.UnixMilli(endTime))
	}
}
