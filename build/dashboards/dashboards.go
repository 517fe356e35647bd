package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// Parts of queries. Where the agent does not know the job of a line it may know which ones it can be.
const (
	inCluster = `, cluster=~"$cluster"}`
	ofJob     = ` | job_id=~"$job" or job_name=~"$job"`
	maybeJob  = ofJob + ` or job_candidates=~".*$job.*"`
	// A line of a LOG names no job by itself. Where RocksDB writes it, the path of the file does.
	ofLOG = ofJob + ` or filename=~".*$job.*"`

	// failed selects the lines that tell of a failed checkpoint, several for one failure: see rules/phrases.go.
	failed = `{event=~"checkpoint_(expired|declined|discarded|failed)"` + inCluster + ` | logfmt | counted="true" | savepoint!="true"`
	// summary selects one line for each failed checkpoint.
	summary = `{event="checkpoint_failure_summary"` + inCluster + ` | logfmt | counted="true" | savepoint!="true"`

	// overdue is one series for each time that a job made no checkpoints, which is not over.
	overdue = `max by (cluster, job_id, job_name, overdue_since) (max_over_time({event="checkpoint_overdue"` + inCluster + ` | logfmt | unwrap quiet_ms | __error__="" [$__range]))` +
		` unless sum by (cluster, job_id, job_name, overdue_since) (count_over_time({event="checkpoint_recovered"` + inCluster + ` | logfmt [$__range]))`
	heartbeats = `{event="agent_heartbeat"` + inCluster + ` | logfmt`
)

// largest is the largest number of a field over time, by labels.
func largest(by, event, filter, field, over string) string {
	return `max by (` + by + `) (max_over_time({event="` + event + `"` + inCluster + ` | logfmt` + filter +
		` | unwrap ` + field + ` | __error__="" [` + over + `]))`
}

func fleet() *dashboard.DashboardBuilder {
	return newDashboard(fleetUID, "Flink checkpoints: fleet", "Which jobs' checkpoints fail, and why.").
		WithPanel(number("Failed checkpoints", "Each failure once, savepoints and what a restart ended left out.", count,
			`sum(count_over_time(`+summary+` [$__range]))`).Span(4)).
		WithPanel(number("Jobs with failed checkpoints", "", count,
			`count(sum by (cluster, job_id) (count_over_time(`+failed+` [$__range])))`).Span(4)).
		WithPanel(number("Most failures in a row of one job", "", count,
			`max(max_over_time(`+failed+` | unwrap failures_in_a_row | __error__="" [$__range]))`).Span(4)).
		WithPanel(number("Completed checkpoints", "", count,
			`sum(count_over_time({event="checkpoint_completed"`+inCluster+` | logfmt | savepoint!="true" [$__range]))`).Span(4)).
		WithPanel(number("Jobs without checkpoints", "They run, and none completes or fails. It is told four times at most, after twice the time each: choose a long time range.", count, `count(max by (cluster, job_id, job_name) (`+overdue+`))`).Span(4)).
		WithPanel(number("Agents", "Those that told within the time range that they live.", count, `count(sum by (cluster, node) (count_over_time(`+heartbeats+` [$__range])))`).Span(4)).
		WithPanel(bars("Failures by cause", "", `sum by (failure_cause) (count_over_time(`+summary+` [$__interval]))`, "{{failure_cause}}")).
		WithPanel(bars("Failures by job", "The ten jobs with most of them at a time.",
			`topk(10, sum by (cluster, job_name) (count_over_time(`+summary+` [$__interval])))`, "{{cluster}} {{job_name}}")).
		WithPanel(ranking("Jobs and causes", "", count, "failures",
			`topk(100, sum by (cluster, job_id, job_name, failure_cause) (count_over_time(`+summary+` [$__range])))`)).
		WithPanel(ranking("Root causes", "Of declined checkpoints and failed snapshots.", count, "failures",
			`topk(20, sum by (root_cause_class, failure_reason) (count_over_time(`+summary+` | root_cause_class!="" [$__range])))`)).
		WithPanel(ranking("Hosts that were late", "Tasks that answered after their checkpoint was given up, by their host.", count, "late messages",
			`topk(20, sum by (cluster, host) (count_over_time({event="checkpoint_late_message"`+inCluster+` | logfmt | host!="" [$__range])))`)).
		WithPanel(ranking("Longest completed checkpoints", "Near the job's timeout they fail next.", millis, "longest",
			`topk(20, `+largest("cluster, job_id, job_name", "checkpoint_completed", ` | savepoint!="true"`, "duration_ms", "$__range")+`)`)).
		WithPanel(ranking("Jobs without checkpoints", "How long none has completed or failed, as it was told last.", millis, "quiet for", `topk(50, max by (cluster, job_id, job_name) (`+overdue+`))`)).
		WithPanel(ranking("Agents", "Chunks that wait for Loki at most.", count, "pending chunks",
			`topk(50, max by (cluster, node) (max_over_time(`+heartbeats+` | unwrap pending_chunks | __error__="" [$__range])))`)).
		WithPanel(bars("Restarts and failures of jobs", "", `sum by (to_state) (count_over_time({event="job_state_changed"`+inCluster+` | logfmt | to_state=~"RESTARTING|FAILING|FAILED" [$__interval]))`, "{{to_state}}")).
		WithPanel(bars("Lost TaskManagers", "Those that a job or their idle timeout sent away left out.",
			`sum by (cluster) (count_over_time({event="taskmanager_lost"`+inCluster+` | logfmt | reason!~"Stopping JobMaster .*|The TaskExecutor is shutting down.*|.*exceeded the idle timeout.*" [$__interval]))`, "{{cluster}}")).
		WithPanel(lines("What became of each failed checkpoint", "", summary+` | line_format "{{.message}}"`))
}

