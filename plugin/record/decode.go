// Package record reads the records of a Fluent Bit chunk in place.
//
// A chunk is a run of MessagePack arrays, one for each record (Fluent Bit
// include/fluent-bit/flb_log_event.h, src/flb_log_event_decoder.c):
//
//	[time, {body}]                 v1, Fluent Bit up to 2.0
//	[[time, {metadata}], {body}]   v2, from 2.1 on
//
// Nothing that this package returns outlives the chunk: texts alias it.
package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/tinylib/msgp/msgp"

	"flink-loki/parsers/layout"
)

// Keys names the parts of a record's body that are read. An empty name reads nothing.
// The path of a key in a map within a map is joined by dots.
type Keys struct {
	// Log is the key of the line. Where a record has no such key, the record itself can
	// be a line that was taken apart; else "message" is read, and where it has neither,
	// the only text of the body.
	Log string
	// Filename is the key under which tail's Path_Key puts the path.
	Filename string
	// Offset is the key under which tail's Offset_Key puts the line's byte offset.
	Offset string
	// Parts are the keys of a line that was taken apart, nil for none.
	Parts *layout.Keys
	// Fields are paths of further texts that are wanted.
	Fields []string
	// Whole reports whether a body that has a key is to be read as a whole, as JSON; nil
	// for none.
	Whole func(key []byte) bool

	fields map[string][]int // indices in Fields
	roots  map[string]bool  // paths of the maps that hold them
}

// Prepare makes the keys ready for use, after they were set.
func (k *Keys) Prepare() {
	k.fields, k.roots = map[string][]int{}, map[string]bool{}
	for i, path := range k.Fields {
		k.fields[path] = append(k.fields[path], i)
		for dot := range path {
			if path[dot] == '.' {
				k.roots[path[:dot]] = true
			}
		}
	}
}

// Record is one log record. Its texts alias the chunk. It is valid until the next one
// is read.
type Record struct {
	// Time is the record's time, the zero Time where it has none.
	Time time.Time
	// Line is the log line, nil where the body holds none.
	Line []byte
	// Object is a line that was taken apart, nil where Line is set.
	Object *layout.Object
	// Filename is the file that the line was read from, nil when not known.
	Filename []byte
	// Offset is the byte offset of the line in that file, -1 when not known.
	Offset int64
	// Fields are the texts that [Keys.Fields] names, nil for one that is not there.
	Fields [][]byte
}

// Stats counts what a chunk held.
type Stats struct {
	// Records that were read.
	Records int
	// NoLine counts records among them without a text to parse.
	NoLine int
	// Malformed counts pieces that are no record. What stands after one is read.
	Malformed int
	// SkippedBytes is the size of the malformed pieces.
	SkippedBytes int
	// Pieces are the malformed pieces. They alias the chunk.
	Pieces [][]byte
}

// Decode calls yield for each record of a chunk, in order. A malformed piece is
// counted and skipped; it never costs the records before or after it.
func Decode(chunk []byte, keys Keys, yield func(*Record)) Stats {
	var stats Stats
	d := decoder{keys: keys, budget: maxWork * len(chunk), fields: make([][]byte, len(keys.Fields))}
	inMalformed := false
	for len(chunk) > 0 {
		rec, rest, err := d.next(chunk)
		if err == nil && (d.suspect || !startsRecord(rest)) {
			// A record that was cut short takes the records behind it for its own
			// bytes: look for one inside.
			if n := d.resync(chunk[:len(chunk)-len(rest)], chunk); n > 0 {
				err = errNoRecord
			} else {
				rec, rest, err = d.next(chunk)
			}
		}
		if err != nil {
			n := d.skip(chunk)
			if inMalformed {
				last := &stats.Pieces[len(stats.Pieces)-1]
				*last = (*last)[:len(*last)+n]
			} else {
				stats.Malformed++
				stats.Pieces = append(stats.Pieces, chunk[:n])
			}
			inMalformed = true
			stats.SkippedBytes += n
			chunk = chunk[n:]
			continue
		}
		inMalformed = false
		chunk = rest
		if rec == nil {
			continue
		}
		stats.Records++
		if rec.Line == nil && rec.Object == nil {
			stats.NoLine++
			continue
		}
		yield(rec)
	}
	return stats
}

var errNoRecord = errors.New("no record")

