package layout

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// knownLogger stands for the table of classes: everything of Flink's coordinator.
func knownLogger(name []byte) bool { return bytes.HasSuffix(name, []byte("CheckpointCoordinator")) }

func read(line string) (l Line, ok bool) {
	if l, ok = Shipped([]byte(line)); !ok {
		l, ok = Parse([]byte(line), knownLogger)
	}
	return l, ok
}

// TestParse_parts takes lines apart: "stamp|level|thread|logger|job|message", or none.
func TestParse_parts(t *testing.T) {
	const class = "org.apache.flink.runtime.checkpoint.CheckpointCoordinator"
	const job = "a6996fd336a9e7633a23127bb2a5a8e1"
	for _, c := range []struct{ line, want string }{
		{"2019-09-02 16:26:20,972 INFO  " + class + "     - a - b", "2019-09-02 16:26:20,972|INFO||" + class + "||a - b"},
		{"2026-11-29 13:36:05,010 WARN  " + class + "    [] - a", "2026-11-29 13:36:05,010|WARN||" + class + "||a"},
		{"2026-11-29 13:36:05,010 WARN  " + class + "    [" + job + "] - a", "2026-11-29 13:36:05,010|WARN||" + class + "|" + job + "|a"},
		{"2026-11-29 13:36:05,010 WARN  " + class + "    {flink-job-id=" + job + "} - a", "2026-11-29 13:36:05,010|WARN||" + class + "|" + job + "|a"},
		{"2026-11-29 13:36:05,010 WARN  " + class + " " + job + " - a", "2026-11-29 13:36:05,010|WARN||" + class + "|" + job + "|a"},
		{"2026-11-29 13:36:05,010 INFO  " + class + ":1207 - a", "2026-11-29 13:36:05,010|INFO||" + class + "||a"},
		{"2026-11-29 13:36:05,010 INFO  " + class + ":a b", "2026-11-29 13:36:05,010|INFO||" + class + "||a b"},
		{"2026-11-29 13:36:05,010 INFO  " + class + " (CheckpointCoordinator.java:1207) - a", "2026-11-29 13:36:05,010|INFO||" + class + "||a"},
		{"2026-11-29 13:36:05,010 INFO  " + class + " [Checkpoint Timer] - a", "2026-11-29 13:36:05,010|INFO|Checkpoint Timer|" + class + "||a"},
		{"2026-11-29 13:36:05,010 INFO  [Map [x] -> b[1] (1/2)#0] " + class + " - a", "2026-11-29 13:36:05,010|INFO|Map [x] -> b[1] (1/2)#0|" + class + "||a"},
		{"2026-11-29 13:36:05,010 INFO  [odd ] name] " + class + " - a", "2026-11-29 13:36:05,010|INFO|odd ] name|" + class + "||a"},
		{"2026-11-29 13:36:05,010 - 4384 INFO  [74] " + class + ": a", "2026-11-29 13:36:05,010|INFO|74|" + class + "||a"},
		{"2026-11-29 13:36:05.010  INFO 1 --- [main] o.a.f.r.c.CheckpointCoordinator : a", "2026-11-29 13:36:05.010|INFO|main|o.a.f.r.c.CheckpointCoordinator||a"},
		{"21/03/11 07:39:09 INFO CheckpointCoordinator: a", "21/03/11 07:39:09|INFO||CheckpointCoordinator||a"},
		{"INFO  2026-11-29T13:36:05,010 " + class + " - a", "2026-11-29T13:36:05,010|INFO||" + class + "||a"},
		{"[2026-11-29 13:36:05,010] INFO [main] " + class + " - a", "2026-11-29 13:36:05,010|INFO|main|" + class + "||a"},
		{"2026-11-29 13:36:05.010 UTC [main] INFO " + class + " - a", "2026-11-29 13:36:05.010 UTC|INFO|main|" + class + "||a"},
		{"2026-11-29T13:36:05.010+01:00 INFO " + class + " - a", "2026-11-29T13:36:05.010+01:00|INFO||" + class + "||a"},
		{"2026-11-29 13:36:05.010 CEST WARN  " + class + " - a", "2026-11-29 13:36:05.010 CEST|WARN||" + class + "||a"},
		{"2026-11-29 13:36:05.010 PST [main] INFO " + class + " - a", "2026-11-29 13:36:05.010 PST|INFO|main|" + class + "||a"},
		{"20:08:21.088 [Checkpoint Timer] INFO " + class + " - a", "20:08:21.088|INFO|Checkpoint Timer|" + class + "||a"},
		{"4873 [main] INFO " + class + " [] - a", "|INFO|main|" + class + "||a"},
		{"1795958442924 INFO " + class + " - a", "1795958442924|INFO||" + class + "||a"},
		{"2026-11-29 13:36:05,010 INFO com.example.Job - " + class + " - a", "2026-11-29 13:36:05,010|INFO||com.example.Job||" + class + " - a"},
		{"2026-11-29 13:36:05,010 INFO AsyncOperations-thread-1 " + class + " - a", "2026-11-29 13:36:05,010|INFO|AsyncOperations-thread-1|" + class + "||a"},
		{"2026-11-29 13:36:05,010 INFO [main] - a b", "2026-11-29 13:36:05,010|INFO|main|||a b"},
		{"2026-11-29 13:36:05,010 INFO a b", "2026-11-29 13:36:05,010|INFO||||a b"},
		{"x rm -> (a, b)) (1/8)] INFO  " + class + "  - a", "|INFO||" + class + "||a"},
		{"2019/09/10-14:22:55.734684 7fef66ffd700 [utilities/checkpoint/checkpoint_impl.cc:83] a", "2019/09/10-14:22:55.734684|INFO|7fef66ffd700|||a"},
		{"2019/09/10-14:22:55.7 7fef66ffd700 [WARN] (Original Log Time 2019/09/10-14:22:54.1) [/x.cc:1] a", "2019/09/10-14:22:54.1|WARN|7fef66ffd700|||a"},
		// None of these is a header.
		{"", "none"},
		{"   ", "none"},
		{"Caused by: java.io.IOException: x", "none"},
		{"java.lang.Exception: INFO " + class + " - a", "none"},
		{class + ": a", "none"},
		{"ERROR: relation does not exist", "none"},
		{"INFO a b", "none"},
		{"12 rows", "none"},
		{"-Xmx400m", "none"},
		{"{}", "none"},
		{"[main] a", "none"},
		{"2026-11-29", "none"},
		{"2026-11-29 13:36:05,010", "none"},
		{"x (1/8)] INFO  com.example.Job - a", "none"},
	} {
		l, ok := read(c.line)
		got := "none"
		if ok {
			message := l.Message()
			got = fmt.Sprintf("%s|%s|%s|%s|%s|%s", l.Stamp, l.Level, l.Thread, l.Logger, l.JobID, message)
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.line, got, c.want)
		}
	}
}