func job() *dashboard.DashboardBuilder {
	b := withJob(newDashboard(jobUID, "Flink checkpoints: one job", "How the checkpoints of a job went, how long each part took, and which tasks were late."))
	return b.
		WithPanel(number("Failed checkpoints", "Each failure once.", count, `sum(count_over_time(`+summary+ofJob+` [$__range]))`)).
		WithPanel(number("Most failures in a row", "", count, `max(max_over_time(`+failed+ofJob+` | unwrap failures_in_a_row | __error__="" [$__range]))`)).
		WithPanel(number("Completed checkpoints", "", count, `sum(count_over_time({event="checkpoint_completed"`+inCluster+` | logfmt | savepoint!="true"`+ofJob+` [$__range]))`)).
		WithPanel(longest("Longest completed checkpoint", `max(max_over_time({event="checkpoint_completed"`+inCluster+` | logfmt | savepoint!="true"`+ofJob+` | unwrap duration_ms | __error__="" [$__range]))`)).
		WithPanel(bars("Checkpoint timeline", "How checkpoints and savepoints ended.",
			`sum by (event) (count_over_time({event=~"checkpoint_(triggered|completed|expired|declined)"`+inCluster+` | logfmt`+ofJob+` [$__interval]))`, "{{event}}")).
		WithPanel(series("Duration of completed checkpoints", "", millis, largest("job_name", "checkpoint_completed", ofJob, "duration_ms", "$__interval"), "{{job_name}}")).
		WithPanel(series("Size of the state", "", size, largest("job_name", "checkpoint_completed", ofJob, "state_size_bytes", "$__interval"), "{{job_name}}")).
		WithPanel(series("Time from one trigger to the next", "Above the configured interval, checkpoints take longer than it.", millis,
			`max by (job_name) (max_over_time({event=~"checkpoint_(completed|expired|declined)"`+inCluster+` | logfmt`+ofJob+` | unwrap interval_ms | __error__="" [$__interval]))`, "{{job_name}}")).
		WithRow(row("Durations by phase (TaskManagers' lines, which Flink writes at DEBUG)")).
		WithPanel(series("Start delay", "From the trigger to the start on the task: barriers on their way. The metric checkpointStartDelayNanos (1.11 and later), where a reporter writes it into the log; its job has a name and no id.", millis,
			`max by (task_name) (max_over_time({event="metric_reported"`+inCluster+` | logfmt | metric="checkpointStartDelayNanos"`+ofJob+` | unwrap metric_value | __error__="" [$__interval])) / 1000000`, "{{task_name}}")).
		WithPanel(series("Alignment", "Waiting for the barriers of the other channels.", millis,
			largest("task_name", "snapshot_sync_finished", maybeJob, "alignment_ms", "$__interval"), "{{task_name}}")).
		WithPanel(series("Synchronous part", "The task processes nothing meanwhile. Of the state backends, since Flink 1.11 to 1.20 print none of the task.", millis,
			largest("task_name", "state_backend_sync_finished", maybeJob, "duration_ms", "$__interval"), "{{task_name}}")).
		WithPanel(series("Asynchronous part", "State is written to the checkpoint storage.", millis,
			largest("task_name", "snapshot_async_finished", maybeJob, "async_ms", "$__interval"), "{{task_name}}")).
		WithRow(row("Late tasks and hosts")).
		WithPanel(ranking("Late tasks", "Tasks that answered after their checkpoint was given up.", count, "times late",
			`topk(50, sum by (task_name, subtask_index, host) (count_over_time({event="checkpoint_late_message"`+inCluster+` | logfmt`+ofJob+` [$__range])))`)).
		WithPanel(ranking("How late", "How much longer the timeout would have had to be.", millis, "late by",
			`topk(50, `+largest("task_name, subtask_index, host", "checkpoint_late_message", ofJob, "late_by_ms", "$__range")+`)`)).
		WithPanel(ranking("Hosts", "Always the same one: its disk, network or neighbours.", count, "times late",
			`topk(50, sum by (host) (count_over_time({event="checkpoint_late_message"`+inCluster+` | logfmt`+ofJob+` | host!="" [$__range])))`).Span(8)).
		WithPanel(ranking("Unfinished snapshots", "Snapshots that had not finished, or not begun, when their checkpoint was given up (Flink 1.12 and later).", count, "snapshots",
			`topk(50, sum by (event, task_name, subtask_index, node) (count_over_time({event=~"snapshot_async_failed|snapshot_aborted|barrier_overtaken"`+inCluster+` | logfmt`+maybeJob+` [$__range])))`).Span(16)).
		WithPanel(ranking("Failed checkpoints", "The hundred with the highest ids.", "none", "checkpoint",
			`topk(100, max by (job_name, failure_cause, failures_in_a_row, last_completed_checkpoint_id, slow_tasks, root_cause_class) (max_over_time(`+summary+ofJob+` | unwrap checkpoint_id | __error__="" [$__range])))`).Span(24).OverrideByName("slow_tasks", width(560))).
		WithPanel(lines("What happened", "", `{event=~"checkpoint_(triggered|completed|expired|declined|overdue|recovered|late_message|restored|failure_threshold_exceeded|failure_summary)|job_state_changed|savepoint_.+"`+inCluster+` | logfmt`+ofJob+` | line_format "{{.event}} {{.checkpoint_id}} {{.message}}"`))
}

