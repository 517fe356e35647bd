package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// run runs a command with arguments, and standard input.
func run(cmd *cobra.Command, stdin string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

const expired = "2019-09-02 17:12:00,310 INFO  org.apache.flink.runtime.checkpoint.CheckpointCoordinator     - " +
	"Checkpoint 10424 of job 85d268e6fbc19411185f7e4868a44178 expired before completing.\n"

func TestParse_formats(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		got, err := run(parseCommand(), "no event\n"+expired, append(args, "-")...)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%v: got %q, %v, want %q", args, got, err, want)
		}
	}
	f(`{"line":2,"time":"2019-09-02T17:12:00.31Z","event":"checkpoint_expired",`)
	f(`"job_id":"85d268e6fbc19411185f7e4868a44178","checkpoint_id":10424,"failure_reason":"checkpoint_expired","counted":true,"message":"Checkpoint 10424 of job`)
	f(`line=2 time=2019-09-02T17:12:00.31Z event=checkpoint_expired component=jobmanager`, "--format", "logfmt")
	f("2019-09-02 17:12:00.310  checkpoint_expired  10424", "--format", "table")
	f(`"time":"2019-09-02T15:12:00.31Z"`, "--timezone", "Europe/Berlin")
	f(`"filename":"jm.log"`, "--file-name", "jm.log")
}

func TestParse_severalFiles(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"a", "b"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.TrimSuffix(expired, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	got, err := run(parseCommand(), "", files...)
	if err != nil || strings.Count(got, `{"line":1,`) != 2 {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestParse_refused(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if _, err := run(parseCommand(), "", args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v does not say %q", args, err, want)
		}
	}
	f("no such file", "absent.log")
	f("json, logfmt, table", "--format", "xml", "-")
	f("Europe/Berlin", "--timezone", "Mars", "-")
	f("at least 1 arg", "--format", "json")
}

func TestVersion(t *testing.T) {
	got, err := run(versionCommand(), "")
	if want := "flink-loki dev\nevent schema 1\nstate format 1\n"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
}