// TestParse_linear reads lines that are made to take long.
func TestParse_linear(t *testing.T) {
	const size = 1 << 20
	for _, piece := range []string{"] ", "[", "]]", "] INFO ", "] - ", " [a] ", "{", "(", "- ", ": ", "o.a.f ", "a", "1", " ", "]:[", "\x1b["} {
		for _, head := range []string{"", "2026-11-29 13:36:05,010 INFO ", "2026-11-29 13:36:05,010 [", "[", "x"} {
			line := head + strings.Repeat(piece, size/len(piece))
			if l, ok := read(string(Clean([]byte(line)))); ok {
				l.Message()
			}
			var p Prefixes
			var w Wrapper
			p.Unwrap([]byte(line), &w)
		}
	}
}

// TestUnwrap takes wrappers off.
func TestUnwrap(t *testing.T) {
	const head = "2026-11-29 13:36:05,010 INFO x"
	for _, c := range []struct{ name, line, want string }{
		{"CRI", "2025-01-20T03:04:05.678123456Z stdout F " + head, "2025-01-20T03:04:05.678123456Z||stdout|false|" + head},
		{"CRI, partial", "2025-01-20T03:04:05.678123456Z stderr P " + head, "2025-01-20T03:04:05.678123456Z||stderr|true|" + head},
		{"CRI, more tags", "2025-01-20T03:04:05.678123456Z stderr F:x " + head, "2025-01-20T03:04:05.678123456Z||stderr|false|" + head},
		{"CRI, nothing in it", "2025-01-20T03:04:05.678123456Z stdout F ", "2025-01-20T03:04:05.678123456Z||stdout|false|"},
		{"CRI, a zone", "2025-01-20T03:04:05.678123456+01:00 stdout F a", "2025-01-20T03:04:05.678123456+01:00||stdout|false|a"},
		{"timestamps", "2025-01-20T03:04:05.678123456Z " + head, "2025-01-20T03:04:05.678123456Z|||false|" + head},
		{"timestamps, a frame", "2025-01-20T03:04:05.678123456Z \tat a.B", "2025-01-20T03:04:05.678123456Z|||false|\tat a.B"},
		{"timestamps, nothing behind", "2025-01-20T03:04:05.678123456Z", "2025-01-20T03:04:05.678123456Z|||false|"},
		{"aws", "2026-02-03T13:38:02.123000+00:00 app/stream {\"a\":1}", "2026-02-03T13:38:02.123000+00:00|||false|{\"a\":1}"},
		{"aws, short", "2026-02-03T13:38:02 {\"a\":1}", "2026-02-03T13:38:02|||false|{\"a\":1}"},
		{"Compose", "jobmanager-1  | " + head, "|jobmanager-1||false|" + head},
		{"Compose, nothing in it", "jobmanager-1  |", "|jobmanager-1||false|"},
		{"kubectl", "[pod/jm-0/main] " + head, "|main||false|" + head},
		{"a layout's own time", "2026-02-03T13:38:02,123 INFO a.B - c", "none"},
		{"a layout's own time with a zone", "2026-02-03T13:38:02.123Z INFO a.B - c", "none"},
		{"no wrapper", head, "none"},
		{"a word and a bar", "a b | c", "none"},
		{"brackets", "[pod] x", "none"},
		{"empty", "", "none"},
	} {
		var p Prefixes
		var w Wrapper
		got := "none"
		if inner, ok := p.Unwrap([]byte(c.line), &w); ok {
			got = fmt.Sprintf("%s|%s|%s|%v|%s", w.Stamp, w.Container, w.Output, w.Partial, inner)
		}
		if got != c.want {
			t.Errorf("%s: got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "\ufeffa": "a", "\x00\x00a\x00b": "a\x00b", "\x1b[1;31mred\x1b[0m, \x1b[mplain": "red, plain",
		"\x1b[": "", "\x1b": "", "\x1b[12": "", "a\x1bb": "ab", "\x1b[38;5;196mx": "x", "": "",
	} {
		if got := string(Clean([]byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestReadObject takes objects apart.
func TestReadObject(t *testing.T) {
	const a = `"logger":"a.B","message":"m"`
	for _, c := range []struct{ object, want string }{
		{`{` + a + `}`, "|||a.B||m|"},
		{`{"level":"info",` + a + `}`, "|INFO||a.B||m|"},
		{`{"level":4,` + a + `}`, "|WARN||a.B||m|"},
		{`{"severity":"Warning",` + a + `}`, "|WARN||a.B||m|"},
		{`{"log.level":"ERROR","log.logger":"a.B","message":"m"}`, "|ERROR||a.B||m|"},
		{`{"log":{"level":"ERROR","logger":"a.B"},"message":"m"}`, "|ERROR||a.B||m|"},
		{`{"instant":{"epochSecond":1795958442,"nanoOfSecond":924000000},"thread":"t","level":"INFO","loggerName":"a.B","message":"m"}`,
			"2026-11-29T13:20:42.924Z|INFO|t|a.B||m|"},
		{`{"timestamp":1795958442924,` + a + `}`, "2026-11-29T13:20:42.924Z|||a.B||m|"},
		{`{"timestamp":1795958442.924,` + a + `}`, "2026-11-29T13:20:42.924Z|||a.B||m|"},
		{`{"timestamp":1795958442924001002,` + a + `}`, "2026-11-29T13:20:42.924001002Z|||a.B||m|"},
		{`{"timestamp":1.795958442924E9,` + a + `}`, "2026-11-29T13:20:42.924Z|||a.B||m|"},
		{`{"timestamp":1795958442924e0,` + a + `}`, "2026-11-29T13:20:42.924Z|||a.B||m|"},
		{`{"timestamp":1.0e400,` + a + `}`, "|||a.B||m|"},
		{`{"timestamp":-5,` + a + `}`, "1969-12-31T23:59:55Z|||a.B||m|"},
		{`{"timestamp":1e400,` + a + `}`, "|||a.B||m|"},
		{`{"message":"m\nn","logger":"a.B","stack_trace":"a.C: d\n\tat x"}`, "|||a.B||m|n\na.C: d\n\tat x"},
		{`{"message":"m","logger":"a.B","throwableInformation":["a.C: d","\tat x"]}`, "|||a.B||m|a.C: d\n\tat x"},
		{`{"message":"m","logger":"a.B","error":{"type":"a.C","message":"d"}}`, "|||a.B||m|a.C: d"},
		{`{"message":"m","logger":"a.B","thrown":{"name":"a.C","message":"d","cause":{"name":"a.D","message":"e","cause":{"name":"a.E"}}}}`,
			"|||a.B||m|a.C: d\nCaused by: a.D: e\nCaused by: a.E: "},
		{`{"message":"m","logger":"a.B","exception":""}`, "|||a.B||m|"},
		{`{"message":"m","logger":"a.B","mdc":{"flink-job-id":"a6996fd336a9e7633a23127bb2a5a8e1"}}`, "|||a.B|a6996fd336a9e7633a23127bb2a5a8e1|m|"},
		{`{"message":"m","logger":"a.B","flink-job-id":"short"}`, "|||a.B||m|"},
		{`{"message":"Map <enrich> -\u003e 🚀","logger":"a.B"}`, "|||a.B||Map <enrich> -> 🚀|"},
		{`{"message":"m","logger":"a.B","deep":{"message":"other","x":[{"message":"y"}]}}`, "|||a.B||m|"},
		{`{"message":"m"}`, "none"},
		{`{"id":1,"status":"ok"}`, "none"},
		{`[1]`, "not an object"},
		{`{"message":"m","logger":`, "not an object"},
		{`{`, "not an object"},
	} {
		var o Object
		got := "not an object"
		if DefaultKeys().ReadObject([]byte(c.object), &o) {
			got = "none"
			if l, ok := o.Line(); ok {
				got = fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s", l.Stamp, l.Level, l.Thread, l.Logger, l.JobID, l.Message(), l.Below)
			}
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.object, got, c.want)
		}
	}
}

func TestKeys_add(t *testing.T) {
	k := DefaultKeys()
	if !k.Add("message", "body.text") || !k.Add("logger", "cls") || k.Add("nothing", "x") {
		t.Error("a part is refused, or a name that is none is taken")
	}
	var o Object
	if !k.ReadObject([]byte(`{"cls":"a.B","body":{"text":"m"}}`), &o) || !o.IsLine() {
		t.Error("the keys that were added are not read")
	}
}

// FuzzLine reads any line: nothing panics, and texts are parts of the line.
func FuzzLine(f *testing.F) {
	for _, line := range []string{
		"2019-09-02 16:26:20,972 INFO  a.b.C     - a", "2025-01-20T03:04:05.678123456Z stdout P [x] INFO a.b.C", "a-1  | \x1b[1mb",
		"[pod/a/b] 4873 [main] INFO a.b.C [] - x", "x] INFO  a.b.CheckpointCoordinator - y", `{"log":"a\n","stream":"stdout"}`,
		"2019/09/10-14:22:55.734684 7fef66ffd700 [WARN] (Original Log Time 2019/09/10-14:22:55.1) [a:1] b",
		"2026-02-03T13:38:02.123000+00:00 s {}", "29 Nov 2026 13:36:05,010 a", "20261129T133605,010 INFO [a-b] {flink-job-id=x} a.B:12 - m",
	} {
		f.Add(line)
	}
	keys := DefaultKeys()
	f.Fuzz(func(t *testing.T, text string) {
		line := []byte(text)
		var p Prefixes
		var w Wrapper
		rest := Clean(line)
		for range 4 {
			inner, ok := p.Unwrap(rest, &w)
			if !ok {
				break
			}
			if len(inner) >= len(rest) {
				t.Fatal("nothing taken off")
			}
			rest = inner
		}
		var o Object
		if keys.ReadObject(rest, &o) {
			if l, ok := o.Line(); ok {
				l.Message()
			}
			o.Wrapped(&w)
		}
		l, ok := read(string(rest))
		if !ok {
			return
		}
		message := l.Message()
		for _, part := range [][]byte{l.Stamp, l.Thread, l.Logger, l.JobID, message} {
			if !bytes.Contains(rest, part) {
				t.Errorf("%q is no part of the line", part)
			}
		}
		for _, learn := range []bool{false, true} {
			clock := NewClock(berlin, learn)
			if at, ok := clock.Instant(l.Stamp); ok {
				clock.Learn(l.Stamp, at)
				if again, _ := clock.Instant(l.Stamp); !again.Equal(at) && l.Stamp != nil && !learn {
					t.Errorf("%s is %v and then %v", l.Stamp, at, again)
				}
			}
		}
	})
}