type decoder struct {
	keys   Keys
	rec    Record
	object layout.Object
	parts  bool // the object has parts of the record
	fields [][]byte
	// suspect says that the record's body holds an EventTime, which belongs into a
	// record's head.
	suspect bool
	// eventTime says that the record has an EventTime, which no other MessagePack has
	// by chance.
	eventTime bool
	// budget bounds the bytes that may still be looked at.
	budget int
}

// maxWork bounds the work on a chunk, in looks at each byte. Whole records take one; the
// rest is for finding records behind malformed pieces. A chunk that was made to take
// more is given up where the budget ends.
const maxWork = 32

// Group markers stand in place of a time: the records between them belong together
// (flb_log_event.h, FLB_LOG_EVENT_GROUP_START and _END).
const (
	groupStart = math.MaxUint32     // -1
	groupEnd   = math.MaxUint32 - 1 // -2
)

// next reads the record that b starts with. A group marker gives a nil record.
func (d *decoder) next(b []byte) (*Record, []byte, error) {
	d.rec, d.suspect, d.eventTime = Record{Offset: -1, Fields: d.fields}, false, false
	clear(d.fields)
	if d.parts {
		d.object.Reset()
		d.parts = false
	}
	marker, rest, err := d.readHead(b)
	if err != nil {
		return nil, nil, err
	}
	if rest, err = d.readBody(rest); err != nil {
		return nil, nil, err
	}
	if marker {
		return nil, rest, nil
	}
	return &d.rec, rest, nil
}

// readHead reads what stands before a record's body. It is the same 13 bytes in nearly all
// records but for the time: v2, an EventTime, and no metadata.
func (d *decoder) readHead(b []byte) (marker bool, rest []byte, err error) {
	if len(b) > 13 && b[0] == 0x92 && b[1] == 0x92 && b[2] == eventTimeHead[0] && b[3] == eventTimeHead[1] && b[12] == 0x80 {
		return d.setEventTime(b[4:12]), b[13:], nil
	}
	size, rest, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil || size != 2 {
		return false, nil, errNoRecord
	}
	if msgp.NextType(rest) != msgp.ArrayType { // v1: no metadata
		return d.readTime(rest)
	}
	if size, rest, err = msgp.ReadArrayHeaderBytes(rest); err != nil || size != 2 {
		return false, nil, errNoRecord
	}
	if marker, rest, err = d.readTime(rest); err != nil {
		return false, nil, err
	}
	if msgp.NextType(rest) != msgp.MapType {
		return false, nil, errNoRecord
	}
	rest, err = msgp.Skip(rest)
	return marker, rest, err
}

// readTime reads a record's time: Fluent Bit's EventTime (extension type 0, seconds
// and nanoseconds as big-endian uint32), whole seconds, or a float of seconds.
func (d *decoder) readTime(b []byte) (marker bool, rest []byte, err error) {
	switch msgp.NextType(b) {
	case msgp.ExtensionType:
		payload, rest, ok := cutEventTime(b)
		if !ok {
			return false, nil, errNoRecord
		}
		return d.setEventTime(payload), rest, nil
	case msgp.IntType, msgp.UintType:
		sec, rest, err := msgp.ReadInt64Bytes(b)
		if err != nil || sec < 0 {
			return false, nil, errNoRecord
		}
		d.rec.Time = time.Unix(sec, 0)
		return false, rest, nil
	case msgp.Float64Type, msgp.Float32Type:
		sec, rest, err := readFloat(b)
		if err != nil || !(sec >= 0 && sec <= math.MaxUint32) {
			return false, nil, errNoRecord
		}
		whole, part := math.Modf(sec)
		d.rec.Time = time.Unix(int64(whole), int64(part*1e9))
		return false, rest, nil
	}
	return false, nil, errNoRecord
}

// setEventTime sets a record's time, and reports whether it is a group marker.
func (d *decoder) setEventTime(payload []byte) (marker bool) {
	d.eventTime = true
	sec, nsec := binary.BigEndian.Uint32(payload), binary.BigEndian.Uint32(payload[4:])
	if nsec == 0 && (sec == groupStart || sec == groupEnd) {
		return true
	}
	d.rec.Time = time.Unix(int64(sec), int64(nsec))
	return false
}

func readFloat(b []byte) (float64, []byte, error) {
	if msgp.NextType(b) == msgp.Float32Type {
		f, rest, err := msgp.ReadFloat32Bytes(b)
		return float64(f), rest, err
	}
	return msgp.ReadFloat64Bytes(b)
}

