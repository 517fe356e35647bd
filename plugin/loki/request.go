package loki

import (
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Request is entries of one stream, as they are pushed at once and as the journal keeps
// them.
type Request struct {
	// Tenant is sent as X-Scope-OrgID; empty: the client's.
	Tenant string
	// Labels are the stream's, as {name="value", …}.
	Labels  string
	Entries []Entry
}

// Entry is one entry of a stream.
type Entry struct {
	Time     time.Time
	Line     []byte
	Metadata []Pair
	// Read is when the agent read the entry's line, the zero Time when not known.
	Read time.Time
}

// Pair is a name and a value of structured metadata.
type Pair struct{ Name, Value string }

// The fields of a stored request. Its first one is what Loki's push request has at the
// same place, a logproto.StreamAdapter; what else is kept stands behind it.
const (
	requestStream protowire.Number = 1
	requestTenant protowire.Number = 2
	requestRead   protowire.Number = 3 // ns since 1970 of each entry, packed
)

// Encode returns the request as the journal keeps it.
func (r *Request) Encode() []byte {
	var read []byte
	hasRead := false
	for i := range r.Entries {
		ns := int64(0)
		if !r.Entries[i].Read.IsZero() {
			ns, hasRead = r.Entries[i].Read.UnixNano(), true
		}
		read = protowire.AppendVarint(read, protowire.EncodeZigZag(ns))
	}
	b := appendMessage(nil, requestStream, r.stream())
	if r.Tenant != "" {
		b = appendText(b, requestTenant, r.Tenant)
	}
	if hasRead {
		b = appendMessage(b, requestRead, read)
	}
	return b
}

// stream returns the logproto.StreamAdapter.
func (r *Request) stream() []byte {
	b := appendText(nil, 1, r.Labels)
	var scratch []byte
	for i := range r.Entries {
		scratch = r.Entries[i].encode(scratch[:0])
		b = appendMessage(b, 2, scratch)
	}
	return b
}

// encode appends a logproto.EntryAdapter.
func (e *Entry) encode(b []byte) []byte {
	t := make([]byte, 0, 24) // google.protobuf.Timestamp
	t = protowire.AppendTag(t, 1, protowire.VarintType)
	t = protowire.AppendVarint(t, uint64(e.Time.Unix()))
	if n := e.Time.Nanosecond(); n != 0 {
		t = protowire.AppendTag(t, 2, protowire.VarintType)
		t = protowire.AppendVarint(t, uint64(n))
	}
	b = appendMessage(b, 1, t)
	b = appendMessage(b, 2, e.Line)
	for _, p := range e.Metadata { // logproto.LabelPairAdapter
		b = appendMessage(b, 3, appendText(appendText(nil, 1, p.Name), 2, p.Value))
	}
	return b
}

// PushBody returns what is sent of a stored request: a logproto.PushRequest, which
// aliases it, and the tenant.
func PushBody(stored []byte) (body []byte, tenant string, err error) {
	err = eachField(stored, func(field protowire.Number, value []byte, raw []byte) error {
		switch field {
		case requestStream:
			body = raw
		case requestTenant:
			tenant = string(value)
		}
		return nil
	})
	return body, tenant, err
}

// DecodeRequest reads what [Request.Encode] has made. The entries alias it.
func DecodeRequest(stored []byte) (*Request, error) {
	r := &Request{}
	var read []byte
	err := eachField(stored, func(field protowire.Number, value, _ []byte) error {
		switch field {
		case requestStream:
			return r.decodeStream(value)
		case requestTenant:
			r.Tenant = string(value)
		case requestRead:
			read = value
		}
		return nil
	})
	for i := range r.Entries {
		ns, n := protowire.ConsumeVarint(read)
		if n < 0 {
			break
		}
		read = read[n:]
		if ns := protowire.DecodeZigZag(ns); ns != 0 {
			r.Entries[i].Read = time.Unix(0, ns)
		}
	}
	return r, err
}

func (r *Request) decodeStream(b []byte) error {
	return eachField(b, func(field protowire.Number, value, _ []byte) error {
		switch field {
		case 1:
			r.Labels = string(value)
		case 2:
			e := Entry{}
			if err := e.decode(value); err != nil {
				return err
			}
			r.Entries = append(r.Entries, e)
		}
		return nil
	})
}

func (e *Entry) decode(b []byte) error {
	return eachField(b, func(field protowire.Number, value, _ []byte) error {
		switch field {
		case 1:
			seconds, nanos := int64(0), int64(0)
			for len(value) > 0 {
				number, _, n := protowire.ConsumeTag(value)
				if n < 0 {
					return protowire.ParseError(n)
				}
				v, m := protowire.ConsumeVarint(value[n:])
				if m < 0 {
					return protowire.ParseError(m)
				}
				if number == 1 {
					seconds = int64(v)
				} else {
					nanos = int64(v)
				}
				value = value[n+m:]
			}
			e.Time = time.Unix(seconds, nanos).UTC()
		case 2:
			e.Line = value
		case 3:
			var p Pair
			err := eachField(value, func(field protowire.Number, value, _ []byte) error {
				if field == 1 {
					p.Name = string(value)
				} else {
					p.Value = string(value)
				}
				return nil
			})
			e.Metadata = append(e.Metadata, p)
			return err
		}
		return nil
	})
}

// eachField calls visit for each field of a message, all of which are length-delimited:
// with its value, and with the whole field.
func eachField(b []byte, visit func(field protowire.Number, value, raw []byte) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if kind != protowire.BytesType {
			return errors.New("this is no request")
		}
		value, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		if err := visit(number, value, b[:n+m]); err != nil {
			return err
		}
		b = b[n+m:]
	}
	return nil
}

// part returns a request for some of the entries.
func (r *Request) part(entries []Entry) *Request {
	return &Request{Tenant: r.Tenant, Labels: r.Labels, Entries: entries}
}

// take splits the entries into those that are taken, and the others.
func (r *Request) take(is func(*Entry) bool) (taken, others []Entry) {
	for i := range r.Entries {
		if e := r.Entries[i]; is(&e) {
			taken = append(taken, e)
		} else {
			others = append(others, e)
		}
	}
	return taken, others
}

// sorted sorts the entries by time; those of one time keep their order.
func (r *Request) sorted() *Request {
	slices.SortStableFunc(r.Entries, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	return r
}
