package enrich

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers"
)

var (
	snapshotLine = regexp.MustCompile(`^(\S+) (\S+) .*(Started the snapshot process|Snapshot DONE)`)
	stallLine    = regexp.MustCompile(`(?m)^(\S+) \S+ \[WARN\].*(Stopping|Stalling) writes because`)
)

const rocksDBTime = "2006/01/02-15:04:05.000000"

// TestSnapshots compares the durations of RocksDB's snapshots with the times of the lines
// in all LOGs.
func TestSnapshots(t *testing.T) {
	logs, snapshots, during, stalls := 0, 0, 0, 0
	for _, s := range scenarios(t) {
		for _, file := range s.files("rocksdb*.LOG") {
			logs++
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			started := map[string]time.Time{}
			var want []float64
			for line := range strings.Lines(string(content)) {
				m := snapshotLine.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				at, err := time.Parse(rocksDBTime, m[1])
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(m[3], "Started") {
					started[m[2]] = at
				} else {
					want = append(want, float64(at.Sub(started[m[2]]).Nanoseconds())/1e6)
				}
			}
			i := 0
			for _, e := range s.enriched(t, file) {
				switch e.Kind.Name {
				case "rocksdb_snapshot_finished":
					got, ok := e.Number(parsers.DurationMs)
					if !ok || !e.Has(parsers.CheckpointID) || math.Abs(got-want[i]) > 0.0005 {
						t.Errorf("%s:%d: %v ms, want %v", file, e.Origin.Line, got, want[i])
					}
					i++
				case "rocksdb_write_stopped", "rocksdb_write_stalled":
					stalls++
					if inSnapshot, _ := e.Bool(parsers.DuringSnapshot); inSnapshot {
						during++
					}
				}
			}
			if i != len(want) {
				t.Errorf("%s: %d snapshots, want %d", file, i, len(want))
			}
			snapshots += i
		}
	}
	t.Logf("%d LOGs, %d snapshots, %d stalls, of them %d during a snapshot", logs, snapshots, stalls, during)
	if snapshots < 30 || stalls < 20 {
		t.Error("too few to tell")
	}
}

// TestStalls: of a storm comes the first line of each minute, and one sum of each minute.
func TestStalls(t *testing.T) {
	files, _ := filepath.Glob(logsDir + "/1.20.5/rocksdb-stalls/rocksdb*.LOG")
	lines, sent, summed := 0, 0, 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		minutes := map[string]int{} // lines by minute and kind
		for _, m := range stallLine.FindAllStringSubmatch(string(content), -1) {
			minutes[m[1][:len("2006/01/02-15:04")]+m[2]]++
			lines++
		}
		s := &scenario{dir: filepath.Dir(file), TZ: "UTC"}
		var events []*parsers.Event
		pass := NewState(0).Begin(Teller{ID: "out", SumStalls: true, Emit: func(e *parsers.Event, _ bool) { events = append(events, e.Clone()) }})
		log := pass.Log("", file, "")
		for _, i := range s.read(t, file) {
			log.Event(i.event)
		}
		pass.Finish()
		pass.Abandon()
		firsts, sums := map[string]int{}, map[string]int{}
		for _, e := range events {
			if !isStall(e) {
				continue
			}
			at, _ := e.Time(parsers.Time)
			key := at.Format("2006/01/02-15:04") + map[string]string{"rocksdb_write_stopped": "Stopping", "rocksdb_write_stalled": "Stalling"}[e.Kind.Name]
			if n, ok := e.Int(parsers.Stalls); ok {
				sums[key] += int(n)
				summed++
			} else {
				firsts[key]++
				sent++
			}
			if !e.Has(parsers.StallCause) {
				t.Errorf("%s: %s", file, e.AppendLogfmt(nil))
			}
		}
		for key, n := range minutes {
			if n > 1 && sums[key] != n && sums[key] != n-1 { // a minute with one line of a second cause has no sum
				t.Errorf("%s: %s: %d lines, %d in sums, %d sent", file, key, n, sums[key], firsts[key])
			}
		}
	}
	t.Logf("%d lines: %d sent, %d sums", lines, sent, summed)
	if lines < 10 || sent+summed > lines/2 {
		t.Error("storms are not summed up")
	}
}

// TestStalls_chunks: the sum is the same however the lines are cut.
func TestStalls_chunks(t *testing.T) {
	var lines []string
	for i := range 300 { // five minutes
		at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Second)
		lines = append(lines, at.Format(rocksDBTime)+" 7f17eb5fe6c0 [WARN] [/column_family.cc:991] [state] Stopping writes because we have 2 immutable memtables (waiting for flush), max_write_buffer_number is set to 2")
	}
	render := func(chunk int) (events []string) {
		s := NewState(0)
		parser, err := parsers.New(parsers.Options{Location: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		offset := int64(0)
		for i := 0; i < len(lines); i += chunk {
			pass := s.Begin(Teller{ID: "out", SumStalls: true, Emit: func(e *parsers.Event, _ bool) { events = append(events, string(e.AppendLogfmt(nil))) }})
			log := pass.Log("", "/db/LOG", "")
			source := parser.NewSource(log.Event)
			for _, line := range lines[i:min(i+chunk, len(lines))] {
				log.Line(offset, []byte(line), time.Unix(int64(i), 0))
				source.Record(parsers.Origin{Offset: offset}, []byte(line))
				offset += int64(len(line)) + 1
			}
			source.Flush()
			if i+chunk >= len(lines) {
				pass.Finish()
			}
			if err := pass.End(""); err != nil {
				t.Fatal(err)
			}
		}
		return events
	}
	want := render(len(lines))
	if len(want) != 10 || strings.Count(strings.Join(want, "\n"), "stalls=60") != 5 {
		t.Fatalf("got\n%s", strings.Join(want, "\n"))
	}
	for _, chunk := range []int{1, 7, 59, 60, 61} {
		if got := render(chunk); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("chunks of %d: got\n%s", chunk, strings.Join(got, "\n"))
		}
	}
}

// TestStalls_duringSnapshot: a stall within a running snapshot says so, and which
// checkpoint's it is.
func TestStalls_duringSnapshot(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	var got []string
	pass := NewState(0).Begin(Teller{ID: "out", Emit: func(e *parsers.Event, _ bool) {
		if isStall(e) {
			got = append(got, value(e, parsers.DuringSnapshot)+" "+value(e, parsers.CheckpointID))
		}
	}})
	log := pass.Log("", "/db/LOG", "")
	parser, _ := parsers.New(parsers.Options{Location: time.UTC})
	source := parser.NewSource(log.Event)
	stall := "[WARN] [/column_family.cc:991] [state] Stopping writes because we have 2 immutable memtables (waiting for flush), max_write_buffer_number is set to 2"
	for i, text := range []string{
		stall,
		"[ilities/checkpoint/checkpoint_impl.cc:93] Started the snapshot process -- creating snapshot in directory /tmp/job_" + jobA + "_op_A_" + jobB + "__1_2__uuid_3791fe99-56fb-489d-b376-888fe3bdaf69/chk-7",
		stall,
		"[ilities/checkpoint/checkpoint_impl.cc:172] Snapshot DONE. All is good",
		stall,
	} {
		line := at.Add(time.Duration(i)*time.Second).Format(rocksDBTime) + " 7f17eb5fe6c0 " + text
		source.Record(parsers.Origin{Offset: int64(i)}, []byte(line))
	}
	source.Flush()
	pass.Abandon()
	if want := []string{" ", "true 7", " "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
