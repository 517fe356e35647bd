// Package parsers turns lines of Flink, RocksDB and Kafka client logs into typed
// checkpoint events.
//
// A line goes through three steps: the header (time, level, thread, logger) is cut
// off; the logger selects the forms, one per wording, that its class can write; the
// form that fits fills the holes of its template into an [Event]. Lines below a
// header (a stack trace) add their reason and exception classes to the event of the
// header. The table of kinds, [Kinds], is the only list of what can come out.
//
// One kind of line below a header is no trace: in the report of Flink's Slf4jReporter each
// line is a metric, and those of [DefaultMetrics] are events of their own.
//
// The wordings are those of Flink 1.3 to 2.3, RocksDB 5.17, 6.20 and 8.10, and
// kafka-clients 0.11 to 4.1. Each [Form] names the versions that write it.
//
// The package knows nothing of Fluent Bit, Loki, files, networks or clocks. Its
// parts are safe for concurrent use once made, except [Source] and [Event], which
// belong to one goroutine at a time.
//
// Texts of an event alias the line that was given; they live as long as that line.
// A line that is no event is no error: most lines are none.
package parsers
