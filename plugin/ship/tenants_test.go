package ship

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"flink-loki/test/fakeloki"
)

// ofTeam is a record with a line and a tenant's name, the former without a file.
func ofTeam(t *testing.T, chunk []byte, line, team string) []byte {
	t.Helper()
	body := map[string]any{"log": line, "kubernetes": map[string]any{"namespace_name": "ns-" + team, "labels": map[string]any{"team": team}}}
	if team == "" {
		delete(body, "kubernetes")
	}
	return appendBody(t, chunk, body)
}

// expectTenants compares what is stored with the checkpoints that each tenant should have.
func expectTenants(t *testing.T, loki *fakeloki.Loki, want ...string) {
	t.Helper()
	var got []string
	for _, e := range loki.Entries() {
		_, rest, _ := strings.Cut(e.Line, " checkpoint_id=")
		id, _, _ := strings.Cut(rest, " ")
		got = append(got, e.Tenant+":"+id)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTenants: each record's event goes to the record's tenant, and all else to tenant_id.
func TestTenants(t *testing.T) {
	for _, key := range []string{"$kubernetes['labels']['team']", "kubernetes.labels.team", "namespace"} {
		prefix := ""
		if key == "namespace" {
			prefix = "ns-"
		}
		loki := fakeloki.New(fakeloki.Config{MultiTenant: true})
		o := newOutput(t, loki, io.Discard, fakeConfig{"tenant_id_key": key, "tenant_id": "default"})
		var c []byte
		for i, team := range []string{"a", "b", "a", "", "b"} {
			c = ofTeam(t, c, expired(i), team)
		}
		if r := flush(o, "t", c); r != OK {
			t.Fatal(r)
		}
		want := []string{prefix + "a:0", prefix + "a:2", prefix + "b:1", prefix + "b:4", "default:3"}
		if prefix != "" {
			want = append(want[4:], want[:4]...)
		}
		expectTenants(t, loki, want...)
		for _, r := range loki.Requests() {
			if len(r.Streams) != 1 || r.Header.Get("X-Scope-OrgID") == "" {
				t.Errorf("%d streams for tenant %q", len(r.Streams), r.Header.Get("X-Scope-OrgID"))
			}
		}
	}
}

// TestTenants_recordKeyNamedAsAField: the $ says that a record key is meant.
func TestTenants_recordKeyNamedAsAField(t *testing.T) {
	for key, want := range map[string]string{"namespace": "from-the-filter", "$namespace": "from-the-record"} {
		loki := fakeloki.New(fakeloki.Config{MultiTenant: true})
		o := newOutput(t, loki, io.Discard, fakeConfig{"tenant_id_key": key})
		if r := flush(o, "t", appendBody(t, nil, map[string]any{"log": expired(1), "namespace": "from-the-record",
			"kubernetes": map[string]any{"namespace_name": "from-the-filter"}})); r != OK {
			t.Fatal(r)
		}
		expectTenants(t, loki, want+":1")
	}
}

// TestTenants_linesInOneFile: one file's lines may be of several tenants; a trace is its
// header's.
func TestTenants_linesInOneFile(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{MultiTenant: true})
	o := newOutput(t, loki, io.Discard, fakeConfig{"tenant_id_key": "team"})
	record := func(c []byte, line, team string) []byte {
		return appendBody(t, c, map[string]any{"log": line, "filename": "/log/a.log", "team": team})
	}
	failed := line(0, "WARN", "org.apache.flink.runtime.checkpoint.CheckpointFailureManager", "Failed to trigger or complete checkpoint 2 for job "+jobID+". (0 consecutive failed attempts so far)")
	c := record(nil, expired(1), "a")
	c = record(c, failed, "b")
	c = record(c, "java.io.IOException: of b", "b")
	if r := flush(o, "t", c); r != OK {
		t.Fatal(r)
	}
	expectTenants(t, loki, "a:1", "b:2")
	if all := stored(loki); len(all) != 2 || !strings.Contains(all[1], "exception_class=java.io.IOException") {
		t.Errorf("got %q", all)
	}
}

// TestTenants_made: what the agent makes of several lines is of the tenant whose lines
// they are.
func TestTenants_made(t *testing.T) {
	for _, key := range []string{"$kubernetes['labels']['team']", "namespace"} {
		loki := fakeloki.New(fakeloki.Config{MultiTenant: true})
		o := newOutput(t, loki, io.Discard, fakeConfig{"tenant_id_key": key, "kinds": "checkpoint_failure_summary"})
		failed := func(after time.Duration, id int) string {
			return line(after, "INFO", "org.apache.flink.runtime.checkpoint.CheckpointCoordinator", fmt.Sprintf("Checkpoint %d of job %s expired before completing.", id, jobID))
		}
		c := ofTeam(t, nil, failed(-time.Hour, 1), "a")
		c = ofTeam(t, c, failed(0, 2), "a")
		c = ofTeam(t, c, failed(0, 3), "b") // in another log
		if r := flush(o, "t", c); r != OK {
			t.Fatal(r)
		}
		want := "a:1"
		if key == "namespace" {
			want = "ns-a:1"
		}
		expectTenants(t, loki, want)
	}
}

// TestTenants_notATenant: no record can name several tenants, or one that Loki refuses for
// ever.
func TestTenants_notATenant(t *testing.T) {
	for _, name := range []string{"a|b", "a/b", "a b", "..", "ü", strings.Repeat("x", 151), "a\nX-Other: b"} {
		loki := fakeloki.New(fakeloki.Config{MultiTenant: true})
		var log bytes.Buffer
		o := newOutput(t, loki, &log, fakeConfig{"tenant_id_key": "team", "tenant_id": "default"})
		c := appendBody(t, nil, map[string]any{"log": expired(1), "team": name})
		c = appendBody(t, c, map[string]any{"log": expired(2), "team": name})
		if r := flush(o, "t", c); r != OK {
			t.Errorf("%q: %v", name, r)
		}
		expectTenants(t, loki, "default:1", "default:2")
		if n := strings.Count(log.String(), "a tenant's name"); n != 1 {
			t.Errorf("%q: %d warnings:\n%s", name, n, log.String())
		}
	}
}

// TestTenants_retryAfterRestart: the journal keeps whose each request is, and a tenant
// whose requests are refused holds up no other.
func TestTenants_retryAfterRestart(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{MultiTenant: true})
	options := fakeConfig{"tenant_id_key": "$kubernetes['labels']['team']", "tenant_id": "default", "state_path": t.TempDir()}
	first := newOutput(t, loki, io.Discard, options)
	var c []byte
	for i, team := range []string{"a", "b", ""} {
		c = ofTeam(t, c, expired(i), team)
	}
	loki.FailNext(1, http.StatusNotFound, nil, "")
	if r := flush(first, "t", c); r != Retry {
		t.Fatal(r)
	}
	first.Close(time.Second)
	expectTenants(t, loki, "a:0", "b:1") // the default one's comes first
	options["url"] = first.cfg.URL.String()
	second := newOutput(t, loki, io.Discard, options)
	if r := flush(second, "t", c); r != OK {
		t.Fatal(r)
	}
	expectTenants(t, loki, "a:0", "b:1", "default:2")
}

// TestTenants_open: while one push tries whether Loki takes a tenant's again, the requests of
// other tenants in the same chunk are made.
func TestTenants_open(t *testing.T) {
	tries := make(chan struct{}, 100)
	quiet := make(chan struct{}, 100)
	hold := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Scope-OrgID") == "quiet" {
			quiet <- struct{}{}
			w.WriteHeader(204)
			return
		}
		if tries <- struct{}{}; len(tries) > 1 {
			<-hold
		}
		w.WriteHeader(429)
	}))
	defer server.Close()
	o := newOutput(t, fakeloki.New(fakeloki.Config{}), io.Discard, fakeConfig{"tenant_id_key": "kubernetes.labels.team", "url": server.URL})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(hold)
	flush(o, "t", ofTeam(t, nil, expired(1), "noisy"))
	wg.Go(func() { flush(o, "t", ofTeam(t, nil, expired(2), "noisy")) })
	for len(tries) < 2 {
		time.Sleep(time.Millisecond)
	}
	if flush(o, "t", ofTeam(t, ofTeam(t, nil, expired(3), "noisy"), expired(4), "quiet")) != Retry || len(quiet) != 1 {
		t.Errorf("%d pushes of the quiet tenant", len(quiet))
	}
}
