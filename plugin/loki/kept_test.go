package loki

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/common/model"

	"flink-loki/parsers"
)

// before returns a delivery to something that answers in place of Loki, and the letters
// that it gave up.
func before(t *testing.T, answer http.HandlerFunc) (*Delivery, *[]DeadLetter) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(u, ClientOptions{UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	letters := &[]DeadLetter{}
	d := &Delivery{Client: client, Log: slog.New(slog.DiscardHandler), Backoff: DefaultBackoff}
	d.Backoff.MaxRetries = 1
	d.Dead = func(reason string, r *Request) error {
		*letters = append(*letters, NewDeadLetters(now, reason, r)...)
		return nil
	}
	return d, letters
}

// pushed returns the request that a push has.
func pushed(t *testing.T, r *http.Request) *Request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	text, err := snappy.Decode(nil, body)
	if err != nil {
		t.Error(err)
	}
	request, err := DecodeRequest(text)
	if err != nil {
		t.Error(err)
	}
	return request
}

// TestDeliver_onTheWay: an answer that is not about entries keeps them, whatever its status
// is.
func TestDeliver_onTheWay(t *testing.T) {
	for _, c := range []struct {
		status int
		text   string
	}{
		{200, "<!DOCTYPE html><title>Sign in</title>"},
		{200, "\n <html><body>OK</body></html>"},
		{400, "Client sent an HTTP request to an HTTPS server.\n"},
		{400, "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>"},
		{400, "tenant ID 'a/b' contains unsupported character '/'"},
		{400, "multiple org IDs present"},
		{400, ""},
		{422, "Request blocked by policy 42"},
	} {
		d, letters := before(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.text))
		})
		err := deliver(t, d, &Request{Labels: labels, Entries: []Entry{entry("a", 0), entry("b", 0)}})
		var status *StatusError
		if !errors.As(err, &status) || status.Status != c.status || len(*letters) > 0 {
			t.Errorf("%d %q: %v, letters %v", c.status, c.text, err, *letters)
		}
	}
}

// TestDeliver_tornAnswer: what an answer refuses that can't be read is not known.
func TestDeliver_tornAnswer(t *testing.T) {
	d, letters := before(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 200\r\n\r\n"))
		_ = conn.(*net.TCPConn).Close()
	})
	if err := deliver(t, d, &Request{Labels: labels, Entries: []Entry{entry("a", 0)}}); err == nil || len(*letters) > 0 {
		t.Errorf("%v, letters %v", err, *letters)
	}
}

// TestDeliver_noMetadata: a Loki that takes no structured metadata gets none, in one further
// push.
func TestDeliver_noMetadata(t *testing.T) {
	pushes, stored := 0, 0
	d, letters := before(t, func(w http.ResponseWriter, r *http.Request) {
		pushes++
		request := pushed(t, r)
		if slices.ContainsFunc(request.Entries, func(e Entry) bool { return len(e.Metadata) > 0 }) {
			w.WriteHeader(400)
			_, _ = fmt.Fprintf(w, "stream '%s' includes structured metadata, but this feature is disallowed. Please see `limits_config.allow_structured_metadata` or contact your Loki administrator to enable it", request.Labels)
			return
		}
		stored += len(request.Entries)
		w.WriteHeader(204)
	})
	r := &Request{Labels: labels}
	for i := range 1000 {
		e := entry(fmt.Sprint(i), time.Duration(i)*time.Millisecond)
		e.Metadata = []Pair{{"job_id", "1"}}
		r.Entries = append(r.Entries, e)
	}
	if err := deliver(t, d, r); err != nil || stored != 1000 || pushes != 2 || len(*letters) > 0 {
		t.Errorf("%v: %d stored in %d pushes, %d letters", err, stored, pushes, len(*letters))
	}
}

