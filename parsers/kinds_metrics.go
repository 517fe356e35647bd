package parsers

// slf4jReporter is Flink's reporter that writes metrics into the log. Its lines are told
// by the header above them, see [metricReport].
var slf4jReporter = class(metrics, "org.apache.flink.metrics.slf4j.Slf4jReporter")

// metricKinds are the events of metric reports.
var metricKinds = []Kind{
	{
		Name: "metric_reported", Core: true,
		Doc: "Flink's Slf4jReporter wrote a metric into the log: those of checkpoints, restarts, back pressure and sources that lag.",
		Forms: []Form{
			{Versions: "1.5-2.3", By: by(slf4jReporter), Text: "{metric}: {metric_value}"},
		},
	},
}

// Metric is one of Flink's metrics.
type Metric struct {
	// Name is the metric's name with its groups, as it stands behind the scope.
	Name string
	// Scope is what Flink keeps the metric for.
	Scope MetricScope
	// Versions names the first and the last version that have the metric.
	Versions string
	// Doc says what the metric tells, with its unit.
	Doc string
}

// MetricScope is what a metric is kept for: the scope formats of Flink's configuration
// (metrics.scope.…).
type MetricScope uint8

const (
	// anyScope is that of a metric which is not in the tables: its scope is read from the
	// line.
	anyScope MetricScope = iota
	// JobScope is <host>.jobmanager.<job_name>.
	JobScope
	// TaskScope is <host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>.
	TaskScope
	// OperatorScope is <host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>.
	OperatorScope
)

// String returns the name that the documentation uses for the scope.
func (s MetricScope) String() string {
	switch s {
	case JobScope:
		return "job"
	case TaskScope:
		return "task"
	case OperatorScope:
		return "operator"
	}
	return "any"
}

