package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// more are logs beside those of the demo that fill the dashboards: a job at DEBUG, RocksDB's write stalls.
var more = []string{"test/logs/2.3.0/debug-mixed", "test/logs/2.3.0/declined", "test/logs/1.20.5/rocksdb-stalls"}

// hasDocker reports whether there is a Docker that runs containers.
func hasDocker(ctx context.Context) bool {
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}

// startGrafana starts a Grafana with the dashboards and Loki as its data source, in the
// host's network, since Loki listens on the loopback. It returns the name of its container.
func startGrafana(ctx context.Context, lokiURL string) (container string, err error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "docker", dockerArgs(root, lokiURL)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("docker run: %w: %s", err, stderr.String())
	}
	return strings.TrimSpace(string(out))[:12], nil
}

func dockerArgs(root, lokiURL string) []string {
	return []string{
		"run", "--rm", "--detach", "--network", "host",
		"--env", "LOKI_URL=" + lokiURL,
		"--env", "GF_SERVER_HTTP_ADDR=127.0.0.1",
		"--env", "GF_AUTH_ANONYMOUS_ENABLED=true", "--env", "GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer",
		"--volume", filepath.Join(root, "build/grafana/provisioning/datasources") + ":/etc/grafana/provisioning/datasources:ro",
		"--volume", filepath.Join(root, "build/grafana/provisioning/dashboards") + ":/etc/grafana/provisioning/dashboards:ro",
		"--volume", filepath.Join(root, "rules/dashboards") + ":/var/lib/grafana/dashboards/flink-loki:ro",
		cmp.Or(os.Getenv("GRAFANA_IMAGE"), "grafana/grafana"),
	}
}
