package lokitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// start starts a Loki for a test, which is skipped where there is none to start.
func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.LogTail())
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// push pushes lines to a stream, each a millisecond after the one before.
func push(t *testing.T, s *Server, labels map[string]string, from time.Time, lines ...string) {
	t.Helper()
	var values [][2]string
	for i, line := range lines {
		values = append(values, [2]string{nanoseconds(from.Add(time.Duration(i) * time.Millisecond)), line})
	}
	body, err := json.Marshal(map[string]any{"streams": []any{map[string]any{"stream": labels, "values": values}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, s.URL()+"/loki/api/v1/push", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Scope-OrgID", s.tenant)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusNoContent {
		t.Fatalf("push: %s %s", answer.Status, text)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Tenant: "lokitest"})
	t.Logf("Loki %s", s.Version())
	now := time.Now().UTC().Truncate(time.Millisecond)
	run := strconv.FormatInt(now.UnixNano(), 36)
	selector := fmt.Sprintf("{run=%q}", run)
	push(t, s, map[string]string{"run": run, "event": "a"}, now, "x=1", "x=2 y=\"z z\"")

	ctx := t.Context()
	got, err := s.Query(ctx, `sum by (event) (sum_over_time(`+selector+` | logfmt | unwrap x [1m]))`, now.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Value != 3 || got[0].Labels["event"] != "a" || !got[0].Time.Equal(now.Add(time.Second)) {
		t.Errorf("Query: %+v", got)
	}

	parsed, err := s.QueryRange(ctx, selector+` | logfmt | y="z z"`, now.Add(-time.Minute), now.Add(time.Minute), 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed) != 1 || len(parsed[0].Entries) != 1 || parsed[0].Labels["x"] != "2" || parsed[0].Labels["event"] != "a" {
		t.Errorf("QueryRange: %+v", parsed)
	}

	stored, err := s.Stored(ctx, selector, now.Add(-time.Minute), now.Add(time.Minute), 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(stored) != 1 || len(stored[0].Entries) != 2 || !stored[0].Entries[0].Time.Equal(now) || stored[0].Entries[1].Line != `x=2 y="z z"` {
		t.Errorf("Stored: %+v", stored)
	}

	_, err = s.Query(ctx, `sum(`, now)
	var status *StatusError
	if !errors.As(err, &status) || status.Status != http.StatusBadRequest || !strings.Contains(status.Body, "parse error") {
		t.Errorf("Query with a bad expression: %v", err)
	}
	if _, err = s.QueryRange(ctx, `sum(count_over_time(`+selector+`[1m]))`, now, now.Add(time.Minute), 10); err == nil {
		t.Error("QueryRange takes a metric query")
	}
}

func TestKillKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Own: true})
	now := time.Now()
	push(t, s, map[string]string{"run": "kill"}, now, "acknowledged")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Query(t.Context(), `sum(count_over_time({run="kill"}[1m]))`, now); err == nil {
		t.Fatal("answers after Kill")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	push(t, s, map[string]string{"run": "kill"}, now.Add(time.Second), "later")
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal("while it runs:", err)
	}
	streams, err := s.Stored(t.Context(), `{run="kill"}`, now.Add(-time.Minute), now.Add(time.Minute), 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(streams) != 1 || len(streams[0].Entries) != 2 {
		t.Errorf("after two restarts: %+v", streams)
	}
}

func TestRulesFire(t *testing.T) {
	t.Parallel()
	for _, tenant := range []string{"", "a-tenant"} {
		t.Run("tenant "+tenant, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{RuleFiles: []string{"testdata/expired.yaml"}, Tenant: tenant})
			push(t, s, map[string]string{"run": "lokitest", "event": "checkpoint_expired"}, time.Now(), "job_id=j1 checkpoint_id=7")
			for {
				alerts, err := s.Alerts(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(alerts) == 0 {
					time.Sleep(100 * time.Millisecond) // the test's own time limit bounds the wait
					continue
				}
				a := alerts[0]
				if a.State != "firing" || a.Labels["alertname"] != "CheckpointExpired" || a.Annotations["summary"] != "a checkpoint of j1 has expired" || a.ActiveAt.IsZero() {
					t.Errorf("%+v", a)
				}
				return
			}
		})
	}
}

func TestStartSaysWhyNot(t *testing.T) {
	t.Setenv("LOKI_URL", "")
	t.Setenv("LOKI_BIN", filepath.Join(t.TempDir(), "absent"))
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "LOKI_BIN") {
		t.Errorf("absent LOKI_BIN: %v", err)
	}
	t.Setenv("LOKI_BIN", "")
	if _, err := findBinary(t.TempDir()); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "make loki") {
		t.Errorf("no binary: %v", err)
	}
	other, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LOKI_BIN", other)
	if _, err := Start(t.Context(), Options{}); err == nil {
		t.Error("starts a program that is not Loki")
	}
	down := httptest.NewServer(http.NotFoundHandler())
	defer down.Close()
	t.Setenv("LOKI_URL", down.URL)
	if _, err := Start(t.Context(), Options{ReadyWithin: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "not ready") {
		t.Errorf("not ready: %v", err)
	}
	t.Chdir(t.TempDir())
	if _, err := Start(t.Context(), Options{Own: true}); err == nil || !strings.Contains(err.Error(), "checkout") {
		t.Errorf("outside of the repository: %v", err)
	}
}

func TestStartShowsTheLog(t *testing.T) {
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{Dir: dir, Args: []string{"-server.http-listen-address=not.an.address"}})
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "it has ended") || !strings.Contains(err.Error(), "not.an.address") {
		t.Errorf("unusable address: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, logFile)); err != nil {
		t.Error("the log is gone:", err)
	}

	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	_, port, _ := strings.Cut(taken.Listener.Addr().String(), ":")
	_, err = Start(t.Context(), Options{Dir: t.TempDir(), Args: []string{"-server.http-listen-port=" + port}})
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port that stays taken: %v", err)
	}
}

func TestForeignLokiIsLeftAlone(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ready") })
	mux.HandleFunc("/loki/api/v1/status/buildinfo", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"version":"3.7.6","revision":"5003600d7c"}`)
	})
	loki := httptest.NewServer(mux)
	defer loki.Close()
	t.Setenv("LOKI_URL", loki.URL+"/")
	s, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{MinMajor: 4}); !errors.Is(err, ErrTooOld) || !strings.Contains(err.Error(), "needed is 4.x, this is 3.7.6") {
		t.Errorf("too old: %v", err)
	}
	if s.Version() != "3.7.6" || s.Major() != 3 || s.URL() != loki.URL || s.LogTail() != "" {
		t.Errorf("version %s, URL %s", s.Version(), s.URL())
	}
	if s.Kill() == nil || s.Restart(t.Context()) == nil {
		t.Error("a Loki at LOKI_URL can be killed")
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func TestVersionOfUnversionedLoki(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, buildinfo, config, want string }{
		{"2.2 has no buildinfo page", "", "", "2"},
		{"3.x built without a version", `{"version":""}`, "auth_enabled: true\npattern_ingester:\n", "3"},
		{"2.x built without a version", `{"version":""}`, "auth_enabled: true\n", "2"},
		{"pre-release", `{"version":"3.8.0-rc.1"}`, "", "3.8.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			if c.buildinfo != "" {
				mux.HandleFunc("/loki/api/v1/status/buildinfo", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.buildinfo) })
			}
			mux.HandleFunc("/config", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.config) })
			loki := httptest.NewServer(mux)
			defer loki.Close()
			s := &Server{url: loki.URL, client: http.DefaultClient}
			got, err := s.askVersion(context.Background())
			if err != nil || got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
