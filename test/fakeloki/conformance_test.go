package fakeloki

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/test/lokitest"
)

// group is cases that need the same limits.
type group struct {
	name   string
	limits func(*Limits) // what differs from DefaultLimits
	args   []string      // the flags with which a real Loki has these limits
	// own asks for a Loki of our own configuration: a Loki at LOKI_URL may have another schema or refuse
	// old entries. With args it is implied.
	own   bool
	cases []conformanceCase
}

// conformanceCase is some pushes to streams of its own and what is stored in the end.
type conformanceCase struct {
	name   string
	steps  func(e *env) []step
	stored []string // as printStored prints them
}

// step is one push and what is answered.
type step struct {
	streams []Stream
	body    []byte      // instead of streams
	header  http.Header // beside or instead of the usual ones; a nil value takes one away
	status  int
	says    []string // all of these are in the answer
	silent  []string // none of these is
}

// env makes the labels and times of a case.
type env struct {
	run  string
	base time.Time
}

// in is the labels of a stream of the case; more is further pairs.
func (e *env) in(more ...string) string {
	return "{" + strings.Join(append([]string{"run=\"" + e.run + "\""}, more...), ",") + "}"
}

// printed is the labels of in as they appear in an answer, for labels that sort before "run".
func (e *env) printed(before ...string) string {
	return "{" + strings.Join(append(before, "run=\""+e.run+"\""), ", ") + "}"
}

// at is an entry some time from the base of the case, which is now to the second.
func (e *env) at(d time.Duration, line string, metadata ...Label) Entry {
	return Entry{Time: e.base.Add(d), Line: line, Metadata: metadata}
}

// second prints a time as the reasons do.
func (e *env) second(d time.Duration) string { return seconds(e.base.Add(d)) }

// target is the fake or a real Loki.
type target struct {
	url    string
	stored func(t *testing.T, e *env) []string
}

func TestFakeConforms(t *testing.T) {
	t.Parallel()
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			limits := DefaultLimits()
			if g.limits != nil {
				g.limits(&limits)
			}
			loki := New(Config{Limits: &limits, MultiTenant: true})
			server := httptest.NewServer(loki)
			t.Cleanup(server.Close)
			g.check(t, target{server.URL, func(_ *testing.T, e *env) []string {
				var found []string
				for _, s := range loki.Entries() {
					if s.Labels.Get("run") == e.run {
						found = append(found, e.printStored(s))
					}
				}
				return found
			}})
		})
	}
}

// TestRealLokiConforms runs the same pushes against a real Loki 3, so that the fake's rules are not our
// wishes.
func TestRealLokiConforms(t *testing.T) {
	t.Parallel()
	if os.Getenv("LOKI_URL") == "" && os.Getenv("LOKI_BIN") == "" {
		t.Skip("no real Loki to compare with: set LOKI_URL or, for all cases, LOKI_BIN to a Loki 3")
	}
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			own := g.own || len(g.args) > 0
			if own && os.Getenv("LOKI_BIN") == "" {
				t.Skip("needs a Loki with limits of its own: set LOKI_BIN to a Loki 3")
			}
			loki, err := lokitest.Start(t.Context(), lokitest.Options{Tenant: tenantName, Args: g.args, Own: own, MinMajor: 3})
			if errors.Is(err, lokitest.ErrTooOld) {
				t.Skip(err) // these are the rules of Loki 3
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := loki.Stop(); err != nil {
					t.Error(err)
				}
			})
			g.check(t, target{loki.URL(), func(t *testing.T, e *env) []string { return realStored(t, loki, e) }})
		})
	}
}

const tenantName = "conformance"

func (g *group) check(t *testing.T, to target) {
	for i, c := range g.cases {
		t.Run(c.name, func(t *testing.T) {
			now := time.Now().UTC()
			e := &env{run: fmt.Sprintf("%x-%d", now.UnixNano(), i), base: now.Truncate(time.Second)}
			for i, s := range c.steps(e) {
				status, text := post(t, to.url, s)
				if status != s.status {
					t.Errorf("push %d: status %d, want %d; %s", i, status, s.status, short(text))
				}
				for _, want := range s.says {
					if !strings.Contains(text, want) {
						t.Errorf("push %d: the answer lacks %q: %s", i, short(want), short(text))
					}
				}
				for _, no := range s.silent {
					if strings.Contains(text, no) {
						t.Errorf("push %d: the answer has %q: %s", i, short(no), short(text))
					}
				}
			}
			got := to.stored(t, e)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(c.stored))
			if !slices.Equal(got, want) {
				t.Errorf("stored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// post sends a step and returns status and text of the answer.
func post(t *testing.T, url string, s step) (int, string) {
	t.Helper()
	body := s.body
	if body == nil {
		body = encode(s.streams...)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/loki/api/v1/push", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/x-protobuf"}, "X-Scope-Orgid": {tenantName}}
	for name, value := range s.header {
		r.Header[name] = value
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	// A Loki at LOKI_URL may add a label to streams that have none of those that it takes for a service.
	return answer.StatusCode, strings.ReplaceAll(string(text), `, service_name="unknown_service"`, "")
}

// realStored reads back what a real Loki has of a case.
func realStored(t *testing.T, loki *lokitest.Server, e *env) []string {
	t.Helper()
	// A week back and no more, for the sake of a Loki that limits the range of a query.
	streams, err := loki.Stored(t.Context(), e.in(), e.base.Add(-8*24*time.Hour), e.base.Add(time.Hour), 5000)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, s := range streams {
		for _, entry := range s.Entries {
			found = append(found, e.printStored(Stored{
				Labels: labelsOf(s.Labels),
				Entry:  Entry{Time: entry.Time, Line: entry.Line, Metadata: labelsOf(entry.Metadata)},
			}))
		}
	}
	return found
}

func labelsOf(m map[string]string) Labels {
	var ls Labels
	for name, value := range m {
		ls = append(ls, Label{name, value})
	}
	return ls.sorted()
}

// printStored prints an entry by its time from the base: `{y="1"} 0s line {k="v"}`. The label of the
// case is left out, and so is what Loki may add by itself.
func (e *env) printStored(s Stored) string {
	drop := func(l Label) bool {
		return l.Name == "run" || l.Name == "service_name" || l.Name == "detected_level"
	}
	labels := slices.DeleteFunc(slices.Clone(s.Labels), drop)
	metadata := slices.DeleteFunc(slices.Clone(s.Metadata), drop)
	text := fmt.Sprintf("%s %s %s", short(labels.String()), s.Time.Sub(e.base), short(s.Line))
	if len(metadata) > 0 {
		text += " " + short(metadata.String())
	}
	return text
}

// short cuts a text for a message, with its length.
func short(s string) string {
	if len(s) <= 600 {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:40], len(s))
}
