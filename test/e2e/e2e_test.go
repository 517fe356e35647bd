// Package e2e tests the built plug-in in an agent against a Loki: the fake one, which
// judges that every event is stored once, and a real one (test/lokitest says which).
package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/test/agent"
	"flink-loki/test/fakeloki"
	"flink-loki/test/lokitest"
	"flink-loki/test/replay"
)

// strictOrder is for Loki 2.2.1, which wants the entries of a stream in order.
const strictOrder = "component,event,level,node,filename"

func startLoki(t *testing.T, o lokitest.Options) *lokitest.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Loki and the built plug-in")
	}
	s, err := lokitest.Start(t.Context(), o)
	if errors.Is(err, lokitest.ErrTooOld) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

func startAgent(t *testing.T, options agent.Options) agent.Agent {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the built plug-in")
	}
	dir := t.TempDir()
	all := agent.Options{"timezone": "UTC", "node": "e2e", "state_path": filepath.Join(dir, "state")}
	maps.Copy(all, options)
	a, err := agent.New(dir, all)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	return a
}

// writePart writes lines to a file and returns the part that is all of it.
func writePart(t *testing.T, name string, lines []string) agent.Part {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return agent.Part{Name: name, File: "/log/" + name, Log: path, First: 1, Count: len(lines)}
}

// shifted returns a log of test/logs with its times moved to now, cut into parts.
func shifted(t *testing.T, name string, parts int) []agent.Part {
	t.Helper()
	log, err := os.ReadFile(filepath.Join("../logs", name))
	if err != nil {
		t.Fatal(err)
	}
	log = replay.Shift(log, time.Since(replay.Last(log)).Truncate(time.Millisecond))
	lines := strings.Split(strings.TrimSuffix(string(log), "\n"), "\n")
	whole := writePart(t, filepath.Base(name), lines)
	var cut []agent.Part
	size := (len(lines) + parts - 1) / parts
	for first := 0; first < len(lines); first += size {
		p := whole
		p.Name = fmt.Sprintf("%s.%d", whole.Name, first)
		p.First, p.Count = first+1, min(size, len(lines)-first)
		cut = append(cut, p)
	}
	return cut
}

// send gives a part and insists that it is delivered, at once or by a real Fluent Bit
// in its own time.
func send(t *testing.T, a agent.Agent, p agent.Part) {
	t.Helper()
	delivered, err := a.Send(p)
	if err != nil {
		t.Fatal(err)
	}
	if !delivered && !agent.Real() {
		t.Fatalf("%s is not delivered", p.Name)
	}
}

// tenThousand makes 10,000 lines of which 100 are events. Some are identical, also in
// their time: they are told apart by where they stand.
func tenThousand(t *testing.T) (p agent.Part, offsets []string) {
	t.Helper()
	now := time.Now().UTC()
	line := func(i int, level, class, message string) string {
		return fmt.Sprintf("%s %-5s %-60s [] - %s", now.Add(time.Duration(i/300)*time.Millisecond).Format("2006-01-02 15:04:05,000"), level, class, message)
	}
	var lines []string
	offset := 0
	for i := range 10000 {
		l := line(i, "INFO", "com.example.jobs.Enrich", fmt.Sprintf("Loaded %d rows for customer %d", i*7, i))
		if i%100 == 50 {
			l = line(i, "WARN", "org.apache.flink.runtime.checkpoint.CheckpointCoordinator",
				"Received late message for now expired checkpoint attempt 7 from task d0ec3332e3ee7b625b4059c3b8131016_3d7e5afd947976f7a5d7a679d87b6bbd_0_0 of job fef61425e149c9b56545204c60d72fcc at tm-1.example:33093-b9068d @ tm-1.example (dataPort=35455).")
			offsets = append(offsets, fmt.Sprintf(" offset=%d ", offset))
		}
		lines = append(lines, l)
		offset += len(l) + 1
	}
	return writePart(t, "ten-thousand.log", lines), offsets
}

func expectOnce(t *testing.T, stored, offsets []string) {
	t.Helper()
	if len(stored) != len(offsets) {
		t.Errorf("%d entries are stored, want %d", len(stored), len(offsets))
	}
	for _, offset := range offsets {
		n := 0
		for _, line := range stored {
			if strings.Contains(line, offset) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d entries have%s", n, offset)
		}
	}
}

// TestTenThousand_fake gives a chunk of 10,000 records with 1 % events to the plug-in,
// twice: every event is stored, once.
func TestTenThousand_fake(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	server := httptest.NewServer(loki)
	t.Cleanup(func() {
		loki.Close()
		server.Close()
	})
	a := startAgent(t, agent.Options{"url": server.URL})
	p, offsets := tenThousand(t)
	lines := func() []string {
		var stored []string
		for _, e := range loki.Entries() {
			stored = append(stored, e.Line)
		}
		return stored
	}
	for range 2 {
		send(t, a, p)
		if agent.Real() { // a file that is read once is one chunk after the other, and only once
			await(t, func() bool { return len(lines()) >= len(offsets) })
			break
		}
		expectOnce(t, lines(), offsets)
	}
	expectOnce(t, lines(), offsets)
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
}