// eventTimeHead starts an extension of type 0 and 8 bytes.
var eventTimeHead = []byte{0xd7, 0}

// cutEventTime cuts an extension of type 0 and 8 bytes off: fixext 8, or ext 8.
func cutEventTime(b []byte) (payload, rest []byte, ok bool) {
	head := 2
	if !bytes.HasPrefix(b, eventTimeHead) {
		if !bytes.HasPrefix(b, []byte{0xc7, 8, 0}) {
			return nil, nil, false
		}
		head = 3
	}
	if len(b) < head+8 {
		return nil, nil, false
	}
	return b[head : head+8], b[head+8:], true
}

// readBody reads the keys that are wanted from the body and skips all others.
func (d *decoder) readBody(b []byte) (rest []byte, err error) {
	size, rest, err := readMapHeader(b)
	if err != nil {
		return nil, err
	}
	body := b
	var message, only []byte
	texts, whole := 0, false
	for range size {
		before := len(rest)
		key, after, ok := cutText(rest)
		if !ok { // a key that is no text
			after, err = d.pass(rest)
		}
		if err != nil {
			return nil, err
		}
		text, after2, ok := cutText(after)
		if rest = after2; !ok {
			if d.keys.Offset != "" && string(key) == d.keys.Offset {
				var n int64
				if n, rest, err = msgp.ReadInt64Bytes(after); err == nil {
					d.rec.Offset = n
					d.budget -= before - len(rest)
					continue
				}
			}
			whole = whole || d.isWhole(key)
			if rest, err = d.pass(after); err == nil {
				d.readOther(key, after[:len(after)-len(rest)])
			}
		}
		if err != nil {
			return nil, err
		}
		d.budget -= before - len(rest)
		if !ok {
			continue
		}
		switch {
		case d.keys.Filename != "" && string(key) == d.keys.Filename:
			d.rec.Filename = text
			continue
		case d.keys.Log != "" && string(key) == d.keys.Log:
			d.rec.Line = text
		default:
			if string(key) == "message" {
				message = text
			}
			d.readText(key, text)
			whole = whole || d.isWhole(key)
		}
		texts++
		only = text
	}
	switch {
	case d.rec.Line != nil:
	case whole:
		d.rec.Line = toJSON(body[:len(body)-len(rest)])
	case d.parts && d.object.IsLine():
		d.rec.Object = &d.object
	case message != nil:
		d.rec.Line = message
	case texts == 1:
		d.rec.Line = only
	}
	return rest, nil
}

// readMapHeader reads how many keys a map has.
func readMapHeader(b []byte) (size uint32, rest []byte, err error) {
	switch {
	case len(b) > 0 && b[0]&0xf0 == 0x80: // fixmap
		return uint32(b[0] & 0x0f), b[1:], nil
	case msgp.NextType(b) != msgp.MapType:
		return 0, nil, errNoRecord
	}
	return msgp.ReadMapHeaderBytes(b)
}

// isWhole reports whether a body with such a key is read as a whole.
func (d *decoder) isWhole(key []byte) bool { return d.keys.Whole != nil && d.keys.Whole(key) }

// toJSON returns a MessagePack value as JSON, nil where it can't be one. A bin is text.
func toJSON(b []byte) []byte {
	b = bytes.Clone(b)
	for rest, err := b, error(nil); len(rest) > 0; {
		switch msgp.NextType(rest) {
		case msgp.MapType:
			_, rest, err = msgp.ReadMapHeaderBytes(rest)
		case msgp.ArrayType:
			_, rest, err = msgp.ReadArrayHeaderBytes(rest)
		case msgp.BinType:
			rest[0] += 0xd9 - 0xc4 // str 8 for bin 8, and so on
			fallthrough
		default:
			rest, err = msgp.Skip(rest)
		}
		if err != nil {
			return nil
		}
	}
	var buf bytes.Buffer
	if _, err := msgp.UnmarshalAsJSON(&buf, b); err != nil {
		return nil
	}
	return buf.Bytes()
}

// readText keeps a text that is wanted.
func (d *decoder) readText(key, text []byte) {
	d.readField(key, text)
	if d.keys.Parts == nil {
		return
	}
	if part := d.keys.Parts.Part(key); part != layout.NoPart {
		d.object.Set(part, text)
		d.parts = true
	}
}

