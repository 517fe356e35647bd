// The dashboards are generated with Grafana's SDK, which is 20 MB of generated code and therefore has a module
// of its own.
module flink-loki/build/dashboards

go 1.26.0

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
