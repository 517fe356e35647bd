package parsers

// rocksDBLog stands for RocksDB's own LOG file, whose lines name a source file in
// place of a logger.
var rocksDBLog = class(rocksDB)

// rocksDBKinds are the events of RocksDB's LOG.
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
}