func rocksDB() *dashboard.DashboardBuilder {
	return withJob(newDashboard(rocksDBUID, "Flink checkpoints: RocksDB", "What RocksDB's own LOG says of snapshots and writes.")).
		WithPanel(number("Snapshots", "", count, `sum(count_over_time({event="rocksdb_snapshot_finished"`+inCluster+` | logfmt`+ofLOG+` [$__range]))`)).
		WithPanel(longest("Longest snapshot", `max(max_over_time({event="rocksdb_snapshot_finished"`+inCluster+` | logfmt`+ofLOG+` | unwrap duration_ms | __error__="" [$__range]))`)).
		WithPanel(number("Write stalls and stops", "Tasks were slowed down, or stood still.", count, `sum(count_over_time({event=~"rocksdb_write_(stalled|stopped)"`+inCluster+` | logfmt`+ofLOG+` [$__range]))`)).
		WithPanel(number("Writing LOGs", "LOGs, one a state and subtask, that told of a snapshot.", count, `count(sum by (node, filename) (count_over_time({event="rocksdb_snapshot_finished"`+inCluster+` | logfmt`+ofLOG+` [$__range])))`)).
		WithPanel(series("Duration of snapshots", "RocksDB writes its memtables to the local disk.", millis,
			largest("node, operator_name", "rocksdb_snapshot_finished", ofLOG, "duration_ms", "$__interval"), "{{node}} {{operator_name}}")).
		WithPanel(bars("Stalls and stops by cause", "memtables: more or larger write buffers; l0_files: more threads for compactions; pending_compaction_bytes: a faster disk.",
			`sum by (event, stall_cause) (count_over_time({event=~"rocksdb_write_(stalled|stopped)"`+inCluster+` | logfmt`+ofLOG+` [$__interval]))`, "{{event}} {{stall_cause}}")).
		WithPanel(ranking("Column families", "Which state's writes stall.", count, "stalls and stops",
			`topk(50, sum by (job_name, column_family, stall_cause, node) (count_over_time({event=~"rocksdb_write_(stalled|stopped)"`+inCluster+` | logfmt`+ofLOG+` [$__range])))`).Span(24)).
		WithPanel(ranking("Slowest LOGs", "", millis, "longest snapshot",
			`topk(50, `+largest("job_name, operator_name, subtask_index, node, filename", "rocksdb_snapshot_finished", ofLOG, "duration_ms", "$__range")+`)`).Span(24).OverrideByName("filename", width(640))).
		WithPanel(lines("Stalls, stops and errors", "", `{event=~"rocksdb_(write_stalled|write_stopped|background_error|snapshot_failed)"`+inCluster+` | logfmt`+ofLOG+` | line_format "{{.event}} {{.node}} {{.message}}"`))
}