// TestDeliver_deep: an entry that can be mended is, however many there are with it.
func TestDeliver_deep(t *testing.T) {
	stored := 0
	d, letters := before(t, func(w http.ResponseWriter, r *http.Request) {
		request := pushed(t, r)
		for _, e := range request.Entries {
			if len(e.Metadata) > 1 {
				w.WriteHeader(400)
				_, _ = fmt.Fprintf(w, "stream '%s' has too many structured metadata labels: '2', limit: '1'", request.Labels)
				return
			}
		}
		stored += len(request.Entries)
		w.WriteHeader(204)
	})
	r := &Request{Labels: labels}
	for i := range 2000 {
		r.Entries = append(r.Entries, entry(fmt.Sprint(i), time.Duration(i)*time.Millisecond))
	}
	r.Entries[1234].Metadata = []Pair{{"a", "1"}, {"b", "2"}}
	if err := deliver(t, d, r); err != nil || stored != 2000 || len(*letters) > 0 {
		t.Errorf("%v: %d stored, letters %v", err, stored, *letters)
	}
}

// TestDeliver_goesOn: mending that the time ends goes on at the next delivery, and nothing is
// given up twice.
func TestDeliver_goesOn(t *testing.T) {
	var mu sync.Mutex
	stored, most := map[string]int{}, 0
	d, letters := before(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Millisecond)
		request := pushed(t, r)
		mu.Lock()
		defer mu.Unlock()
		for _, e := range request.Entries {
			if strings.Contains(string(e.Line), "bad") {
				w.WriteHeader(400)
				_, _ = w.Write([]byte("for reasons unknown"))
				return
			}
		}
		for _, e := range request.Entries {
			stored[string(e.Line)]++
		}
		w.WriteHeader(204)
	})
	r := &Request{Labels: labels}
	for i := range 64 {
		name := fmt.Sprint("good", i)
		if i%2 == 0 {
			name = fmt.Sprint("bad", i)
		}
		r.Entries = append(r.Entries, entry(name, time.Duration(i)*time.Millisecond))
	}
	request := r.sorted().Encode()
	for most = 1; most < 200; most++ {
		ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
		err := d.Deliver(ctx, request)
		cancel()
		if err == nil {
			break
		}
	}
	if most == 1 || most == 200 {
		t.Errorf("%d deliveries", most)
	}
	if len(stored) != 32 || len(*letters) != 32 {
		t.Errorf("%d entries are stored, %d given up", len(stored), len(*letters))
	}
}

// TestDeliver_noSchema: an entry that is older than Loki's schema keeps no others back.
func TestDeliver_noSchema(t *testing.T) {
	var stored []string
	d, letters := before(t, func(w http.ResponseWriter, r *http.Request) {
		request := pushed(t, r)
		for _, e := range request.Entries {
			if e.Time.Year() < 2020 {
				http.Error(w, "no schema config found for time 0.000", 500)
				return
			}
		}
		for _, e := range request.Entries {
			stored = append(stored, string(e.Line))
		}
		w.WriteHeader(204)
	})
	old := entry("old", 0)
	old.Time = time.Unix(4*24*3600, 0)
	if err := deliver(t, d, &Request{Labels: labels, Entries: []Entry{old, entry("a", 0)}}); err != nil || len(*letters) > 0 {
		t.Errorf("%v, letters %v", err, *letters)
	}
	slices.Sort(stored)
	expect(t, stored, "event=x message=a", "event=x message=old time_adjusted=true")
}

// TestDeliver_tenants: a tenant whose pushes Loki does not take for now keeps no other back.
func TestDeliver_tenants(t *testing.T) {
	d, _ := before(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Scope-OrgID") == "noisy" {
			w.WriteHeader(429)
			return
		}
		w.WriteHeader(204)
	})
	one := func(tenant string) *Request {
		return &Request{Tenant: tenant, Labels: labels, Entries: []Entry{entry("a", 0)}}
	}
	for range 3 {
		if deliver(t, d, one("noisy")) == nil {
			t.Error("delivered")
		}
		if err := deliver(t, d, one("quiet")); err != nil {
			t.Error(err)
		}
	}
	if d.circuits.byTenant["noisy"] == nil || d.circuits.byTenant["quiet"] != nil {
		t.Errorf("circuits: %v", d.circuits.byTenant)
	}
}

