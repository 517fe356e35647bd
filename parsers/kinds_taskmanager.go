package parsers

// The TaskManager's classes.
var (
	task            = class(taskManager, "org.apache.flink.runtime.taskmanager.Task")
	taskExecutor    = class(taskManager, "org.apache.flink.runtime.taskexecutor.TaskExecutor")
	taskManagerOld  = class(taskManager, "org.apache.flink.runtime.taskmanager.TaskManager") // up to 1.8
	streamTask      = class(taskManager, "org.apache.flink.streaming.runtime.tasks.StreamTask")
	subtaskSnapshot = class(taskManager, "org.apache.flink.streaming.runtime.tasks.SubtaskCheckpointCoordinatorImpl")
	asyncRunnable   = class(taskManager, "org.apache.flink.streaming.runtime.tasks.AsyncCheckpointRunnable")
	operators       = class(taskManager,
		"org.apache.flink.streaming.runtime.tasks.RegularOperatorChain",
		"org.apache.flink.streaming.api.operators.AbstractStreamOperator")
	restorer      = class(taskManager, "org.apache.flink.streaming.api.operators.BackendRestorerProcedure")
	barrierBuffer = class(taskManager, "org.apache.flink.streaming.runtime.io.BarrierBuffer") // up to 1.8
	bufferStorage = class(taskManager, "org.apache.flink.streaming.runtime.io.CachedBufferStorage", "org.apache.flink.streaming.runtime.io.AbstractBufferStorage")
	// Moved into the package checkpointing in 1.13.
	barrierAligner = class(taskManager,
		"org.apache.flink.streaming.runtime.io.CheckpointBarrierAligner",
		"org.apache.flink.streaming.runtime.io.checkpointing.CheckpointBarrierAligner")
	barrierUnaligner = class(taskManager,
		"org.apache.flink.streaming.runtime.io.CheckpointBarrierUnaligner",
		"org.apache.flink.streaming.runtime.io.checkpointing.CheckpointBarrierUnaligner")
	barrierHandler = class(taskManager,
		"org.apache.flink.streaming.runtime.io.checkpointing.SingleCheckpointBarrierHandler",
		"org.apache.flink.streaming.runtime.io.SingleCheckpointBarrierHandler")
	barrierTracker = class(taskManager,
		"org.apache.flink.streaming.runtime.io.checkpointing.CheckpointBarrierTracker",
		"org.apache.flink.streaming.runtime.io.CheckpointBarrierTracker",
		"org.apache.flink.streaming.runtime.io.BarrierTracker")
	snapshotStrategy = class(taskManager,
		"org.apache.flink.runtime.state.SnapshotStrategyRunner",
		"org.apache.flink.runtime.state.AbstractSnapshotStrategy",
		"org.apache.flink.runtime.state.DefaultOperatorStateBackend",
		"org.apache.flink.runtime.state.heap.HeapKeyedStateBackend",
		"org.apache.flink.contrib.streaming.state.RocksDBKeyedStateBackend")
)

