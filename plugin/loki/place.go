package loki

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

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
	// Tenant has the events that are added next; "" is the client's.
	Tenant string

	streams map[string]*stream // by the tenant and the values of the label keys
	events  int
	scratch []byte
}

type stream struct {
	tenant  string
	labels  string
	entries []entry
}

type entry struct {
	time     time.Time
	line     []byte
	metadata []pair
}

type pair struct{ name, value string }

// Add adds an event under the entry time t.
func (b *Batch) Add(e *parsers.Event, t time.Time) {
	s := b.stream(e)
	b.scratch = e.AppendLogfmt(b.scratch[:0])
	s.entries = append(s.entries, entry{t, bytes.Clone(b.scratch), b.metadata(e)})
	b.events++
}

// Len returns the number of events.
func (b *Batch) Len() int { return b.events }

// stream returns the stream that an event belongs to.
func (b *Batch) stream(e *parsers.Event) *stream {
	key := append(append(b.scratch[:0], b.Tenant...), 0)
	for _, f := range b.Placement.LabelKeys {
		key = append(e.AppendValue(key, f), 0)
	}
	b.scratch = key
	s, ok := b.streams[string(key)]
	if !ok {
		s = &stream{tenant: b.Tenant, labels: b.labels(e).String()}
		if b.streams == nil {
			b.streams = map[string]*stream{}
		}
		b.streams[string(key)] = s
	}
	return s
}

func (b *Batch) labels(e *parsers.Event) model.LabelSet {
	labels := model.LabelSet{}
	maps.Copy(labels, b.Placement.Labels)
	for _, f := range b.Placement.LabelKeys {
		if e.Has(f) {
			labels[model.LabelName(parsers.Fields[f].Name)] = model.LabelValue(text(e, f))
		}
	}
	return labels
}

func (b *Batch) metadata(e *parsers.Event) []pair {
	if !b.Placement.Metadata {
		return nil
	}
	var pairs []pair
	for _, f := range MetadataFields {
		if e.Has(f) {
			pairs = append(pairs, pair{parsers.Fields[f].Name, text(e, f)})
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

// Encode returns the batch as logproto.PushRequests, each with one stream: Loki answers
// a push of several with the fate of the last one, and drops entries of the others
// without a word. Streams come in the order of their tenants and labels, the entries of a
// stream in the order of their times, and those of one time in the order in which they
// were added. A request of a tenant of its own has its name in front, see [CutTenant].
func (b *Batch) Encode() [][]byte {
	var requests [][]byte
	byLabels := func(a, b *stream) int {
		return cmp.Or(strings.Compare(a.tenant, b.tenant), strings.Compare(a.labels, b.labels))
	}
	for _, s := range slices.SortedFunc(maps.Values(b.streams), byLabels) {
		slices.SortStableFunc(s.entries, func(a, b entry) int { return a.time.Compare(b.time) })
		var message []byte // a logproto.StreamAdapter
		for i, e := range s.entries {
			if message == nil {
				message = appendText(nil, 1, s.labels)
			}
			b.scratch = e.encode(b.scratch[:0])
			message = appendMessage(message, 2, b.scratch)
			if i == len(s.entries)-1 || len(message) >= maxRequestBytes {
				requests = append(requests, WithTenant(s.tenant, appendMessage(nil, 1, message)))
				message = nil
			}
		}
	}
	return requests
}

// encode appends a logproto.EntryAdapter.
func (e *entry) encode(b []byte) []byte {
	t := make([]byte, 0, 24) // google.protobuf.Timestamp
	t = protowire.AppendTag(t, 1, protowire.VarintType)
	t = protowire.AppendVarint(t, uint64(e.time.Unix()))
	if n := e.time.Nanosecond(); n != 0 {
		t = protowire.AppendTag(t, 2, protowire.VarintType)
		t = protowire.AppendVarint(t, uint64(n))
	}
	b = appendMessage(b, 1, t)
	b = appendMessage(b, 2, e.line)
	for _, p := range e.metadata { // logproto.LabelPairAdapter
		b = appendMessage(b, 3, appendText(appendText(nil, 1, p.name), 2, p.value))
	}
	return b
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, message)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, text)
}
