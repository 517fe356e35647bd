package telemetry

// Metric names one metric: an index into [Metrics].
type Metric int

// MetricInfo describes one metric.
type MetricInfo struct {
	// Name is what Prometheus knows it by; a quantity ends in its unit.
	Name string
	// Type is counter, gauge or histogram.
	Type string
	// Label tells apart the series of one output, empty where there is only one.
	Label string
	// Help says in a sentence what is counted or measured.
	Help string

	// watched metrics are read where they are kept, when somebody asks.
	watched bool
}

// Metrics describes every metric, in the order of the documentation. Index it with a
// [Metric].
var Metrics []MetricInfo

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

func metric(kind, name, label, help string) Metric {
	Metrics = append(Metrics, MetricInfo{Name: "flink_loki_" + name, Type: kind, Label: label, Help: help})
	return Metric(len(Metrics) - 1)
}

func watched(kind, name, help string) Metric {
	m := metric(kind, name, "", help)
	Metrics[m].watched = true
	return m
}

// Every metric, once. Chunks that come again are read from the journal: what they hold is
// counted the first time only.
var (
	BuildInfo = metric(gauge, "build_info", "version", "1, with the plug-in's version.")

	Records         = metric(counter, "records_total", "", "Records that were read.")
	Bytes           = metric(counter, "chunk_bytes_total", "", "Bytes of the chunks that were read.")
	MalformedPieces = metric(counter, "malformed_pieces_total", "", "Pieces of chunks that are no records, and were skipped.")
	MalformedBytes  = metric(counter, "malformed_bytes_total", "", "Bytes of those pieces.")
	Events          = metric(counter, "events_total", "kind", "Events that are sent, by kind.")
	Unrecognised    = metric(counter, "unrecognised_lines_total", "logger", "Lines of known loggers in unknown words, by logger: after an upgrade, Flink may word an event in another way.")
	RefusedTenants  = metric(counter, "refused_tenants_total", "", "Names of tenants that Loki would not take; the events went to tenant_id.")

	Flushes       = metric(counter, "flushes_total", "result", "Chunks that Fluent Bit handed over, by what it was told: ok or retry.")
	FlushDuration = metric(histogram, "flush_duration_seconds", "", "How long a flush took, in seconds.")
	Pushes        = metric(counter, "pushes_total", "status", "Requests to Loki, by HTTP status; error where there was no answer.")
	PushDuration  = metric(histogram, "push_duration_seconds", "", "How long Loki took to answer, in seconds.")

	PushRetries      = watched(counter, "push_retries_total", "Pushes that were made again within a flush.")
	MendedRequests   = watched(counter, "mended_requests_total", "Requests that Loki refused, and took in another form.")
	DeadLetters      = watched(counter, "dead_letters_total", "Entries and pieces of chunks that were given up: they are in the dead-letter file where there is one.")
	LabelsLeftOut    = watched(counter, "labels_left_out_total", "Streams that lack a label because it has more than max_label_values values.")
	JournalEntries   = watched(gauge, "journal_entries", "Chunks in the journal, which are not delivered yet. Outputs with one state_path share it.")
	JournalBytes     = watched(gauge, "journal_bytes", "Bytes of those chunks' requests.")
	JournalEvictions = watched(counter, "journal_evictions_total", "Chunks that the journal had no room for: a retry of one may store an event twice.")
	StateFacts       = watched(gauge, "state_facts", "Facts that are known of jobs, tasks and checkpoints. Outputs with one state_path share them.")
	StateBytes       = watched(gauge, "state_bytes", "Memory of those facts in bytes, about.")
	StateEvictions   = watched(counter, "state_evictions_total", "Facts that were forgotten for want of room: events after it may lack fields.")
	Goroutines       = watched(gauge, "goroutines", "Goroutines of all outputs of the plug-in.")
	MemoryBytes      = watched(gauge, "memory_bytes", "Memory of all outputs of the plug-in in bytes: what its runtime has from the system. memory_limit is about this.")
)

// buckets are the bounds of all histograms, in seconds, up to what a flush may take.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