// TestBatch_guarded: streams whose labels are the same are one.
func TestBatch_guarded(t *testing.T) {
	b := &Batch{Guard: &Guard{Limit: 2, Log: slog.New(slog.DiscardHandler)}, Placement: Placement{
		Labels: model.LabelSet{"cluster": "c"}, LabelKeys: []parsers.Field{parsers.Component, parsers.CheckpointID},
	}}
	for id := range 100 {
		b.Add(event(map[parsers.Field]string{parsers.Component: "jobmanager", parsers.CheckpointID: fmt.Sprint(id)}), time.Unix(1, 0))
	}
	if n := len(b.Encode()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// TestDeadLetters_moved: a file that somebody moves, removes or tears is no loss for those
// that come behind.
func TestDeadLetters_moved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	f, err := OpenDeadLetters(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(tag string) {
		t.Helper()
		if err := f.Write(DeadLetter{At: now, Reason: "r", Tag: tag, Bytes: []byte{1}}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) (tags []string, bad int) {
		t.Helper()
		content, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		if err := ReadDeadLetters(content, func(l *DeadLetter) error { tags = append(tags, l.Tag); return nil }, func(error) { bad++ }); err != nil {
			t.Fatal(err)
		}
		return tags, bad
	}
	write("a")
	if err := os.Rename(path, path+".work"); err != nil {
		t.Fatal(err)
	}
	write("b")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write("c")
	torn, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := torn.WriteString(`{"at":"2026-11`); err != nil {
		t.Fatal(err)
	}
	_ = torn.Close()
	write("d")
	if tags, bad := read(path + ".work"); !slices.Equal(tags, []string{"a"}) || bad != 0 {
		t.Errorf("moved: %q, %d", tags, bad)
	}
	if tags, bad := read(path); !slices.Equal(tags, []string{"c", "d"}) || bad != 1 {
		t.Errorf("made anew: %q, %d", tags, bad)
	}
}

// TestDeadLetters_shared: two that have one path lose nothing when it is full.
func TestDeadLetters_shared(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "dead.jsonl")
	a, err := OpenDeadLetters(path, 2000)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := OpenDeadLetters(path, 2000)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range 60 {
		if err := b.Write(DeadLetter{At: now, Reason: strings.Repeat("r", 100), Tag: fmt.Sprint("b", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Write(DeadLetter{At: now, Reason: "r", Tag: "rare"}); err != nil {
		t.Fatal(err)
	}
	found := false
	files, _ := filepath.Glob(path + "*")
	for _, file := range files {
		content, err := os.ReadFile(file)
		found = found || err == nil && strings.Contains(string(content), `"rare"`)
	}
	if !found {
		t.Errorf("lost, in %v", files)
	}
	if _, err := OpenDeadLetters("/dev/null", 1); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a device: %v", err)
	}
}

// TestStatusError_isRefusal: streams that Loki names may have any words in their labels.
func TestStatusError_isRefusal(t *testing.T) {
	for text, want := range map[string]bool{
		`entry for stream '{event="e", job_name="Count per tenant id"}' has timestamp too new: 2036-01-01T00:00:00Z`: true,
		`stream '{job_name="no org id"}' has too many structured metadata labels: '2', limit: '1'`:                   true,
		"for reasons unknown":        true,
		"tenant ID is '../a' not ok": false,
		"multiple org IDs present":   false,
	} {
		if got := (&StatusError{Status: 400, Body: text}).isRefusal(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestDeliver_circuit: a bug, and a disk that takes no dead letter, leave no circuit open or
// taken.
func TestDeliver_circuit(t *testing.T) {
	status := 503
	d, _ := before(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte("no"))
	})
	one := &Request{Labels: labels, Entries: []Entry{entry("a", 0)}}
	if deliver(t, d, one) == nil || len(d.circuits.byTenant) != 1 {
		t.Error("no circuit is open")
	}
	status = 400
	d.Dead = func(string, *Request) error { panic("a bug") }
	func() {
		defer func() { _ = recover() }()
		_ = deliver(t, d, one) // the one that tries
	}()
	d.Dead = func(string, *Request) error { return os.ErrPermission }
	if err := deliver(t, d, one); !errors.Is(err, os.ErrPermission) || len(d.circuits.byTenant) != 0 {
		t.Errorf("%v: %d circuits are open", err, len(d.circuits.byTenant))
	}
	status = 204
	if err := deliver(t, d, one); err != nil {
		t.Error(err)
	}
}
