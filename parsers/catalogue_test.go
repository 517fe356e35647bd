package parsers

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// statement is a row of testdata/catalogue.tsv: the log statements of Flink 1.3 to 2.3,
// RocksDB and the Kafka client that have to do with checkpoints, as they stand in the
// sources, one row a wording. The last two columns say what the row must become: the
// event, empty for none, and what each placeholder is (a key of arguments).
type statement struct {
	id, level, template, versions string
	loggers                       []string
	event                         string
	arguments                     []string
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

func catalogue(t testing.TB) []statement {
	t.Helper()
	file, err := os.Open("testdata/catalogue.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.Comma, r.LazyQuotes = '\t', true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var statements []statement
	for _, row := range rows[1:] {
		s := statement{
			id: row[0], level: strings.Fields(row[1])[0], template: row[2], versions: row[3],
			loggers: loggersOf(row[4]), event: row[5],
		}
		if row[6] != "" {
			s.arguments = strings.Split(row[6], ";")
		}
		statements = append(statements, s)
	}
	return statements
}

// loggersOf reads the catalogue's column of loggers.
func loggersOf(text string) []string {
	text = strings.ReplaceAll(text, "{StandaloneDispatcher|MiniDispatcher|...} (getClass())", "StandaloneDispatcher")
	text = strings.ReplaceAll(text, "(...)ResourceManager (getClass())", "StandaloneResourceManager")
	var names []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == ';' || r == ' ' }) {
		if strings.HasPrefix(part, "org.") {
			names = append(names, part)
		}
	}
	return names
}

// argument is a value for a placeholder, and the fields that it becomes.
type argument struct {
	text   string
	fields map[Field]string
}

func fields(keyvals ...any) map[Field]string {
	m := map[Field]string{}
	for i := 0; i < len(keyvals); i += 2 {
		m[keyvals[i].(Field)] = fmt.Sprint(keyvals[i+1])
	}
	return m
}

// Names that a user could give a task or a job. Most imitate Flink's own sentences.
var hostileNames = []string{
	"Map -> Sink: out",
	"Source: orders[1] -> Calc(select=[a, b]) -> (Filter, Sink: x (y)) (1/2)",
	"Checkpoint 5 of job 85d268e6fbc19411185f7e4868a44178 expired before completing.",
	"x (0b60f08bf8984085b59f8d9bc74ce2e1) switched from RUNNING to FAILED.",
	"y (1/2): Received barrier from channel 3 @ 7",
	`a 'quoted' "name", with (brackets) {and} [others]: 100 %`,
	"订单 → 汇总 🚀",
	"- finished asynchronous part of checkpoint 3. Asynchronous duration: 4 ms",
	"Calc(select=[" + strings.Repeat("CASE WHEN a_1 IN (1, 2) THEN 'a -> b (1/2)' ELSE `b` END AS c, ", 110) + "])",
	"{}",
	"UNKNOWN_CHECKPOINT_ID",
	"is not in state RUNNING but FINISHED instead. Aborting checkpoint.",
}

const (
	job1    = "85d268e6fbc19411185f7e4868a44178"
	vertex1 = "516f674de35366be5fccbaf00cb6ed35"
	alloc1  = "fef61425e149c9b56545204c60d72fcc"
	oldExec = "0b60f08bf8984085b59f8d9bc74ce2e1"
	newExec = "d222e8d0db480e0d174f53983cb1d19f_516f674de35366be5fccbaf00cb6ed35_1_0"
)

// numbers gives the values of a counter that is printed as a number.
func numbers(f Field) []argument {
	return []argument{
		{"17", fields(f, 17)}, {"0", fields(f, 0)}, {"9223372036854775807", fields(f, "9223372036854775807")}, {"-1", nil}, {"4711", fields(f, 4711)},
	}
}

func milliseconds(f Field) []argument {
	return []argument{{"369", fields(f, 369)}, {"-1", nil}, {"0", fields(f, 0)}, {"86400000", fields(f, 86400000)}}
}

