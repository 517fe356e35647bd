// Package telemetry is what the plugin tells of itself: metrics of each output, and the
// listener where Prometheus reads them. A metric is one entry of [Metrics].
//
// Nothing here is in Prometheus' global registry, and nothing outlives the last output
// that uses it: the shared object stays loaded when Fluent Bit reloads its configuration.
package telemetry
