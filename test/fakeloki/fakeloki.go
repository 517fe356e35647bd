// Package fakeloki is a stand-in for Loki's push endpoint that keeps the rules of Loki 2.4 and later:
// what is stored, what is refused and in which words, with faults that can be scripted and everything
// that was sent to look at afterwards. It answers no queries.
//
// Its rules are those that were seen on Loki 3.7.6; the conformance test runs the same pushes against
// it and against a real Loki. Three of them are easy to get wrong:
//
//   - An ingester answers with the outcome of the push's LAST stream only. Entries of an earlier stream
//     that are too far behind, over a stream's rate limit or in a stream too many are dropped, and the
//     answer is 204 if the last stream was fine. A 2xx proves delivery only for a push of one stream.
//   - A repeated entry is kept once only while it is less than an hour behind its stream's newest entry;
//     behind that it is refused, stored or not.
//   - Some pushes get 500 however often they are tried: a metadata name without letter or digit, an
//     entry older than Loki's schema in a new stream, a push over 4 MiB before compression.
//
// Known differences: a stream never goes idle (a real Loki forgets the newest entry of a stream that has
// rested for 30 minutes or more), streams are not split into shards, and of Prometheus' label-set syntax
// the forms with a metric name (foo, foo{}, {"foo"}) are refused.
package fakeloki

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Config says how a Loki behaves. The zero Config is a Loki with default limits and no tenants.
type Config struct {
	// Limits are DefaultLimits() where nil.
	Limits *Limits
	// Now is the clock of the rules and the rate limits; time.Now where nil.
	Now func() time.Time
	// MultiTenant is Loki's auth_enabled: the tenant comes from X-Scope-OrgID, and a request without it
	// gets 401. Otherwise the header is not looked at and the tenant is "fake".
	MultiTenant bool
	// Behind takes what is pushed in place of the rules, a real Loki say: the body as sent, under its
	// headers. It returns the status and text of the answer. Nothing is then stored here.
	Behind func(header http.Header, body []byte) (status int, text string)
}

// Loki is an http.Handler for POST /loki/api/v1/push and GET /ready, safe for concurrent use.
type Loki struct {
	limits      Limits
	now         func() time.Time
	multiTenant bool
	behind      func(header http.Header, body []byte) (status int, text string)
	mux         *http.ServeMux

	mu       sync.Mutex
	tenants  map[string]*tenant
	requests []Request
	faults   []fault
	closed   chan struct{} // lets hanging requests go
}

// New returns a Loki without entries, streams and faults.
func New(c Config) *Loki {
	l := &Loki{
		limits:      DefaultLimits(),
		now:         c.Now,
		multiTenant: c.MultiTenant,
		behind:      c.Behind,
		mux:         http.NewServeMux(),
		tenants:     map[string]*tenant{},
		closed:      make(chan struct{}),
	}
	if c.Limits != nil {
		l.limits = *c.Limits
	}
	if l.now == nil {
		l.now = time.Now
	}
	l.mux.HandleFunc("POST /loki/api/v1/push", l.push)
	l.mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ready\n"))
	})
	return l
}

// ServeHTTP implements http.Handler.
func (l *Loki) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mux.ServeHTTP(w, r)
}

// Close lets every hanging request go. Call it before closing the server, which waits for them.
func (l *Loki) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
}

// Stored is an entry that Loki keeps.
type Stored struct {
	Tenant string
	Labels Labels // of its stream: sorted by name, without empty values
	Entry         // Metadata: names as Loki rewrites them, sorted, without empty values
}

// Entries returns everything stored, by tenant, labels, time, line and metadata.
func (l *Loki) Entries() []Stored {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Stored
	for name, t := range l.tenants {
		for _, s := range t.streams {
			for _, e := range s.entries {
				all = append(all, Stored{Tenant: name, Labels: s.labels, Entry: e})
			}
		}
	}
	slices.SortFunc(all, compareStored)
	return all
}

// Request is a push that came in, answered or not.
type Request struct {
	Method string
	Path   string
	Header http.Header
	Body   []byte // as sent, compressed
	// Streams is the body decoded, nil where it can't be.
	Streams []Stream
	// Status is what was answered, 0 where nothing was.
	Status int
}

// Requests returns the pushes so far in the order of their arrival.
func (l *Loki) Requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}