// tasks gives names with their subtask, as the JobManager prints them, or with what the
// TaskManager adds: the attempt (1.12 and later), or the execution attempt id.
func tasks(with string) []argument {
	var all []argument
	for i, name := range hostileNames {
		a := argument{fmt.Sprintf("%s (%d/%d)", name, i+1, 100), fields(TaskName, name, SubtaskIndex, i, Parallelism, 100)}
		if with != "" && i%3 == 1 {
			a.text += fmt.Sprintf("#%d", i)
			a.fields[TaskAttemptNum] = strconv.Itoa(i)
		}
		if with == "attempt id" && i%2 == 1 {
			a.text += " (" + newExec + ")"
			a.fields[TaskAttemptID] = newExec
		}
		all = append(all, a)
	}
	return all
}

func locations() []argument {
	return []argument{
		{"container_e91_1700000000123_0042_01_000006 @ worker-04.example.internal (dataPort=44001)",
			fields(TMID, "container_e91_1700000000123_0042_01_000006", Host, "worker-04.example.internal", DataPort, 44001)},
		{"Unknown location", nil},
		{"tm-1.example:33093-b9068d @ tm-1.example (dataPort=35455)", fields(TMID, "tm-1.example:33093-b9068d", Host, "tm-1.example", DataPort, 35455)},
		{"[unassigned resource]", nil},
		{"591a62be1d7423ed95dc7feec94b859a @ 10.0.0.7 (dataPort=-1)", fields(TMID, "591a62be1d7423ed95dc7feec94b859a", Host, "10.0.0.7")},
		{"pod-taskmanager-1-2 @ fd00:10:244::3 (dataPort=36011)", fields(TMID, "pod-taskmanager-1-2", Host, "fd00:10:244::3", DataPort, 36011)},
	}
}

func checkpointTypes() []argument {
	typ := func(text, name string, savepoint bool) argument {
		return argument{text, fields(CheckpointType, name, Savepoint, savepoint)}
	}
	return []argument{
		typ("CHECKPOINT", "CHECKPOINT", false), typ("SAVEPOINT_SUSPEND", "SAVEPOINT_SUSPEND", true),
		typ("CheckpointType{name='Checkpoint', sharingFilesStrategy=FORWARD_BACKWARD}", "Checkpoint", false),
		typ("SavepointType{name='Suspend Savepoint', postCheckpointAction=SUSPEND, formatType=CANONICAL}", "Suspend Savepoint", true),
		typ("CheckpointType{name='Full Checkpoint', sharingFilesStrategy=FORWARD}", "Full Checkpoint", false),
	}
}

func texts(f Field) []argument {
	var all []argument
	for _, name := range hostileNames {
		if f == Reason && (strings.HasPrefix(name, "{}") || strings.HasSuffix(name, ".")) {
			continue // not what Flink puts there
		}
		all = append(all, argument{name, fields(f, name)})
	}
	return all
}

func ignored(texts ...string) []argument {
	var all []argument
	for _, text := range texts {
		all = append(all, argument{text, nil})
	}
	return all
}

func attempts() []argument {
	return []argument{{newExec, fields(TaskAttemptID, newExec)}, {oldExec, fields(TaskAttemptID, oldExec)}}
}

func states(f Field) []argument {
	return []argument{{"RUNNING", fields(f, "RUNNING")}, {"FAILED", fields(f, "FAILED")}, {"CANCELLING", fields(f, "CANCELLING")}}
}

func paths() []argument {
	return []argument{
		{"hdfs://nn1/flink/savepoints/savepoint-85d268-0b60f08bf898", fields(Location, "hdfs://nn1/flink/savepoints/savepoint-85d268-0b60f08bf898")},
		{"<checkpoint-not-externally-addressable>", nil},
	}
}

func exceptions() []argument {
	return []argument{
		{"org.apache.kafka.common.errors.DisconnectException", fields(ExceptionClass, "org.apache.kafka.common.errors.DisconnectException")},
		{"java.io.IOException: disk full: 100 %", fields(ExceptionClass, "java.io.IOException", Reason, "disk full: 100 %")},
		{"{}", nil},
	}
}

