package fakeloki

import (
	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"
)

// encode makes the body of a push.
func encode(streams ...Stream) []byte { return snappy.Encode(nil, message(streams...)) }

// message makes a logproto.PushRequest.
func message(streams ...Stream) []byte {
	var b []byte
	for _, s := range streams {
		stream := appendBytes(nil, 1, []byte(s.Labels))
		for _, e := range s.Entries {
			at := protowire.AppendTag(nil, 1, protowire.VarintType)
			at = protowire.AppendVarint(at, uint64(e.Time.Unix()))
			at = protowire.AppendTag(at, 2, protowire.VarintType)
			at = protowire.AppendVarint(at, uint64(e.Time.Nanosecond()))
			entry := appendBytes(nil, 1, at)
			entry = appendBytes(entry, 2, []byte(e.Line))
			for _, m := range e.Metadata {
				pair := appendBytes(nil, 1, []byte(m.Name))
				entry = appendBytes(entry, 3, appendBytes(pair, 2, []byte(m.Value)))
			}
			stream = appendBytes(stream, 2, entry)
		}
		b = appendBytes(b, 1, stream)
	}
	return b
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}
