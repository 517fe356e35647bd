package telemetry

import (
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Output is the metrics of one output. It is safe for concurrent use once it is served,
// or nobody calls [Output.Watch] any more.
type Output struct {
	counters   []*prometheus.CounterVec // by Metric, nil for the other types
	histograms []prometheus.Histogram
	collectors []prometheus.Collector
	server     *server // nil unless they are served
	name       string
}

// New returns the metrics of an output, which nobody reads until they are served.
func New(version string) *Output {
	o := &Output{counters: make([]*prometheus.CounterVec, len(Metrics)), histograms: make([]prometheus.Histogram, len(Metrics))}
	for i, m := range Metrics {
		switch {
		case m.watched || m.Type == gauge:
		case m.Type == histogram:
			o.histograms[i] = prometheus.NewHistogram(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: buckets})
			o.collectors = append(o.collectors, o.histograms[i])
		default:
			var labels []string
			if m.Label != "" {
				labels = append(labels, m.Label)
			}
			o.counters[i] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, labels)
			o.collectors = append(o.collectors, o.counters[i])
			if m.Label == "" {
				o.Count(Metric(i), 0)
			}
		}
	}
	info := Metrics[BuildInfo]
	o.collectors = append(o.collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: info.Name, Help: info.Help, ConstLabels: prometheus.Labels{info.Label: version},
	}, func() float64 { return 1 }))
	return o
}

// Count adds n to a counter. label is its label's value, for those that have one; the
// caller bounds how many there are.
func (o *Output) Count(m Metric, n int, label ...string) {
	if o.counters[m] == nil {
		return
	}
	for i := range label {
		label[i] = strings.ToValidUTF8(label[i], "\ufffd")
	}
	if c, err := o.counters[m].GetMetricWithLabelValues(label...); err == nil && n >= 0 {
		c.Add(float64(n))
	}
}

// Observe adds how long something took to a histogram.
func (o *Output) Observe(m Metric, took time.Duration) {
	if o.histograms[m] != nil {
		o.histograms[m].Observe(took.Seconds())
	}
}

// Watch reads a metric where it is kept. read is called whenever somebody asks for the
// metrics, until the output is closed. It may be called by several goroutines.
func (o *Output) Watch(m Metric, read func() float64) {
	guarded := func() (v float64) {
		defer func() { _ = recover() }() // it runs in a goroutine of the registry
		return read()
	}
	info := Metrics[m]
	if info.Type == counter {
		o.collectors = append(o.collectors, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: info.Name, Help: info.Help}, guarded))
	} else {
		o.collectors = append(o.collectors, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: info.Name, Help: info.Help}, guarded))
	}
}

// Serve serves the metrics at an address, as [CheckAddress] returns it, until the output is
// closed. Outputs with one address share its listener, and are told apart by their label
// "output": flink_loki.0, flink_loki.1 and so on, the first that is free. An error is that
// of the address: most often, another process has it.
func (o *Output) Serve(address string, log *slog.Logger) error {
	registry := prometheus.NewRegistry()
	s, name, err := join(address, registry, log)
	if err != nil {
		return err
	}
	o.server, o.name = s, name
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"output": name}, registry)
	for _, c := range o.collectors {
		if err := labelled.Register(c); err != nil {
			o.Close()
			return err
		}
	}
	return nil
}

// Address returns where the metrics are served, "" where they are not.
func (o *Output) Address() string {
	if o.server == nil {
		return ""
	}
	return o.server.address
}

// Close ends serving. The last output at an address frees the port and the connections.
func (o *Output) Close() {
	if o.server != nil {
		leave(o.server, o.name)
		o.server = nil
	}
}
