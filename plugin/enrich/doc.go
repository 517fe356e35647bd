// Package enrich adds to events what one agent knows, and remembers what it has
// rendered so that a retry sends the same bytes.
//
// # The model
//
// Fluent Bit does not deliver in order: a chunk that got RETRY comes back behind newer
// ones, and after a kill the backlog comes behind new lines. So nothing here counts what
// it is given. A [State] is a set of facts, and each remembers the [place] of the line
// that told it:
//
//   - facts of one line (an attempt is this task on that host, a slot is this job's) are
//     used at their own line and behind it, never before;
//   - a checkpoint's ends are the set of lines that told them. What an event says of the
//     past (failures in a row, the last completed checkpoint) is computed from the ends
//     that stand before the event's own place: it is the same whenever it is asked;
//   - what the absence of lines tells (no checkpoint completed since, no other job lives
//     here) holds only where no line is missing. Each [Log] knows by the offsets of its
//     records which parts of its file were read. Behind a gap such a field is absent, not
//     wrong, until the gap is filled.
//
// Events that the agent makes itself have an identity that does not depend on the order
// either: the summary of a failed checkpoint is that of its job, id and trigger time; the
// stalls of a database are summed for each minute of its clock. They are made when no
// line that belongs to them is missing, or after [patience].
//
// That a job makes no checkpoints any more is told by the absence of lines, too. It is
// computed from the signs in a JobManager's log, only where no line is missing, and has
// the time at which it became true: a later line of the log and a tick tell the same.
//
// # What is kept
//
// Facts are kept as soon as a chunk is read, delivered or not. They are bounded by size;
// those that were not used for the longest time go first. With a directory they survive
// a restart: what one chunk has changed is appended to a file, before the push, together
// with the mark that its entries are in the [Journal]. A kill between the two leaves
// neither. A retry, even after a restart, sends the journal's bytes; OK releases them.
//
// One State serves all outputs of a process that have the same state_path. Facts are
// theirs together, keyed by cluster and job; what was read of a file, and what was told,
// is each output's own.
package enrich

import "time"

// StateFormat is the version of what is stored under state_path. Files of a newer
// format are set aside, not read.
const StateFormat = 1

// patience bounds, on the log's clock, how long a made event waits for lines that are
// missing.
const patience = 10 * time.Minute
