package loki

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/test/fakeloki"
)

// now is the time on the fake Loki's clock.
var now = time.Date(2026, 11, 29, 13, 30, 0, 500e6, time.UTC)

const labels = `{component="jobmanager", event="checkpoint_expired", level="INFO"}`

// setup returns a delivery to a fake Loki, and the letters that it gave up.
func setup(t *testing.T, limits func(*fakeloki.Limits)) (*Delivery, *fakeloki.Loki, *[]DeadLetter) {
	t.Helper()
	lim := fakeloki.DefaultLimits()
	if limits != nil {
		limits(&lim)
	}
	loki := fakeloki.New(fakeloki.Config{Limits: &lim, Now: func() time.Time { return now }})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now.Format(http.TimeFormat))
		loki.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { loki.Close(); server.Close() })
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(u, ClientOptions{Tenant: "", UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	letters := &[]DeadLetter{}
	d := &Delivery{Client: client, Log: slog.New(slog.DiscardHandler), Backoff: DefaultBackoff}
	d.Dead = func(reason string, r *Request) error {
		*letters = append(*letters, NewDeadLetters(now, reason, r)...)
		return nil
	}
	return d, loki, letters
}

// entry returns an entry some time before now, read a second later.
func entry(line string, ago time.Duration) Entry {
	return Entry{Time: now.Add(-ago), Line: []byte("event=x message=" + line), Read: now.Add(-time.Second)}
}

func deliver(t *testing.T, d *Delivery, r *Request) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	return d.Deliver(ctx, r.sorted().Encode())
}

