package fakeloki

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// tenant is what one tenant has stored.
type tenant struct {
	name    string
	streams map[string]*stream // by labels
	rate    bucket
}

type stream struct {
	labels  Labels
	entries []Entry
	known   map[string]struct{} // keys of entries
	newest  time.Time
	last    string // key of the entry stored last
	rate    bucket
}

// accepted is a stream of a push with those of its entries that the distributor forwards.
type accepted struct {
	labels  Labels
	entries []Entry
}

// store takes a push as Loki does: the distributor checks labels and entries, the tenant's rate limit
// takes or refuses what is left as a whole, the ingester stores it stream by stream. It returns nil where
// Loki answers 204.
func (l *Loki) store(tenantName string, pushed []Stream) *refusal {
	if len(pushed) == 0 {
		return refuse(http.StatusUnprocessableEntity, "error at least one valid stream is required for ingestion")
	}
	parsed := make([]Labels, len(pushed))
	for i, s := range pushed {
		ls, err := ParseLabels(s.Labels)
		if err != nil {
			return refuse(http.StatusBadRequest, "couldn't parse labels: %s", err)
		}
		parsed[i] = ls.sorted()
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var (
		refused []*refusal
		valid   []accepted
		entries int
		bytes   int
		wire    int
	)
	for i, s := range pushed {
		if len(s.Entries) == 0 {
			continue // not even its labels are looked at
		}
		if r := l.limits.checkLabels(parsed[i]); r != nil {
			refused = append(refused, r)
			continue
		}
		a := accepted{labels: parsed[i]}
		for _, e := range s.Entries {
			if r := l.limits.checkEntry(a.labels, e, now); r != nil {
				refused = append(refused, r)
				continue
			}
			metadata, err := normalMetadata(e.Metadata)
			if err != nil {
				// Seen on 3.7.6: nothing of the push is stored.
				return refuse(http.StatusInternalServerError, "%s", err)
			}
			e.Metadata = metadata
			a.entries = append(a.entries, e)
			entries++
			bytes += e.size()
			wire += e.wireSize()
		}
		if len(a.entries) > 0 {
			valid = append(valid, a)
			wire += len(s.Labels)
		}
	}
	if len(valid) > 0 {
		if r := l.forward(tenantName, valid, entries, bytes, wire, now); r != nil {
			return r // what the distributor refused goes unsaid
		}
	}
	if len(refused) > 0 {
		return summary(refused)
	}
	return nil
}

// forward hands valid streams to the ingester, unless the tenant is over its rate or the whole is too
// much for one message.
func (l *Loki) forward(tenantName string, valid []accepted, entries, bytes, wire int, now time.Time) *refusal {
	t := l.tenants[tenantName]
	if t == nil {
		t = &tenant{
			name:    tenantName,
			streams: map[string]*stream{},
			rate:    newBucket(l.limits.TenantRate, l.limits.TenantBurst, now),
		}
		l.tenants[tenantName] = t
	}
	if !t.rate.take(bytes, now) {
		return refuse(http.StatusTooManyRequests, "ingestion rate limit exceeded for user %s (limit: %d bytes/sec) while attempting to ingest '%d' lines totaling '%d' bytes, reduce log volume or contact your Loki administrator to see if the limit can be increased",
			tenantName, l.limits.TenantRate, entries, bytes)
	}
	if over(wire, l.limits.MaxForwardBytes) {
		return refuse(http.StatusInternalServerError, "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (%d vs. %d)",
			wire, l.limits.MaxForwardBytes)
	}
	var answer *refusal
	for _, a := range valid {
		// Seen on 3.7.6: the outcome of a later stream replaces that of an earlier one, nil included.
		answer = t.ingest(&l.limits, a, now)
	}
	return answer
}

// ingest stores the entries of one stream.
func (t *tenant) ingest(lim *Limits, a accepted, now time.Time) *refusal {
	key := a.labels.String()
	s := t.streams[key]
	if s == nil {
		if over(len(t.streams)+1, lim.MaxStreams) {
			return refuse(http.StatusTooManyRequests, "maximum active stream limit exceeded when trying to create stream %s, reduce the number of active streams (reduce labels or reduce label values), or contact your Loki administrator to see if the limit can be increased, user: '%s'",
				a.labels, t.name)
		}
		if first := a.entries[0].Time; first.Before(lim.SchemaFrom) {
			return refuse(http.StatusInternalServerError, "rpc error: code = Unknown desc = failed to create stream: no schema config found for time %d", first.Unix())
		}
		s = &stream{
			labels: a.labels,
			known:  map[string]struct{}{},
			rate:   newBucket(lim.PerStreamRate, lim.PerStreamBurst, now),
		}
		t.streams[key] = s
	}

	var (
		kept    []Entry
		refused []refusedEntry
		bytes   int
		newest  = s.newest
		last    = s.last
	)
	overRate := func(e Entry) {
		refused = append(refused, refusedEntry{e.Time, refuse(http.StatusTooManyRequests,
			"Per stream rate limit exceeded (limit: %s/sec) while attempting to ingest for stream '%s' totaling %s, consider splitting a stream via additional labels or contact your Loki administrator to see if the limit can be increased",
			byteSize(lim.PerStreamRate), s.labels, byteSize(e.size()))})
	}
	for _, e := range a.entries {
		if e.key() == last {
			continue // costs no rate, and is fine however old
		}
		if lim.PerStreamSingleEntries && !s.rate.take(e.size(), now) {
			overRate(e)
			continue
		}
		if oldest := newest.Add(-lim.Window); lim.Window > 0 && !newest.IsZero() && e.Time.Before(oldest) {
			refused = append(refused, refusedEntry{e.Time, refuse(http.StatusBadRequest,
				"entry too far behind, entry timestamp is: %s, oldest acceptable timestamp is: %s", seconds(e.Time), seconds(oldest))})
			continue
		}
		kept = append(kept, e)
		bytes += e.size()
		last = e.key()
		if e.Time.After(newest) {
			newest = e.Time
		}
	}
	if !lim.PerStreamSingleEntries && !s.rate.take(bytes, now) {
		// All that was left of the stream or nothing; entries too far behind go unsaid.
		refused = nil
		for _, e := range kept {
			overRate(e)
		}
		kept = nil
	}
	for _, e := range kept {
		s.add(e)
	}
	if len(refused) > 0 {
		return entriesRefused(t.name, s.labels, refused, len(a.entries), lim.MaxReturnedErrors)
	}
	return nil
}

// add stores an entry, once if it is there already.
func (s *stream) add(e Entry) {
	k := e.key()
	s.last = k
	if e.Time.After(s.newest) {
		s.newest = e.Time
	}
	if _, stored := s.known[k]; stored {
		return
	}
	s.known[k] = struct{}{}
	s.entries = append(s.entries, e)
}

// key is equal for entries that are identical within a stream: same time, line and metadata.
func (e Entry) key() string {
	b := protowire.AppendVarint(nil, uint64(e.Time.Unix()))
	b = protowire.AppendVarint(b, uint64(e.Time.Nanosecond()))
	b = protowire.AppendString(b, e.Line)
	for _, m := range e.Metadata {
		b = protowire.AppendString(b, m.Name)
		b = protowire.AppendString(b, m.Value)
	}
	return string(b)
}

// size is what rate limits count: bytes of the line and of metadata names and values.
func (e Entry) size() int {
	n := len(e.Line)
	for _, m := range e.Metadata {
		n += len(m.Name) + len(m.Value)
	}
	return n
}

// wireSize is about what the entry takes in protobuf, in bytes.
func (e Entry) wireSize() int { return e.size() + 20 + 6*len(e.Metadata) }

func compareStored(a, b Stored) int {
	return cmp.Or(
		strings.Compare(a.Tenant, b.Tenant),
		strings.Compare(a.Labels.String(), b.Labels.String()),
		a.Time.Compare(b.Time),
		strings.Compare(a.Line, b.Line),
		strings.Compare(a.Metadata.String(), b.Metadata.String()),
	)
}
