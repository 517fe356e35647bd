package parsers

// SchemaVersion counts the breaking changes of events: a kind or field that was renamed,
// removed, or changed its meaning.
const SchemaVersion = 1

// Type says how the text of a field is read from a line, stored and printed.
type Type uint8

const (
	// Text is any text; as a hole it reaches to the next literal of its form.
	Text Type = iota
	// Word is text without blanks, such as a state.
	Word
	// ID is Flink's AbstractID: 32 lower-case hexadecimal digits.
	ID
	// AttemptID is an execution attempt: an ID up to Flink 1.15, from 1.16 on
	// <graph ID>_<vertex ID>_<subtask>_<attempt number>.
	AttemptID
	// Int is a whole number, printed as one. Flink writes -1 for "not known" and
	// no field has a negative value of its own, so a negative number is absent.
	Int
	// Number is a decimal number. Negative is absent, as for Int.
	Number
	// Bool is true or false.
	Bool
	// Timestamp is an instant, kept as nanoseconds since 1970 and printed as
	// RFC 3339 in UTC.
	Timestamp
)

// String returns the name that the documentation uses for the type.
func (t Type) String() string {
	switch t {
	case Int:
		return "int"
	case Number:
		return "number"
	case Bool:
		return "bool"
	case Timestamp:
		return "time"
	}
	return "text"
}

// isNumeric reports whether values are kept as numbers rather than as text.
func (t Type) isNumeric() bool { return t >= Int }

// Field names one field of an event: an index into [Fields].
type Field uint8

// FieldInfo describes one field.
type FieldInfo struct {
	// Name is the key under which the field is printed. Where Flink has a metric
	// scope variable for the same thing, it has the same name.
	Name string
	// Type says how the field is read and printed.
	Type Type
	// Unit is the unit of a quantity, empty for others.
	Unit string
	// Doc says in one sentence what the field means.
	Doc string
	// Lesson fields are those of lines that teach; no event has them.
	Lesson bool
}

// Fields describes every field an event can have, in the order in which they are
// printed. Index it with a [Field].
var Fields []FieldInfo

func field(name string, t Type, unit, doc string) Field {
	Fields = append(Fields, FieldInfo{Name: name, Type: t, Unit: unit, Doc: doc})
	return Field(len(Fields) - 1)
}

func lesson(name string, t Type, doc string) Field {
	f := field(name, t, "", doc)
	Fields[f].Lesson = true
	return f
}