// stored lists what Loki has: the labels delayed, the time before now, the line.
func stored(loki *fakeloki.Loki) (all []string) {
	for _, e := range loki.Entries() {
		_, message, _ := strings.Cut(e.Line, "message=")
		if len(message) > 60 {
			message = fmt.Sprintf("%s… (%d)", message[:8], len(e.Line))
		}
		all = append(all, strings.TrimSpace(e.Labels.Get("delayed")+" "+now.Sub(e.Time).String()+" "+message))
	}
	slices.Sort(all)
	return all
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// TestRequest: what is kept of a request is all of it, and Loki's message stands in front.
func TestRequest(t *testing.T) {
	r := &Request{Tenant: "t", Labels: labels, Entries: []Entry{
		{Time: now, Line: []byte("a"), Metadata: []Pair{{"job_id", "1"}, {"x", "2"}}, Read: now.Add(time.Second)},
		{Time: time.Unix(0, 1).UTC(), Line: []byte("")},
	}}
	stored := r.Encode()
	got, err := DecodeRequest(stored)
	if err != nil || fmt.Sprintf("%+v", got.Entries[1]) != fmt.Sprintf("%+v", r.Entries[1]) || !got.Entries[0].Read.Equal(r.Entries[0].Read) ||
		!bytes.Equal(got.Encode(), stored) || got.Tenant != "t" || got.Labels != labels {
		t.Errorf("got %+v, %v", got, err)
	}
	body, tenant, err := PushBody(stored)
	if err != nil || tenant != "t" || !bytes.HasPrefix(stored, body) {
		t.Errorf("body %q of %q, tenant %q, %v", body, stored, tenant, err)
	}
	for n := range stored {
		_, _ = DecodeRequest(stored[:n]) // no panic
		_, _, _ = PushBody(stored[:n])
	}
}

// TestDeliver_refused: what Loki refuses it takes in another form; what it takes is there
// once, and a repeat changes nothing.
func TestDeliver_refused(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	hours := func(n float64) time.Duration { return time.Duration(n * float64(time.Hour)) }
	for _, c := range []struct {
		name   string
		limits func(*fakeloki.Limits)
		labels string
		before []Entry // that the stream has
		send   []Entry
		want   []string
		dead   int
		once   bool // a repeat is not promised to change nothing
	}{{
		name:   "too far behind",
		before: []Entry{entry("newest", 0)},
		send:   []Entry{entry("a", hours(3)), entry("b", hours(2.4)), entry("c", hours(2.25)), entry("d", hours(0.5)), entry("e", 0)},
		want:   []string{"0s newest", "0s e", "30m0s d", "2026-11-29T10 3h0m0s a", "2026-11-29T11 2h24m0s b", "2026-11-29T11 2h15m0s c"},
	}, {
		name:   "too far behind, more than Loki names, and at the edge",
		before: []Entry{entry("newest", 0)},
		send: append(slices.Collect(func(yield func(Entry) bool) {
			for i := range 40 {
				if !yield(entry(fmt.Sprintf("e%02d", i), time.Hour+time.Duration(40-i)*100*time.Millisecond-2*time.Second)) {
					return
				}
			}
		}), entry("last", 0)),
		want: append(slices.Collect(func(yield func(string) bool) {
			for i := range 40 {
				ago := time.Hour + time.Duration(40-i)*100*time.Millisecond - 2*time.Second
				delayed := ""
				if ago > time.Hour {
					delayed = "2026-11-29T12 "
				}
				if !yield(fmt.Sprintf("%s%s e%02d", delayed, ago, i)) {
					return
				}
			}
		}), "0s newest", "0s last"),
	}, {
		name: "strict order, as before Loki 2.4", once: true,
		limits: func(l *fakeloki.Limits) { l.Window = 1 },
		labels: `{component="jobmanager", delayed="2026-11-29T13"}`,
		before: []Entry{entry("newest", 10*time.Second)},
		send:   []Entry{entry("a", 40*time.Second), entry("b", 30*time.Second), entry("c", 0)},
		want: []string{"2026-11-29T13 10s newest", "2026-11-29T13 0s c",
			"2026-11-29T13 -500ms a time_adjusted=true", "2026-11-29T13 -500ms b time_adjusted=true"},
	}, {
		name: "too new",
		send: []Entry{entry("a", 0), entry("b", -hours(8)), entry("c", -hours(0.1)), entry("d", -hours(9))},
		want: []string{"0s a", "-6m0s c", "1s b time_adjusted=true", "1s d time_adjusted=true"},
	}, {
		name: "too new, and so is the agent's clock",
		send: []Entry{{Time: now.Add(hours(8)), Line: []byte("message=a"), Read: now.Add(hours(8) + time.Second)}},
		want: []string{"500ms a time_adjusted=true"}, // Loki's clock, which tells seconds
	}, {
		name:   "too old",
		limits: func(l *fakeloki.Limits) { l.RejectOlderThan = 7 * 24 * time.Hour },
		send:   []Entry{entry("a", hours(24*8)), entry("b", 0)},
		want:   []string{"0s b", "1s a time_adjusted=true"},
	}, {
		name: "line too long",
		send: []Entry{entry("a", 2), entry(long, 1), entry("b", 0)},
		want: []string{"2ns a", "0s b", "1ns xxxxxxxx… (262142)"},
	}, {
		name:   "labels",
		limits: func(l *fakeloki.Limits) { l.MaxLabels = 4 },
		labels: `{a="1", cluster="p\"}", component="jobmanager", event="x", level="INFO", z="\\"}`,
		send:   []Entry{entry("a", 0)},
		want:   []string{"0s a"},
	}, {
		name:   "structured metadata",
		limits: func(l *fakeloki.Limits) { l.MaxMetadataEntries = 1 },
		send: []Entry{entry("a", 1), {Time: now, Line: []byte("message=b"), Metadata: []Pair{{"x", "1"}, {"y", "2"}}},
			{Time: now, Line: []byte("message=c"), Metadata: []Pair{{"x", "1"}}}},
		want: []string{"1ns a", "0s b", "0s c"},
	}, {
		name:   "body too large",
		limits: func(l *fakeloki.Limits) { l.MaxBodyBytes = 300 },
		send:   []Entry{entry("a", 3), entry("b", 2), entry("c", 1), entry("d", 0)},
		want:   []string{"3ns a", "2ns b", "1ns c", "0s d"},
	}} {
		t.Run(c.name, func(t *testing.T) {
			d, loki, letters := setup(t, c.limits)
			stream := labels
			if c.labels != "" {
				stream = c.labels
			}
			if len(c.before) > 0 {
				if err := deliver(t, d, &Request{Labels: stream, Entries: c.before}); err != nil {
					t.Fatal(err)
				}
			}
			for try := range 2 {
				if try > 0 && c.once {
					break
				}
				if err := deliver(t, d, &Request{Labels: stream, Entries: slices.Clone(c.send)}); err != nil {
					t.Fatal(err)
				}
				expect(t, stored(loki), c.want...)
			}
			if len(*letters) != c.dead {
				t.Errorf("%d dead letters: %v", len(*letters), *letters)
			}
		})
	}
}

// TestDeliver_poison: one entry that Loki refuses for ever, in each position, is put away
// and keeps no other back.
func TestDeliver_poison(t *testing.T) {
	const n = 7
	for poison := range n {
		d, loki, letters := setup(t, func(l *fakeloki.Limits) { l.RejectOlderThan = 24 * time.Hour })
		r := &Request{Labels: labels}
		for i := range n {
			e := entry(fmt.Sprint(i), time.Duration(n-i))
			if i == poison {
				// Too old by all its clocks, and a Loki that does not tell its own.
				e = Entry{Time: now.Add(-100 * 24 * time.Hour), Line: []byte("message=poison"), Read: now.Add(-99 * 24 * time.Hour)}
			}
			r.Entries = append(r.Entries, e)
		}
		d.Client.http.Transport = withoutDate{d.Client.http.Transport}
		if err := deliver(t, d, r); err != nil {
			t.Fatal(err)
		}
		if got := len(loki.Entries()); got != n-1 {
			t.Errorf("poison at %d: %d entries", poison, got)
		}
		if len(*letters) != 1 || !strings.Contains((*letters)[0].Line, "poison") || !strings.Contains((*letters)[0].Reason, "too old") {
			t.Errorf("poison at %d: %v", poison, *letters)
		}
	}
}

type withoutDate struct{ http.RoundTripper }

func (t withoutDate) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Header.Del("Date")
	}
	return resp, err
}