// TestTenThousand_loki does the same with a real Loki. Below 2.4 it refuses what it has
// stored before, so that there the chunk is sent once.
func TestTenThousand_loki(t *testing.T) {
	for _, metadata := range []string{"off", "on"} {
		t.Run("structured metadata "+metadata, func(t *testing.T) {
			o := lokitest.Options{}
			if metadata == "on" {
				o.MinMajor = 3
			}
			loki := startLoki(t, o)
			start := time.Now()
			run := fmt.Sprintf("e2e%d", start.UnixNano())
			a := startAgent(t, agent.Options{"url": loki.URL(), "labels": "run=" + run, "structured_metadata": metadata})
			p, offsets := tenThousand(t)
			repeats := 2
			if loki.Major() < 3 || agent.Real() {
				repeats = 1
			}
			for range repeats {
				send(t, a, p)
			}
			if err := a.Stop(); err != nil {
				t.Error(err)
			}
			streams, err := loki.Stored(t.Context(), fmt.Sprintf("{run=%q}", run), start.Add(-time.Minute), time.Now().Add(time.Minute), 1000)
			if err != nil {
				t.Fatal(err)
			}
			var stored []string
			for _, s := range streams {
				for _, e := range s.Entries {
					stored = append(stored, e.Line)
					if metadata == "on" && (e.Metadata["checkpoint_id"] != "7" || e.Metadata["host"] != "tm-1.example") {
						t.Errorf("metadata is %v", e.Metadata)
					}
				}
			}
			expectOnce(t, stored, offsets)
			// The fields are labels to LogQL, wherever they are placed.
			samples, err := loki.Query(t.Context(), fmt.Sprintf(
				`sum by (event, job_id, checkpoint_id) (count_over_time({run=%q} | logfmt [1h]))`, run), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if len(samples) != 1 || samples[0].Value != 100 || samples[0].Labels["checkpoint_id"] != "7" ||
				samples[0].Labels["job_id"] != "fef61425e149c9b56545204c60d72fcc" {
				t.Errorf("got %+v", samples)
			}
		})
	}
}

// TestLokiKilled kills Loki between chunks and starts it again: what was acknowledged
// is there, and what was refused meanwhile comes again in order.
func TestLokiKilled(t *testing.T) {
	loki := startLoki(t, lokitest.Options{Own: true})
	a := startAgent(t, agent.Options{"url": loki.URL(), "label_keys": strictOrder, "timeout": "1s"})
	start := time.Now()
	parts := shifted(t, "2.3.0/expired/jobmanager.log", 9)
	events := 0
	for i, p := range parts {
		if i == 6 {
			if err := loki.Kill(); err != nil {
				t.Fatal(err)
			}
			delivered, err := a.Send(p)
			if err != nil || delivered {
				t.Fatalf("without a Loki, delivered is %v, %v", delivered, err)
			}
			if err := loki.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if delivered, err = a.Retry(p); err != nil || !delivered && !agent.Real() {
				t.Fatalf("delivered is %v, %v", delivered, err)
			}
			continue
		}
		send(t, a, p)
	}
	events = countEvents(t, parts)
	count := func() int {
		return len(allLines(t, loki, `{component="jobmanager", event!="checkpoint_failure_summary"}`, start.Add(-time.Hour)))
	}
	await(t, func() bool { return count() >= events })
	if n := count(); n != events {
		t.Errorf("%d entries, want %d", n, events)
	}
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
}

func allLines(t *testing.T, loki *lokitest.Server, selector string, start time.Time) []string {
	t.Helper()
	streams, err := loki.Stored(t.Context(), selector, start, time.Now().Add(time.Minute), 5000)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range streams {
		for _, e := range s.Entries {
			lines = append(lines, e.Line)
		}
	}
	return lines
}

// TestRulesFire replays logs and waits for the alerts of the shipped rules.
func TestRulesFire(t *testing.T) {
	for _, c := range []struct {
		log, alert string
		want       []string // checkpoint and value
	}{
		// Flink's REST says for this log: 9 checkpoints expired (3 to 6, 8, 9, 12, 13, 15); 15 has no late message.
		{"2.3.0/expired/jobmanager.log", "FlinkCheckpointExpired", []string{"12 1", "13 1", "15 1", "3 1", "4 1", "5 1", "6 1", "8 1", "9 1"}},
		{"2.3.0/expired/jobmanager.log", "FlinkCheckpointExpiredWithLateMessages", []string{"12 2", "13 1", "3 1", "4 1", "5 1", "6 1", "8 1", "9 2"}},
		{"2.3.0/declined/jobmanager.log", "FlinkCheckpointDeclined", []string{"3 1", "6 1", "9 1"}},
		{"2.3.0/declined/jobmanager.log", "FlinkCheckpointExpired", nil},
	} {
		t.Run(c.alert+" on "+c.log, func(t *testing.T) {
			loki := startLoki(t, lokitest.Options{RuleFiles: []string{"../../rules/checkpoint.yaml"}})
			a := startAgent(t, agent.Options{"url": loki.URL(), "label_keys": strictOrder})
			for _, p := range shifted(t, c.log, 1) {
				send(t, a, p)
			}
			if err := a.Stop(); err != nil {
				t.Error(err)
			}
			await(t, func() bool { // the ruler has seen the log
				alerts, err := loki.Alerts(t.Context())
				return err == nil && len(alerts) > 0
			})
			var got []string
			await(t, func() bool {
				got = nil
				alerts, err := loki.Alerts(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, alert := range alerts {
					if alert.Labels["alertname"] != c.alert {
						continue
					}
					if alert.State != "firing" || !strings.Contains(alert.Annotations["summary"], alert.Labels["job_id"]) ||
						!strings.Contains(alert.Annotations["summary"], "Checkpoint "+alert.Labels["checkpoint_id"]+" ") {
						t.Errorf("%+v", alert)
					}
					var value float64
					if _, err := fmt.Sscan(alert.Value, &value); err != nil {
						t.Error(err)
					}
					got = append(got, fmt.Sprint(alert.Labels["checkpoint_id"], " ", value))
				}
				slices.Sort(got)
				return len(got) >= len(c.want)
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// patience bounds the wait for what other processes do.
const patience = time.Minute

// await polls until a condition holds, or until patience ends.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("waited in vain for %v", patience)
			return
		}
	}
}
