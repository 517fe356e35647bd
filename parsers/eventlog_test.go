package parsers

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// rocksDBLogs returns the LOGs of real databases, 5.17.2 to 8.10.0, as lines.
func rocksDBLogs(t testing.TB) map[string][][]byte {
	t.Helper()
	files, err := filepath.Glob(logsDir + "/*/*/rocksdb-*.LOG")
	if err != nil || len(files) == 0 {
		t.Fatalf("no LOGs: %v", err)
	}
	logs := map[string][][]byte{}
	for _, file := range files {
		log, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		logs[file] = bytes.Split(bytes.TrimSuffix(log, []byte("\n")), []byte("\n"))
	}
	return logs
}

// eventsOf hands the lines, the first of which has the number first, to one source.
func eventsOf(source *Source, lines [][]byte, first int) {
	for i, line := range lines {
		source.Record(Origin{Line: first + i, Offset: -1}, line)
	}
	source.Flush()
}

// rocksDBLines tell what a line is by its words alone.
var rocksDBLines = map[string]*regexp.Regexp{
	"rocksdb_snapshot_started":    regexp.MustCompile(`Started the snapshot process`),
	"rocksdb_snapshot_finished":   regexp.MustCompile(`Snapshot DONE`),
	"rocksdb_write_stopped":       regexp.MustCompile(`\] Stopping writes because`),
	"rocksdb_flush_started":       regexp.MustCompile(`"event": "flush_started"`),
	"rocksdb_compaction_started":  regexp.MustCompile(`"event": "compaction_started"`),
	"rocksdb_compaction_finished": regexp.MustCompile(`"event": "compaction_finished"`),
}

var flushEnd = regexp.MustCompile(`\[JOB (\d+)\] Flush lasted|"job": (\d+), "event": "flush_finished"`)

// TestRocksDB_counts compares the events of whole LOGs with a count of their lines, and
// of the jobs that flushed.
func TestRocksDB_counts(t *testing.T) {
	total := map[string]int{}
	for file, lines := range rocksDBLogs(t) {
		want := map[string]int{}
		jobs := map[string]bool{}
		for _, line := range lines {
			for kind, words := range rocksDBLines {
				if words.Match(line) {
					want[kind]++
				}
			}
			if m := flushEnd.FindSubmatch(line); m != nil {
				jobs[string(m[1])+string(m[2])] = true
			}
		}
		if len(jobs) > 0 {
			want["rocksdb_flush_finished"] = len(jobs)
		}
		got := map[string]int{}
		source := newParser(t).NewSource(func(e *Event) {
			got[e.Kind.Name]++
			total[e.Kind.Name]++
			if e.Kind.Name == "rocksdb_flush_finished" && !(e.Has(DurationMs) && e.Has(RocksDBJob)) {
				t.Errorf("%s:%d: a flush without duration or job", file, e.Origin.Line)
			}
		})
		source.Unrecognised = func(e *Event) { t.Errorf("%s:%d is unrecognised", file, e.Origin.Line) }
		eventsOf(source, lines, 1)
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", file, got, want)
		}
	}
	for kind := range rocksDBLines {
		if total[kind] == 0 {
			t.Errorf("no %s in any LOG", kind)
		}
	}
	t.Log(total)
}

// TestRocksDB_chunks cuts the LOGs between any two lines, as chunks do: each flush is
// told once all the same.
func TestRocksDB_chunks(t *testing.T) {
	parser := newParser(t)
	for file, lines := range rocksDBLogs(t) {
		count := func(cut int) (flushes int) {
			emit := func(e *Event) {
				if e.Kind.Name == "rocksdb_flush_finished" {
					flushes++
				}
			}
			eventsOf(parser.NewSource(emit), lines[:cut], 1)
			second := parser.NewSource(emit)
			second.Continues = true
			eventsOf(second, lines[cut:], cut+1)
			return flushes
		}
		want := count(len(lines))
		for cut := range lines {
			if got := count(cut); got != want {
				t.Errorf("%s cut at %d: %d flushes, want %d", file, cut, got, want)
			}
		}
	}
}

// TestRocksDB_quick has the lines that are no event cost no memory.
func TestRocksDB_quick(t *testing.T) {
	parser := newParser(t)
	for file, lines := range rocksDBLogs(t) {
		isEvent := map[int]bool{}
		eventsOf(parser.NewSource(func(e *Event) { isEvent[e.Origin.Line] = true }), lines, 1)
		source := parser.NewSource(func(*Event) {})
		for i, line := range lines {
			if isEvent[i+1] || bytes.Contains(line, []byte(`"event": "flush_finished"`)) {
				continue
			}
			if n := testing.AllocsPerRun(5, func() { source.Record(Origin{Offset: -1}, line) }); n != 0 {
				t.Errorf("%s:%d: %v allocations", file, i+1, n)
			}
		}
	}
}

