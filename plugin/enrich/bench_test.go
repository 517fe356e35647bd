package enrich

import (
	"bytes"
	"os"
	"testing"
	"time"

	"flink-loki/parsers"
)

// BenchmarkEnrich reads the logs of a JobManager and a TaskManager, and compares with
// parsing alone: 1.2 is 20 % more. As they are, a third of the lines are events, and
// another third what a process prints at its start; so it reads them with other lines
// between as well, of which one in a hundred is an event.
func BenchmarkEnrich(b *testing.B) {
	for _, scenario := range []string{"1.20.5/expired", "1.20.5/debug-mixed"} {
		b.Run(scenario, func(b *testing.B) { benchmarkEnrich(b, scenario, 0) })
		b.Run(scenario+"/one in a hundred", func(b *testing.B) { benchmarkEnrich(b, scenario, 99) })
	}
}

// spread puts plain lines behind each line that is an event, and leaves out the others.
func spread(b *testing.B, parser *parsers.Parser, log []byte, plain int) (out []byte) {
	tells := map[int]bool{}
	teaches := map[int]bool{}
	source := parser.NewSource(func(e *parsers.Event) { tells[e.Origin.Line] = true })
	source.Lesson = func(e *parsers.Event) { teaches[e.Origin.Line] = true }
	var lines, others [][]byte
	for line := range bytes.Lines(log) {
		lines = append(lines, line)
		source.Record(parsers.Origin{Line: len(lines), Offset: -1}, bytes.TrimSuffix(line, []byte("\n")))
	}
	source.Flush()
	for i, line := range lines {
		if len(line) > 20 && line[0] == '2' && !tells[i+1] && !teaches[i+1] {
			others = append(others, line)
		}
	}
	for i, n := 0, 0; i < len(lines); i++ {
		if tells[i+1] || teaches[i+1] {
			out = append(out, lines[i]...)
		}
		for k := 0; tells[i+1] && k < plain; k++ {
			out = append(out, others[n%len(others)]...)
			n++
		}
	}
	return out
}

func benchmarkEnrich(b *testing.B, scenario string, plain int) {
	var logs [][]byte
	names := []string{"jobmanager.log", "taskmanager-1.log"}
	for _, name := range names {
		log, err := os.ReadFile(logsDir + "/" + scenario + "/" + name)
		if err != nil {
			b.Fatal(err)
		}
		logs = append(logs, log)
	}
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	if err != nil {
		b.Fatal(err)
	}
	if plain > 0 {
		for i, log := range logs {
			logs[i] = spread(b, parser, log, plain)
		}
	}
	read := func(source *parsers.Source, log []byte, line func(offset int64, text []byte)) {
		offset := int64(0)
		for text := range bytes.Lines(log) {
			line(offset, text[:len(text)-1])
			source.Record(parsers.Origin{Offset: offset}, text[:len(text)-1])
			offset += int64(len(text))
		}
		source.Flush()
	}
	parsed, emitted := 0, 0
	parse := func() {
		for _, log := range logs {
			read(parser.NewSource(func(*parsers.Event) { parsed++ }), log, func(int64, []byte) {})
		}
	}
	enrich := func() {
		pass := NewState(0).Begin(Teller{ID: "out", SumStalls: true, Emit: func(*parsers.Event, bool) { emitted++ }})
		for i, log := range logs {
			l := pass.Log("prod", names[i], "")
			source := parser.NewSource(l.Event)
			source.Lesson = l.Lesson
			read(source, log, func(offset int64, text []byte) { l.Line(offset, text, time.Time{}) })
		}
		pass.Finish()
		pass.Abandon()
	}
	best := func(f func()) time.Duration {
		least := time.Hour
		for range 30 {
			start := time.Now()
			f()
			least = min(least, time.Since(start))
		}
		return least
	}
	ratio := float64(best(enrich)) / float64(best(parse))
	b.ReportAllocs()
	for b.Loop() {
		enrich()
	}
	b.ReportMetric(ratio, "x/parse")
}

// TestPlainLines: lines that are no events, and teach nothing, cost no memory.
func TestPlainLines(t *testing.T) {
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	pass := NewState(0).Begin(Teller{ID: "out", Emit: func(e *parsers.Event, _ bool) { t.Errorf("an event: %s", e.AppendLogfmt(nil)) }})
	defer pass.Abandon()
	log := pass.Log("prod", "/log/jobmanager.log", "")
	source := parser.NewSource(log.Event)
	source.Lesson = log.Lesson
	lines := [][]byte{
		[]byte("2026-11-29 12:00:00,000 INFO  org.apache.flink.runtime.rpc.akka.AkkaRpcService             [] - Starting RPC endpoint."),
		[]byte("2026-11-29 12:00:00,001 INFO  org.apache.flink.runtime.checkpoint.CheckpointCoordinator    [] - Stopping checkpoint coordinator for job " + jobA + "."),
		[]byte("\tat org.apache.flink.runtime.rpc.akka.AkkaRpcActor.handleRpcMessage(AkkaRpcActor.java:300)"),
	}
	offset := int64(0)
	allocs := testing.AllocsPerRun(1000, func() {
		for _, line := range lines {
			log.Line(offset, line, time.Time{})
			source.Record(parsers.Origin{Offset: offset}, line)
			offset += int64(len(line)) + 1
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
