package push

import (
	"fmt"
	"testing"
	"time"

	"github.com/grafana/loki/pkg/push"
	"github.com/prometheus/common/model"

	"flink-loki/parsers"
	"flink-loki/plugin/loki"
)

// TestEncode decodes what plugin/loki writes with Loki's own types, and writes it again
// with them: nothing is lost, and the bytes are the same.
func TestEncode(t *testing.T) {
	batch := loki.Batch{Placement: loki.Placement{
		Labels:    model.LabelSet{"cluster": `pro"d`},
		LabelKeys: []parsers.Field{parsers.Component, parsers.Level},
		Metadata:  true,
	}}
	times := []time.Time{time.Unix(1795959365, 7), time.Unix(1795959365, 0), time.Unix(1, 999999999)}
	for i, at := range times {
		var e parsers.Event
		e.SetText(parsers.Component, []byte("jobmanager"))
		if i > 0 {
			e.SetText(parsers.Level, []byte("WARN"))
		}
		e.SetText(parsers.TaskName, []byte("Source: \"orders\" → \xff"))
		e.SetInt(parsers.CheckpointID, int64(i))
		batch.Add(&e, at)
	}
	var got []string
	for _, stored := range batch.Encode() {
		request, _, err := loki.PushBody(stored)
		if err != nil {
			t.Fatal(err)
		}
		var r push.PushRequest
		if err := r.Unmarshal(request); err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Streams {
			for _, e := range s.Entries {
				got = append(got, fmt.Sprintf("%s %d %s %v", s.Labels, e.Timestamp.UnixNano(), e.Line, e.StructuredMetadata))
			}
		}
		again, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if string(again) != string(request) {
			t.Errorf("Loki writes\n%q\nfor\n%q", again, request)
		}
	}
	want := []string{
		`{cluster="pro\"d", component="jobmanager", level="WARN"} 1999999999 component=jobmanager level=WARN checkpoint_id=2 task_name="Source: \"orders\" → \ufffd" [{checkpoint_id 2} {task_name Source: "orders" → ` + "\ufffd}]",
		`{cluster="pro\"d", component="jobmanager", level="WARN"} 1795959365000000000 component=jobmanager level=WARN checkpoint_id=1 task_name="Source: \"orders\" → \ufffd" [{checkpoint_id 1} {task_name Source: "orders" → ` + "\ufffd}]",
		`{cluster="pro\"d", component="jobmanager"} 1795959365000000007 component=jobmanager checkpoint_id=0 task_name="Source: \"orders\" → \ufffd" [{checkpoint_id 0} {task_name Source: "orders" → ` + "\ufffd}]",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