// BenchmarkRocksDB parses the lines of LOGs that are no event: go test -bench RocksDB ./parsers
func BenchmarkRocksDB(b *testing.B) {
	parser := newParser(b)
	var plain [][]byte
	size := 0
	for _, lines := range rocksDBLogs(b) {
		isEvent := map[int]bool{}
		eventsOf(parser.NewSource(func(e *Event) { isEvent[e.Origin.Line] = true }), lines, 1)
		for i, line := range lines {
			if !isEvent[i+1] {
				plain = append(plain, line)
				size += len(line) + 1
			}
		}
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	source := parser.NewSource(func(*Event) {})
	for b.Loop() {
		eventsOf(source, plain, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(plain)), "ns/line")
}

// rocksDBEvents returns the events of LOG lines, each as its line and the given fields.
func rocksDBEvents(t *testing.T, loc *time.Location, lines string, fields ...Field) string {
	t.Helper()
	parser, err := New(Options{Location: loc})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	source := parser.NewSource(func(e *Event) {
		text := fmt.Sprintf("%d %s", e.Origin.Line, strings.TrimPrefix(e.Kind.Name, "rocksdb_"))
		for _, f := range fields {
			text += " " + string(e.AppendValue(nil, f))
		}
		out = append(out, text)
	})
	eventsOf(source, bytes.Split([]byte(lines), []byte("\n")), 1)
	return strings.Join(out, "\n")
}

// TestRocksDB_time has the times in the order of trust: time_micros, the time at which
// a buffered line was made, the time at which it was written.
func TestRocksDB_time(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	got := rocksDBEvents(t, berlin, `2022/07/15-12:35:14.334352 7f1000484700 (Original Log Time 2022/07/15-12:35:14.334296) EVENT_LOG_v1 {"time_micros": 1657881314334292, "job": 29, "event": "flush_finished"}
2022/07/15-12:35:14.334352 7f1000484700 [WARN] (Original Log Time 2022/07/15-12:35:14.334296) [db\column_family.cc:1088] [a] Stopping writes because we have 20 level-0 files
2022/07/15-12:35:14.334352 7f1000484700 [WARN] [le/column_family.cc:1] [a] Stopping writes because we have 20 level-0 files
2022/07/15-12:35:14.334352 7f1000484700 EVENT_LOG_v1 {"time_micros": 0, "job": 30, "event": "flush_started"}`, Time, Level)
	const want = `1 flush_finished 2022-07-15T10:35:14.334292Z INFO
2 write_stopped 2022-07-15T10:35:14.334296Z WARN
3 write_stopped 2022-07-15T10:35:14.334352Z WARN
4 flush_started 2022-07-15T10:35:14.334352Z INFO`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRocksDB_flushes(t *testing.T) {
	const (
		started  = `2022/07/15-12:35:14.000009 7f1000484700 EVENT_LOG_v1 {"time_micros": 1657859714000005, "job": 29, "event": "flush_started", "num_memtables": 1}`
		finished = `2022/07/15-12:35:14.334352 7f1000484700 (Original Log Time 2022/07/15-12:35:14.334296) EVENT_LOG_v1 {"time_micros": 1657859714334292, "job": 29, "event": "flush_finished", "immutable_memtables": 0}`
		lasted   = `2022/07/15-12:35:14.333568 7f1000484700 [/flush_job.cc:986] [a] [JOB 29] Flush lasted 489900 microseconds, and 472300 cpu microseconds.`
	)
	otherJob := func(line string) string {
		return strings.NewReplacer("JOB 29", "JOB 30", `"job": 29`, `"job": 30`).Replace(line)
	}
	otherThread := func(line string) string { return strings.ReplaceAll(line, "7f1000484700", "7f1000484777") }
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"start and end", []string{started, finished}, "1 flush_started 29 \n2 flush_finished 29 334.287"},
		{"told twice", []string{started, lasted, finished}, "1 flush_started 29 \n2 flush_finished 29 489.9"},
		{"without its start", []string{finished}, "1 flush_finished 29 "},
		{"told twice, without its start", []string{lasted, finished}, "1 flush_finished 29 489.9"},
		{"lasted alone", []string{lasted}, "1 flush_finished 29 489.9"},
		{"two jobs", []string{lasted, otherJob(finished)}, "1 flush_finished 29 489.9\n2 flush_finished 30 "},
		{"another database's thread", []string{started, otherThread(finished)}, "1 flush_started 29 \n2 flush_finished 29 "},
		{"clock set back", []string{strings.ReplaceAll(started, "14000005", "19000005"), finished}, "1 flush_started 29 \n2 flush_finished 29 "},
		{"cut off", []string{started, finished[:strings.Index(finished, "0}")]}, "1 flush_started 29 \n2 flush_finished 29 334.287"},
	} {
		if got := rocksDBEvents(t, time.UTC, strings.Join(c.lines, "\n"), RocksDBJob, DurationMs); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestRocksDB_everyCut cuts an event at each byte, as RocksDB 5.17 does at 512: a number
// is whole or absent.
func TestRocksDB_everyCut(t *testing.T) {
	const whole = `2022/07/15-12:35:15.442191 7f1000484700 EVENT_LOG_v1 {"time_micros": 1657859715442117, "job": 30, "event": "compaction_finished", "compaction_time_micros": 300100, "output_level": 1, "num_output_files": 1, "total_output_size": 28850000, "num_input_records": 516000, "lsm_state": [0, 17]}`
	right := strings.Fields(rocksDBEvents(t, time.UTC, whole, RocksDBJob, DurationMs, Bytes))
	events := 0
	for n := range whole {
		got := strings.Split(rocksDBEvents(t, time.UTC, whole[:n], RocksDBJob, DurationMs, Bytes), " ")
		for i, value := range got {
			if value != "" && value != right[i] {
				t.Errorf("cut at %d: %q", n, got)
			}
		}
		if len(got) > 1 {
			events++
		}
	}
	if events < 150 {
		t.Errorf("%d cuts give an event", events)
	}
}

// TestRocksDB_noEvent has lines that look like events.
func TestRocksDB_noEvent(t *testing.T) {
	got := rocksDBEvents(t, time.UTC, `2022/07/15-12:35:00.000141 7f1000484700     Options.level0_slowdown_writes_trigger: 20
2022/07/15-12:35:00.000142 7f1000484700 Options.soft_pending_compaction_bytes_limit: 68719476736
2022/07/15-12:35:14.000001 7f1000484700 [/flush_job.cc:333] [a] [JOB 29] Flushing memtable with next log file: 5
2022/07/15-12:35:14.000001 7f1000484700 [/flush_job.cc:333] [a] [JOB 29] Level-0 flush table #62: 43700000 bytes OK
2022/07/15-12:35:14.000001 7f1000484700 EVENT_LOG_v1 {"time_micros": 1657859714000005, "cf_name": "flush_started", "job": 29, "event": "table_file_creation", "file_number": 12}
2022/07/15-12:35:14.000001 7f1000484700 EVENT_LOG_v1 {"time_micros": 1657859714000005, "job": 29, "event": "flush_started_again"}
2022/07/15-12:35:14.000001 7f1000484700 EVENT_LOG_v1 
2022/07/15-12:35:15.900000 7f1000484700 [le/delete_scheduler.cc:77] Deleted file /tmp/Snapshot DONE. All is good
2022/07/15-12:36:00.000002 7f1000484700 [/db_impl/db_impl.cc:902] ------- DUMPING STATS -------
2022/07/15-12:36:00.000003 7f1000484700 [/db_impl/db_impl.cc:903] 
** DB Stats **
Stalls(count): 3 level0_slowdown, 1 stop for pending_compaction_bytes, 2 slowdown for pending_compaction_bytes
Caused by: java.io.IOException: Exceeded checkpoint tolerable failure threshold.`)
	if got != "" {
		t.Errorf("got %s", got)
	}
}

// TestRocksDB_columnFamily has the name of a state that imitates RocksDB's sentences.
func TestRocksDB_columnFamily(t *testing.T) {
	const hostile = `a] Stalling writes because we have 5 level-0 files rate 7] [JOB 3`
	got := rocksDBEvents(t, time.UTC, `2022/07/15-12:35:13.000001 139700000001984 [WARN] [/column_family.cc:820] [`+hostile+`] Stalling writes because we have 20 level-0 files rate 16777216
2022/07/15-12:35:14.333568 139700000001984 [/flush_job.cc:986] [`+hostile+`] [JOB 29] Flush lasted 489900 microseconds, and 472300 cpu microseconds.`, ColumnFamily, Value)
	const want = "1 write_stalled " + hostile + " 20\n2 flush_finished " + hostile + " "
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