func resources() []argument {
	return []argument{
		{"container_e91_1700000000123_0042_01_000006", fields(TMID, "container_e91_1700000000123_0042_01_000006")},
		{"container_e91_1700000000123_0042_01_000006(worker-04:8041)", fields(TMID, "container_e91_1700000000123_0042_01_000006")},
		{"tm-1.example:33093-b9068d", fields(TMID, "tm-1.example:33093-b9068d")},
	}
}

func channels() []argument {
	return []argument{{"5", fields(Channel, 5)}, {"InputChannelInfo{gateIdx=1, inputChannelIdx=0}", fields(Gate, 1, Channel, 0)}}
}

func directories() []argument {
	const dir = "/tmp/flink-io-87c360ce/job_" + job1 + "_op_Window_Operator_" + alloc1 + "__100_289__uuid_abda6632-4206/chk-92729"
	return []argument{
		{dir, fields(Location, dir, JobID, job1, OperatorName, "Window_Operator", OperatorID, alloc1, SubtaskIndex, 99, Parallelism, 289, CheckpointID, 92729)},
		{"/data/rocks/backup", fields(Location, "/data/rocks/backup")},
	}
}

func statistics() []argument {
	return []argument{{
		`{"className":"failed","id":17,"status":"FAILED","is_savepoint":false,"trigger_timestamp":1795959618018,"latest_ack_timestamp":-1,` +
			`"state_size":311219,"end_to_end_duration":138,"num_subtasks":3,"num_acknowledged_subtasks":2,"tasks":{"` + vertex1 + `":{"num_subtasks":3,"num_acknowledged_subtasks":2,"end_to_end_duration":100}},` +
			`"failure_message":"no"}`,
		fields(CheckpointID, 17, Status, "FAILED", Savepoint, false, TriggerTime, 1795959618018, StateSizeBytes, 311219, DurationMs, 138,
			Subtasks, 3, AcknowledgedSubtasks, 2, IncompleteVertices, vertex1+" 2/3", Vertices, vertex1+" 2/3 100", Reason, "no"),
	}}
}

const storageDir = "hdfs://nn1/flink/cp/" + job1 + "/chk-17"

func storages() []argument {
	return []argument{
		{"FsCheckpointStorageLocation {fileSystem=org.apache.flink.core.fs.SafetyNetWrapperFileSystem@70442baf, checkpointDirectory=" + storageDir +
			", sharedStateDirectory=hdfs://nn1/flink/cp/shared, reference=(default), fileStateSizeThreshold=1024}",
			fields(Location, storageDir, JobID, job1, CheckpointID, 17)},
		{"org.apache.flink.runtime.state.memory.MemCheckpointStreamFactory@1f0c", nil},
	}
}

func threads() []argument {
	return []argument{
		{"Thread[Async calls on Source: orders -> Filter (27/70),5,Flink Task Threads]", fields(TaskName, "Source: orders -> Filter", SubtaskIndex, 26, Parallelism, 70)},
		{"Thread[pool-48-thread-14,5,Flink Task Threads]", nil},
		{"Thread[Map, keyed (1/2)#3,5,Flink Task Threads]", fields(TaskName, "Map, keyed", SubtaskIndex, 0, Parallelism, 2, TaskAttemptNum, 3)},
		{"Thread[#41,AsyncOperations-thread-1,5,Flink Task Threads]", nil},
	}
}

// restored is what a restored checkpoint looks like up to 1.11, and since.
func restored(located bool) []argument {
	of := func(name string, savepoint bool, location argument) argument {
		a := argument{name + " 16 @ 1683797100331 for " + job1, fields(CheckpointType, name, Savepoint, savepoint, CheckpointID, 16, TriggerTime, 1683797100331, JobID, job1)}
		if located {
			a.text += " located at " + location.text
			maps.Copy(a.fields, location.fields)
		}
		return a
	}
	if !located {
		return []argument{of("Checkpoint", false, argument{})}
	}
	return []argument{of("Checkpoint", false, argument{storageDir, fields(Location, storageDir)}), of("Suspend Savepoint", true, paths()[1])}
}

