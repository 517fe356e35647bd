package loki

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/encoding/protowire"

	"flink-loki/parsers"
)

// Placement says where an event's fields go: into stream labels, structured metadata
// or the line. The line always has them all.
type Placement struct {
	// Labels are the static labels of every stream.
	Labels model.LabelSet
	// LabelKeys are the fields that become stream labels.
	LabelKeys []parsers.Field
	// Metadata says whether [MetadataFields] become structured metadata (Loki 3.x).
	Metadata bool
}

// MetadataFields are the fields that structured metadata has, where it is on: those
// that queries select by and that would make too many streams.
var MetadataFields = []parsers.Field{
	parsers.JobID, parsers.JobName, parsers.CheckpointID, parsers.TaskName, parsers.SubtaskIndex,
	parsers.TaskAttemptID, parsers.OperatorName, parsers.TMID, parsers.Host, parsers.Node,
	parsers.FailureReason, parsers.Counted, parsers.Savepoint,
}

// Batch gathers events into streams. The zero Batch with a Placement is empty. It
// copies what it is given.
type Batch struct {
	Placement Placement
	// Guard bounds the values of labels, nil for no bound.
	Guard *Guard
	// Tenant has the events that are added next; "" is the client's.
	Tenant string

	places   map[string]place    // by the tenant and the values of the label keys
	requests map[string]*Request // by the tenant and the labels
	events   int
	scratch  []byte
}

// place is where events go: to a stream, and fields that are none of its labels because they
// have too many values to the metadata.
type place struct {
	*Request
	left []parsers.Field
}

// Add adds an event under the entry time t.
func (b *Batch) Add(e *parsers.Event, t time.Time) {
	s := b.place(e)
	b.scratch = e.AppendLogfmt(b.scratch[:0])
	if len(b.scratch) > maxLine {
		b.scratch = cutLine(b.scratch, maxLine)
	}
	s.Entries = append(s.Entries, Entry{t, bytes.Clone(b.scratch), b.metadata(e, s.left), e.Origin.Time})
	b.events++
}

// What Loki takes by default, with some room (limits_config of Loki 3.7: max_line_size 256
// KiB, max_label_value_length 2048, max_structured_metadata_size 64 KiB). The line has
// what is cut elsewhere.
const (
	maxLine          = 250 << 10
	maxLabelValue    = 1 << 10
	maxMetadataValue = 2 << 10
)

// fitting shortens a value to a number of bytes; the hash of the whole value at its end
// keeps two that begin alike apart.
func fitting(value string, limit int) string {
	if len(value) <= limit {
		return value
	}
	hash := strconv.FormatUint(xxhash.Sum64String(value), 16)
	return strings.ToValidUTF8(value[:limit-len(hash)-len("…")], "") + "…" + hash
}

// Len returns the number of events.
func (b *Batch) Len() int { return b.events }

// place returns where an event goes.
func (b *Batch) place(e *parsers.Event) place {
	key := append(append(b.scratch[:0], b.Tenant...), 0)
	for _, f := range b.Placement.LabelKeys {
		key = append(e.AppendValue(key, f), 0)
	}
	b.scratch = key
	if p, ok := b.places[string(key)]; ok {
		return p
	}
	if b.places == nil {
		b.places, b.requests = map[string]place{}, map[string]*Request{}
	}
	set, left := b.labels(e)
	labels := set.String()
	r := b.requests[b.Tenant+"\x00"+labels]
	if r == nil {
		r = &Request{Tenant: b.Tenant, Labels: labels}
		b.requests[b.Tenant+"\x00"+labels] = r
	}
	p := place{r, left}
	b.places[string(key)] = p
	return p
}

// labels returns the labels of an event's stream, and the fields that are left out of
// them.
func (b *Batch) labels(e *parsers.Event) (labels model.LabelSet, left []parsers.Field) {
	labels = model.LabelSet{}
	maps.Copy(labels, b.Placement.Labels)
	for _, f := range b.Placement.LabelKeys {
		if !e.Has(f) {
			continue
		}
		if value := fitting(text(e, f), maxLabelValue); b.Guard.allows(f, value) {
			labels[model.LabelName(parsers.Fields[f].Name)] = model.LabelValue(value)
		} else {
			left = append(left, f)
		}
	}
	return labels, left
}

func (b *Batch) metadata(e *parsers.Event, left []parsers.Field) []Pair {
	if !b.Placement.Metadata {
		return nil
	}
	var pairs []Pair
	for _, f := range MetadataFields {
		if e.Has(f) {
			pairs = append(pairs, Pair{parsers.Fields[f].Name, fitting(text(e, f), maxMetadataValue)})
		}
	}
	for _, f := range left {
		if !slices.Contains(MetadataFields, f) {
			pairs = append(pairs, Pair{parsers.Fields[f].Name, fitting(text(e, f), maxMetadataValue)})
		}
	}
	return pairs
}

func text(e *parsers.Event, f parsers.Field) string {
	return strings.ToValidUTF8(string(e.AppendValue(nil, f)), "\ufffd")
}

// maxRequestBytes bounds a push request before compression. Loki hands requests on over
// gRPC, by default in 4 MiB at most, and answers 500 to larger ones, however often they
// are sent.
const maxRequestBytes = 1 << 20

// Encode returns the batch as stored requests, each with one stream: Loki answers a push
// of several with the fate of the last one, and drops entries of the others without a
// word. Streams come in the order of their tenants and labels, the entries of a stream in
// the order of their times, and those of one time in the order in which they were added.
func (b *Batch) Encode() [][]byte {
	var requests [][]byte
	byTenant := func(a, b *Request) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Labels, b.Labels))
	}
	for _, s := range slices.SortedFunc(maps.Values(b.requests), byTenant) {
		first, size := 0, 0
		for i := range s.sorted().Entries {
			size += s.Entries[i].size()
			if i == len(s.Entries)-1 || size >= maxRequestBytes {
				requests = append(requests, s.part(s.Entries[first:i+1]).Encode())
				first, size = i+1, 0
			}
		}
	}
	return requests
}

// size returns how many bytes an entry takes in a request, about.
func (e *Entry) size() int {
	n := len(e.Line) + 40
	for _, p := range e.Metadata {
		n += len(p.Name) + len(p.Value) + 8
	}
	return n
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, message)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, text)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
