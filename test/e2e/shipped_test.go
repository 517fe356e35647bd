package e2e

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"flink-loki/test/agent"
	"flink-loki/test/fakeloki"
	"flink-loki/test/proc"
	"flink-loki/test/replay"
)

// TestShippedConfiguration runs a real Fluent Bit with each configuration of
// build/fluent-bit, on logs named as Flink names them.
func TestShippedConfiguration(t *testing.T) {
	if !agent.Real() {
		t.Skip("needs a real Fluent Bit: set FLUENT_BIT")
	}
	so, err := agent.Built("out_flink_loki.so")
	if err != nil {
		t.Fatal(err)
	}
	configs, _ := filepath.Glob("../../build/fluent-bit/*.yaml")
	if len(configs) == 0 {
		t.Fatal("no configurations")
	}
	for _, config := range configs {
		t.Run(filepath.Base(config), func(t *testing.T) {
			loki := fakeloki.New(fakeloki.Config{})
			server := httptest.NewServer(loki)
			t.Cleanup(func() {
				loki.Close()
				server.Close()
			})
			logs, state := t.TempDir(), t.TempDir()
			writeLogs(t, logs)
			out, err := os.Create(filepath.Join(state, "fluent-bit.log"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			text, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			here := filepath.Join(state, filepath.Base(config))
			text = bytes.ReplaceAll(text, []byte("/usr/lib/fluent-bit/out_flink_loki.so"), []byte(so))
			text = bytes.ReplaceAll(text, []byte("interval_sec: 60"), []byte("interval_sec: 1"))
			for name, value := range map[string]string{
				"FLINK_LOG_DIR": logs, "FLINK_TMP_DIR": state, "FLUENT_BIT_DIR": state, "LOKI_URL": server.URL, "CLUSTER": "test",
			} { // the file's env section stands above the environment
				text = regexp.MustCompile("(?m)^  "+name+":.*$").ReplaceAll(text, []byte("  "+name+": "+value))
			}
			if err := os.WriteFile(here, text, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Getenv("FLUENT_BIT"), "--config", here)
			cmd.Stdout, cmd.Stderr = out, out
			cmd.Env = append(os.Environ(), "TZ=UTC")
			p, err := proc.Start(cmd, false)
			if err != nil {
				t.Fatal(err)
			}
			expired := 0
			await(t, func() bool {
				expired = 0
				components := map[string]bool{}
				for _, e := range loki.Entries() {
					components[e.Labels.Get("component")] = true
					if e.Labels.Get("event") == "checkpoint_expired" && e.Labels.Get("cluster") == "test" {
						expired++
					}
				}
				return expired >= 9 && components["taskmanager"] && components["rocksdb"] && components["agent"]
			})
			if expired != 9 {
				t.Errorf("%d events checkpoint_expired", expired)
			}
			if err := p.Terminate(); err != nil {
				t.Error(err)
			}
			log, _ := os.ReadFile(out.Name())
			if bad := regexp.MustCompile(`(?m)^.*\[( warn|error)\].*$`).FindAll(bytes.ReplaceAll(log, []byte("[ warn] [engine] service will shutdown"), nil), -1); len(bad) > 0 || strings.Contains(string(log), "main thread") {
				t.Errorf("the agent logs %s", bad)
			}
		})
	}
}

// writeLogs writes the logs of a cluster, moved to now, under the names that Flink's
// scripts and RocksDB give them.
func writeLogs(t *testing.T, dir string) {
	t.Helper()
	jobManager, err := os.ReadFile("../logs/2.3.0/expired/jobmanager.log")
	if err != nil {
		t.Fatal(err)
	}
	by := time.Since(replay.Last(jobManager)).Truncate(time.Millisecond)
	for from, to := range map[string]string{
		"jobmanager.log":                      "flink-flink-standalonesession-0-host-1.log",
		"taskmanager-1.log":                   "flink-flink-taskexecutor-0-host-1.log",
		"taskmanager-2.log":                   "flink-flink-taskexecutor-1-host-1.log",
		"rocksdb-CoStreamFlatMap-sub1of2.LOG": "opt_flink_tmp_job_fef61425e149c9b56545204c60d72fcc_op_CoStreamFlatMap_db_LOG",
	} {
		log, err := os.ReadFile(filepath.Join("../logs/2.3.0/expired", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), replay.Shift(log, by), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
