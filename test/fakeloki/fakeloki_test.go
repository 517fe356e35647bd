package fakeloki

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// serve serves a Loki at a clock that stands at noon.
func serve(t *testing.T, c Config) (*Loki, *httptest.Server, *clock) {
	t.Helper()
	clock := &clock{t: noon}
	c.Now = clock.now
	loki := New(c)
	server := httptest.NewServer(loki)
	t.Cleanup(server.Close)
	t.Cleanup(loki.Close) // before server.Close
	return loki, server, clock
}

// send pushes and returns the answer with its body read, or why there is none.
func send(ctx context.Context, url string, body []byte, header http.Header) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/loki/api/v1/push", bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.Header = http.Header{"Content-Type": {"application/x-protobuf"}}
	for name, value := range header {
		r.Header[name] = value
	}
	// A transport of its own: one that keeps connections sends a push again when one was closed under it.
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, string(text), err
}

// mustSend expects a status.
func mustSend(t *testing.T, url string, status int, streams ...Stream) string {
	t.Helper()
	answer, text, err := send(t.Context(), url, encode(streams...), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", answer.StatusCode, status, text)
	}
	return text
}

func one(labels string, d time.Duration, line string) Stream {
	return Stream{labels, []Entry{{Time: noon.Add(d), Line: line}}}
}

func printEntries(l *Loki) []string {
	var out []string
	for _, s := range l.Entries() {
		out = append(out, fmt.Sprintf("%s %s %s %s", s.Tenant, s.Labels, s.Time.Sub(noon), s.Line))
	}
	return out
}

