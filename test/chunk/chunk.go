// Package chunk makes Fluent Bit chunks for tests.
package chunk

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/tinylib/msgp/msgp"
)

// Record is one record of a chunk, as the tail input makes it.
type Record struct {
	Time     time.Time
	Line     string
	Filename string // no key where empty
	Offset   int64  // no key where negative
}

// Append appends a record in the v2 form, [[time, {}], {…}].
func Append(b []byte, r Record) []byte {
	b = append(b, 0x92, 0x92, 0xd7, 0x00)
	b = binary.BigEndian.AppendUint32(b, uint32(r.Time.Unix()))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Time.Nanosecond()))
	b = msgp.AppendMapHeader(b, 0)
	size := uint32(1)
	if r.Filename != "" {
		size++
	}
	if r.Offset >= 0 {
		size++
	}
	b = msgp.AppendMapHeader(b, size)
	if r.Filename != "" {
		b = msgp.AppendString(msgp.AppendString(b, "filename"), r.Filename)
	}
	if r.Offset >= 0 {
		b = msgp.AppendUint64(msgp.AppendString(b, "offset"), uint64(r.Offset))
	}
	return msgp.AppendString(msgp.AppendString(b, "log"), r.Line)
}

// FromLog makes a chunk of a log's lines, with the name of its file and the offset of
// each line. at is the time of all records.
func FromLog(log []byte, filename string, at time.Time) []byte {
	var b []byte
	offset := int64(0)
	for line := range bytes.Lines(log) {
		b = Append(b, Record{at, string(bytes.TrimSuffix(line, []byte("\n"))), filename, offset})
		offset += int64(len(line))
	}
	return b
}
