package parsers

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/go-logfmt/logfmt"
	jsoniter "github.com/json-iterator/go"
)

// maxFields bounds the number of fields; the presence mask has one bit for each.
const maxFields = 128

// Event is one typed event: its kind and the fields that its line tells. A field
// that the line does not tell is absent, which is not the same as zero.
//
// The zero Event is empty and ready for use. Text values alias the line they were
// read from and live as long as it does.
type Event struct {
	// Kind is what happened. It is nil only in an empty event.
	Kind *Kind
	// Origin says where the event's line stands.
	Origin Origin

	present [maxFields / 64]uint64
	num     [maxFields]int64 // Int, Bool; bits of a float64 for Number; ns for Timestamp
	text    [maxFields][]byte
}

// Origin says where a record stands in its source. The caller of [Source.Record]
// fills it; the package only hands it on.
type Origin struct {
	// Line is the number of the record's first physical line, counted from 1;
	// 0 when not known.
	Line int
	// Offset is the byte offset of the record in its file; negative when not known.
	Offset int64
	// Time is the record's own time, the zero Time when not known.
	Time time.Time
	// URL is where the record was fetched from, for answers of Flink's REST API, which
	// do not name their job; nil when not known.
	URL []byte
}

// Made returns an event of the kind that no line tells, and that the agent makes.
func (k *Kind) Made(component, level string, at time.Time) *Event {
	e := &Event{Kind: k, Origin: Origin{Offset: -1}}
	e.SetTime(Time, at)
	e.SetText(EventName, []byte(k.Name))
	e.SetText(Component, []byte(component))
	e.SetText(Level, []byte(level))
	return e
}

// Reset empties the event.
func (e *Event) Reset() {
	e.Kind = nil
	e.Origin = Origin{}
	e.present = [maxFields / 64]uint64{}
}

// Clone returns a copy that has its own memory.
func (e *Event) Clone() *Event {
	c := *e
	c.Origin.URL = bytes.Clone(e.Origin.URL)
	for f := range e.All {
		c.text[f] = bytes.Clone(e.text[f])
	}
	return &c
}

// Has reports whether the field is present.
func (e *Event) Has(f Field) bool { return e.present[f>>6]&(1<<(f&63)) != 0 }

// Drop makes the field absent.
func (e *Event) Drop(f Field) { e.present[f>>6] &^= 1 << (f & 63) }

func (e *Event) mark(f Field) { e.present[f>>6] |= 1 << (f & 63) }

// SetText sets a text field. An empty text makes it absent.
func (e *Event) SetText(f Field, v []byte) {
	if len(v) == 0 {
		e.Drop(f)
		return
	}
	e.text[f] = v
	e.mark(f)
}

// SetInt sets an Int field.
func (e *Event) SetInt(f Field, v int64) {
	e.num[f] = v
	e.mark(f)
}

// SetNumber sets a Number field.
func (e *Event) SetNumber(f Field, v float64) {
	e.num[f] = int64(math.Float64bits(v))
	e.mark(f)
}

// SetBool sets a Bool field.
func (e *Event) SetBool(f Field, v bool) {
	e.num[f] = 0
	if v {
		e.num[f] = 1
	}
	e.mark(f)
}

// SetTime sets a Timestamp field. A time that is no number of ns since 1970, in a year before
// 1678 or after 2261, makes it absent.
func (e *Event) SetTime(f Field, t time.Time) {
	if year := t.Year(); year < 1678 || year > 2261 {
		e.Drop(f)
		return
	}
	e.num[f] = t.UnixNano()
	e.mark(f)
}

// SetValue sets a field from its text, as the field's type says. An empty text, and one
// that is no such value, sets nothing.
func (e *Event) SetValue(f Field, v []byte) {
	if h := holeFor(f); len(v) > 0 && (h.scan == nil || h.scan(v) == len(v)) {
		h.fill(e, v)
	}
}

// Text returns the value of a text field, nil when absent. It aliases the line.
func (e *Event) Text(f Field) []byte {
	if !e.Has(f) {
		return nil
	}
	return e.text[f]
}

// Int returns the value of an Int field, 0 when absent, and whether it is present.
func (e *Event) Int(f Field) (int64, bool) {
	if !e.Has(f) {
		return 0, false
	}
	return e.num[f], true
}

// Number returns the value of a Number field, 0 when absent, and whether it is present.
func (e *Event) Number(f Field) (float64, bool) {
	if !e.Has(f) {
		return 0, false
	}
	return math.Float64frombits(uint64(e.num[f])), true
}

// Bool returns the value of a Bool field, false when absent, and whether it is present.
func (e *Event) Bool(f Field) (value, ok bool) { return e.Has(f) && e.num[f] != 0, e.Has(f) }

// Time returns the value of a Timestamp field in UTC and whether it is present.
func (e *Event) Time(f Field) (time.Time, bool) {
	return time.Unix(0, e.num[f]).UTC(), e.Has(f)
}

// addFrom adds the fields of other that e does not have.
func (e *Event) addFrom(other *Event) {
	for f := range other.All {
		if !e.Has(f) {
			e.num[f], e.text[f] = other.num[f], other.text[f]
			e.mark(f)
		}
	}
}

// AppendValue appends the field's value as plain text, without quotes; nothing when
// it is absent.
func (e *Event) AppendValue(b []byte, f Field) []byte {
	if !e.Has(f) {
		return b
	}
	switch Fields[f].Type {
	case Int:
		return strconv.AppendInt(b, e.num[f], 10)
	case Number:
		return strconv.AppendFloat(b, math.Float64frombits(uint64(e.num[f])), 'f', -1, 64)
	case Bool:
		return strconv.AppendBool(b, e.num[f] != 0)
	case Timestamp:
		return time.Unix(0, e.num[f]).UTC().AppendFormat(b, time.RFC3339Nano)
	}
	return append(b, e.text[f]...)
}

// All calls yield for each field that is present, in the order of [Fields].
func (e *Event) All(yield func(Field) bool) {
	for i, word := range e.present {
		for ; word != 0; word &= word - 1 {
			if !yield(Field(i<<6 + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// AppendLogfmt appends the event as one line of logfmt without a newline. Bytes that
// are no UTF-8 become U+FFFD.
func (e *Event) AppendLogfmt(b []byte) []byte {
	buf := bytes.NewBuffer(b)
	enc := logfmt.NewEncoder(buf)
	var scratch [64]byte
	for f := range e.All {
		value := e.text[f]
		if Fields[f].Type.isNumeric() {
			value = e.AppendValue(scratch[:0], f)
		}
		// The only errors are those of the writer and of keys; neither can occur here.
		_ = enc.EncodeKeyval(Fields[f].Name, value)
	}
	return buf.Bytes()
}

// AppendJSON appends the event as the members of a JSON object, separated by
// commas, without the braces, so that a caller can add members of its own.
func (e *Event) AppendJSON(b []byte) []byte {
	stream := jsoniter.NewStream(jsoniter.ConfigDefault, nil, 0)
	stream.SetBuffer(b)
	first := true
	var scratch [64]byte
	for f := range e.All {
		if !first {
			stream.WriteMore()
		}
		first = false
		stream.WriteObjectField(Fields[f].Name)
		switch t := Fields[f].Type; {
		case t == Timestamp:
			stream.WriteString(string(e.AppendValue(scratch[:0], f)))
		case t.isNumeric():
			stream.WriteRaw(string(e.AppendValue(scratch[:0], f)))
		default:
			stream.WriteString(string(bytes.ToValidUTF8(e.text[f], []byte("\ufffd"))))
		}
	}
	return stream.Buffer()
}