// Every field, once. The order is the order of printing; Message stays last.
var (
	Time       = field("time", Timestamp, "", "the line's own time in the configured time zone, else the record's")
	RecordTime = field("record_time", Timestamp, "", "the time that a wrapper round the line gave")
	EventName  = field("event", Word, "", "the kind of event")
	Component  = field("component", Word, "", "who said it: jobmanager, taskmanager, rocksdb, kafka, rest, metrics or agent")
	Level      = field("level", Word, "", "the line's level; a RocksDB line without one is INFO")
	Logger     = field("logger", Text, "", "the line's logger, as written")
	Thread     = field("thread", Text, "", "the line's thread, where the layout prints it")

	Cluster       = field("cluster", Text, "", "the cluster, from a static label")
	ApplicationID = field("application_id", Text, "", "YARN application, from the file name")
	Namespace     = field("namespace", Text, "", "Kubernetes namespace of the record")
	Pod           = field("pod", Text, "", "Kubernetes pod of the record")
	Container     = field("container", Text, "", "container of the record")
	ContainerID   = field("container_id", Text, "", "YARN container, from the file name")

	JobID           = field("job_id", ID, "", "Flink job")
	JobName         = field("job_name", Text, "", "name of the job; metric reports have _ for each dot (Flink 1.13+)")
	CheckpointID    = field("checkpoint_id", Int, "", "the checkpoint the event is about; for an overtaken barrier the one given up")
	NewCheckpointID = field("new_checkpoint_id", Int, "", "the checkpoint that overtook")
	CheckpointType  = field("checkpoint_type", Text, "", "CHECKPOINT, SAVEPOINT and others, as written")
	Savepoint       = field("savepoint", Bool, "", "whether the checkpoint is a savepoint")
	TriggerTime     = field("trigger_time", Int, "ms since 1970", "when the checkpoint was triggered, as Flink's own clock says in the message")

	TaskName       = field("task_name", Text, "", "name of the task's vertex, without the subtask; metric reports have _ for each dot (Flink 1.13+)")
	SubtaskIndex   = field("subtask_index", Int, "", "subtask, counted from 0")
	Parallelism    = field("parallelism", Int, "", "number of subtasks of the vertex")
	TaskAttemptID  = field("task_attempt_id", AttemptID, "", "execution attempt")
	TaskAttemptNum = field("task_attempt_num", Int, "", "number of the attempt, counted from 0")
	VertexID       = field("vertex_id", ID, "", "job vertex")
	AllocationID   = field("allocation_id", ID, "", "slot allocation")
	OperatorName   = field("operator_name", Text, "", "operator; metric reports have its first 80 characters, _ for each dot (Flink 1.13+), and a task in its place where Flink has the metric for both")
	OperatorID     = field("operator_id", ID, "", "operator id")
	TMID           = field("tm_id", Text, "", "resource id of the TaskManager; metric reports have _ for each dot (Flink 1.13+)")
	Host           = field("host", Text, "", "host of the TaskManager that the line names; of a metric, host of its JobManager or TaskManager with _ for each dot (Flink 1.13+)")
	DataPort       = field("data_port", Int, "", "data port of that TaskManager")

	DurationMs     = field("duration_ms", Number, "ms", "how long it took")
	AlignmentMs    = field("alignment_ms", Number, "ms", "how long barriers were aligned")
	StartDelayMs   = field("start_delay_ms", Number, "ms", "how long the start waited")
	SyncMs         = field("sync_ms", Number, "ms", "synchronous part of the snapshot")
	AsyncMs        = field("async_ms", Number, "ms", "asynchronous part of the snapshot")
	FinalizationMs = field("finalization_ms", Number, "ms", "finalization on the JobManager")
	StateSizeBytes = field("state_size_bytes", Int, "bytes", "full size of the checkpoint's state")
	Bytes          = field("bytes", Int, "bytes", "RocksDB's sizes; the alignment limit")

	After                = field("after", Word, "", "what had become of the checkpoint that a late message is for: expired, declined, suspended or unknown")
	LateByMs             = field("late_by_ms", Number, "ms", "from a checkpoint's expiry to the late message")
	SinceTriggerMs       = field("since_trigger_ms", Number, "ms", "from the line that triggered the checkpoint to this one")
	IntervalMs           = field("interval_ms", Number, "ms", "from the trigger of the checkpoint before to that of this one")
	FailuresInARow       = field("failures_in_a_row", Int, "", "checkpoints of the job that failed and are counted, since the last one that completed, this one included")
	LastCompletedID      = field("last_completed_checkpoint_id", Int, "", "the job's last checkpoint that completed before")
	SinceLastCompletedMs = field("since_last_completed_ms", Number, "ms", "how long ago that was")
	FailureKey           = field("failure_key", Text, "", "one failure, which Flink tells in several lines: cluster/job_id/checkpoint_id/trigger_time")
	FailureCause         = field("failure_cause", Word, "", "expired, declined or failed")
	NamedBy              = field("named_by", Word, "", "what names the tasks of a failure: decline, late_message, async_failure, overtaken_barrier or statistics")
	LateTasks            = field("late_tasks", Int, "", "tasks that sent a late message")
	SlowTasks            = field("slow_tasks", Text, "", "tasks that were slow, the slowest first, at most ten")
	QuietMs              = field("quiet_ms", Number, "ms", "how long no checkpoint of the job has completed or failed")
	ExpectedIntervalMs   = field("expected_interval_ms", Number, "ms", "how often a checkpoint is expected")
	IntervalFrom         = field("interval_from", Word, "", "what tells that: file (intervals_path), observed or configured")
	TimeoutMs            = field("timeout_ms", Number, "ms", "how long a checkpoint is expected to take at most")
	Repeat               = field("repeat", Int, "", "how often the same was told before")
	OverdueSince         = field("overdue_since", Int, "ms since 1970", "since when checkpoints are overdue, the same in all that is told of that")
	OverdueMs            = field("overdue_ms", Number, "ms", "how long checkpoints were overdue until one completed, or the job ended")
	JobCandidates        = field("job_candidates", Text, "", "the jobs it can be, where it is not certain which one")
	Stalls               = field("stalls", Int, "", "lines of this kind and cause in one minute, which this event sums up")
	DuringSnapshot       = field("during_snapshot", Bool, "", "whether RocksDB was taking a snapshot")

	ConsecutiveFailures = field("consecutive_failures", Int, "", "failures in a row as Flink printed them, this one not counted yet")
	FromState           = field("from_state", Word, "", "state before")
	ToState             = field("to_state", Word, "", "state after")
	Gate                = field("gate", Int, "", "input gate of the channel")
	Channel             = field("channel", Int, "", "input channel")
	Backend             = field("backend", Text, "", "what took the snapshot")
	Unaligned           = field("unaligned", Bool, "", "whether the checkpoint was unaligned")
	ColumnFamily        = field("column_family", Text, "", "RocksDB column family, which is the state's name")
	StallCause          = field("stall_cause", Word, "", "memtables, l0_files or pending_compaction_bytes")
	Value               = field("value", Int, "", "the value that stalled the writes")
	Limit               = field("limit", Int, "", "the limit it met")
	Rate                = field("rate", Int, "bytes/s", "the rate that writes are held to")
	RocksDBJob          = field("rocksdb_job", Int, "", "number of RocksDB's background job")
	ClientID            = field("client_id", Text, "", "Kafka client")
	GroupID             = field("group_id", Text, "", "Kafka consumer group")
	SessionID           = field("session_id", Int, "", "Kafka fetch session")
	Epoch               = field("epoch", Int, "", "epoch of the fetch session")
	KafkaNodeID         = field("kafka_node_id", Int, "", "Kafka broker")

	Status                = field("status", Word, "", "status of the checkpoint as Flink's REST API names it")
	Subtasks              = field("subtasks", Int, "", "subtasks that take part in the checkpoint")
	AcknowledgedSubtasks  = field("acknowledged_subtasks", Int, "", "subtasks that have acknowledged it")
	IncompleteVertices    = field("incomplete_vertices", Text, "", "vertices with subtasks that have not, as \"vertex acknowledged/subtasks\"")
	Vertices              = field("vertices", Text, "", "all vertices, as \"vertex acknowledged/subtasks duration_ms\"")
	CheckpointedSizeBytes = field("checkpointed_size_bytes", Int, "bytes", "what the checkpoint wrote anew, where it is incremental")
	AlignmentBytes        = field("alignment_buffered_bytes", Int, "bytes", "data buffered while barriers were aligned")
	ProcessedBytes        = field("processed_data_bytes", Int, "bytes", "data processed while barriers were aligned")
	PersistedBytes        = field("persisted_data_bytes", Int, "bytes", "in-flight data stored by an unaligned checkpoint")
	LatestAckTime         = field("latest_ack_time", Int, "ms since 1970", "when the last subtask acknowledged")
	FailureTime           = field("failure_time", Int, "ms since 1970", "when the checkpoint failed")
	SavepointFormat       = field("savepoint_format", Word, "", "CANONICAL or NATIVE")
	BackpressureLevel     = field("backpressure_level", Word, "", "ok, low or high")
	Ratio                 = field("ratio", Number, "", "share of time that the subtask was back-pressured, 0 to 1")
	IdleRatio             = field("idle_ratio", Number, "", "share of time that it was idle")
	BusyRatio             = field("busy_ratio", Number, "", "share of time that it was busy")

	MetricName  = field("metric", Text, "", "name of the metric with its groups, as it stands behind the scope")
	MetricValue = field("metric_value", Number, "", "value of the metric; true is 1 and false 0")

	FailureReason  = field("failure_reason", Word, "", "Flink's CheckpointFailureReason in snake_case, told by the text")
	Counted        = field("counted", Bool, "", "whether the reason is a failure of checkpointing")
	ExceptionClass = field("exception_class", Text, "", "class of the first exception")
	RootCauseClass = field("root_cause_class", Text, "", "class of the last cause that names one")
	Location       = field("location", Text, "", "a snapshot directory, savepoint path or checkpoint path")

	Node     = field("node", Text, "", "the host that the agent runs on")
	Filename = field("filename", Text, "", "file that the line was read from")
	Offset   = field("offset", Int, "bytes", "byte offset of the line in its file")
	Seq      = field("seq", Int, "", "number of the line among equal lines of one file and time, where the offset is not known")
	Part     = field("part", Int, "", "which event of its record this is, where a record gives several")

	// Of lines that teach; events do not have them.
	GraphID       = lesson("graph_id", ID, "execution graph, the first part of attempt ids since Flink 1.16")
	Property      = lesson("property", Text, "key of Flink's configuration")
	PropertyValue = lesson("property_value", Text, "its value")
	FlinkVersion  = lesson("flink_version", Text, "Flink's version")

	UptimeMs      = field("uptime_ms", Number, "ms", "since the agent's output was started; what a heartbeat counts is counted since then")
	Records       = field("records", Int, "", "records that were read")
	Events        = field("events", Int, "", "events that were made of them and are sent")
	Unrecognised  = field("unrecognised", Int, "", "lines of known loggers in unknown words")
	FailedFlushes = field("failed_flushes", Int, "", "times that a chunk could not be delivered and was kept")
	DeadLetters   = field("dead_letters", Int, "", "entries and pieces of chunks that were given up")
	Files         = field("files", Int, "", "files that lines were read of")
	PendingChunks = field("pending_chunks", Int, "", "chunks that are not delivered yet")

	Reason  = field("reason", Text, "", "Flink's or RocksDB's own words for why")
	Message = field("message", Text, "", "the line's message, first physical line, without the header")
)

// FieldByName returns the field with that name, and whether there is one.
func FieldByName(name string) (Field, bool) {
	f, ok := fieldByName[name]
	return f, ok
}

var fieldByName = func() map[string]Field {
	m := make(map[string]Field, len(Fields))
	for i, f := range Fields {
		m[f.Name] = Field(i)
	}
	return m
}()
