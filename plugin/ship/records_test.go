package ship

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"flink-loki/test/chunk"
	"flink-loki/test/fakeloki"
)

// appendBody appends a record with a body of any shape, as filters and parsers of Fluent
// Bit make it.
func appendBody(t *testing.T, b []byte, body map[string]any) []byte {
	t.Helper()
	b = append(b, 0x92, 0xd7, 0x00) // v1: [time, body]
	b = binary.BigEndian.AppendUint32(b, uint32(now.Unix()))
	b = binary.BigEndian.AppendUint32(b, 0)
	b, err := msgp.AppendIntf(b, body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parsedJSON is a JSON object as Fluent Bit's parser takes it apart.
func parsedJSON(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var body map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return withNumbers(body).(map[string]any)
}

// withNumbers makes numbers of Go's own of JSON's.
func withNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withNumbers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// TestFlush_parsedJSON: it makes no difference whether Fluent Bit's parser has read a
// JSON line, or the plug-in does.
func TestFlush_parsedJSON(t *testing.T) {
	logs, _ := filepath.Glob("../../parsers/testdata/layout/*/*.log")
	answers, _ := filepath.Glob("../../parsers/testdata/rest/*/*.log")
	tested := 0
	for _, name := range slices.Concat(logs, answers) {
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if log[0] != '{' || bytes.Contains(log, []byte(`\n","stream":"`)) { // no JSON, or a line in it
			continue
		}
		tested++
		var text, parsed []byte
		for line := range bytes.Lines(log) {
			text = chunk.Append(text, chunk.Record{Time: now, Line: string(bytes.TrimSpace(line)), Offset: -1})
			parsed = appendBody(t, parsed, parsedJSON(t, line))
		}
		store := func(chunk []byte) []string {
			loki := fakeloki.New(fakeloki.Config{})
			if r := flush(newOutput(t, loki, io.Discard, nil), "t", chunk); r != OK {
				t.Errorf("%s: %v", name, r)
			}
			return stored(loki)
		}
		want, got := store(text), store(parsed)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if tested < 20 {
		t.Errorf("only %d files", tested)
	}
}

// expectLines flushes a chunk and compares what is stored.
func expectLines(t *testing.T, options fakeConfig, chunk []byte, want ...string) {
	t.Helper()
	loki := fakeloki.New(fakeloki.Config{})
	if r := flush(newOutput(t, loki, io.Discard, options), "t", chunk); r != OK {
		t.Errorf("got %v", r)
	}
	expectTexts(t, stored(loki), want...)
}

// expectTexts compares entries with what is wanted of each: texts that it has, separated
// by blanks, and behind a "!" those that it has not.
func expectTexts(t *testing.T, entries []string, want ...string) {
	t.Helper()
	if len(entries) != len(want) {
		t.Errorf("%d entries, want %d:\n%s", len(entries), len(want), strings.Join(entries, "\n"))
		return
	}
	for i, entry := range entries {
		for text := range strings.FieldsSeq(want[i]) {
			if text, not := strings.CutPrefix(text, "!"); strings.Contains(entry, " "+text) == not {
				t.Errorf("%q is wrong in %s", text, entry)
			}
		}
	}
}

func TestFlush_recordFields(t *testing.T) {
	const pods = "/var/log/pods/ns-of-file_pod-of-file_0b1/container-of-file/0.log"
	kubernetes := map[string]any{
		"namespace_name": "ns-1", "pod_name": "jm-1", "container_name": "main", "host": "node-1",
		"labels": map[string]any{"app.kubernetes.io/name": "orders", "job": jobID, "index": "3"},
	}
	f := func(options fakeConfig, body map[string]any, want string) {
		t.Helper()
		if _, ok := body["log"]; !ok {
			body["log"] = expired(7)
		}
		expectLines(t, options, appendBody(t, nil, body), want)
	}
	f(nil, map[string]any{"kubernetes": kubernetes}, "namespace=ns-1 pod=jm-1 container=main checkpoint_id=7")
	f(nil, map[string]any{}, "!namespace= !pod= !container= checkpoint_id=7")
	f(nil, map[string]any{"filename": pods}, "namespace=ns-of-file pod=pod-of-file container=container-of-file filename="+pods)
	f(nil, map[string]any{"filename": pods, "kubernetes": map[string]any{"pod_name": "jm-1"}}, "namespace=ns-of-file pod=jm-1 container=container-of-file")
	f(fakeConfig{"record_fields": "pod=host"}, map[string]any{"host": "h", "kubernetes": kubernetes}, "pod=h !namespace= node=host-1")
	f(fakeConfig{"record_fields": "+application_id=app"}, map[string]any{"app": "application_1_2", "kubernetes": kubernetes},
		"pod=jm-1 application_id=application_1_2")
	f(fakeConfig{"record_fields": "+pod=name"}, map[string]any{"name": "n", "kubernetes": kubernetes}, "pod=n namespace=ns-1")
	f(fakeConfig{"record_fields": "+pod=name"}, map[string]any{"kubernetes": kubernetes}, "pod=jm-1")
	f(fakeConfig{"record_fields": "+host=kubernetes.host", "node": ""}, map[string]any{"kubernetes": kubernetes}, "host=node-1 node=node-1") // one key, two fields
	f(fakeConfig{"record_fields": "job_name=$kubernetes['labels']['app.kubernetes.io/name']"}, map[string]any{"kubernetes": kubernetes}, "job_name=orders")

	// The line's own fields are better, and a text that is no such value sets nothing.
	f(fakeConfig{"record_fields": "checkpoint_id=$kubernetes['labels']['index']"}, map[string]any{"kubernetes": kubernetes}, "checkpoint_id=7")
	f(fakeConfig{"record_fields": "subtask_index=$kubernetes['labels']['index']"}, map[string]any{"kubernetes": kubernetes}, "subtask_index=3")
	f(fakeConfig{"record_fields": "subtask_index=kubernetes.host,vertex_id=kubernetes.host"}, map[string]any{"kubernetes": kubernetes}, "!subtask_index= !vertex_id=")
	f(fakeConfig{"record_fields": "job_id=kubernetes.labels.job"}, map[string]any{"kubernetes": kubernetes,
		"log": line(0, "WARN", "org.apache.flink.runtime.checkpoint.CheckpointCoordinator", "Received late message for now expired checkpoint attempt 7.")}, "job_id="+jobID)
}

// TestFlush_recordFieldsOfTwoPods: records of one chunk that name no file are told apart
// by their fields, their traces as well.
func TestFlush_recordFieldsOfTwoPods(t *testing.T) {
	var c []byte
	for _, r := range [][2]string{
		{"a", line(0, "WARN", "org.apache.flink.runtime.checkpoint.CheckpointFailureManager", "Failed to trigger or complete checkpoint 1 for job "+jobID+". (0 consecutive failed attempts so far)")},
		{"b", line(1e6, "WARN", "org.apache.flink.runtime.checkpoint.CheckpointFailureManager", "Failed to trigger or complete checkpoint 2 for job "+jobID+". (0 consecutive failed attempts so far)")},
		{"a", "java.io.IOException: of a"},
		{"b", "java.lang.IllegalStateException: of b"},
	} {
		c = appendBody(t, c, map[string]any{"log": r[1], "kubernetes": map[string]any{"pod_name": r[0]}})
	}
	expectLines(t, nil, c, "checkpoint_id=1 exception_class=java.io.IOException pod=a", "checkpoint_id=2 exception_class=java.lang.IllegalStateException pod=b")
}

// TestFlush_node: the option, else the record's, else the host's name.
func TestFlush_node(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	inKubernetes := map[string]any{"log": expired(1), "kubernetes": map[string]any{"host": "node-7"}}
	for _, test := range []struct {
		option string
		body   map[string]any
		want   string
	}{
		{"from-option", inKubernetes, "from-option"},
		{"from-option", map[string]any{"log": expired(1)}, "from-option"},
		{"", inKubernetes, "node-7"},
		{"", map[string]any{"log": expired(1)}, host},
		{"", map[string]any{"log": expired(1), "kubernetes": map[string]any{"host": ""}}, host},
	} {
		expectLines(t, fakeConfig{"node": test.option}, appendBody(t, nil, test.body), "node="+test.want)
	}
}

func TestFlush_jsonKeys(t *testing.T) {
	text := strings.TrimSpace(expired(7)[strings.Index(expired(7), "- ")+2:])
	const class = "org.apache.flink.runtime.checkpoint.CheckpointCoordinator"
	parsed := map[string]any{"body": map[string]any{"text": text}, "cls": class, "sev": "error"}
	asText := map[string]any{"log": `{"body":{"text":"` + text + `"},"cls":"` + class + `","sev":"error"}`}
	for _, body := range []map[string]any{parsed, asText} {
		c := appendBody(t, nil, body)
		expectLines(t, nil, c)
		expectLines(t, fakeConfig{"json_keys": "message=$body['text'],logger=cls"}, c, "checkpoint_id=7 !level= logger="+class)
		expectLines(t, fakeConfig{"json_keys": "message=body.text, logger=cls, level=sev"}, c, "checkpoint_id=7 level=ERROR")
	}
}

// TestFlush_answers: answers of Flink's REST API that were parsed, with their URL beside.
func TestFlush_answers(t *testing.T) {
	backPressure := func(job string) []byte {
		return appendBody(t, nil, map[string]any{"url": "http://jm:8081/jobs/" + job + "/vertices/cbc357ccb763df2852fee8c4fc7d55f2/backpressure",
			"status": "ok", "backpressureLevel": "high", "end-timestamp": now.UnixMilli(), "log_level": "x", "subtasks": []any{
				map[string]any{"subtask": 0, "backpressureLevel": "ok", "ratio": 0.0, "idleRatio": "NaN", "busyRatio": 0.25},
				map[string]any{"subtask": 1, "backpressureLevel": []byte("high"), "ratio": 0.75},
			}})
	}
	expectLines(t, nil, backPressure(jobID),
		"event=backpressure_sampled job_id="+jobID+" subtask_index=0 backpressure_level=ok ratio=0 busy_ratio=0.25 !idle_ratio=",
		"event=backpressure_sampled job_id="+jobID+" subtask_index=1 backpressure_level=high ratio=0.75 part=1")
	expectLines(t, nil, backPressure("no-id"), "!job_id= vertex_id=cbc357ccb763df2852fee8c4fc7d55f2", "!job_id=")
}

func TestFlush_metrics(t *testing.T) {
	c := makeChunk(line(0, "INFO", "org.apache.flink.metrics.slf4j.Slf4jReporter", ""),
		"=========================== Starting metrics report ===========================",
		"h.jobmanager.j.numRestarts: 7", "h.jobmanager.j.own: 8", "h.jobmanager.Status.JVM.CPU.Load: 0.5")
	const restarts, own, load = "metric=numRestarts metric_value=7", "metric=own metric_value=8", "metric=Status.JVM.CPU.Load metric_value=0.5"
	expectLines(t, nil, c, restarts)
	expectLines(t, fakeConfig{"metrics": "own"}, c, own)
	expectLines(t, fakeConfig{"metrics": "+own"}, c, restarts, own)
	expectLines(t, fakeConfig{"metrics": "+own +Status.JVM.*"}, c, load, restarts, own)
	expectLines(t, fakeConfig{"metrics": "*"}, c, load, restarts, own)
	expectLines(t, fakeConfig{"metrics": "*", "kinds": "default,-metric_reported"}, c)
}

// TestFlush_year: a time that is none gives an event its record's, the same whenever it is
// rendered.
func TestFlush_year(t *testing.T) {
	for _, year := range []string{"9999", "2262", "1677"} {
		loki := fakeloki.New(fakeloki.Config{})
		if flush(newOutput(t, loki, io.Discard, nil), "t", makeChunk(year+expired(7)[4:])) != OK {
			t.Fatal("not delivered")
		}
		if e := loki.Entries(); len(e) != 1 || !e[0].Time.Equal(now) || !strings.Contains(e[0].Line, "time="+now.UTC().Format(time.RFC3339)) {
			t.Errorf("%s: %v", year, e)
		}
	}
}
