package ruletest

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"flink-loki/parsers"
)

const coordinator = " INFO  org.apache.flink.runtime.checkpoint.CheckpointCoordinator [] - "

// TestEntries reads logs as they are stored: in the order of their times, moved by their
// offsets, enriched by cluster, with the summaries that the agent makes.
func TestEntries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const job = "85d268e6fbc19411185f7e4868a44178"
	log := "2026-11-29 13:30:10,000" + coordinator + "Triggering checkpoint 7 @ 1795959010000 for job " + job + ".\n" +
		"2026-11-29 13:31:10,000" + coordinator + "Checkpoint 7 of job " + job + " expired before completing.\n"
	packed, err := os.Create(filepath.Join(dir, "jobmanager.log.1.gz"))
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(packed)
	if _, err := w.Write([]byte(log)); err != nil || w.Close() != nil || packed.Close() != nil {
		t.Fatal(err)
	}
	f := &File{dir: dir}
	test := &Test{InputLogs: []Input{
		{Lines: strings.ReplaceAll(log, "13:3", "12:3"), Component: "jobmanager", Labels: map[string]string{"cluster": "b"}, TimeOffset: model.Duration(90 * time.Minute), Node: "host-b"},
		{File: "*.gz", Labels: map[string]string{"cluster": "a"}},
		{Lines: `{"status":"ok","backpressure-level":"high","end-timestamp":1795959040000,"subtasks":[{"subtask":0,"backpressure-level":"high","ratio":0.9}]}`, URL: "http://jm:8081/jobs/" + job + "/vertices/3d7e5afd947976f7a5d7a679d87b6bbd/backpressure"},
	}}
	entries, err := f.entries(test)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		text := func(f parsers.Field) string { return string(e.event.AppendValue(nil, f)) }
		got = append(got, fmt.Sprint(e.at.Format("15:04:05 "), e.labels["cluster"], " ", e.event.Kind.Name, " ", text(parsers.FailureKey), " ", text(parsers.Node), " ", text(parsers.JobID)[:4]))
	}
	want := []string{
		"13:30:10 a checkpoint_triggered   85d2",
		"13:30:40  backpressure_sampled   85d2",
		"13:31:10 a checkpoint_expired a/" + job + "/7/1795959010000  85d2",
		"13:31:10 a checkpoint_failure_summary a/" + job + "/7/1795959010000  85d2",
		"14:00:10 b checkpoint_triggered  host-b 85d2",
		"14:01:10 b checkpoint_expired b/" + job + "/7/1795959010000 host-b 85d2",
		"14:01:10 b checkpoint_failure_summary b/" + job + "/7/1795959010000 host-b 85d2",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	test.Alerts = []AlertTest{{EvalTime: model.Duration(time.Hour)}}
	start := test.start(entries)
	end := test.end(start, entries)
	if start.Format("15:04:05") != "13:30:00" || end.Sub(start) != time.Hour {
		t.Errorf("the clock runs from %s to %s", start, end)
	}
	for _, in := range []Input{{File: "absent.log"}, {File: "[", Lines: ""}} {
		if _, err := f.entries(&Test{InputLogs: []Input{in}}); err == nil || !strings.Contains(err.Error(), "input_logs, number 1") {
			t.Errorf("%+v: %v", in, err)
		}
	}
}