// arguments are the values for each kind of placeholder.
var arguments = map[string][]argument{
	"ignored":               ignored("x", "7", "(a, b)", "a of job b"),
	"ignored_word":          ignored("COMPLETE", "ABORT"),
	"ignored_line":          ignored(""),
	"savepoint_prefix":      ignored("", "cancel-with-"),
	"checkpoint_id":         numbers(CheckpointID),
	"checkpoint_id_or_word": append(numbers(CheckpointID), ignored("UNKNOWN_CHECKPOINT_ID")...),
	"new_checkpoint_id":     numbers(NewCheckpointID),
	"checkpoint_type":       checkpointTypes(),
	"trigger_time":          {{"1683797100331", fields(TriggerTime, 1683797100331)}},
	"job_id":                {{job1, fields(JobID, job1)}},
	"job_name":              texts(JobName),
	"task":                  tasks("attempt"),
	"task_plain":            tasks(""),
	"task_with_attempt":     tasks("attempt id"),
	"task_attempt_id":       attempts(),
	"task_attempt_num":      numbers(TaskAttemptNum),
	"task_location":         locations(),
	"bare_host":             {{"worker-04", fields(Host, "worker-04")}, {"10.0.0.7", fields(Host, "10.0.0.7")}},
	"allocation_id":         {{alloc1, fields(AllocationID, alloc1)}},
	"vertex_subtask":        {{vertex1 + "_3", fields(VertexID, vertex1, SubtaskIndex, 3)}},
	"vertex_subtask_same":   {{vertex1 + "_0", fields(VertexID, vertex1)}},
	"from_state":            states(FromState),
	"to_state":              states(ToState),
	"resource":              resources(),
	"channel":               channels(),
	"location":              paths(),
	"storage":               storages(),
	"snapshot_thread":       threads(),
	"snapshot_directory":    directories(),
	"backend": {
		{"Heap backend snapshot", fields(Backend, "Heap backend snapshot")},
		{"Asynchronous incremental RocksDB snapshot", fields(Backend, "Asynchronous incremental RocksDB snapshot")},
	},
	"exception":            exceptions(),
	"reason":               texts(Reason),
	"reason_dot":           {{"Some tasks are gone.", fields(Reason, "Some tasks are gone.")}, {"no task", fields(Reason, "no task")}},
	"state_words":          {{"RUNNING", fields(Reason, "is not in state RUNNING but FINISHED instead")}},
	"state_words2":         ignored("FINISHED"),
	"state_in_reason":      {{"FAILED", fields(Reason, "Reached state FAILED instead of FINISHED.")}},
	"restored":             restored(false),
	"restored_1.12":        restored(true),
	"statistics":           statistics(),
	"consecutive_failures": numbers(ConsecutiveFailures),
	"state_size_bytes":     numbers(StateSizeBytes),
	"bytes":                numbers(Bytes),
	"duration_ms":          milliseconds(DurationMs),
	"finalization_ms":      milliseconds(FinalizationMs),
	"start_delay_ms":       milliseconds(StartDelayMs),
	"alignment_ms":         milliseconds(AlignmentMs),
	"sync_ms":              milliseconds(SyncMs),
	"async_ms":             milliseconds(AsyncMs),
	"seconds":              {{"30", fields(DurationMs, 30000)}},
	"unaligned":            {{"true", fields(Unaligned, true)}, {"false", fields(Unaligned, false)}},
	"fetch_metadata": {
		{"(sessionId=2051621507, epoch=2721109)", fields(SessionID, 2051621507, Epoch, 2721109)},
		{"(sessionId=INVALID, epoch=INITIAL)", nil},
		{"(sessionId=7, epoch=FINAL)", fields(SessionID, 7)},
	},
	"kafka_node_id": numbers(KafkaNodeID),
	"kafka_node":    {{"broker-1:9092 (id: 2 rack: null)", fields(KafkaNodeID, 2)}},
	"subtask_index": numbers(SubtaskIndex),

	"column_family":             texts(ColumnFamily),
	"value":                     numbers(Value),
	"value_bytes":               {{"68719480000", fields(Value, 68719480000, Bytes, 68719480000)}, {"0", fields(Value, 0, Bytes, 0)}},
	"limit":                     numbers(Limit),
	"rate":                      numbers(Rate),
	"rocksdb_job":               numbers(RocksDBJob),
	"microseconds":              {{"489900", fields(DurationMs, "489.9")}, {"7", fields(DurationMs, "0.007")}, {"0", fields(DurationMs, 0)}},
	"ignored_number":            ignored("1", "472300"),
	"event_flush_started":       flushesStarted(),
	"event_flush_finished":      flushesFinished(),
	"event_compaction_started":  compactionsStarted(),
	"event_compaction_finished": compactionsFinished(),
}

