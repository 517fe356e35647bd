package record

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"flink-loki/parsers/layout"
)

var keys = Keys{Log: "log", Filename: "filename", Offset: "offset"}

// eventTime is Fluent Bit's own time: extension 0 with seconds and nanoseconds.
func eventTime(sec, nsec uint32) []byte {
	b := []byte{0xd7, 0}
	for _, n := range []uint32{sec, nsec} {
		b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return b
}

func array(parts ...[]byte) []byte {
	return append(msgp.AppendArrayHeader(nil, uint32(len(parts))), bytes.Join(parts, nil)...)
}

func object(keyvals ...any) []byte {
	b := msgp.AppendMapHeader(nil, uint32(len(keyvals)/2))
	for _, v := range keyvals {
		b, _ = msgp.AppendIntf(b, v)
	}
	return b
}

func v2(line string) []byte {
	return array(array(eventTime(1000, 5), object()), object("log", line))
}

// read decodes a chunk into one text a record.
func read(chunk []byte) ([]string, Stats) {
	var got []string
	stats := Decode(chunk, keys, func(r *Record) {
		at := "-"
		if !r.Time.IsZero() {
			at = fmt.Sprint(r.Time.UnixNano())
		}
		got = append(got, fmt.Sprintf("%s %s %s %d", at, r.Line, r.Filename, r.Offset))
	})
	return got, stats
}

func TestDecode_forms(t *testing.T) {
	body := object("log", "line")
	f := func(name string, chunk []byte, want ...string) {
		t.Helper()
		got, stats := read(chunk)
		if !slices.Equal(got, want) || stats.Malformed != 0 {
			t.Errorf("%s: got %q, %+v, want %q", name, got, stats, want)
		}
	}

	// Forms of a record, and of its time.
	f("v1", array(eventTime(1000, 5), body), "1000000000005 line  -1")
	f("v2", array(array(eventTime(1000, 5), object()), body), "1000000000005 line  -1")
	f("v2 with metadata", array(array(eventTime(1, 0), object("a", map[string]any{"b": []any{1, "x"}})), body), "1000000000 line  -1")
	f("time as ext 8", array(append([]byte{0xc7, 8, 0}, eventTime(2, 1)[2:]...), body), "2000000001 line  -1")
	f("whole seconds", array(msgp.AppendInt(nil, 7), body), "7000000000 line  -1")
	f("unsigned seconds", array(msgp.AppendUint64(nil, math.MaxUint32), body), "4294967295000000000 line  -1")
	f("float seconds", array(msgp.AppendFloat64(nil, 1.5), body), "1500000000 line  -1")
	f("short float seconds", array(msgp.AppendFloat32(nil, 2.5), body), "2500000000 line  -1")
	f("the year 2106", array(eventTime(math.MaxUint32-2, 0), body), "4294967293000000000 line  -1")

	// Bodies.
	f("bytes for text", array(eventTime(1, 0), object("log", []byte("line"))), "1000000000 line  -1")
	f("file and offset", array(eventTime(1, 0), object("filename", "/f", "offset", uint64(12), "log", "line")), "1000000000 line /f 12")
	f("offset of no size", array(eventTime(1, 0), object("offset", uint64(math.MaxUint64), "log", "line")), "1000000000 line  -1")
	f("message", array(eventTime(1, 0), object("stream", "stdout", "message", "line")), "1000000000 line  -1")
	f("the only text", array(eventTime(1, 0), object("n", 3, "filename", "/f", "text", "line")), "1000000000 line /f -1")
	f("nested maps", array(eventTime(1, 0), object("kubernetes", map[string]any{"labels": map[string]any{"log": "no"}}, "log", "line")), "1000000000 line  -1")
	f("a key that is a number", array(eventTime(1, 0), object(5, "x", "log", "line")), "1000000000 line  -1")
	f("large numbers", array(eventTime(1, 0), object("n", uint64(math.MaxUint64), "log", "line")), "1000000000 line  -1")

	// Groups.
	start := array(array(eventTime(math.MaxUint32, 0), object("g", 1)), object("resource", map[string]any{"a": "b"}))
	end := array(array(eventTime(math.MaxUint32-1, 0), object()), object())
	f("group markers", slices.Concat(start, v2("a"), end, start, v2("b"), end), "1000000000005 a  -1", "1000000000005 b  -1")
}

func TestDecode_noLine(t *testing.T) {
	for name, body := range map[string][]byte{
		"empty":     object(),
		"numbers":   object("n", 1),
		"two texts": object("a", "x", "b", "y"),
	} {
		got, stats := read(array(eventTime(1, 0), body))
		if len(got) != 0 || stats.Records != 1 || stats.NoLine != 1 {
			t.Errorf("%s: got %q, %+v", name, got, stats)
		}
	}
}

// TestDecode_malformed puts each malformed piece before, between and behind records:
// the records come out, whole and in order.
func TestDecode_malformed(t *testing.T) {
	long := v2(string(bytes.Repeat([]byte("long line "), 50)))
	pieces := map[string][]byte{
		"a number":              msgp.AppendInt(nil, 3),
		"a text":                msgp.AppendString(nil, "text"),
		"an array of three":     array(eventTime(1, 0), object(), object()),
		"no time":               array(msgp.AppendString(nil, "now"), object("log", "x")),
		"negative time":         array(msgp.AppendInt(nil, -3), object("log", "x")),
		"endless time":          array(msgp.AppendFloat64(nil, math.Inf(1)), object("log", "x")),
		"header of three":       array(array(eventTime(1, 0), object(), object()), object("log", "x")),
		"metadata is no map":    array(array(eventTime(1, 0), msgp.AppendInt(nil, 1)), object("log", "x")),
		"body is no map":        array(eventTime(1, 0), array()),
		"a reserved byte":       {0xc1},
		"text without its end":  v2("cut")[:len(v2("cut"))-2],
		"long text, most of it": long[:len(long)-9],
		"long text, its head":   long[:40],
		"body without its end":  array(eventTime(1, 0), object("log", "x", "n", 1))[:14],
		"a huge length":         {0xdb, 0xff, 0xff, 0xff, 0xff},
		"a huge map":            array(eventTime(1, 0), msgp.AppendMapHeader(nil, math.MaxUint32)),
		"pieces of text":        []byte("2026-11-29 13:36:04,981 INFO"),
	}
	for name, piece := range pieces {
		for position := range 3 {
			var chunk []byte
			var want []string
			for i, line := range []string{"first", "second"} {
				if position == i {
					chunk = append(chunk, piece...)
				}
				chunk = append(chunk, v2(line)...)
				want = append(want, "1000000000005 "+line+"  -1")
			}
			if position == 2 {
				chunk = append(chunk, piece...)
			}
			got, stats := read(chunk)
			if !slices.Equal(got, want) || stats.Malformed != 1 || stats.SkippedBytes != len(piece) {
				t.Errorf("%s at %d: got %q, %+v", name, position, got, stats)
			}
		}
	}
}

// TestDecode_cutAnywhere cuts a chunk at each byte: what was whole comes out.
func TestDecode_cutAnywhere(t *testing.T) {
	chunk := slices.Concat(v2("first"), v2("second"))
	for n := range chunk {
		got, _ := read(chunk[:n])
		if want := n / len(v2("first")); len(got) < min(want, 1) {
			t.Errorf("cut at %d: got %q", n, got)
		}
	}
}

// TestDecode_budget gives chunks that were made to be slow. They end (in milliseconds,
// against a minute without the bound on work), and honest damage stays within it.
func TestDecode_budget(t *testing.T) {
	head := array(array(eventTime(1, 0), object()), nil)
	for name, piece := range map[string][]byte{
		"arrays":     {0x92},
		"huge maps":  append(bytes.Clone(head), 0xdf, 0xff, 0xff, 0xff, 0xff),
		"small maps": append(bytes.Clone(head), 0x81),
	} {
		chunk := bytes.Repeat(piece, 1<<20/len(piece))
		if _, stats := read(chunk); stats.SkippedBytes != len(chunk) {
			t.Errorf("%s: %+v", name, stats)
		}
	}
	var chunk []byte
	for i := range 10000 {
		chunk = append(append(chunk, v2(fmt.Sprint(i))...), 0xc1, 0x01, 0x02)
	}
	if _, stats := read(chunk); stats.Records != 10000 || stats.Malformed != 10000 {
		t.Errorf("honest damage: %+v", stats)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(slices.Concat(v2("first"), []byte{0xc1}, v2("second")))
	f.Add(array(array(eventTime(math.MaxUint32, 0), object("g", 1)), object()))
	f.Add(array(eventTime(1, 0), object("level", 4, "message", "m", "exception", []any{"x", []byte("y")}, "k", m{"a": "b"})))
	f.Add(array(eventTime(1, 0), object("history", []any{m{"id": []byte("x")}, 1.5, nil})))
	all := Keys{Log: "log", Filename: "filename", Offset: "offset", Parts: layout.DefaultKeys(), Fields: []string{"k.a", "k.b.c"},
		Whole: func(key []byte) bool { return string(key) == "history" }}
	all.Prepare()
	f.Fuzz(func(t *testing.T, chunk []byte) {
		before := bytes.Clone(chunk)
		records := 0
		stats := Decode(chunk, all, func(r *Record) {
			if records++; r.Object != nil {
				r.Object.Line()
			}
			_ = r.Time.In(time.UTC)
		})
		if stats.Records-stats.NoLine != records {
			t.Errorf("%d records, %+v", records, stats)
		}
		if !bytes.Equal(chunk, before) {
			t.Error("the chunk was changed")
		}
		// A record behind anything is read.
		last := ""
		Decode(slices.Concat(chunk, v2("the last")), all, func(r *Record) { last = string(r.Line) })
		if stats.SkippedBytes == 0 && last != "the last" {
			t.Errorf("the record behind whole records is lost, the last is %q", last)
		}
	})
}
