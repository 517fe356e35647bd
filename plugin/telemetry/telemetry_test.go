package telemetry

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var quiet = slog.New(slog.DiscardHandler)

// serve serves an output's metrics at an address, until the test ends.
func serve(t *testing.T, address string) *Output {
	t.Helper()
	o := New("test")
	if err := o.Serve(address, quiet); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// get returns what is answered for a path of an output's server.
func get(t *testing.T, o *Output, path string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + o.Address() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// expectLines looks for lines in what /metrics says, and for a "!" for none that begin so.
func expectLines(t *testing.T, o *Output, want ...string) {
	t.Helper()
	_, body := get(t, o, "/metrics")
	for _, line := range want {
		start, not := strings.CutPrefix(line, "!")
		if not && strings.Contains("\n"+body, "\n"+start) || !not && !strings.Contains("\n"+body, "\n"+line+"\n") {
			t.Errorf("%q is wrong in:\n%s", line, body)
		}
	}
}

func TestMetrics(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Metrics {
		if !regexp.MustCompile(`^flink_loki_[a-z_]+$`).MatchString(m.Name) || seen[m.Name] || !strings.HasSuffix(m.Help, ".") {
			t.Errorf("metric %+v", m)
		}
		if (m.Type == counter) != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s is a %s", m.Name, m.Type)
		}
		seen[m.Name] = true
	}
}

// TestServe: every metric of the table is there, with its help.
func TestServe(t *testing.T) {
	o := New("1.2.3")
	for i, m := range Metrics {
		switch {
		case m.watched:
			o.Watch(Metric(i), func() float64 { return 7 })
		case m.Label != "":
			o.Count(Metric(i), 2, "x")
		case m.Type == counter:
			o.Count(Metric(i), 3)
		case m.Type == histogram:
			o.Observe(Metric(i), 20*time.Millisecond)
		}
	}
	if err := o.Serve("127.0.0.1:0", quiet); err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for _, m := range Metrics {
		want := []string{"# HELP " + m.Name + " " + m.Help, "# TYPE " + m.Name + " " + m.Type}
		switch {
		case m.Name == "flink_loki_build_info":
			want = append(want, m.Name+`{output="flink_loki.0",version="1.2.3"} 1`)
		case m.watched:
			want = append(want, m.Name+`{output="flink_loki.0"} 7`)
		case m.Label > "output":
			want = append(want, m.Name+`{output="flink_loki.0",`+m.Label+`="x"} 2`)
		case m.Label != "":
			want = append(want, m.Name+`{`+m.Label+`="x",output="flink_loki.0"} 2`)
		case m.Type == counter:
			want = append(want, m.Name+`{output="flink_loki.0"} 3`)
		default:
			want = append(want, m.Name+`_bucket{output="flink_loki.0",le="0.01"} 0`, m.Name+`_bucket{output="flink_loki.0",le="0.025"} 1`,
				m.Name+`_count{output="flink_loki.0"} 1`)
		}
		expectLines(t, o, want...)
	}
	if status, body := get(t, o, "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("/healthz: %d %q", status, body)
	}
	if status, _ := get(t, o, "/debug/pprof/"); status != 404 {
		t.Errorf("/debug/pprof/: %d", status)
	}
	if _, body := get(t, o, "/metrics"); strings.Contains(body, "\ngo_") || strings.Contains(body, "\npromhttp_") {
		t.Errorf("there is more than our own:\n%s", body)
	}
}

// TestShared: outputs of one address share its listener; it goes with the last one.
func TestShared(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	a, b := New("test"), New("test")
	for _, o := range []*Output{a, b} {
		if err := o.Serve("127.0.0.1:0", quiet); err != nil {
			t.Fatal(err)
		}
	}
	address := a.Address()
	if b.Address() != address {
		t.Errorf("%s and %s", address, b.Address())
	}
	a.Count(Records, 1)
	b.Count(Records, 2)
	expectLines(t, a, `flink_loki_records_total{output="flink_loki.0"} 1`, `flink_loki_records_total{output="flink_loki.1"} 2`)

	a.Close()
	a.Close() // once is enough
	expectLines(t, b, `!flink_loki_records_total{output="flink_loki.0"}`, `flink_loki_records_total{output="flink_loki.1"} 2`)
	c := New("test")
	if err := c.Serve("127.0.0.1:0", quiet); err != nil {
		t.Fatal(err)
	}
	expectLines(t, b, `flink_loki_records_total{output="flink_loki.0"} 0`, `flink_loki_records_total{output="flink_loki.1"} 2`)

	idle, err := net.Dial("tcp", address) // one that says nothing is in nobody's way
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	b.Close()
	c.Close()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	_ = listener.Close()
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !strings.Contains(fmt.Sprint(err), "reset") {
		t.Errorf("the idle connection: %v", err)
	}
}

// TestServe_again: the port can be used again at once, as Fluent Bit does on a reload.
func TestServe_again(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	first := New("test")
	if err := first.Serve("127.0.0.1:0", quiet); err != nil {
		t.Fatal(err)
	}
	address := first.Address()
	get(t, first, "/metrics")
	first.Close()
	for range 3 {
		o := New("test")
		if err := o.Serve(address, quiet); err != nil {
			t.Fatal(err)
		}
		o.Count(Records, 5)
		expectLines(t, o, `flink_loki_records_total{output="flink_loki.0"} 5`)
		o.Close()
	}
}

func TestServe_inUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	o := New("test")
	if err := o.Serve(listener.Addr().String(), quiet); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v", err)
	}
	o.Close()
}

