package record

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"flink-loki/parsers/layout"
)

// m is a map in a record's body.
type m = map[string]any

// read1 decodes a chunk of one record.
func read1(t *testing.T, k Keys, body []byte) (got Record) {
	t.Helper()
	k.Prepare()
	n := 0
	stats := Decode(array(eventTime(1, 0), body), k, func(r *Record) {
		got, n = *r, n+1
		if r.Object != nil {
			o := *r.Object
			got.Object = &o
		}
		got.Fields = slices.Clone(r.Fields)
	})
	if n != stats.Records-stats.NoLine || stats.Records != 1 || stats.Malformed != 0 {
		t.Errorf("%+v, %d were given", stats, n)
	}
	return got
}

func TestDecode_fields(t *testing.T) {
	kubernetes := m{
		"pod_name": "tm-1", "host": []byte("node-1"), "n": 7, "list": []any{"x"},
		"labels": m{"app": "flink", "app.kubernetes.io/name": "jobs", "a": m{"b": m{"c": "deep", "d": m{"e": "too deep"}}}},
	}
	f := func(body []byte, want string, fields ...string) {
		t.Helper()
		r := read1(t, Keys{Log: "log", Fields: fields}, body)
		if got := fmt.Sprintf("%s", r.Fields); got != want || string(r.Line) != "line" {
			t.Errorf("%s: got %s and line %q, want %s", fields, got, r.Line, want)
		}
	}
	body := object("top", "x", "kubernetes", kubernetes, "log", "line", "other", m{"pod_name": "no"})
	f(body, "[x]", "top")
	f(body, "[tm-1 node-1]", "kubernetes.pod_name", "kubernetes.host")
	f(body, "[flink tm-1]", "kubernetes.labels.app", "kubernetes.pod_name")
	f(body, "[jobs]", "kubernetes.labels.app.kubernetes.io/name")
	f(body, "[deep ]", "kubernetes.labels.a.b.c", "kubernetes.labels.a.b.d.e")
	f(body, "[   ]", "absent", "kubernetes", "kubernetes.n", "kubernetes.list")
	f(body, "[tm-1 tm-1 x x]", "kubernetes.pod_name", "kubernetes.pod_name", "top", "top")
	f(object("kubernetes", "text", "log", "line"), "[]", "kubernetes.pod_name")
	f(object("kubernetes.pod_name", "flat", "log", "line"), "[flat]", "kubernetes.pod_name")
	f(object("log", "line", "kubernetes", []any{m{"pod_name": "x"}}), "[]", "kubernetes.pod_name")
}