// taskManagerKinds are the events of the TaskManager's log; the state changes of
// tasks stand in both.
var taskManagerKinds = []Kind{
	{
		Name: "task_received",
		Doc:  "A TaskManager received a task.",
		Forms: []Form{
			{ID: "task-received", Versions: "1.12-2.3", By: by(taskExecutor),
				Text: "Received task {task} ({task_attempt_id}), deploy into slot with allocation id {allocation_id}."},
			{ID: "task-received", Versions: "1.3-1.11", By: by(taskExecutor, taskManagerOld),
				Text: "Received task {task}."},
		},
	},
	{
		Name: "task_state_changed",
		Doc:  "A task changed its state, as the JobManager or the TaskManager sees it.",
		Forms: []Form{
			{ID: "task-state", Versions: "1.3-2.3", By: by(executionGraph, task),
				Text: "{task} ({task_attempt_id}) switched from {from_state} to {to_state}."},
			{ID: "task-state", Versions: "1.10-2.3", By: by(executionGraph),
				Text: "{task} ({task_attempt_id}) switched from {from_state} to {to_state} on {task_location}."},
			{ID: "task-state", Versions: "1.13-2.3", By: by(task), // from 1.17 on the cause stands below
				Text: "{task} ({task_attempt_id}) switched from {from_state} to {to_state} with failure cause: {exception}"},
			{ID: "task-state", Versions: "1.15-2.3", By: by(task), Set: "reason=CancelTaskException",
				Text: "{task} ({task_attempt_id}) switched from {from_state} to {to_state} due to CancelTaskException."},
			{ID: "task-state", Versions: "1.15-2.3", By: by(task), // from 1.17 on the cause stands below
				Text: "{task} ({task_attempt_id}) switched from {from_state} to {to_state} due to CancelTaskException: {exception}"},
		},
	},
	{
		Name: "task_stuck", Core: true,
		Doc: "A task does not react to being cancelled.",
		Forms: []Form{
			{ID: "task-cancel-stuck", Versions: "1.13-2.3", By: by(task),
				Text: "Task '{task}' did not react to cancelling signal - {}; it is stuck for {seconds} seconds in method:"},
			{ID: "task-cancel-stuck", Versions: "1.5-1.12", By: by(task),
				Text: "Task '{task}' did not react to cancelling signal for {seconds} seconds, but is stuck in method:"},
			{ID: "task-cancel-stuck", Versions: "1.3-1.4", By: by(task),
				Text: "Task '{task}' did not react to cancelling signal, but is stuck in method:"},
		},
	},
	{
		Name: "barrier_received", Quiet: true,
		Doc: "A barrier arrived on one channel (DEBUG).",
		Forms: []Form{
			{ID: "barrier-received", Versions: "1.11-2.3", By: by(barrierHandler, barrierUnaligner),
				Text: "{task}: Received barrier from channel {channel} @ {checkpoint_id}."},
			{ID: "barrier-received", Versions: "1.5-1.11", By: by(barrierAligner, barrierBuffer),
				Text: "{task}: Received barrier from channel {channel}."},
			{ID: "barrier-received", Versions: "1.3-2.3", By: by(barrierTracker),
				Text: "Received barrier for checkpoint {checkpoint_id} from channel {channel}"},
			{ID: "barrier-received", Versions: "1.3-1.4", By: by(barrierBuffer),
				Text: "Received barrier from channel {channel}"},
		},
	},
	{
		Name: "barriers_aligned",
		Doc:  "The barriers of all channels are there (DEBUG).",
		Forms: []Form{
			{ID: "barrier-all-received", Versions: "1.14-2.3", By: by(barrierHandler),
				Text: "{task}: All the channels are aligned for checkpoint {checkpoint_id}."},
			{ID: "barrier-all-received", Versions: "1.14-2.3", By: by(barrierTracker),
				Text: "All the channels are aligned for checkpoint {checkpoint_id}"},
			{ID: "barrier-all-received", Versions: "1.13", By: by(barrierHandler),
				Text: "{task}: Received all barriers for checkpoint {checkpoint_id}."},
			{ID: "barrier-triggering", Versions: "1.12", By: by(barrierHandler),
				Text: "{task}: Triggering checkpoint {checkpoint_id} on the last barrier at {trigger_time}."},
			{ID: "barrier-all-received", Versions: "1.3-1.13", By: by(barrierTracker),
				Text: "Received all barriers for checkpoint {checkpoint_id}"},
			{ID: "barrier-all-received", Versions: "1.5-1.11", By: by(barrierAligner, barrierBuffer),
				Text: "{task}: Received all barriers, triggering checkpoint {checkpoint_id} at {trigger_time}."},
			{ID: "barrier-all-received", Versions: "1.3-1.4", By: by(barrierBuffer),
				Text: "Received all barriers, triggering checkpoint {checkpoint_id} at {trigger_time}"},
		},
	},
	{
		Name: "barrier_overtaken", Core: true,
		Doc: "A newer barrier overtook a checkpoint that had not completed on this task: checkpoint_id is the one given up.",
		Forms: []Form{
			{ID: "barrier-skipping-checkpoint", Versions: "1.12-2.3", By: by(barrierHandler),
				Text: "{task}: Received EndOfPartition(-1) before completing current checkpoint {checkpoint_id}. Skipping current checkpoint."},
			{ID: "barrier-skipping-checkpoint", Versions: "1.11", By: by(barrierUnaligner),
				Text: "{task}: Received barrier or EndOfPartition(-1) {new_checkpoint_id} before completing current checkpoint {checkpoint_id}. Skipping current checkpoint."},
			{ID: "barrier-skipping-checkpoint", Versions: "1.5-2.3", By: by(barrierHandler, barrierUnaligner, barrierAligner, barrierBuffer),
				Text: "{task}: Received checkpoint barrier for checkpoint {new_checkpoint_id} before completing current checkpoint {checkpoint_id}. Skipping current checkpoint."},
			{ID: "barrier-skipping-checkpoint", Versions: "1.5-1.11", By: by(barrierAligner, barrierBuffer),
				Text: "{task}: Received cancellation barrier for checkpoint {new_checkpoint_id} before completing current checkpoint {checkpoint_id}. Skipping current checkpoint."},
			{ID: "barrier-skipping-checkpoint", Versions: "1.3-1.4", By: by(barrierBuffer),
				Text: "Received checkpoint barrier for checkpoint {new_checkpoint_id} before completing current checkpoint {checkpoint_id}. Skipping current checkpoint."},
			{ID: "barrier-skipping-checkpoint", Versions: "1.3-1.4", By: by(barrierBuffer),
				Text: "Received cancellation barrier for checkpoint {new_checkpoint_id} before completing current checkpoint {checkpoint_id}. Skipping current checkpoint."},
		},
	},
	{
		Name: "barrier_cancelled",
		Doc:  "A cancellation barrier arrived: a task upstream gave the checkpoint up (DEBUG).",
		Forms: []Form{
			{ID: "barrier-cancellation-received", Versions: "1.12-2.3", By: by(barrierHandler),
				Text: "{task}: Received cancellation {checkpoint_id}."},
			{ID: "barrier-cancellation-received", Versions: "1.9-2.3", By: by(barrierTracker),
				Text: "Received cancellation barrier for checkpoint {checkpoint_id}"},
			{ID: "barrier-cancellation-received", Versions: "1.3-1.8", By: by(barrierTracker),
				Text: "Received cancellation barrier for checkpoint {checkpoint_id} from channel {channel}"},
			{ID: "checkpoint-task-abort-barrier", Versions: "1.3-2.3", By: by(subtaskSnapshot, streamTask),
				Text: "Aborting checkpoint via cancel-barrier {checkpoint_id} for task {task}"},
		},
	},
	{
		Name: "alignment_started",
		Doc:  "A task waits for the barriers of its other channels (DEBUG).",
		Forms: []Form{
			{ID: "barrier-alignment-start", Versions: "1.5-1.11", By: by(barrierAligner, barrierBuffer),
				Text: "{task}: Starting stream alignment for checkpoint {checkpoint_id}."},
			{ID: "barrier-alignment-start", Versions: "1.3-1.4", By: by(barrierBuffer),
				Text: "Starting stream alignment for checkpoint {checkpoint_id}."},
		},
	},
	{
		Name: "alignment_finished",
		Doc:  "A task goes on after an alignment (DEBUG).",
		Forms: []Form{
			{ID: "barrier-alignment-end", Versions: "1.5-1.11", By: by(barrierAligner, barrierBuffer),
				Text: "{task}: End of stream alignment, feeding buffered data back."},
			{ID: "barrier-alignment-end", Versions: "1.5-1.10", By: by(barrierBuffer, bufferStorage),
				Text: "{task}: Finished feeding back buffered data."},
			{ID: "barrier-alignment-end", Versions: "1.3-1.4", By: by(barrierBuffer),
				Text: "End of stream alignment, feeding buffered data back"},
			{ID: "barrier-alignment-end", Versions: "1.3-1.4", By: by(barrierBuffer),
				Text: "Finished feeding back buffered data"},
		},
	},
	{
		Name: "alignment_aborted", Core: true, Failure: true,
		Doc: "A task gave an alignment up.",
		Forms: []Form{
			{ID: "barrier-alignment-aborted", Versions: "1.13-2.3", By: by(barrierHandler),
				Text: "{task}: Aborting checkpoint {checkpoint_id} after exception {exception}."},
			{ID: "barrier-alignment-aborted", Versions: "1.5-1.11", By: by(barrierAligner, barrierBuffer),
				Text: "{task}: Checkpoint {checkpoint_id} canceled, aborting alignment."},
			{ID: "barrier-alignment-aborted", Versions: "1.5-1.11", By: by(barrierAligner, barrierBuffer),
				Text: "{task}: Checkpoint {checkpoint_id} canceled, skipping alignment."},
			{ID: "barrier-alignment-aborted", Versions: "1.3-1.4", By: by(barrierBuffer),
				Text: "Checkpoint {checkpoint_id} canceled, aborting alignment"},
			{ID: "barrier-alignment-aborted", Versions: "1.3-1.4", By: by(barrierBuffer),
				Text: "Checkpoint {checkpoint_id} canceled, skipping alignment"},
			{ID: "barrier-alignment-limit", Versions: "1.5-1.8", By: by(barrierBuffer),
				Text: "{task}: Checkpoint {checkpoint_id} aborted because {reason:alignment volume limit} ({bytes} bytes) exceeded."},
			{ID: "barrier-alignment-limit", Versions: "1.3-1.4", By: by(barrierBuffer),
				Text: "Checkpoint {checkpoint_id} aborted because {reason:alignment volume limit} ({bytes} bytes) exceeded"},
		},
	},
	{
		Name: "snapshot_started", Core: true,
		Doc: "A task starts its snapshot (DEBUG). Where this line is missing or late, the task started late.",
		Forms: []Form{
			{ID: "checkpoint-task-start", Versions: "1.14-2.3", By: by(streamTask),
				Text: "Starting checkpoint {checkpoint_id} {checkpoint_type} on task {task}"},
			{ID: "checkpoint-task-start", Versions: "1.3-1.13", By: by(streamTask),
				Text: "Starting checkpoint ({checkpoint_id}) {checkpoint_type} on task {task}"},
		},
	},
	{
		Name: "snapshot_start_delayed", Core: true,
		Doc: "A task had all barriers but started its snapshot more than 30 s later: its mailbox was busy.",
		Forms: []Form{
			{ID: "checkpoint-start-delay", Versions: "1.20-2.3", By: by(subtaskSnapshot),
				Text: "Time from receiving all checkpoint barriers/RPC for checkpoint {checkpoint_id} to executing it exceeded threshold: {start_delay_ms}ms"},
			{ID: "checkpoint-start-delay", Versions: "1.12-1.19", By: by(subtaskSnapshot),
				Text: "Time from receiving all checkpoint barriers/RPC to executing it exceeded threshold: {start_delay_ms}ms"},
		},
	},
	{
		Name: "snapshot_sync_finished", Core: true,
		Doc: "A task finished the synchronous part of its snapshot (DEBUG). Flink 1.11 to 1.20 print -1 for its duration, so sync_ms is absent there.",
		Forms: []Form{
			{ID: "checkpoint-sync-finished", Versions: "1.13-2.3", By: by(subtaskSnapshot),
				Text: "{task} - finished synchronous part of checkpoint {checkpoint_id}. Alignment duration: {alignment_ms} ms, snapshot duration {sync_ms} ms, is unaligned checkpoint : {unaligned}"},
			{ID: "checkpoint-sync-finished", Versions: "1.7-1.12", By: by(subtaskSnapshot, streamTask),
				Text: "{task} - finished synchronous part of checkpoint {checkpoint_id}. Alignment duration: {alignment_ms} ms, snapshot duration {sync_ms} ms"},
			{ID: "checkpoint-sync-finished", Versions: "1.3-1.6", By: by(streamTask),
				Text: "{task} - finished synchronous part of checkpoint {checkpoint_id}.Alignment duration: {alignment_ms} ms, snapshot duration {sync_ms} ms"},
			{ID: "checkpoint-sync-finished", Versions: "1.3-1.10", By: by(streamTask),
				Text: "Finished synchronous checkpoints for checkpoint {checkpoint_id} on task {task}"},
		},
	},
	{
		Name: "snapshot_sync_failed",
		Doc:  "A task did not finish the synchronous part of its snapshot (DEBUG).",
		Forms: []Form{
			{ID: "checkpoint-sync-not-finished", Versions: "1.7-2.3", By: by(subtaskSnapshot, streamTask),
				Text: "{task} - did NOT finish synchronous part of checkpoint {checkpoint_id}. Alignment duration: {alignment_ms} ms, snapshot duration {sync_ms} ms"},
			{ID: "checkpoint-sync-not-finished", Versions: "1.3-1.6", By: by(streamTask),
				Text: "{task} - did NOT finish synchronous part of checkpoint {checkpoint_id}.Alignment duration: {alignment_ms} ms, snapshot duration {sync_ms} ms"},
		},
	},
	{
		Name: "snapshot_async_started", Core: true,
		Doc: "A task starts the asynchronous part of its snapshot (DEBUG).",
		Forms: []Form{
			{ID: "checkpoint-async-started", Versions: "1.12-2.3", By: by(asyncRunnable),
				Text: "{task} - started executing asynchronous part of checkpoint {checkpoint_id}. Asynchronous start delay: {start_delay_ms} ms"},
		},
	},
	{
		Name: "snapshot_async_finished", Core: true,
		Doc: "A task finished the asynchronous part of its snapshot (DEBUG).",
		Forms: []Form{
			{ID: "checkpoint-async-finished", Versions: "1.3-2.3", By: by(asyncRunnable, streamTask),
				Text: "{task} - finished asynchronous part of checkpoint {checkpoint_id}. Asynchronous duration: {async_ms} ms"},
		},
	},
	{
		Name: "snapshot_async_failed", Core: true, Failure: true,
		Doc: "The asynchronous part of a snapshot failed or was cancelled; the exception stands below.",
		Forms: []Form{
			{ID: "checkpoint-async-failed", Versions: "1.10-2.3", By: by(asyncRunnable, streamTask),
				Text: "{task} - asynchronous part of checkpoint {checkpoint_id} could not be completed."},
		},
	},
	{
		Name: "snapshot_failed", Core: true, Failure: true,
		Doc: "A snapshot failed in its synchronous part.",
		Forms: []Form{
			{ID: "checkpoint-snapshot-failed", Versions: "1.11-2.3", By: by(operators, subtaskSnapshot),
				Text: "Could not complete snapshot {checkpoint_id} for operator {task}. Failure reason: {reason}"},
			{ID: "checkpoint-snapshot-failed", Versions: "1.5-1.10", By: by(operators),
				Text: "Could not complete snapshot {checkpoint_id} for operator {task}."},
			{ID: "checkpoint-task-not-performed", Versions: "1.3-2.3", By: by(streamTask),
				Text: "Could not perform checkpoint {checkpoint_id} for operator {task} while {reason:the invokable was not in state running}."},
			{ID: "checkpoint-task-not-performed", Versions: "1.3-2.3", By: by(streamTask),
				Text: "Operator {task} was cancelled while performing checkpoint {checkpoint_id}."},
		},
	},
	{
		Name: "snapshot_aborted",
		Doc:  "A barrier reached a task after its checkpoint had been aborted: this task started late.",
		Forms: []Form{
			{ID: "checkpoint-already-aborted", Versions: "1.11-2.3", By: by(subtaskSnapshot),
				Text: "Checkpoint {checkpoint_id} has been notified as aborted, would not trigger any checkpoint."},
		},
	},
	{
		Name: "snapshot_async_declined_late",
		Doc:  "A task that no longer runs ignored a checkpoint's end.",
		Forms: []Form{
			{ID: "checkpoint-async-decline-ignored", Versions: "1.11-2.3", By: by(asyncRunnable),
				Text: "Ignore decline of checkpoint {checkpoint_id} as task is not running anymore."},
			{ID: "checkpoint-notify-ignored", Versions: "1.15-2.3", By: by(task),
				Text: "Ignoring checkpoint {} notification for non-running task {task}."},
			{ID: "checkpoint-notify-ignored", Versions: "1.11-1.14", By: by(task),
				Text: "Ignoring checkpoint aborted notification for non-running task {task}."},
			{ID: "checkpoint-notify-ignored", Versions: "1.3-1.14", By: by(task),
				Text: "Ignoring checkpoint commit notification for non-running task {task}."},
			{ID: "checkpoint-notify-ignored", Versions: "1.3-1.4", By: by(task),
				Text: "Task received a checkpoint commit notification, but is not a checkpoint committing task - {task}."},
			{ID: "checkpoint-notify-ignored", Versions: "1.3-1.4", By: by(task),
				Text: "Task received a checkpoint request, but is not a checkpointing task - {task} ({task_attempt_id})."},
		},
	},
	{
		Name: "snapshot_out_of_order", Quiet: true,
		Doc: "A barrier came after a newer checkpoint had been handled.",
		Forms: []Form{
			{ID: "checkpoint-barrier-out-of-order", Versions: "1.11-2.3", By: by(subtaskSnapshot),
				Text: "Out of order checkpoint barrier (aborted previously?): {new_checkpoint_id} >= {checkpoint_id}"},
		},
	},
	{
		Name: "state_backend_sync_finished", Core: true,
		Doc: "A state backend finished the synchronous part of a snapshot (INFO up to 1.6, then DEBUG).",
		Forms: []Form{
			{ID: "snapshot-sync", Versions: "1.3-2.3", By: by(snapshotStrategy),
				Text: "{backend} ({storage}, synchronous part) in thread {snapshot_thread} took {duration_ms} ms."},
			{ID: "snapshot-sync", Versions: "1.3-1.6", By: by(snapshotStrategy),
				Text: "{backend:Asynchronous RocksDB snapshot} ({storage}, synchronous part) in thread {snapshot_thread} took {duration_ms} ms."},
		},
	},
	{
		Name: "state_backend_async_finished", Core: true,
		Doc: "A state backend finished the asynchronous part of a snapshot (INFO up to 1.6, then DEBUG).",
		Forms: []Form{
			{ID: "snapshot-async", Versions: "1.3-2.3", By: by(snapshotStrategy),
				Text: "{backend} ({storage}, asynchronous part) in thread {snapshot_thread} took {duration_ms} ms."},
			{ID: "snapshot-async", Versions: "1.3-1.6", By: by(snapshotStrategy),
				Text: "{backend:Asynchronous RocksDB snapshot} ({storage}, asynchronous part) in thread {snapshot_thread} took {duration_ms} ms."},
		},
	},
	{
		Name: "task_checkpoint_triggered", Quiet: true,
		Doc: "A source task was told to start a checkpoint (DEBUG).",
		Forms: []Form{
			{ID: "checkpoint-rpc-trigger", Versions: "1.3-2.3", By: by(taskExecutor),
				Text: "Trigger checkpoint {checkpoint_id}@{trigger_time} for {task_attempt_id}."},
			{ID: "checkpoint-rpc-trigger", Versions: "1.3-1.8", By: by(taskManagerOld),
				Text: "Receiver TriggerCheckpoint {checkpoint_id}@{trigger_time} for {task_attempt_id}."},
		},
	},
	{
		Name: "task_checkpoint_confirmed", Quiet: true,
		Doc: "A task was told that a checkpoint is complete (DEBUG).",
		Forms: []Form{
			{ID: "checkpoint-rpc-confirm", Versions: "1.15-2.3", By: by(taskExecutor),
				Text: "Confirm completed checkpoint {checkpoint_id}@{trigger_time} and last subsumed checkpoint {} for {task_attempt_id}."},
			{ID: "checkpoint-rpc-confirm", Versions: "1.3-1.14", By: by(taskExecutor),
				Text: "Confirm checkpoint {checkpoint_id}@{trigger_time} for {task_attempt_id}."},
			{ID: "checkpoint-rpc-confirm", Versions: "1.3-1.8", By: by(taskManagerOld),
				Text: "Receiver ConfirmCheckpoint {checkpoint_id}@{trigger_time} for {task_attempt_id}."},
		},
	},
	{
		Name: "task_checkpoint_aborted", Quiet: true,
		Doc: "A task was told that a checkpoint is aborted (DEBUG).",
		Forms: []Form{
			{ID: "checkpoint-rpc-abort", Versions: "1.11-2.3", By: by(taskExecutor),
				Text: "Abort checkpoint {checkpoint_id}@{trigger_time} for {task_attempt_id}."},
		},
	},
}
