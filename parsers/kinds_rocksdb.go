package parsers

// rocksDBLog stands for RocksDB's own LOG file, whose lines name a source file in
// place of a logger.
var rocksDBLog = class(rocksDB)

// rocksDBKinds are the events of RocksDB's LOG. Flink 1.8 to 1.13 have RocksDB 5.17.2,
// 1.14 to 1.20 have 6.20.3, 2.0 to 2.3 have 8.10.0. The statements are those of
// db/column_family.cc (stalls), db/flush_job.cc, db/compaction_job.cc (later
// db/compaction/compaction_job.cc), db/db_impl_compaction_flush.cc (later
// db/db_impl/…), db/db_filesnapshot.cc and utilities/checkpoint/checkpoint_impl.cc.
var rocksDBKinds = []Kind{
	{
		Name: "rocksdb_snapshot_started", Core: true,
		Doc: "RocksDB starts a snapshot; the directory names job, operator, subtask and checkpoint.",
		Forms: []Form{
			{ID: "rocksdb-checkpoint-start", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog),
				Text: "Started the snapshot process -- creating snapshot in directory {snapshot_directory}"},
		},
	},
	{
		Name: "rocksdb_snapshot_finished", Core: true,
		Doc: "RocksDB finished a snapshot.",
		Forms: []Form{
			{ID: "rocksdb-checkpoint-done", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog),
				Text: "Snapshot DONE. All is good"},
		},
	},
	{
		Name: "rocksdb_snapshot_failed", Core: true,
		Doc: "RocksDB could not take a snapshot.",
		Forms: []Form{
			{ID: "rocksdb-checkpoint-failed", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog),
				Text: "Snapshot failed -- {reason}"},
		},
	},
	{
		Name: "rocksdb_write_stalled", Core: true,
		Doc: "RocksDB slows a state's writes down to rate, because flushes or compactions do not keep up.",
		Forms: []Form{
			{ID: "rocksdb-write-stall", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog), Set: "stall_cause=memtables",
				Text: "[{column_family}] Stalling writes because we have {value} immutable memtables (waiting for flush), max_write_buffer_number is set to {limit} rate {rate}"},
			{ID: "rocksdb-write-stall", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog), Set: "stall_cause=l0_files",
				Text: "[{column_family}] Stalling writes because we have {value} level-0 files rate {rate}"},
			{ID: "rocksdb-write-stall", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog), Set: "stall_cause=pending_compaction_bytes",
				Text: "[{column_family}] Stalling writes because of estimated pending compaction bytes {value,bytes} rate {rate}"},
		},
	},
	{
		Name: "rocksdb_write_stopped", Core: true,
		Doc: "RocksDB stops a state's writes until a flush or compaction is done: the task stands still.",
		Forms: []Form{
			{ID: "rocksdb-write-stop", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog), Set: "stall_cause=memtables",
				Text: "[{column_family}] Stopping writes because we have {value} immutable memtables (waiting for flush), max_write_buffer_number is set to {limit}"},
			{ID: "rocksdb-write-stop", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog), Set: "stall_cause=l0_files",
				Text: "[{column_family}] Stopping writes because we have {value} level-0 files"},
			{ID: "rocksdb-write-stop", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog), Set: "stall_cause=pending_compaction_bytes",
				Text: "[{column_family}] Stopping writes because of estimated pending compaction bytes {value,bytes}"},
		},
	},
	{
		Name: "rocksdb_flush_started", Quiet: true,
		Doc: "RocksDB starts to write memtables of bytes to disk; the reason Get Live Files is a snapshot.",
		Forms: []Form{
			{ID: "rocksdb-event-flush-started", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog),
				Text: "EVENT_LOG_v1 {flush_started}"},
		},
	},
	{
		Name: "rocksdb_flush_finished", Quiet: true,
		Doc: "RocksDB ended a flush, well or not: one event a flush. duration_ms up to RocksDB 6.20 is the time since its start in the log.",
		Forms: []Form{
			// Which of the two lines of a flush is its event: see [lastFlush].
			{ID: "rocksdb-flush-lasted", Versions: "rocksdb 8.10.0", By: by(rocksDBLog),
				Text: "[{column_family}] [JOB {rocksdb_job}] Flush lasted {microseconds} microseconds, and {number} cpu microseconds."},
			{ID: "rocksdb-event-flush-finished", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog),
				Text: "EVENT_LOG_v1 {flush_finished}"},
		},
	},
	{
		Name: "rocksdb_compaction_started", Quiet: true,
		Doc: "RocksDB starts to merge files of bytes.",
		Forms: []Form{
			{ID: "rocksdb-event-compaction-started", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog),
				Text: "EVENT_LOG_v1 {compaction_started}"},
		},
	},
	{
		Name: "rocksdb_compaction_finished", Quiet: true,
		Doc: "RocksDB ended a compaction, which wrote bytes.",
		Forms: []Form{
			{ID: "rocksdb-event-compaction-finished", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog),
				Text: "EVENT_LOG_v1 {compaction_finished}"},
		},
	},
	{
		Name: "rocksdb_background_error", Core: true,
		Doc: "A flush or compaction failed, such as on a full disk.",
		Forms: []Form{
			{ID: "rocksdb-background-error", Versions: "rocksdb 8.10.0", By: by(rocksDBLog),
				Text: "[JOB {rocksdb_job}] Waiting after background flush error: {reason}Accumulated background error counts: {number}"},
			{ID: "rocksdb-background-error", Versions: "rocksdb 5.17.2-6.20.3", By: by(rocksDBLog),
				Text: "Waiting after background flush error: {reason}Accumulated background error counts: {number}"},
			{ID: "rocksdb-background-error", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog),
				Text: "Waiting after background compaction error: {reason}, Accumulated background error counts: {number}"},
			{ID: "rocksdb-flush-error", Versions: "rocksdb 5.17.2-8.10.0", By: by(rocksDBLog),
				Text: "Cannot Flush data {reason}"},
		},
	},
}