// The events of RocksDB's EVENT_LOG_v1 as 5.17.2, 6.20.3 and 8.10.0 write them.

func flushesStarted() []argument {
	all := fields(RocksDBJob, 29, Bytes, 65010000, Reason, "Get Live Files")
	return []argument{
		{`{"time_micros": 1657859714000005, "job": 29, "event": "flush_started", "num_memtables": 1, "num_entries": 1180000, "num_deletes": 590000, "memory_usage": 65010000, "flush_reason": "Get Live Files"}`, all},
		{`{"time_micros": 1657859714000005, "job": 29, "event": "flush_started", "num_memtables": 1, "num_entries": 1180000, "num_deletes": 590000, "total_data_size": 62000000, "memory_usage": 65010000, "flush_reason": "Get Live Files"}`, all},
		{`{"time_micros": 1657859714000005, "job": 29, "event": "flush_started", "num_memtables": 1, "num_entries": 1180000, "num_deletes": 590000, "total_data_size": 62000000, "memory_usage": 65010000, "num_range_deletes": 0, "flush_reason": "Get Live Files"}`, all},
	}
}

func flushesFinished() []argument {
	job := fields(RocksDBJob, 29)
	return []argument{
		{`{"time_micros": 1657859714334292, "job": 29, "event": "flush_finished", "output_compression": "LZ4", "lsm_state": [3, 0, 0, 0, 0, 0, 17], "immutable_memtables": 0}`, job},
		{`{"time_micros": 1657859714334292, "job": 29, "event": "flush_finished", "output_compression": "LZ4", "lsm_state": [3, 0, 0, 0, 0, 0, 17], "blob_file_head": 4, "blob_file_tail": 9, "immutable_memtables": 0, "file_write_nanos": 1, "file_range_sync_nanos": 0, "file_fsync_nanos": 2, "file_prepare_write_nanos": 0}`, job},
	}
}

func compactionsStarted() []argument {
	all := fields(RocksDBJob, 30, Bytes, 44710000, Reason, "LevelL0FilesNum")
	return []argument{
		{`{"time_micros": 1657859715140646, "job": 30, "event": "compaction_started", "compaction_reason": "LevelL0FilesNum", "files_L0": [159, 150, 149, 146], "files_L1": [141], "score": 1.25, "input_data_size": 44710000}`, all},
		{`{"time_micros": 1657859715140646, "job": 30, "event": "compaction_started", "compaction_reason": "LevelL0FilesNum", "files_L0": [159, 150, 149, 146], "files_L1": [141], "score": 1, "input_data_size": 44710000, "oldest_snapshot_seqno": -1}`, all},
	}
}

func compactionsFinished() []argument {
	all := fields(RocksDBJob, 30, Bytes, 28850000, DurationMs, "300.1")
	return []argument{
		{`{"time_micros": 1657859715442117, "job": 30, "event": "compaction_finished", "compaction_time_micros": 300100, "output_level": 1, "num_output_files": 1, "total_output_size": 28850000, "num_input_records": 516000, "num_output_records": 333000, "num_subcompactions": 1, "output_compression": "NoCompression", "num_single_delete_mismatches": 0, "num_single_delete_fallthrough": 0, "lsm_state": [0, 1, 0, 0, 0, 0, 17]}`, all},
		{`{"time_micros": 1657859715442117, "job": 30, "event": "compaction_finished", "compaction_time_micros": 300100, "compaction_time_cpu_micros": 297500, "output_level": 1, "num_output_files": 1, "total_output_size": 28850000, "num_blob_output_files": 1, "total_blob_output_size": 77, "num_input_records": 516000, "num_output_records": 333000, "num_subcompactions": 1, "output_compression": "NoCompression", "num_single_delete_mismatches": 0, "num_single_delete_fallthrough": 0, "lsm_state": [0, 1, 0, 0, 0, 0, 17]}`, all},
	}
}