func wantEntries(t *testing.T, l *Loki, want ...string) {
	t.Helper()
	if got := printEntries(l); !slices.Equal(got, want) {
		t.Errorf("stored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEntriesAndRequests(t *testing.T) {
	t.Parallel()
	loki, server, _ := serve(t, Config{MultiTenant: true})
	body := encode(
		Stream{`{b="1",a="2"}`, []Entry{{noon.Add(time.Second), "second", Labels{{"z", "1"}, {"a", "2"}}}, {noon, "first", nil}}},
		Stream{`{a="1"}`, []Entry{{noon, "x", nil}}},
	)
	for _, tenant := range []string{"t2", "t1"} {
		answer, text, err := send(t.Context(), server.URL, body, http.Header{"X-Scope-Orgid": {tenant}})
		if err != nil || answer.StatusCode != 204 || text != "" {
			t.Fatal(answer, text, err)
		}
	}
	if answer, _, err := send(t.Context(), server.URL, []byte("junk"), nil); err != nil || answer.StatusCode != 401 {
		t.Fatal(answer, err)
	}
	wantEntries(t, loki,
		`t1 {a="1"} 0s x`, `t1 {a="2", b="1"} 0s first`, `t1 {a="2", b="1"} 1s second`,
		`t2 {a="1"} 0s x`, `t2 {a="2", b="1"} 0s first`, `t2 {a="2", b="1"} 1s second`)
	if got := loki.Entries()[2].Metadata.String(); got != `{a="2", z="1"}` {
		t.Errorf("metadata %s", got)
	}

	requests := loki.Requests()
	if len(requests) != 3 {
		t.Fatalf("%d requests", len(requests))
	}
	r := requests[0]
	if r.Method != "POST" || r.Path != "/loki/api/v1/push" || r.Header.Get("X-Scope-OrgID") != "t2" || !bytes.Equal(r.Body, body) || r.Status != 204 {
		t.Errorf("request 0: %+v", r)
	}
	if len(r.Streams) != 2 || r.Streams[0].Labels != `{b="1",a="2"}` || r.Streams[0].Entries[0].Metadata[0] != (Label{"z", "1"}) {
		t.Errorf("streams of request 0, as sent: %+v", r.Streams)
	}
	if r = requests[2]; r.Status != 401 || r.Streams != nil || string(r.Body) != "junk" {
		t.Errorf("request 2: %+v", r)
	}
}

func TestFaultsInTheirOrder(t *testing.T) {
	t.Parallel()
	loki, server, _ := serve(t, Config{})
	loki.FailNext(2, 503, http.Header{"retry-after": {"7"}}, "busy")
	loki.CloseConnection(1)
	loki.StoreButLoseReply(1)
	loki.FailNext(1, 429, nil, "")

	for i := range 2 {
		answer, text, err := send(t.Context(), server.URL, encode(one(`{a="1"}`, 0, "refused")), nil)
		if err != nil || answer.StatusCode != 503 || text != "busy" || answer.Header.Get("Retry-After") != "7" {
			t.Errorf("push %d: %v %q %v", i, answer, text, err)
		}
	}
	if _, _, err := send(t.Context(), server.URL, encode(one(`{a="1"}`, 0, "unheard")), nil); err == nil {
		t.Error("CloseConnection answers")
	}
	wantEntries(t, loki)
	if _, _, err := send(t.Context(), server.URL, encode(one(`{a="1"}`, 0, "unacknowledged")), nil); err == nil {
		t.Error("StoreButLoseReply answers")
	}
	wantEntries(t, loki, `fake {a="1"} 0s unacknowledged`)
	if n := loki.FaultsLeft(); n != 1 {
		t.Errorf("%d faults left", n)
	}
	mustSend(t, server.URL, 429, one(`{a="1"}`, 0, "refused"))
	mustSend(t, server.URL, 204, one(`{a="1"}`, 0, "unacknowledged"))
	wantEntries(t, loki, `fake {a="1"} 0s unacknowledged`)

	var statuses []int
	for _, r := range loki.Requests() {
		statuses = append(statuses, r.Status)
	}
	if !slices.Equal(statuses, []int{503, 503, 0, 0, 429, 204}) {
		t.Errorf("statuses %v", statuses)
	}
}

func TestLostReplyOfARefusedPush(t *testing.T) {
	t.Parallel()
	loki, server, _ := serve(t, Config{})
	loki.StoreButLoseReply(2)
	for _, body := range [][]byte{[]byte("junk"), encode(one(`{a="1"}`, time.Hour, "too new"), one(`{a="1"}`, 0, "good"))} {
		if _, _, err := send(t.Context(), server.URL, body, nil); err == nil {
			t.Error("answered")
		}
	}
	wantEntries(t, loki, `fake {a="1"} 0s good`)
}

func TestHangUntilTheClientGivesUp(t *testing.T) {
	t.Parallel()
	loki, server, _ := serve(t, Config{})
	loki.HangNext(2)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, _, err := send(ctx, server.URL, encode(one(`{a="1"}`, 0, "x")), nil)
		failed <- err
	}()
	for len(loki.Requests()) == 0 {
		time.Sleep(time.Millisecond) // the test's own time limit bounds the wait
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	go func() {
		_, _, err := send(t.Context(), server.URL, encode(one(`{a="1"}`, 0, "x")), nil)
		failed <- err
	}()
	for len(loki.Requests()) == 1 {
		time.Sleep(time.Millisecond)
	}
	loki.Close()
	loki.Close()
	if err := <-failed; err == nil {
		t.Error("answered")
	}
	mustSend(t, server.URL, 204, one(`{a="1"}`, 0, "y"))
	wantEntries(t, loki, `fake {a="1"} 0s y`)
}

func TestFaultWithoutAConnection(t *testing.T) {
	t.Parallel()
	loki := New(Config{})
	loki.CloseConnection(1)
	w := httptest.NewRecorder()
	loki.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/loki/api/v1/push", nil))
	if w.Code != http.StatusBadGateway {
		t.Error(w.Code)
	}
}

func TestRatesRefill(t *testing.T) {
	t.Parallel()
	limits := DefaultLimits()
	limits.TenantRate, limits.TenantBurst = 100, 300
	limits.PerStreamRate, limits.PerStreamBurst = 10, 200
	loki, server, clock := serve(t, Config{Limits: &limits})
	hundred := strings.Repeat("x", 100)
	mustSend(t, server.URL, 204, one(`{a="1"}`, 0, hundred), one(`{a="1"}`, 1, hundred))
	if text := mustSend(t, server.URL, 429, one(`{a="1"}`, 2, hundred)); !strings.Contains(text, "Per stream rate limit exceeded (limit: 10B/sec)") {
		t.Error(text)
	}
	clock.move(10 * time.Second) // refills the stream by 100, the tenant to its burst
	mustSend(t, server.URL, 204, one(`{a="1"}`, 2, hundred))
	mustSend(t, server.URL, 204, one(`{a="1"}`, 2, hundred)) // the last entry again costs the stream nothing
	mustSend(t, server.URL, 204, one(`{a="2"}`, 2, hundred))
	if text := mustSend(t, server.URL, 429, one(`{a="3"}`, 2, hundred)); !strings.Contains(text, "limit: 100 bytes/sec") {
		t.Error(text)
	}
	clock.move(time.Second)
	mustSend(t, server.URL, 204, one(`{a="3"}`, 2, hundred))
	if n := len(loki.Entries()); n != 5 {
		t.Errorf("%d entries", n)
	}
}

func TestClockDecidesWhatIsTooNew(t *testing.T) {
	t.Parallel()
	loki, server, clock := serve(t, Config{})
	ten := one(`{a="1"}`, 10*time.Minute+1, "x")
	mustSend(t, server.URL, 204, one(`{a="1"}`, 10*time.Minute, "just"))
	mustSend(t, server.URL, 400, ten)
	clock.move(1)
	mustSend(t, server.URL, 204, ten)
	wantEntries(t, loki, `fake {a="1"} 10m0s just`, `fake {a="1"} 10m0.000000001s x`)
}

func TestNoLimits(t *testing.T) {
	t.Parallel()
	loki, server, _ := serve(t, Config{Limits: &Limits{}})
	body := encode(
		Stream{`{a="1"}`, []Entry{{noon, strings.Repeat("x", 5<<20), nil}, {time.Unix(0, 0), "epoch", nil}, {noon.Add(999 * time.Hour), "far ahead", nil}}},
		Stream{"{" + strings.Join(labelPairs(40), ",") + "}", []Entry{{noon, "x", metadataPairs(200, 1000)}}},
	)
	if answer, text, err := send(t.Context(), server.URL, body, nil); err != nil || answer.StatusCode != 204 {
		t.Fatal(answer, short(text), err)
	}
	if n := len(loki.Entries()); n != 4 {
		t.Errorf("%d entries", n)
	}
}

func TestOtherPaths(t *testing.T) {
	t.Parallel()
	_, server, _ := serve(t, Config{})
	for _, c := range []struct {
		method, path string
		status       int
		text         string
	}{
		{"GET", "/ready", 200, "ready\n"},
		{"POST", "/ready", 405, ""},
		{"GET", "/loki/api/v1/push", 405, ""},
		{"POST", "/loki/api/v1/push/", 404, ""},
		{"POST", "/", 404, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != c.status || c.text != "" && string(text) != c.text {
			t.Errorf("%s %s: %d %q %v", c.method, c.path, answer.StatusCode, text, err)
		}
	}
}

func TestConcurrentPushes(t *testing.T) {
	t.Parallel()
	loki, server, _ := serve(t, Config{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				// Every entry is pushed by two.
				s := one(fmt.Sprintf(`{a="%d"}`, i/2), time.Duration(j), "x")
				answer, text, err := send(t.Context(), server.URL, encode(s), nil)
				if err != nil || answer.StatusCode != 204 {
					t.Error(answer, text, err)
				}
				loki.Entries()
			}
		})
	}
	wg.Wait()
	if n := len(loki.Entries()); n != 4*20 {
		t.Errorf("%d entries", n)
	}
	if n := len(loki.Requests()); n != 8*20 {
		t.Errorf("%d requests", n)
	}
}

func TestJSONIsRefused(t *testing.T) {
	t.Parallel()
	_, server, _ := serve(t, Config{})
	answer, _, err := send(t.Context(), server.URL, []byte(`{"streams":[]}`), http.Header{"Content-Type": {"application/json"}})
	if err != nil || answer.StatusCode != http.StatusNotImplemented {
		t.Error(answer, err)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	hash := "\x18\x05"                                         // field 3 of a stream, a number: skipped
	noTime := "\x12\x05\x12\x01x\x20\x01"                      // an entry with a line and an unknown field
	badNanos := "\x12\x09\x0a\x07\x10\x80\xa0\xf7\x85\xaf\x01" // out of range
	for _, c := range []struct{ name, stream, want string }{
		{"unknown fields", "\x0a\x07{a=\"1\"}" + hash + noTime, `[{{a="1"} [{0001-01-01 00:00:00 +0000 UTC x {}}]}]`},
		{"nanoseconds out of range", badNanos, "timestamp: 0 s -255995904 ns is out of range"},
		{"cut within a stream", "\x0a\x07{a=", "unexpected EOF"},
		{"a group", "\x1b\x1c", "[{ []}]"},
	} {
		b := append([]byte{0x0a, byte(len(c.stream))}, c.stream...)
		streams, err := decodePush(b)
		got := fmt.Sprint(streams)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestParseLabelsKeepsWhatIsWritten(t *testing.T) {
	t.Parallel()
	ls, err := ParseLabels(`{b="2",a="",b="1"}`)
	if err != nil || ls.String() != `{b="2", a="", b="1"}` {
		t.Error(ls, err)
	}
	if ls.Get("b") != "2" || ls.Get("c") != "" {
		t.Error(ls.Get("b"))
	}
	for _, named := range []string{`foo`, `foo{a="b"}`, `{"foo"}`, `{"foo", a="b"}`} {
		if ls, err := ParseLabels(named); err == nil {
			t.Errorf("%s gives %s: metric names are not taken", named, ls)
		}
	}
}

func FuzzParseLabels(f *testing.F) {
	for _, s := range []string{``, `{}`, `{a="b"}`, "{a='\\x41',`b`=\"\\u00e9\"}", `{a="b",}`, "{a=\"b\" # c\n}", `{a="\`, `{"": "`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ls, err := ParseLabels(s)
		if err != nil {
			return
		}
		again, err := ParseLabels(ls.String())
		if err != nil || !slices.Equal(again, ls) {
			t.Errorf("%q gives %s, and that gives %s, %v", s, ls, again, err)
		}
	})
}

func FuzzPush(f *testing.F) {
	f.Add(message(one(`{a="1"}`, 0, "x")))
	f.Add(message(Stream{`{a="1"}`, []Entry{{noon, "x", Labels{{"k", "v"}}}, {noon.Add(-2 * time.Hour), "y", nil}}}))
	f.Add([]byte("\x0a\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		loki := New(Config{Now: func() time.Time { return noon }})
		r := httptest.NewRequest(http.MethodPost, "/loki/api/v1/push", bytes.NewReader(snappy.Encode(nil, b)))
		r.Header.Set("Content-Type", "application/x-protobuf")
		w := httptest.NewRecorder()
		loki.ServeHTTP(w, r)
		if streams := loki.Requests()[0].Streams; streams != nil && w.Code/100 == 2 {
			again, err := decodePush(message(streams...))
			if err != nil || fmt.Sprint(again) != fmt.Sprint(streams) {
				t.Errorf("%v encoded and decoded is %v, %v", streams, again, err)
			}
		}
	})
}
