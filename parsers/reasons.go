package parsers

import "bytes"

// failureReason is one of Flink's CheckpointFailureReasons.
type failureReason struct {
	// name is the enum's constant in lower case.
	name string
	// counted says whether it is a failure of checkpointing. It is decided by sense and is
	// the same for all versions; Flink's own count, towards the tolerable failures, has
	// changed: it leaves out expiries up to 1.10, asynchronous failures in 1.10, failed
	// finalizations up to 1.14, and the alignment limit always.
	counted bool
	// texts are the words that the reason has had in messages and exceptions, without a
	// final dot. They are matched where a text starts.
	texts []string

	value []byte // name
}

// failureReasons are Flink's reasons with their words in Flink 1.3 to 2.3
// (org.apache.flink.runtime.checkpoint.CheckpointFailureReason since 1.9; before that
// CheckpointDeclineReason, the exceptions in checkpoint.decline, and the texts that
// PendingCheckpoint was aborted with).
var failureReasons = []failureReason{
	{name: "checkpoint_expired", counted: true, texts: []string{
		"Checkpoint expired before completing",
		"The checkpoint expired before triggering was complete", // up to 1.8
	}},
	{name: "checkpoint_declined_subsumed", counted: false, texts: []string{
		"Checkpoint was canceled because a barrier from newer checkpoint", // up to 1.8 with the checkpoint's id
	}},
	{name: "checkpoint_declined_task_not_ready", counted: false, texts: []string{
		"Checkpoint was declined (tasks not ready)",
		"Task local checkpoint declined (tasks not ready)",
	}},
	{name: "checkpoint_declined_task_closing", counted: false, texts: []string{
		"Checkpoint was declined (task is closing)",                   // 1.14 and later
		"Checkpoint was declined (task's operators partially closed)", // 1.11 to 1.13
	}},
	{name: "checkpoint_declined_input_end_of_stream", counted: false, texts: []string{"Checkpoint was declined because one input stream is finished"}},
	{name: "checkpoint_declined_on_cancellation_barrier", counted: false, texts: []string{"Task received cancellation from one of its inputs"}},
	{name: "checkpoint_declined_alignment_limit_exceeded", counted: true, texts: []string{
		"The checkpoint alignment phase needed to buffer more than the configured maximum",
		"alignment volume limit", // the TaskManager's own line
	}},
	{name: "checkpoint_declined_task_not_checkpointing", counted: false, texts: []string{"Task does not support checkpointing"}},
	{name: "checkpoint_declined", counted: true, texts: []string{"Checkpoint was declined"}},
	{name: "checkpoint_async_exception", counted: true, texts: []string{
		"Asynchronous task checkpoint failed",
		"Could not materialize checkpoint", // the cause, where 1.3 to 1.9 name no reason
	}},
	{name: "finalize_checkpoint_failure", counted: true, texts: []string{"Failure to finalize checkpoint"}},
	{name: "io_exception", counted: true, texts: []string{"An Exception occurred while triggering the checkpoint. IO-problem detected"}},
	{name: "exception", counted: false, texts: []string{"An Exception occurred while triggering the checkpoint"}},
	{name: "channel_state_shared_stream_exception", counted: false, texts: []string{
		"The checkpoint was aborted due to exception of other subtasks sharing the ChannelState file",
	}},
	{name: "periodic_scheduler_shutdown", counted: false, texts: []string{"Periodic checkpoint scheduler is shut down"}},
	{name: "already_queued", counted: false, texts: []string{"Another checkpoint request has already been queued"}},
	{name: "too_many_checkpoint_requests", counted: false, texts: []string{"The maximum number of queued checkpoint requests exceeded"}},
	{name: "too_many_concurrent_checkpoints", counted: false, texts: []string{"The maximum number of concurrent checkpoints is exceeded"}},
	{name: "minimum_time_between_checkpoints", counted: false, texts: []string{"The minimum time between checkpoints is still pending"}},
	{name: "not_all_required_tasks_running", counted: false, texts: []string{
		"Not all required tasks are currently running",
		"is not being executed at the moment", // the line itself, up to 1.12
		"is not in state ",                    // "is not in state RUNNING but FINISHED instead"
	}},
	{name: "blocking_output_exist", counted: false, texts: []string{"Blocking output edge exists in running tasks"}},
	{name: "checkpoint_subsumed", counted: false, texts: []string{
		"Checkpoint has been subsumed",
		"Checkpoints has been subsumed", // up to 1.8
	}},
	{name: "checkpoint_coordinator_shutdown", counted: false, texts: []string{
		"CheckpointCoordinator shutdown",
		"Checkpoint coordinator is shut down",
	}},
	{name: "checkpoint_coordinator_suspend", counted: false, texts: []string{"Checkpoint Coordinator is suspending"}},
	{name: "job_failure", counted: false, texts: []string{"The job has failed"}},
	{name: "job_failover_region", counted: false, texts: []string{"FailoverRegion is restarting"}},
	{name: "task_failure", counted: false, texts: []string{"Task has failed"}},
	{name: "task_checkpoint_failure", counted: false, texts: []string{"Task local checkpoint failure"}},
	{name: "unknown_task_checkpoint_notification_failure", counted: false, texts: []string{"Unknown task for the checkpoint to notify"}},
	{name: "trigger_checkpoint_failure", counted: false, texts: []string{"Trigger checkpoint failure"}},
}

// findReason returns the reason whose words a text starts with, nil for none.
func findReason(text []byte) *failureReason {
	for i := range failureReasons {
		for _, words := range failureReasons[i].texts {
			if len(text) >= len(words) && string(text[:len(words)]) == words {
				return &failureReasons[i]
			}
		}
	}
	return taskReason(text)
}

// taskReason recognises the two reasons of Flink 1.3 to 1.8 that have a task's name in
// their middle.
func taskReason(text []byte) *failureReason {
	if !bytes.HasPrefix(text, []byte("Task ")) {
		return nil
	}
	switch {
	case bytes.HasSuffix(text, []byte("does not support checkpointing")):
		return reasonByName("checkpoint_declined_task_not_checkpointing")
	case bytes.HasSuffix(text, []byte(" was not running")):
		return reasonByName("checkpoint_declined_task_not_ready")
	}
	return nil
}

func reasonByName(name string) *failureReason {
	for i := range failureReasons {
		if failureReasons[i].name == name {
			return &failureReasons[i]
		}
	}
	return nil
}
