package agent

import (
	"bytes"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flink-loki/test/fakeloki"
)

// runHost gives a script to the C host and returns its answers and what the plug-in
// logged.
func runHost(t *testing.T, script string) (answers []string, log string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the built plug-in and host")
	}
	so, err := Built("out_flink_loki.so")
	if err != nil {
		t.Fatal(err)
	}
	host, err := Built("host")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(host, so)
	cmd.Stdin = strings.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n"), stderr.String()
}

func newLoki(t *testing.T) (*fakeloki.Loki, string) {
	t.Helper()
	loki := fakeloki.New(fakeloki.Config{})
	server := httptest.NewServer(loki)
	t.Cleanup(func() {
		loki.Close()
		server.Close()
	})
	return loki, server.URL
}

func logFile(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../logs/2.3.0/declined/jobmanager.log")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func expectAnswers(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestHost_badOption: a value that is not allowed fails at start, with the option's
// name and what is allowed.
func TestHost_badOption(t *testing.T) {
	answers, log := runHost(t, "output a\nset a label_keys component,job\nset a timezone Mars\ninit a\nunregister\n")
	expectAnswers(t, answers, "register flink_loki", "init a 0", "unregister")
	for _, want := range []string{"label_keys", `\"job\"`, "job_id", "timezone", "Europe/Berlin"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %s:\n%s", want, log)
		}
	}
}

// TestHost_daemon: in a child of the process that loaded it, as with Daemon On, the
// plug-in refuses to start and says why; it does not hang.
func TestHost_daemon(t *testing.T) {
	answers, log := runHost(t, "output a\nfork\ninit a\n")
	expectAnswers(t, answers, "register flink_loki", "init a 0")
	if !strings.Contains(log, "Daemon On") {
		t.Errorf("the log does not say why: %s", log)
	}
}

// TestHost_twoOutputs: each output has its own configuration, and outlives the other.
func TestHost_twoOutputs(t *testing.T) {
	loki, url := newLoki(t)
	answers, _ := runHost(t, fmt.Sprintf(`output a
set a URL %[1]s
set a labels output=a
set a state_path %[3]s
output b
set b url %[1]s
set b labels output=b
set b state_path %[3]s
init a
init b
frame A %[2]s 1 300 /log/jm 1700000000
flush a A t
flush b A t
exit a
frame B %[2]s 301 300 /log/jm 1700000000
flush b B t
exit b
unregister
`, url, logFile(t), t.TempDir()))
	expectAnswers(t, answers, "register flink_loki", "init a 1", "init b 1", "flush a A 1", "flush b A 1",
		"exit a 1", "flush b B 1", "exit b 1", "unregister")
	count := map[string]int{}
	for _, e := range loki.Entries() {
		count[e.Labels.Get("output")]++
	}
	if count["a"] == 0 || count["b"] <= count["a"] {
		t.Errorf("got %v", count)
	}
}

// TestHost_workers: without workers the plug-in warns, once; with some it is called from
// several threads at a time.
func TestHost_workers(t *testing.T) {
	loki, url := newLoki(t)
	const parts = 40
	script := func(workers int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "workers %d\noutput a\nset a url %s\ninit a\n", workers, url)
		for i := range parts {
			fmt.Fprintf(&b, "frame C%d %s %d 9 /log/jm 1700000000\nflush a C%d t\n", i, logFile(t), 1+9*i, i)
		}
		return b.String()
	}
	const warning = "set `Workers 1`"
	if _, log := runHost(t, script(0)+"exit a\n"); strings.Count(log, warning) != 1 {
		t.Errorf("without workers the log says\n%s", log)
	}
	once := identities(loki)
	answers, log := runHost(t, script(3)+fmt.Sprintf("wait %d\nexit a\n", parts))
	if strings.Contains(log, warning) {
		t.Errorf("with workers the log says\n%s", log)
	}
	delivered := 0
	for _, a := range answers {
		if strings.HasPrefix(a, "flush a C") && strings.HasSuffix(a, " 1") {
			delivered++
		}
	}
	if delivered != parts {
		t.Errorf("%d of %d flushes delivered:\n%s", delivered, parts, strings.Join(answers, "\n"))
	}
	if all := identities(loki); len(once) == 0 || !maps.Equal(all, once) {
		t.Errorf("%d events, then %d", len(once), len(all))
	}
}

// identities are the events that Loki has: what is known of them depends on the order in
// which the workers came.
func identities(loki *fakeloki.Loki) map[string]bool {
	all := map[string]bool{}
	for _, e := range loki.Entries() {
		all[strings.Join(identity.FindAllString(e.Line, -1), "")] = true
	}
	return all
}

var identity = regexp.MustCompile(` (event|filename|offset|part|checkpoint_id)=\S+`)

// TestHost_emptyChunk: a chunk without records, or that is none, harms nobody; what it
// was is told.
func TestHost_emptyChunk(t *testing.T) {
	_, url := newLoki(t)
	empty := filepath.Join(t.TempDir(), "empty")
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(garbage, []byte{0xc1, 0x92, 0x92}, 0o600); err != nil {
		t.Fatal(err)
	}
	answers, log := runHost(t, fmt.Sprintf("output a\nset a url %s\ninit a\nchunk E %s\nflush a E t\nchunk G %s\nflush a G t\nexit a\n", url, empty, garbage))
	expectAnswers(t, answers, "register flink_loki", "init a 1", "flush a E 1", "flush a G 1", "exit a 1")
	if !strings.Contains(log, "no log records") {
		t.Errorf("the log does not tell of the garbage:\n%s", log)
	}
}
