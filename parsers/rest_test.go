package parsers

import (
	"strings"
	"testing"
)

// TestRESTAnswer_url reads answers of Flink's REST API with the URL that gave them, which
// alone tells whose they are.
func TestRESTAnswer_url(t *testing.T) {
	const (
		backPressure = `{"status":"ok","backpressureLevel":"high","end-timestamp":1795959354835,"subtasks":[{"subtask":3,"attempt-number":1,"backpressureLevel":"high","ratio":0.75,"idleRatio":"NaN","busyRatio":0.25,` +
			`"other-concurrent-attempts":[{"subtask":3,"attempt-number":2,"backpressureLevel":"ok","ratio":0.0}]}]}`
		checkpoint   = `{"id":7,"status":"IN_PROGRESS","is_savepoint":false,"trigger_timestamp":1795959350699,"latest_ack_timestamp":-1,"num_subtasks":8,"num_acknowledged_subtasks":5}`
		subtasks     = `{"id":7,"status":"IN_PROGRESS","latest_ack_timestamp":1795959350792,"num_subtasks":2,"num_acknowledged_subtasks":1,"subtasks":[{"index":0,"status":"pending_or_failed"}]}`
		pressureHigh = " backpressure_level=high ratio=0.75 busy_ratio=0.25"
		pressureOK   = " backpressure_level=ok ratio=0"
		statistics   = " checkpoint_id=7 savepoint=false trigger_time=1795959350699 status=IN_PROGRESS subtasks=8 acknowledged_subtasks=5"
	)
	for _, c := range []struct{ name, url, answer, want string }{
		{"back pressure", "http://jobmanager:8081/jobs/" + job1 + "/vertices/" + vertex1 + "/backpressure", backPressure,
			"time=2026-11-29T13:35:54.835Z job_id=" + job1 + " subtask_index=3 task_attempt_num=1 vertex_id=" + vertex1 + pressureHigh + "\n" +
				"time=2026-11-29T13:35:54.835Z job_id=" + job1 + " subtask_index=3 task_attempt_num=2 vertex_id=" + vertex1 + pressureOK},
		{"checkpoints, behind YARN's proxy", "http://rm:8088/proxy/application_1690000000000_0001/jobs/" + job1 + "/checkpoints", `{"counts":{"total":2},"history":[` + checkpoint + "," + checkpoint + "]}",
			"time=2026-11-29T13:35:50.699Z job_id=" + job1 + statistics + "\n" +
				"time=2026-11-29T13:35:50.699Z job_id=" + job1 + statistics},
		{"one checkpoint", "/v1/jobs/" + job1 + "/checkpoints/details/7", checkpoint, "time=2026-11-29T13:35:50.699Z job_id=" + job1 + statistics},
		{"one checkpoint's subtasks", "/jobs/" + job1 + "/checkpoints/details/7/subtasks/" + vertex1, subtasks,
			"time=2026-11-29T13:35:50.792Z job_id=" + job1 + " checkpoint_id=7 vertex_id=" + vertex1 + " status=IN_PROGRESS subtasks=2 acknowledged_subtasks=1 latest_ack_time=1795959350792"},
		{"no URL", "", checkpoint, "time=2026-11-29T13:35:50.699Z" + statistics},
		{"another URL", "http://jobmanager:8081/overview", checkpoint, "time=2026-11-29T13:35:50.699Z" + statistics},
		{"an id cut short", "/jobs/" + job1[1:] + "/vertices/" + vertex1[1:] + "/backpressure", checkpoint, "time=2026-11-29T13:35:50.699Z" + statistics},
		{"an id too long", "/jobs/" + job1 + "0/checkpoints", checkpoint, "time=2026-11-29T13:35:50.699Z" + statistics},
		{"no history yet", "/jobs/" + job1 + "/checkpoints", `{"counts":{"total":0},"history":[]}`, ""},
		{"no subtasks yet", "/jobs/" + job1 + "/vertices/" + vertex1 + "/backpressure", `{"status":"deprecated","backpressure-level":"ok"}`, ""},
		{"not found", "/jobs/" + job1 + "/checkpoints/details/7", `{"errors":["Could not find checkpointing statistics for checkpoint 7."]}`, ""},
		{"another answer", "/jobs/" + job1, `{"jid":"` + job1 + `","name":"orders","state":"RUNNING","vertices":[{"id":"` + vertex1 + `"}]}`, ""},
		{"cut short", "/jobs/" + job1 + "/checkpoints/details/7", checkpoint[:len(checkpoint)-1], ""},
	} {
		var got []string
		source := newParser(t).NewSource(func(e *Event) {
			wantKind := "checkpoint_statistics"
			if strings.HasSuffix(c.url, "/backpressure") && e.Has(BackpressureLevel) {
				wantKind = "backpressure_sampled"
			}
			if e.Kind.Name != wantKind || string(e.Text(Component)) != "rest" {
				t.Errorf("%s: a %s of %s", c.name, e.Kind.Name, e.Text(Component))
			}
			for _, f := range []Field{EventName, Component, Part} {
				e.Drop(f)
			}
			got = append(got, string(e.AppendLogfmt(nil)))
		})
		source.Record(Origin{Offset: -1, URL: []byte(c.url)}, []byte(c.answer))
		source.Flush()
		if got := strings.Join(got, "\n"); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}