// TestDeliver_tooLarge: an entry that is too large by itself is put away, and a short form
// of it is shipped.
func TestDeliver_tooLarge(t *testing.T) {
	d, loki, letters := setup(t, func(l *fakeloki.Limits) { l.MaxBodyBytes = 6 << 10 })
	var noise strings.Builder // that does not compress
	for i := range 3000 {
		fmt.Fprintf(&noise, "%x", i*i*7919)
	}
	if err := deliver(t, d, &Request{Labels: labels, Entries: []Entry{entry("a", 1), entry(noise.String(), 0)}}); err != nil {
		t.Fatal(err)
	}
	if got := loki.Entries(); len(got) != 2 || !strings.HasSuffix(got[1].Line, cutMark) && !strings.HasSuffix(got[0].Line, cutMark) {
		t.Errorf("stored %v", stored(loki))
	}
	if len(*letters) != 1 || !strings.Contains((*letters)[0].Line, noise.String()) {
		t.Errorf("%d dead letters", len(*letters))
	}
}

// TestDeliver_again: what may be mended by waiting is tried again, and Retry-After is
// kept; the rest is told at once.
func TestDeliver_again(t *testing.T) {
	for status, again := range map[int]bool{408: true, 429: true, 500: true, 502: true, 503: true, 301: false, 401: false, 403: false, 404: false, 407: false} {
		d, loki, letters := setup(t, nil)
		loki.FailNext(2, status, http.Header{"Location": {"http://127.0.0.1:1/"}}, "the reason")
		err := deliver(t, d, &Request{Labels: labels, Entries: []Entry{entry("a", 0)}})
		var answer *StatusError
		if again != (err == nil) || !again && (!errors.As(err, &answer) || answer.Status != status) {
			t.Errorf("%d: %v", status, err)
		}
		if n := len(loki.Requests()); again && (n != 3 || d.Retries() != 2) || !again && n != 1 {
			t.Errorf("%d: %d requests, %d retries", status, n, d.Retries())
		}
		if len(*letters) > 0 {
			t.Errorf("%d: %v", status, *letters)
		}
	}
	d, loki, _ := setup(t, nil)
	loki.FailNext(1, 429, http.Header{"Retry-After": {"3600"}}, "")
	if err := deliver(t, d, &Request{Labels: labels, Entries: []Entry{entry("a", 0)}}); err == nil || len(loki.Requests()) != 1 {
		t.Errorf("Retry-After of an hour: %v, %d requests", err, len(loki.Requests()))
	}
}

