package fakeloki

import (
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"
)

// Entry is a line at its time.
type Entry struct {
	Time     time.Time // UTC, to the nanosecond
	Line     string
	Metadata Labels // structured metadata
}

// Stream is the part of a push that goes to one stream, as sent.
type Stream struct {
	Labels  string // {name="value", …}
	Entries []Entry
}

var errCorrupt = errors.New("snappy: corrupt input")

// decompress undoes snappy's block format. A body that unpacks to more than limit bytes is refused
// unread; 0 is no limit.
func decompress(body []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(body)
	if err != nil {
		return nil, errCorrupt
	}
	if limit > 0 && n > limit {
		return nil, fmt.Errorf("decompressed message size too large than max (%d vs %d)", n, limit)
	}
	message, err := snappy.Decode(nil, body)
	if err != nil {
		return nil, errCorrupt
	}
	return message, nil
}

// decodePush reads a logproto.PushRequest: streams = 1, each labels = 1, entries = 2, each
// timestamp = 1 (seconds = 1, nanos = 2), line = 2, structuredMetadata = 3 (name = 1, value = 2).
// Other fields are skipped.
func decodePush(b []byte) ([]Stream, error) {
	var streams []Stream
	err := eachField(b, func(f field) error {
		if f.num != 1 {
			return nil
		}
		s, err := decodeStream(f.bytes)
		streams = append(streams, s)
		return err
	})
	return streams, err
}

func decodeStream(b []byte) (Stream, error) {
	var s Stream
	err := eachField(b, func(f field) error {
		switch f.num {
		case 1:
			s.Labels = string(f.bytes)
		case 2:
			e, err := decodeEntry(f.bytes)
			s.Entries = append(s.Entries, e)
			return err
		}
		return nil
	})
	return s, err
}

func decodeEntry(b []byte) (Entry, error) {
	var e Entry // without a timestamp it is at year 1, as in Loki
	err := eachField(b, func(f field) error {
		switch f.num {
		case 1:
			t, err := decodeTime(f.bytes)
			e.Time = t
			return err
		case 2:
			e.Line = string(f.bytes)
		case 3:
			var m Label
			err := eachField(f.bytes, func(f field) error {
				switch f.num {
				case 1:
					m.Name = string(f.bytes)
				case 2:
					m.Value = string(f.bytes)
				}
				return nil
			})
			e.Metadata = append(e.Metadata, m)
			return err
		}
		return nil
	})
	return e, err
}

func decodeTime(b []byte) (time.Time, error) {
	var seconds, nanos int64
	err := eachField(b, func(f field) error {
		switch f.num {
		case 1:
			seconds = int64(f.varint)
		case 2:
			nanos = int64(int32(f.varint))
		}
		return nil
	})
	if err != nil {
		return time.Time{}, err
	}
	t := time.Unix(seconds, nanos).UTC()
	if nanos < 0 || nanos >= 1e9 || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, fmt.Errorf("timestamp: %d s %d ns is out of range", seconds, nanos)
	}
	return t, nil
}

// field is one field of a protobuf message; bytes or varint is set by its wire type.
type field struct {
	num    protowire.Number
	bytes  []byte
	varint uint64
}

// errTruncated is what Loki's decoder says of a message that ends within a field.
var errTruncated = errors.New("unexpected EOF")

func eachField(b []byte, visit func(field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errTruncated
		}
		b = b[n:]
		f := field{num: num}
		switch typ {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return errTruncated
		}
		b = b[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}