// implied are fields that a statement's own words give, by a piece of its template.
var implied = map[string]map[Field]string{
	"is not being executed at the moment":                 fields(Reason, "is not being executed at the moment"),
	"because the task's execution attempt id was unknown": fields(Reason, "the task's execution attempt id was unknown"),
	"while the invokable was not in state running":        fields(Reason, "the invokable was not in state running"),
	"aborted because alignment volume limit":              fields(Reason, "alignment volume limit"),
	"due to CancelTaskException.":                         fields(Reason, "CancelTaskException"),
	"Failure reason: Checkpoint was declined.":            fields(Reason, "Checkpoint was declined."),
	"Job {} has been suspended":                           fields(ToState, "SUSPENDED"),
	"savepoint for job":                                   fields(Savepoint, true),
	"checkpoint for job {}.":                              nil,
	"Triggering a manual checkpoint":                      fields(Savepoint, false),
	"Triggering a checkpoint for":                         fields(Savepoint, false),
	"Savepoint stored in":                                 fields(Savepoint, true),
	"with a savepoint. Reason":                            fields(Savepoint, true),
	"from savepoint":                                      fields(Savepoint, true),
	"DefaultOperatorStateBackend snapshot (":              fields(Backend, "DefaultOperatorStateBackend snapshot"),
	"Heap backend snapshot (":                             fields(Backend, "Heap backend snapshot"),
	"Asynchronous RocksDB snapshot (":                     fields(Backend, "Asynchronous RocksDB snapshot"),
	"immutable memtables (waiting":                        fields(StallCause, "memtables"),
	"writes because we have {} level-0 files":             fields(StallCause, "l0_files"),
	"writes because of estimated pending compaction":      fields(StallCause, "pending_compaction_bytes"),
}

// render fills a statement's placeholders with the n-th value of each, and returns the
// message and the fields that it must give. With plain it is the first of each.
func render(t *testing.T, s statement, n int) (message string, want map[Field]string) {
	t.Helper()
	want = map[Field]string{}
	for words, f := range implied {
		if strings.Contains(s.template, words) {
			maps.Copy(want, f)
		}
	}
	i := 0
	message = placeholder.ReplaceAllStringFunc(s.template, func(string) string {
		values, ok := arguments[s.arguments[i]]
		if !ok {
			t.Fatalf("%s: no values for %s", s.id, s.arguments[i])
		}
		a := values[0]
		if n != plain {
			a = values[(n+i)%len(values)]
		}
		i++
		maps.Copy(want, a.fields)
		return a.text
	})
	if strings.HasPrefix(s.id, "exc-") {
		maps.Copy(want, fields(ExceptionClass, "org.apache.flink.util.FlinkRuntimeException", Reason, message))
	}
	if strings.HasPrefix(s.id, "kafka-fetch") {
		message = "[Consumer clientId=consumer-4, groupId=orders.v1] " + message
		maps.Copy(want, fields(ClientID, "consumer-4", GroupID, "orders.v1"))
	}
	return strings.TrimSuffix(strings.ReplaceAll(message, `\n`, "\n"), "\n "), want
}

const plain = -1

// headers are the layouts in which the statements are tested.
var headers = []func(s statement, logger string) string{
	func(s statement, logger string) string {
		return fmt.Sprintf("2026-11-29 13:37:13,754 %-5s %-60s [] - ", s.level, logger)
	},
	func(s statement, logger string) string {
		return fmt.Sprintf("2019-09-02 16:26:20,972 %-5s %-60s  - ", s.level, logger)
	},
	func(s statement, logger string) string {
		return fmt.Sprintf(" 2019-09-02 16:26:20,972 %s [pool-1 thread] %s - ", s.level, logger)
	},
	func(s statement, logger string) string {
		return fmt.Sprintf("2026-11-29 13:57:20.622 [pool-1 [x] thread] %-5s %s  - ", s.level, logger)
	},
}