// TestDecode_fieldsOfTheNext: what one record has is not told of the next.
func TestDecode_fieldsOfTheNext(t *testing.T) {
	k := Keys{Log: "log", Filename: "filename", Fields: []string{"pod"}, Parts: layout.DefaultKeys()}
	k.Prepare()
	var got []string
	Decode(slices.Concat(
		array(eventTime(1, 0), object("log", "a", "pod", "p", "filename", "f", "level", "INFO")),
		array(eventTime(2, 0), object("message", "b")),
		array(eventTime(3, 0), object("message", "c", "logger", "x")),
	), k, func(r *Record) {
		got = append(got, fmt.Sprintf("%s %s %s %v", r.Line, r.Fields, r.Filename, r.Object != nil))
	})
	if want := []string{"a [p] f false", "b []  false", " []  true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDecode_parts reads records of lines that Fluent Bit's parser for JSON took apart.
func TestDecode_parts(t *testing.T) {
	const job = "a6996fd336a9e7633a23127bb2a5a8e1"
	f := func(name string, body []byte, want string) {
		t.Helper()
		got := "no line"
		switch r := read1(t, Keys{Log: "log", Parts: layout.DefaultKeys()}, body); {
		case r.Line != nil:
			got = "line " + string(r.Line)
		case r.Object != nil:
			l, _ := r.Object.Line()
			got = fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s", l.Stamp, l.Level, l.Thread, l.Logger, l.JobID, l.Message(), l.Below)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	trace := "a.E: x\n\tat a.B\nCaused by: a.C: y"
	lines := []any{"a.E: x", "\tat a.B"}

	// Layouts.
	f("logstash", object("@timestamp", "2026-11-29T13:20:42Z", "level", "INFO", "thread_name", "t", "logger_name", "a.B", "message", "m", "stack_trace", trace),
		"2026-11-29T13:20:42Z|INFO|t|a.B||m|"+trace)
	f("ecs", object("@timestamp", "2026-11-29T13:20:42Z", "log.level", "WARN", "process.thread.name", "t", "log.logger", "a.B", "message", "m",
		"error.type", "a.E", "error.message", "x", "error.stack_trace", trace), "2026-11-29T13:20:42Z|WARN|t|a.B||m|"+trace)
	f("ecs in objects", object("log", m{"level": "WARN", "logger": "a.B"}, "process", m{"thread": m{"name": "t"}}, "message", "m",
		"error", m{"type": "a.E", "message": "x", "stack_trace": nil}), "|WARN|t|a.B||m|a.E: x")
	f("gelf", object("short_message", "m", "full_message", trace, "timestamp", 1795958442.924, "level", 4, "_logger", "a.B", "_thread", "t"),
		"2026-11-29T13:20:42.924Z|WARN|t|a.B||m|"+trace)
	f("log4j JsonLayout", object("instant", m{"epochSecond": 1795958442, "nanoOfSecond": 924000000}, "thread", "t", "level", "INFO", "loggerName", "a.B",
		"message", "m", "thrown", m{"name": "a.E", "message": "x", "extendedStackTrace": []any{m{"class": "a.B", "line": 3}},
			"cause": m{"name": "a.C", "message": "y"}}), "2026-11-29T13:20:42.924Z|INFO|t|a.B||m|a.E: x\nCaused by: a.C: y")
	f("log4j JsonLayout before 2.11", object("timeMillis", 1795958442924, "thread", "t", "level", "INFO", "loggerName", "a.B", "message", "m"),
		"2026-11-29T13:20:42.924Z|INFO|t|a.B||m|")
	f("job of the MDC", object("level", "INFO", "logger", "a.B", "message", "m", "mdc", m{"flink-job-id": job}), "|INFO||a.B|"+job+"|m|")

	// Traces.
	f("lines", object("logger", "a.B", "message", "m", "exception", lines), "|||a.B||m|a.E: x\n\tat a.B")
	f("lines in an object", object("logger", "a.B", "message", "m", "thrown", m{"extendedStackTrace": lines}), "|||a.B||m|a.E: x\n\tat a.B")
	f("lines and objects", object("logger", "a.B", "message", "m", "exception", append([]any{m{"class": "a.B"}}, lines...)), "|||a.B||m|a.E: x\n\tat a.B")
	f("objects", object("logger", "a.B", "message", "m", "stack_trace", []any{m{"class": "a.B"}, m{"class": "a.C"}}), "|||a.B||m|")
	f("no lines", object("logger", "a.B", "message", "m", "exception", []any{}), "|||a.B||m|")
	f("below a message of two lines", object("logger", "a.B", "message", "m\nn", "exception", lines), "|||a.B||m|n\na.E: x\n\tat a.B")

	// Values.
	f("bytes for texts", object("level", []byte("INFO"), "logger", []byte("a.B"), "message", []byte("m"), "exception", []any{[]byte("a.E: x")},
		"mdc", m{"flink-job-id": []byte(job)}), "|INFO||a.B|"+job+"|m|a.E: x")
	f("numbers for texts", object("level", "INFO", "logger", 5, "message", "m", "thread", 7), "|INFO|||"+"|m|")
	f("a number that is no time", object("level", "INFO", "timestamp", -1e300, "message", "m"), "|INFO||||m|")
	f("the first of two", object("level", "INFO", "severity", "WARN", "message", "m"), "|INFO||||m|")

	// Records that are no such line.
	f("a log key", object("level", "INFO", "logger", "a.B", "message", "m", "log", "the line"), "line the line")
	f("a message alone", object("message", "m", "thread", "t"), "line m")
	f("no message", object("level", "INFO", "logger", "a.B"), "no line")
}

func TestDecode_partsOfTheUser(t *testing.T) {
	k := Keys{Log: "log", Parts: layout.DefaultKeys()}
	for part, path := range map[string]string{"message": "body.text", "logger": "cls", "level": "sev", "trace": "body.err"} {
		if !k.Parts.Add(part, path) {
			t.Fatal(part)
		}
	}
	r := read1(t, k, object("body", m{"text": "m", "err": []any{"a.E: x"}}, "cls", "a.B", "sev", 3))
	if r.Object == nil {
		t.Fatal("no object")
	}
	if l, _ := r.Object.Line(); string(l.Message()) != "m" || string(l.Logger) != "a.B" || string(l.Level) != "ERROR" || string(l.Below) != "a.E: x" {
		t.Errorf("got %+v", l)
	}
}

// TestDecode_whole: a body that has a certain key is a line of JSON.
func TestDecode_whole(t *testing.T) {
	k := Keys{Log: "log", Parts: layout.DefaultKeys(), Whole: func(key []byte) bool { return string(key) == "history" || string(key) == "level-x" }}
	f := func(want string, body []byte) {
		t.Helper()
		if r := read1(t, k, body); string(r.Line) != want || r.Object != nil {
			t.Errorf("got %q, %v, want %q", r.Line, r.Object, want)
		}
	}
	f(`{"history":[11,0.5,true,null,1795959351819]}`, object("history", []any{11, 0.5, true, nil, 1795959351819}))
	f(`{"level-x":"high","n":1}`, object("level-x", "high", "n", 1))
	f(`{"level-x":"a \"b\" é","list":["c"]}`, object("level-x", []byte(`a "b" é`), "list", []any{[]byte("c")}))
	f(`{"history":1,"message":"m","logger":"a.B"}`, object("history", 1, "message", "m", "logger", "a.B"))
	f(`{"history":"`+strings.Repeat("x", 70000)+`","`+strings.Repeat("k", 300)+`":""}`,
		object("history", bytes.Repeat([]byte("x"), 70000), strings.Repeat("k", 300), []byte{}))
	f("the line", object("history", 1, "log", "the line"))
	f("m", object("other", m{"history": 1}, "message", "m"))
}
