package ship

import (
	"fmt"
	"log/slog"
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

// watch makes metrics of what is kept.
func (k *kept) watch(m *telemetry.Output) {
	m.Watch(telemetry.JournalEntries, func() float64 { n, _ := k.journal.Size(); return float64(n) })
	m.Watch(telemetry.JournalBytes, func() float64 { _, n := k.journal.Size(); return float64(n) })
	m.Watch(telemetry.JournalEvictions, func() float64 { return float64(k.journal.Evicted()) })
	m.Watch(telemetry.StateFacts, func() float64 { n, _ := k.state.Size(); return float64(n) })
	m.Watch(telemetry.StateBytes, func() float64 { _, n := k.state.Size(); return float64(n) })
	m.Watch(telemetry.StateEvictions, func() float64 { return float64(k.state.Evicted()) })
}

// serve serves the metrics, those of what is kept as well, where the configuration says so.
func serve(m *telemetry.Output, k *kept, cfg *Config, log *slog.Logger) error {
	if cfg.MetricsListen == "" {
		return nil
	}
	k.watch(m)
	if err := m.Serve(cfg.MetricsListen, log); err != nil {
		return fmt.Errorf("option metrics_listen, value %q: %w: give another address, one that no program of this host has", cfg.MetricsListen, err)
	}
	return nil
}

// countFlush counts a flush that ends: one that panics is a retry.
func (o *Output) countFlush(start time.Time, result *Result) {
	o.metrics.Count(telemetry.Flushes, 1, resultNames[*result])
	o.metrics.Observe(telemetry.FlushDuration, time.Since(start))
}

// countRead counts what was read of a chunk.
func (o *Output) countRead(chunk []byte, stats record.Stats) {
	o.metrics.Count(telemetry.Records, stats.Records)
	o.metrics.Count(telemetry.Bytes, len(chunk))
	o.metrics.Count(telemetry.MalformedPieces, stats.Malformed)
	o.metrics.Count(telemetry.MalformedBytes, stats.SkippedBytes)
}
