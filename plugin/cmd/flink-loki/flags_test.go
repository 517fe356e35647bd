package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test's own program be the program.
func TestMain(m *testing.M) {
	if os.Getenv("FLINK_LOKI_MAIN") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runMain runs the program as a process.
func runMain(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "FLINK_LOKI_MAIN=1")
	var out, err bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &err
	if e := cmd.Run(); e != nil && !errors.As(e, new(*exec.ExitError)) {
		t.Fatal(e)
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

func TestMain_status(t *testing.T) {
	f := func(wantStatus int, wantOut, wantErr string, args ...string) {
		t.Helper()
		stdout, stderr, status := runMain(t, expired, args...)
		if status != wantStatus || !strings.HasPrefix(stdout, wantOut) || wantOut == "" && stdout != "" ||
			!strings.HasPrefix(stderr, wantErr) || wantErr == "" && stderr != "" {
			t.Errorf("%q: status %d, stdout %q, stderr %q", args, status, stdout, stderr)
		}
	}
	f(0, `{"line":1,`, "", "parse", "-")
	f(0, "flink-loki ", "", "version")
	f(0, "Print the events", "", "parse", "--help")
	f(1, "", "flink-loki: open absent.log: no such file", "parse", "absent.log")
	f(1, "", "flink-loki: requires at least 1 arg", "parse")
	f(1, "", `flink-loki: --format "xml" is not one of json, logfmt, table`, "parse", "--format", "xml", "-")
	f(1, "", `flink-loki: --timezone "Mars" is no zone name: give one like UTC or Europe/Berlin, or auto`, "parse", "--timezone", "Mars", "-")
	f(1, "", `flink-loki: --json-key "text=message": give part=key, where part is one of time, level, thread, logger, message, trace`, "parse", "--json-key", "text=message", "-")
	f(1, "", `flink-loki: --json-key "message=": give part=key`, "parse", "--json-key", "level=l", "--json-key", "message=", "-")
	f(1, "", `flink-loki: --json-key "message": give part=key`, "parse", "--json-key", "message", "-")
	f(1, "", `flink-loki: --metrics: ".x" names no metric: give names such as numRestarts`, "parse", "--metrics", "a,.x", "-")
	f(1, "", `flink-loki: --metrics: of the metrics ["a" "+b"] only some have a "+"`, "parse", "--metrics", "a,+b", "-")
	f(1, "", "flink-loki: unknown flag: --unrecognized", "parse", "--unrecognized", "-")
	f(1, "", `flink-loki: unknown command "pars"`, "pars", "-")
}

// TestParse_noEvents: a log without events is no silence.
func TestParse_noEvents(t *testing.T) {
	for stdin, want := range map[string]string{"": "no events", "a line\n": "no events", "\xff\xfea\x00": "UTF-16"} {
		if _, stderr, _ := runMain(t, stdin, "parse", "-"); !strings.Contains(stderr, want) {
			t.Errorf("%q: stderr %q", stdin, stderr)
		}
	}
}

func TestParse_jsonKeys(t *testing.T) {
	const class = "org.apache.flink.runtime.checkpoint.CheckpointCoordinator"
	line := `{"body":{"text":"Checkpoint 7 of job 85d268e6fbc19411185f7e4868a44178 expired before completing."},"cls":"` + class +
		`","when":1567444320310,"sev":"error","thr":"t"}` + "\n"
	f := func(want string, keys ...string) {
		t.Helper()
		args := []string{"-", "--format", "logfmt"}
		for _, key := range keys {
			args = append(args, "--json-key", key)
		}
		if got, err := run(parseCommand(), line, args...); err != nil || !strings.HasPrefix(got, want) || want == "" && !strings.HasPrefix(got, "no events") {
			t.Errorf("%q: got %q, %v, want %q", keys, got, err, want)
		}
	}
	f("")
	f("", "logger=cls")
	f("line=1 event=checkpoint_expired component=jobmanager logger="+class, "message=body.text", "logger=cls")
	f("line=1 time=2019-09-02T17:12:00.31Z event=checkpoint_expired component=jobmanager level=ERROR logger="+class+" thread=t ",
		"message=body.text", "logger=cls", "time=when", "level=sev", "thread=thr")
}

func TestParse_metrics(t *testing.T) {
	const log = "2026-11-29 14:45:01,895 INFO  org.apache.flink.metrics.slf4j.Slf4jReporter                 [] - \n" +
		"=========================== Starting metrics report ===========================\n" +
		"h.jobmanager.j.numRestarts: 7\nh.jobmanager.j.own: 8\nh.jobmanager.j.other: 9\n"
	f := func(want string, args ...string) {
		t.Helper()
		out, err := run(parseCommand(), log, append(args, "-", "--format", "logfmt")...)
		var got []string
		for line := range strings.Lines(out) {
			_, metric, _ := strings.Cut(line, " metric=")
			metric, _, _ = strings.Cut(metric, " ")
			got = append(got, metric)
		}
		if got := strings.Join(got, " "); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", args, got, err, want)
		}
	}
	f("numRestarts")
	f("own", "--metrics", "own")
	f("own other", "--metrics", "own,other")
	f("own other", "--metrics", "own", "--metrics", "other")
	f("own other", "--metrics", "own, other") // as in the option of the plug-in
	f("numRestarts own", "--metrics", "+own")
	f("own other", "--metrics", "o*")
	f("numRestarts own other", "--metrics", "*")
}

func TestParse_unrecognised(t *testing.T) {
	log := expired + strings.Replace(expired, "Checkpoint 10424 of job", "Nobody knows of job", 1) +
		strings.ReplaceAll(expired, "org.apache.flink.runtime.checkpoint.CheckpointCoordinator", "org.example.Checkpoints")
	got, err := run(parseCommand(), log, "-")
	if err != nil || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, %v", got, err)
	}
	got, err = run(parseCommand(), log, "--unrecognised", "--format", "logfmt", "-")
	want := "\nline=2 time=2019-09-02T17:12:00.31Z event=unrecognised level=INFO logger=org.apache.flink.runtime.checkpoint.CheckpointCoordinator message=\"Nobody knows of job "
	if err != nil || strings.Count(got, "\n") != 2 || !strings.Contains(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestParse_timezone: the first line tells no zone, the second one that the clock is two
// hours ahead of UTC.
func TestParse_timezone(t *testing.T) {
	log := expired + "2019-09-02 17:13:00,005 INFO  org.apache.flink.runtime.checkpoint.CheckpointCoordinator     - " +
		"Triggering checkpoint 10425 @ 1567437180000 for job 85d268e6fbc19411185f7e4868a44178.\n"
	file := filepath.Join(t.TempDir(), "jm.log")
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		first, second = "time=2019-09-02T15:12:00.31Z", "time=2019-09-02T15:13:00.005Z"
		firstUTC      = "time=2019-09-02T17:12:00.31Z"
		warning       = ": the file's clock is that of UTC+2 h, and --timezone is UTC: give its zone, or auto\n"
	)
	f := func(want1, want2, warned string, args ...string) {
		t.Helper()
		stdout, stderr, status := runMain(t, log, append([]string{"parse", "--format", "logfmt"}, args...)...)
		lines := strings.Split(stdout, "\n")
		if status != 0 || len(lines) != 3 || !strings.Contains(lines[0], want1) || !strings.Contains(lines[1], want2) || stderr != warned {
			t.Errorf("%q: status %d, stdout %s, stderr %q", args, status, stdout, stderr)
		}
	}
	f(first, second, "", "--timezone", "auto", file)
	f(first, second, "", "--timezone", "Auto", file)
	f(firstUTC, second, "", "--timezone", "auto", "-") // a pipe is read once
	f(first, second, "", "--timezone", "Europe/Berlin", file)
	f(firstUTC, "time=2019-09-02T17:13:00.005Z", file+warning, file)
	f(firstUTC, "time=2019-09-02T17:13:00.005Z", "-"+warning, "-")

	// Each file has its own clock, and its own warning.
	other := filepath.Join(t.TempDir(), "other.log")
	if err := os.WriteFile(other, []byte(expired), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, _ := runMain(t, "", "parse", "--timezone", "auto", "--format", "logfmt", file, other, file)
	if strings.Count(stdout, first) != 2 || strings.Count(stdout, firstUTC) != 1 || stderr != "" {
		t.Errorf("stdout %s, stderr %q", stdout, stderr)
	}
	if _, stderr, _ = runMain(t, log+log, "parse", file, other, "-"); stderr != file+warning+"-"+warning {
		t.Errorf("stderr %q", stderr)
	}
}

func TestParse_fileName(t *testing.T) {
	const pods = "/var/log/pods/prod_flink-jm-0_0b1/main/0.log"
	file := filepath.Join(t.TempDir(), "container_e24_1566836790522_8088_01_000002.log")
	if err := os.WriteFile(file, []byte(expired), 0o600); err != nil {
		t.Fatal(err)
	}
	const yarn = "application_id=application_1566836790522_8088 container_id=container_e24_1566836790522_8088_01_000002 "
	f := func(want, wantNot string, args ...string) {
		t.Helper()
		got, err := run(parseCommand(), expired, append(args, "--format", "logfmt")...)
		if err != nil || !strings.Contains(got, want) || strings.Contains(got, wantNot) {
			t.Errorf("%q: got %q, %v, want %q and no %q", args, got, err, want, wantNot)
		}
	}
	f("checkpoint_id=10424", "filename=", "-")
	f("filename=jm.log", "pod=", "-", "--file-name", "jm.log")
	f("namespace=prod pod=flink-jm-0 container=main ", "container_id=", "-", "--file-name", pods)
	f("filename="+pods, "container_id=", "-", "--file-name", pods)
	f(yarn, "filename=", file)
	f(yarn, "pod=", file, "--file-name", "jm.log")
}