func (d *decoder) readField(path, text []byte) {
	for _, i := range d.keys.fields[string(path)] {
		d.rec.Fields[i] = text
	}
}

// readOther reads a value of the body that is no text: fields in maps, and what the
// layouts of JSON have as numbers, objects and arrays.
func (d *decoder) readOther(key, value []byte) {
	d.readFields(key, value, 0)
	if parts := d.keys.Parts; parts != nil && (parts.Part(key) != layout.NoPart || parts.Holds(key)) {
		parts.ReadValue(string(key), toJSON(value), &d.object)
		d.parts = true
	}
}

// maxDepth bounds the maps within maps that are read.
const maxDepth = 4

// readFields reads the fields in a map.
func (d *decoder) readFields(path, b []byte, depth int) {
	if msgp.NextType(b) != msgp.MapType || depth == maxDepth || !d.keys.roots[string(path)] {
		return
	}
	size, rest, err := msgp.ReadMapHeaderBytes(b)
	for ; err == nil && size > 0; size-- {
		key, after, ok := cutText(rest)
		if !ok {
			return
		}
		full := slices.Concat(path, []byte("."), key)
		if text, after, ok := cutText(after); ok {
			d.readField(full, text)
			rest = after
			continue
		}
		d.readFields(full, after, depth+1)
		rest, err = msgp.Skip(after)
	}
}

// pass skips a value of the body.
func (d *decoder) pass(b []byte) ([]byte, error) {
	rest, err := msgp.Skip(b)
	if err != nil {
		d.budget -= len(b)
	} else if n := len(b) - len(rest); n > 9 && bytes.Contains(b[:n], eventTimeHead) { // 9: the longest number
		d.suspect = true
	}
	return rest, err
}

// cutText cuts a str or bin off; ok is false where b starts with neither, or with one
// that is not whole. It does what msgp's ReadStringZC and ReadBytesZC do, in one step:
// records are made of texts.
func cutText(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, b, false
	}
	head, n := 1, 0
	switch c := b[0]; {
	case c&0xe0 == 0xa0: // fixstr
		n = int(c & 0x1f)
	case (c == 0xd9 || c == 0xc4) && len(b) > 1: // str 8, bin 8
		head, n = 2, int(b[1])
	case (c == 0xda || c == 0xc5) && len(b) > 2: // str 16, bin 16
		head, n = 3, int(binary.BigEndian.Uint16(b[1:]))
	case (c == 0xdb || c == 0xc6) && len(b) > 4: // str 32, bin 32
		head, n = 5, int(binary.BigEndian.Uint32(b[1:]))
	default:
		return nil, b, false
	}
	if len(b)-head < n {
		return nil, b, false
	}
	return b[head : head+n : head+n], b[head+n:], true
}

// startsRecord reports whether what follows a record can be the next one.
func startsRecord(b []byte) bool {
	return len(b) == 0 || b[0]&0xf0 == 0x90 || msgp.NextType(b) == msgp.ArrayType // fixarray, or a longer one
}

// skip returns how many bytes to pass over at a malformed piece: up to the next
// record inside it, else all of it where it is whole MessagePack of another shape,
// else up to the next byte at which a record can be read.
func (d *decoder) skip(b []byte) int {
	if d.budget < 0 {
		return len(b)
	}
	piece := b
	if rest, err := msgp.Skip(b); err == nil {
		piece = b[:len(b)-len(rest)]
	} else if t := msgp.NextType(b); t == msgp.ArrayType || t == msgp.MapType {
		d.budget -= len(b) // it was looked through up to its missing end
	}
	if n := d.resync(piece, b); n > 0 {
		return n
	}
	return len(piece)
}

// resync looks for a record that starts inside the piece at the head of b, and
// returns its offset, 0 for none.
func (d *decoder) resync(piece, b []byte) int {
	for i := 1; i < len(piece) && d.budget >= 0; i++ {
		d.budget--
		if b[i] != 0x92 { // an array of two
			continue
		}
		if b[i-1] == 0x92 && !bytes.HasPrefix(b[i+1:], []byte{0x92}) {
			continue // the header of a v2 record, which looks like a v1 record
		}
		if _, rest, err := d.next(b[i:]); err == nil && (d.eventTime || startsRecord(rest)) {
			return i
		}
	}
	return 0
}