// lineOf puts a statement's message behind a header, the n-th of those it can have.
func lineOf(s statement, message string, n int) string {
	switch {
	case strings.HasPrefix(s.id, "rocksdb"):
		return "2022/07/15-12:35:10.734684 7f1000484700 [utilities/checkpoint/checkpoint_impl.cc:83] " + message
	case strings.HasPrefix(s.id, "exc-"):
		return lineOf(statement{id: "x", level: "INFO", loggers: []string{"org.apache.flink.runtime.jobmaster.JobMaster"}}, "A failure.", n) +
			"\norg.apache.flink.util.FlinkRuntimeException: " + message
	}
	return headers[n%len(headers)](s, s.loggers[n%len(s.loggers)]) + message
}

// rounds is how often each statement is rendered, with other values each time.
const rounds = 24

// TestCatalogue renders every statement of the catalogue, with plain and with hostile
// values and in several layouts: each gives its event with every field and no other, and
// what is no event gives none.
func TestCatalogue(t *testing.T) {
	parser := newParser(t)
	known, total, none := 0, 0, 0
	for _, s := range catalogue(t) {
		if s.event == "" {
			none++
			testNoEvent(t, parser, s)
			continue
		}
		total++
		ok := true
		for n := range rounds {
			message, want := render(t, s, n)
			line := lineOf(s, message, n)
			if fault := compareFields(parser, line, s.event, want); fault != "" {
				t.Errorf("%s (%s)\n%s\n%s", s.id, s.versions, shorten(line), fault)
				ok = false
				break
			}
		}
		if ok {
			known++
		}
	}
	t.Logf("forms known: %d of the %d in the catalogue that are events; %d that are none give none", known, total, none)
}

func shorten(s string) string {
	if len(s) > 600 {
		return s[:300] + " … " + s[len(s)-300:]
	}
	return s
}

// fromHeader are fields that do not come from the message.
var fromHeader = []Field{Time, EventName, Component, Level, Logger, Thread, Message, FailureReason, Counted, Part}

// compareFields parses a line and says how its one event differs from what is wanted.
func compareFields(parser *Parser, line, event string, want map[Field]string) string {
	var got []string
	source := parser.NewSource(func(e *Event) {
		if e.Kind.Name != event {
			got = append(got, "event "+e.Kind.Name)
			return
		}
		got = append(got, "")
		text := &got[len(got)-1]
		for f := range e.All {
			if value := string(e.AppendValue(nil, f)); !slices.Contains(fromHeader, f) && value != want[f] {
				*text += fmt.Sprintf("%s is %s, want %q\n", Fields[f].Name, shorten(value), shorten(want[f]))
			}
		}
		for f, value := range want {
			if !e.Has(f) {
				*text += fmt.Sprintf("no %s, want %s\n", Fields[f].Name, shorten(value))
			}
		}
	})
	source.Record(Origin{Offset: -1}, []byte(line))
	source.Flush()
	if len(got) != 1 {
		return fmt.Sprintf("%d events: %q", len(got), got)
	}
	return got[0]
}

// testNoEvent renders a statement that is no event, with made-up values.
func testNoEvent(t *testing.T, parser *Parser, s statement) {
	t.Helper()
	message := placeholder.ReplaceAllString(s.template, "17")
	if strings.HasPrefix(s.template, "EVENT_LOG_v1") {
		message = s.template // its braces are JSON's
	}
	var lines []string
	for _, logger := range s.loggers {
		lines = append(lines, headers[0](s, logger)+message)
	}
	if strings.HasPrefix(s.versions, "rocksdb ") {
		lines = append(lines, lineOf(s, message, 0))
	}
	for _, line := range lines {
		source := parser.NewSource(func(e *Event) {
			t.Errorf("%s (%s): %s gives %s", s.id, s.versions, message, e.Kind.Name)
		})
		source.Record(Origin{Offset: -1}, []byte(line))
		source.Flush()
	}
}
