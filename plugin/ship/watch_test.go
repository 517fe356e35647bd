package ship

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"flink-loki/test/fakeloki"
)

// expectMetrics looks for lines of /metrics, without the output's label.
func expectMetrics(t *testing.T, o *Output, want ...string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + o.metrics.Address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.NewReplacer(`output="flink_loki.0",`, "", `,output="flink_loki.0"`, "", `{output="flink_loki.0"}`, "").Replace(string(b))
	for _, line := range want {
		if !strings.Contains(body, "\nflink_loki_"+line+"\n") {
			t.Errorf("no %s in:\n%s", line, body)
		}
	}
}

func TestMetrics_ofFlushes(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, fakeConfig{"metrics_listen": "127.0.0.1:0", "tenant_id_key": "kubernetes.labels.team"})
	o.delivery.Backoff.MaxRetries = 2
	expectMetrics(t, o, "records_total 0", `flushes_total{result="ok"} 0`, `flushes_total{result="retry"} 0`, `build_info{version="test"} 1`)

	c := makeChunk("no event", expired(1), expired(2),
		line(time.Second, "INFO", "org.apache.flink.runtime.checkpoint.CheckpointCoordinator", "Words that no Flink has."))
	c = append(c, 0xc1, 0xc1, 0xc1) // no MessagePack
	loki.FailNext(1, http.StatusServiceUnavailable, nil, "")
	loki.FailNext(1, http.StatusNotFound, nil, "")
	if r := flush(o, "t", c); r != Retry {
		t.Fatal(r)
	}
	read := []string{
		"records_total 4", fmt.Sprintf("chunk_bytes_total %d", len(c)), "malformed_pieces_total 1", "malformed_bytes_total 3",
		`events_total{kind="checkpoint_expired"} 2`,
		`unrecognised_lines_total{logger="org.apache.flink.runtime.checkpoint.CheckpointCoordinator"} 1`,
		`pushes_total{status="503"} 1`, `pushes_total{status="404"} 1`, "push_retries_total 1", "dead_letters_total 1",
		`flushes_total{result="retry"} 1`, "flush_duration_seconds_count 1", "journal_entries 1", "journal_evictions_total 0",
	}
	expectMetrics(t, o, read...)
	facts, _ := o.kept.state.Size()
	_, bytes := o.kept.journal.Size()
	if facts == 0 || bytes == 0 {
		t.Errorf("%d facts, %d bytes in the journal", facts, bytes)
	}
	expectMetrics(t, o, fmt.Sprintf("state_facts %d", facts), fmt.Sprintf("journal_bytes %d", bytes), "state_evictions_total 0")

	if r := flush(o, "t", c); r != OK {
		t.Fatal(r)
	}
	// What comes again is counted once.
	expectMetrics(t, o, append(read[:6:6], `flushes_total{result="ok"} 1`, `pushes_total{status="204"} 1`, "push_duration_seconds_count 3", "journal_entries 0", "journal_bytes 0")...)

	if r := flush(o, "t", ofTeam(t, nil, expired(3), "a|b")); r != OK {
		t.Fatal(r)
	}
	expectMetrics(t, o, "refused_tenants_total 1")
	o.cfg.Kinds = nil // what is not sent is not counted
	_ = o.Flush("t", makeChunk(expired(4)), func() {})
	expectMetrics(t, o, `events_total{kind="checkpoint_expired"} 3`)
}

// TestMetrics_ofPanics: a flush that panics counts as the retry that Fluent Bit sees.
func TestMetrics_ofPanics(t *testing.T) {
	o := newOutput(t, fakeloki.New(fakeloki.Config{}), io.Discard, fakeConfig{"metrics_listen": "127.0.0.1:0"})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		o.Flush("t", makeChunk(expired(1)), func() { var none []int; _ = none[len(o.id)] })
	}()
	expectMetrics(t, o, `flushes_total{result="retry"} 1`, `flushes_total{result="ok"} 0`)
}

// TestMetrics_reload: in whichever order outputs come and go, the address works, and
// nothing is left of them.
func TestMetrics_reload(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	loki := fakeloki.New(fakeloki.Config{})
	server := httptest.NewServer(loki)
	defer server.Close()
	address := freeAddress(t)
	open := func() *Output {
		cfg, err := ReadConfig(fakeConfig{"url": server.URL, "metrics_listen": address, "bearer_token": "x"}.get)
		if err != nil {
			t.Fatal(err)
		}
		o, err := New(cfg, NewLogger(io.Discard, cfg.LogLevel), "test")
		if err != nil {
			t.Fatal(err)
		}
		if r := flush(o, "t", makeChunk(expired(1))); r != OK {
			t.Fatal(r)
		}
		return o
	}
	first := open()
	first.Close(time.Second)
	second := open() // after the old one was closed
	expectMetrics(t, second, `flushes_total{result="ok"} 1`)
	third := open() // before
	second.Close(time.Second)
	if third.metrics.Address() != address {
		t.Errorf("it is at %s", third.metrics.Address())
	}
	third.Close(time.Second)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// TestNew_metricsListenInUse: an address that is taken stops the start, and nothing is
// kept open.
func TestNew_metricsListenInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	options := fakeConfig{"metrics_listen": listener.Addr().String(), "state_path": t.TempDir()}
	for range 2 {
		cfg, err := ReadConfig(options.get)
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(cfg, NewLogger(os.Stderr, cfg.LogLevel), "test")
		for _, want := range []string{"option metrics_listen", listener.Addr().String(), "in use", "another"} {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%v does not say %s", err, want)
			}
		}
	}
	if _, open := keptBy[options["state_path"]]; open {
		t.Error("the state is still open")
	}
}

func TestReadConfig_metricsListen(t *testing.T) {
	for value, want := range map[string]string{"": "", "2021": "127.0.0.1:2021", "0.0.0.0:2021": "0.0.0.0:2021"} {
		if c, err := ReadConfig(fakeConfig{"metrics_listen": value}.get); err != nil || c.MetricsListen != want {
			t.Errorf("%q: %v", value, err)
		}
	}
	_, err := ReadConfig(fakeConfig{"metrics_listen": "http://x"}.get)
	if err == nil || !strings.Contains(err.Error(), "option metrics_listen") {
		t.Errorf("got %v", err)
	}
}
