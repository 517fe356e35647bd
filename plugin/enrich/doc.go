// Package enrich adds to events what one agent knows, and remembers what it has
// rendered so that a retry sends the same bytes.
//
// Three kinds of knowledge, kept apart because Fluent Bit delivers chunks out of
// order (a chunk that got RETRY comes back behind newer ones, and after a kill the
// backlog comes after new lines):
//
//   - facts (an attempt is this task on that host): idempotent, kept when a chunk is
//     first seen, delivered or not;
//   - outcomes (these checkpoints of a job failed): sets, never counters;
//   - the [Journal]: the encoded entries of a chunk, under the chunk's fingerprint.
//     It is written with the advance of the state and before the push; a retry, even
//     after a restart, sends those bytes; OK releases them.
//
// So far the package holds the journal, and the [Counter] that tells equal lines apart.
package enrich

// StateFormat is the version of what is stored under state_path. Files of a newer
// format are set aside, not read.
const StateFormat = 1