// DefaultMetrics are those that become events unless others are asked for: checkpoints,
// restarts, back pressure, and how far a source is behind. Names and versions are from
// Flink's sources 1.3 to 2.3: CheckpointStatsTracker (2.x: DefaultCheckpointStatsTracker),
// MetricNames, TaskIOMetricGroup, NettyShuffleMetricFactory (up to 1.8 TaskIOMetricGroup),
// executiongraph.metrics, SchedulerBase, JobStatusMetrics, DeploymentStateTimeMetrics,
// StreamInputProcessor and InputProcessorUtil, InternalSourceReaderMetricGroup; and of
// the Kafka connector, KafkaConsumerMetricConstants and KafkaSourceReaderMetrics.
// lastCheckpointExternalPath is a text and is not here.
var DefaultMetrics = []Metric{
	{Name: "totalNumberOfCheckpoints", Scope: JobScope, Versions: "1.3-2.3",
		Doc: "checkpoints triggered so far, in progress, completed or failed"},
	{Name: "numberOfInProgressCheckpoints", Scope: JobScope, Versions: "1.3-2.3",
		Doc: "checkpoints in progress"},
	{Name: "numberOfCompletedCheckpoints", Scope: JobScope, Versions: "1.3-2.3",
		Doc: "checkpoints completed so far"},
	{Name: "numberOfFailedCheckpoints", Scope: JobScope, Versions: "1.3-2.3",
		Doc: "checkpoints failed so far"},
	{Name: "lastCompletedCheckpointId", Scope: JobScope, Versions: "1.17-2.3",
		Doc: "id of the last completed checkpoint"},
	{Name: "lastCheckpointDuration", Scope: JobScope, Versions: "1.3-2.3",
		Doc: "how long the last completed checkpoint took (ms)"},
	{Name: "lastCheckpointSize", Scope: JobScope, Versions: "1.3-2.3",
		Doc: "size of the last completed checkpoint (bytes): what it wrote anew from 1.15 on, its full size before"},
	{Name: "lastCheckpointFullSize", Scope: JobScope, Versions: "1.15-2.3",
		Doc: "full size of the last completed checkpoint (bytes)"},
	{Name: "lastCheckpointMetadataSize", Scope: JobScope, Versions: "2.2-2.3",
		Doc: "size of the metadata of the last completed checkpoint (bytes)"},
	{Name: "lastCheckpointProcessedData", Scope: JobScope, Versions: "1.12-2.3",
		Doc: "data processed while the barriers of the last completed checkpoint were aligned (bytes)"},
	{Name: "lastCheckpointPersistedData", Scope: JobScope, Versions: "1.12-2.3",
		Doc: "data in flight that the last completed checkpoint stored (bytes)"},
	{Name: "lastCheckpointAlignmentBuffered", Scope: JobScope, Versions: "1.3-1.10",
		Doc: "data buffered while the barriers of the last completed checkpoint were aligned (bytes)"},
	{Name: "lastCheckpointCompletedTimestamp", Scope: JobScope, Versions: "2.0-2.3",
		Doc: "when the last checkpoint completed (ms since 1970)"},
	{Name: "lastCheckpointRestoreTimestamp", Scope: JobScope, Versions: "1.3-2.3",
		Doc: "when the JobManager last restored a checkpoint (ms since 1970)"},

	{Name: "numRestarts", Scope: JobScope, Versions: "1.10-2.3",
		Doc: "restarts since the job was submitted"},
	{Name: "fullRestarts", Scope: JobScope, Versions: "1.3-1.20",
		Doc: "full restarts up to 1.9; from 1.10 on the same as numRestarts"},
	{Name: "numRescales", Scope: JobScope, Versions: "2.0-2.3",
		Doc: "rescales since the job was submitted, by the adaptive scheduler"},
	{Name: "uptime", Scope: JobScope, Versions: "1.3-2.3",
		Doc: "how long the job has been running (ms), 0 while it is not"},
	{Name: "downtime", Scope: JobScope, Versions: "1.3-2.3",
		Doc: "how long the job has been failing or recovering (ms), 0 while it runs"},
	{Name: "restartingTime", Scope: JobScope, Versions: "1.3-2.3",
		Doc: "how long the job has been restarting (ms), 0 in other states from 1.15 on; before that, how long its last restart took"},
	{Name: "failingTime", Scope: JobScope, Versions: "1.15-2.3",
		Doc: "how long the job has been failing (ms), 0 in other states"},
	{Name: "cancellingTime", Scope: JobScope, Versions: "1.15-2.3",
		Doc: "how long the job has been cancelling (ms), 0 in other states"},
	{Name: "deployingTime", Scope: JobScope, Versions: "1.15-2.3",
		Doc: "how long the job has been waiting for tasks that deploy (ms), 0 while none does"},

	{Name: "checkpointAlignmentTime", Scope: TaskScope, Versions: "1.3-2.3",
		Doc: "how long the last alignment took, or the present one has taken (ns)"},
	{Name: "checkpointStartDelayNanos", Scope: TaskScope, Versions: "1.11-2.3",
		Doc: "from the last checkpoint's trigger to its start on the task (ns)"},

	{Name: "isBackPressured", Scope: TaskScope, Versions: "1.10-2.3",
		Doc: "1 where the task is back-pressured, else 0"},
	{Name: "backPressuredTimeMsPerSecond", Scope: TaskScope, Versions: "1.13-2.3",
		Doc: "of a second, how long the task is back-pressured (ms)"},
	{Name: "softBackPressuredTimeMsPerSecond", Scope: TaskScope, Versions: "1.15-2.3",
		Doc: "of that, how long it could still take an unaligned barrier (ms)"},
	{Name: "hardBackPressuredTimeMsPerSecond", Scope: TaskScope, Versions: "1.15-2.3",
		Doc: "of that, how long it could take none (ms)"},
	{Name: "busyTimeMsPerSecond", Scope: TaskScope, Versions: "1.13-2.3",
		Doc: "of a second, how long the task works (ms); a source that can't tell has none"},
	{Name: "idleTimeMsPerSecond", Scope: TaskScope, Versions: "1.11-2.3",
		Doc: "of a second, how long the task has nothing to do (ms)"},
	{Name: "buffers.inPoolUsage", Scope: TaskScope, Versions: "1.3-1.20",
		Doc: "how full the input buffers are, 0 to 1"},
	{Name: "buffers.outPoolUsage", Scope: TaskScope, Versions: "1.3-1.20",
		Doc: "how full the output buffers are, 0 to 1"},
	{Name: "Shuffle.Netty.Input.Buffers.inPoolUsage", Scope: TaskScope, Versions: "1.9-2.3",
		Doc: "how full the input buffers are, 0 to 1"},
	{Name: "Shuffle.Netty.Output.Buffers.outPoolUsage", Scope: TaskScope, Versions: "1.9-2.3",
		Doc: "how full the output buffers are, 0 to 1"},

	{Name: "KafkaConsumer.records-lag-max", Scope: OperatorScope, Versions: "1.3-1.20",
		Doc: "FlinkKafkaConsumer: records that the partition furthest behind is behind"},
	{Name: "KafkaSourceReader.KafkaConsumer.records-lag-max", Scope: OperatorScope, Versions: "1.13-2.3",
		Doc: "KafkaSource: records that the partition furthest behind is behind"},
	{Name: "pendingRecords", Scope: OperatorScope, Versions: "1.14-2.3",
		Doc: "records that a source has not fetched yet: of KafkaSource, the lag of all its partitions"},
	{Name: "currentFetchEventTimeLag", Scope: OperatorScope, Versions: "1.14-2.3",
		Doc: "from a record's event time to its fetch (ms), of sources that measure it; KafkaSource does not"},
	{Name: "currentEmitEventTimeLag", Scope: OperatorScope, Versions: "1.14-2.3",
		Doc: "from a record's event time to the moment the source emitted it (ms)"},
}

// taskMetrics are the other metrics of a task; the rest of those behind a subtask's index
// are an operator's. numRecordsIn, numRecordsOut, their rates, numBytesIn and numBytesOut
// from 1.15 on, and the watermarks are reported for both in one form.
var taskMetrics = []string{
	"numBytesInLocal", "numBytesInLocalPerSecond", "numBytesInRemote", "numBytesInRemotePerSecond",
	"numBuffersInLocal", "numBuffersInLocalPerSecond", "numBuffersInRemote", "numBuffersInRemotePerSecond",
	"numBuffersOut", "numBuffersOutPerSecond", "numFiredTimers", "numFiredTimersPerSecond",
	"maxSoftBackPressureTimeMs", "maxHardBackPressureTimeMs",
	"accumulateBackPressuredTimeMs", "accumulateBusyTimeMs", "accumulateIdleTimeMs", "changelogBusyTimeMsPerSecond",
	"mailboxMailsPerSecond", "mailboxLatencyMs", "mailboxQueueSize", "initializationTime",
	"estimatedTimeToConsumeBuffersMs", "debloatedBufferSize",
}

// taskGroups are groups whose metrics are a task's.
var taskGroups = []string{"buffers.", "Shuffle.Netty.", "Network."}