// TestDeliver_open: while Loki can't be reached, one delivery at a time tries, once, and
// the others return at once; the first that is answered ends that.
func TestDeliver_open(t *testing.T) {
	d, loki, _ := setup(t, nil)
	d.Backoff.MaxRetries = 1
	r := func(line string) *Request { return &Request{Labels: labels, Entries: []Entry{entry(line, 0)}} }
	loki.CloseConnection(1)
	if deliver(t, d, r("a")) == nil {
		t.Fatal("delivered")
	}
	loki.HangNext(1)
	ctx, cancel := context.WithCancel(t.Context())
	probed := make(chan error)
	go func() { probed <- d.Deliver(ctx, r("a").Encode()) }()
	for len(loki.Requests()) < 1 || !d.circuits.isProbing("") {
		time.Sleep(time.Millisecond)
	}
	for range 3 {
		if err := deliver(t, d, r("b")); !errors.Is(err, ErrOpen) {
			t.Errorf("while another tries: %v", err)
		}
	}
	cancel()
	if err := <-probed; err == nil {
		t.Error("the one that tries is delivered")
	}
	loki.ClearFaults()
	if err := deliver(t, d, r("a")); err != nil {
		t.Fatal(err)
	}
	if err := deliver(t, d, r("b")); err != nil {
		t.Fatal(err)
	}
	expect(t, stored(loki), "0s a", "0s b")
}

func (c *circuits) isProbing(tenant string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byTenant[tenant] != nil && c.byTenant[tenant].probing
}

// TestDeliver_deadDisk: an entry that can't be put away keeps its chunk.
func TestDeliver_deadDisk(t *testing.T) {
	d, loki, _ := setup(t, nil)
	d.Dead = func(string, *Request) error { return errors.New("disk full") }
	loki.FailNext(1, 400, nil, "for reasons unknown")
	if err := deliver(t, d, &Request{Labels: labels, Entries: []Entry{entry("a", 0)}}); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
}

// TestDeadLetters: what is written can be read and delivered; the files are bounded.
func TestDeadLetters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dead.jsonl")
	f, err := OpenDeadLetters(path, 2000)
	if err != nil {
		t.Fatal(err)
	}
	r := &Request{Tenant: "t", Labels: labels, Entries: []Entry{{Time: now, Line: []byte("a \"line\" \xff"), Metadata: []Pair{{"b", "2"}, {"a", "1"}}}}}
	for range 40 {
		if err := f.Write(NewDeadLetters(now, "400 the reason", r)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Write(DeadLetter{At: now, Reason: "no log record", Tag: "x", Bytes: []byte{0xff, 0}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(path + "*")
	if len(files) != 1+keptDeadLetters {
		t.Errorf("files: %v", files)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || info.Size() > 2000 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	var content []byte
	for _, file := range []string{path + ".1", path} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, b...)
	}
	var got []string
	err = ReadDeadLetters(bytes.NewReader(content), func(l *DeadLetter) error {
		r, err := l.Request()
		if err != nil {
			return err
		}
		if r == nil {
			got = append(got, fmt.Sprintf("%s %x", l.Tag, l.Bytes))
		} else if len(got) == 0 {
			got = append(got, fmt.Sprintf("%s %s %d %s %v", r.Tenant, r.Labels, r.Entries[0].Time.UnixNano(), r.Entries[0].Line, r.Entries[0].Metadata))
		}
		return nil
	}, func(err error) { t.Error(err) })
	want := []string{fmt.Sprintf("t %s %d a \"line\" \ufffd [{a 1} {b 2}]", labels, now.UnixNano()), "x ff00"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, bad := range []string{"{", `{"labels":"{a=\"b\"}","time":"x"}`, `{"tenant":"a\nb"}`, "[]"} {
		n, faults := 0, []error{}
		err := ReadDeadLetters(strings.NewReader(bad+"\n\n"+string(content)), func(*DeadLetter) error { n++; return nil }, func(err error) { faults = append(faults, err) })
		if err != nil || n < 2 || len(faults) != 1 || !strings.Contains(faults[0].Error(), "line 1 ") {
			t.Errorf("%q: %v, %d letters, %v", bad, err, n, faults)
		}
	}
}