// TestConcurrent: outputs come, count, are read and go, all at once.
func TestConcurrent(t *testing.T) {
	stays := serve(t, "127.0.0.1:0")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				o := New("test")
				if err := o.Serve("127.0.0.1:0", quiet); err != nil {
					t.Error(err)
				}
				stays.Count(Events, 1, "checkpoint_expired")
				if status, _ := get(t, stays, "/metrics"); status != 200 && status != 503 { // 503: too many scrapes
					t.Errorf("status %d", status)
				}
				o.Close()
			}
		})
	}
	wg.Wait()
	expectLines(t, stays, `flink_loki_events_total{kind="checkpoint_expired",output="flink_loki.0"} 40`)
}

// TestGuests: what can't be counted, and what panics, is nobody's end.
func TestGuests(t *testing.T) {
	o := New("test")
	o.Watch(StateFacts, func() float64 { return map[string][]float64{}[""][0] })
	if err := o.Serve("127.0.0.1:0", quiet); err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	o.Count(Unrecognised, 1, "a\xffb\"\n")
	o.Count(Records, -1)
	o.Count(Records, 1, "one label too many")
	o.Count(Events, 1)
	o.Count(StateFacts, 1)
	o.Observe(Records, time.Second)
	expectLines(t, o, "flink_loki_state_facts{output=\"flink_loki.0\"} 0", `flink_loki_records_total{output="flink_loki.0"} 0`,
		`flink_loki_unrecognised_lines_total{logger="a`+"\ufffd"+`b\"\n",output="flink_loki.0"} 1`)
}

func TestTransport(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	o := serve(t, "127.0.0.1:0")
	next := &closer{RoundTripper: http.DefaultTransport}
	client := &http.Client{Transport: o.Transport(next)}
	for range 2 {
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		server.Close()
		server = httptest.NewServer(server.Config.Handler)
	}
	server.Close()
	if resp, err := client.Get(server.URL); err == nil {
		_ = resp.Body.Close()
		t.Error("a server that is closed answers")
	}
	if client.CloseIdleConnections(); !next.closed {
		t.Error("idle connections are not closed")
	}
	expectLines(t, o, `flink_loki_pushes_total{output="flink_loki.0",status="418"} 2`, `flink_loki_pushes_total{output="flink_loki.0",status="error"} 1`,
		`flink_loki_push_duration_seconds_count{output="flink_loki.0"} 3`)
}

type closer struct {
	http.RoundTripper
	closed bool
}

func (c *closer) CloseIdleConnections() { c.closed = true }

func TestCheckAddress(t *testing.T) {
	for v, want := range map[string]string{
		"2021": "127.0.0.1:2021", ":2021": "127.0.0.1:2021", "0.0.0.0:2021": "0.0.0.0:2021", "[::1]:80": "[::1]:80", "host:0": "host:0",
	} {
		if got, err := CheckAddress(v); err != nil || got != want {
			t.Errorf("%s: %s, %v", v, got, err)
		}
	}
	for _, v := range []string{"http://x:1", "x", "1:2:3", "host:", "host:http", "host:65536", "-1", ""} {
		if got, err := CheckAddress(v); err == nil || !strings.Contains(err.Error(), "127.0.0.1:2021") {
			t.Errorf("%q: %s, %v", v, got, err)
		}
	}
}
