//go:build tools

// Package tools keeps Loki's command in go.mod. It is never compiled: a program can't be imported.
package tools

import _ "github.com/grafana/loki/cmd/loki"
