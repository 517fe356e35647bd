package ship

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"flink-loki/plugin/record"
	"flink-loki/plugin/telemetry"
)

func setMetricsListen(c *Config, v string) (err error) {
	if v != "" {
		c.MetricsListen, err = telemetry.CheckAddress(v)
	}
	return err
}

// newMetrics returns the metrics of an output, with a zero for what is known to come.
func newMetrics(version string) *telemetry.Output {
	m := telemetry.New(version)
	for _, result := range resultNames {
		m.Count(telemetry.Flushes, 0, result)
	}
	return m
}

// resultNames are what metrics call the results.
var resultNames = map[Result]string{OK: "ok", Retry: "retry"}

// serveMetrics serves the metrics, those of what is kept as well, where the configuration
// says so.
func (o *Output) serveMetrics() error {
	address := o.cfg.MetricsListen
	if address == "" {
		return nil
	}
	for metric, read := range map[telemetry.Metric]func() float64{
		telemetry.PushRetries:      func() float64 { return float64(o.delivery.Retries()) },
		telemetry.MendedRequests:   func() float64 { return float64(o.delivery.Mended()) },
		telemetry.DeadLetters:      func() float64 { return float64(o.dead.total()) },
		telemetry.LabelsLeftOut:    o.labelsLeftOut,
		telemetry.JournalEntries:   func() float64 { n, _ := o.kept.journal.Size(); return float64(n) },
		telemetry.JournalBytes:     func() float64 { _, n := o.kept.journal.Size(); return float64(n) },
		telemetry.JournalEvictions: func() float64 { return float64(o.kept.journal.Evicted()) },
		telemetry.StateFacts:       func() float64 { n, _ := o.kept.state.Size(); return float64(n) },
		telemetry.StateBytes:       func() float64 { _, n := o.kept.state.Size(); return float64(n) },
		telemetry.StateEvictions:   func() float64 { return float64(o.kept.state.Evicted()) },
		telemetry.Goroutines:       func() float64 { return float64(runtime.NumGoroutine()) },
		telemetry.MemoryBytes:      memory,
	} {
		o.metrics.Watch(metric, read)
	}
	if err := o.metrics.Serve(address, o.log); err != nil {
		return fmt.Errorf("option metrics_listen, value %q: %w: give another address, one that no program of this host has", address, err)
	}
	return nil
}

// memory returns the bytes that the Go runtime has from the system, and has not given back.
func memory() float64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return float64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// labelsLeftOut waits for the chunk that is being read.
func (o *Output) labelsLeftOut() float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return float64(o.labels.Over())
}

// total returns how many entries were given up.
func (d *deadLetters) total() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// countFlush counts a flush that ends: one that panics is a retry.
func (o *Output) countFlush(start time.Time, result *Result) {
	o.metrics.Count(telemetry.Flushes, 1, resultNames[*result])
	if *result == Retry {
		o.totals.failedFlushes.Add(1)
	}
	o.metrics.Observe(telemetry.FlushDuration, time.Since(start))
}

// countRead counts what was read of a chunk.
func (o *Output) countRead(chunk []byte, stats record.Stats) {
	o.metrics.Count(telemetry.Records, stats.Records)
	o.totals.records.Add(int64(stats.Records))
	o.metrics.Count(telemetry.Bytes, len(chunk))
	o.metrics.Count(telemetry.MalformedPieces, stats.Malformed)
	o.metrics.Count(telemetry.MalformedBytes, stats.SkippedBytes)
}
