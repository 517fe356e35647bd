package ship

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logfmt/logfmt"

	"flink-loki/parsers"
	"flink-loki/plugin/enrich"
	"flink-loki/plugin/loki"
	"flink-loki/test/chunk"
	"flink-loki/test/fakeloki"
)

// part is a part of a file that tail reads into one chunk.
type part struct {
	file    string
	records []chunk.Record
	at      time.Time // of its first line that has a time
	tries   int
}

func (p *part) chunk() (b []byte) {
	for _, r := range p.records {
		b = chunk.Append(b, r)
	}
	return b
}

// cut cuts a log into parts: before the lines that cutAt says.
func cut(t *testing.T, file string, cutAt func(line []byte) bool) (parts []*part) {
	t.Helper()
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at, offset := time.Time{}, int64(0)
	for line := range bytes.Lines(log) {
		if stamp, ok := lineTime(line); ok && stamp.After(at) {
			at = stamp
		}
		if len(parts) == 0 || cutAt(line) {
			parts = append(parts, &part{file: file, at: at})
		}
		p := parts[len(parts)-1]
		p.records = append(p.records, chunk.Record{Time: at, Line: string(bytes.TrimSuffix(line, []byte("\n"))), Filename: file, Offset: offset})
		offset += int64(len(line))
	}
	return parts
}

// lineTime returns the time at the beginning of a line of the logs' layouts.
func lineTime(line []byte) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02 15:04:05.000", "2006/01/02-15:04:05.000000"} {
		if n := len(layout); len(line) > n {
			if t, err := time.Parse(layout, strings.Replace(string(line[:n]), ",", ".", 1)); err == nil {
				return t, true
			}
		}
	}
	return time.Time{}, false
}

// entries are what Loki has, by identity.
type entries map[string]map[string]string

// identities reads Loki's entries. One identity with two contents is a fault.
func identities(t *testing.T, name string, loki *fakeloki.Loki) entries {
	t.Helper()
	all := entries{}
	for _, stored := range loki.Entries() {
		fields := map[string]string{}
		d := logfmt.NewDecoder(strings.NewReader(stored.Line))
		for d.ScanRecord() {
			for d.ScanKeyval() {
				fields[string(d.Key())] = string(d.Value())
			}
		}
		id := identity(fields)
		if other, ok := all[id]; ok {
			t.Errorf("%s: twice, differing in %v: %s", name, differing(fields, other), id)
		}
		all[id] = fields
	}
	return all
}

// identity is what tells an event from all others (see "identity" in the README).
func identity(f map[string]string) string {
	switch {
	case f["event"] == "checkpoint_failure_summary":
		return strings.Join([]string{f["event"], f["cluster"], f["job_id"], f["checkpoint_id"], f["trigger_time"]}, " ")
	case f["event"] == "checkpoint_overdue" || f["event"] == "checkpoint_recovered":
		return strings.Join([]string{f["event"], f["cluster"], f["job_id"], f["time"]}, " ")
	case f["stalls"] != "":
		return strings.Join([]string{f["event"], f["filename"], f["stall_cause"], f["time"][:len("2006-01-02T15:04")]}, " ")
	}
	return strings.Join([]string{f["event"], f["filename"], f["offset"], f["part"]}, " ")
}

func differing(a, b map[string]string) (names []string) {
	for _, f := range parsers.Fields {
		if a[f.Name] != b[f.Name] {
			names = append(names, fmt.Sprintf("%s=%s|%s", f.Name, a[f.Name], b[f.Name]))
		}
	}
	return names
}

// agent is a Fluent Bit with the plug-in: it delivers chunks as a real one can, with
// filesystem storage.
type agent struct {
	t      *testing.T
	loki   *fakeloki.Loki
	output *Output
	random *rand.Rand
	state  string
	// rereads says that a kill makes tail read lines again, into other chunks, and nothing
	// else.
	rereads bool
}

func newAgent(t *testing.T, seed uint64) *agent {
	a := &agent{t: t, loki: fakeloki.New(fakeloki.Config{}), random: rand.New(rand.NewPCG(seed, 1)), state: t.TempDir()}
	a.start()
	return a
}

func (a *agent) start() {
	options := fakeConfig{"state_path": a.state, "labels": "cluster=test", "kinds": "all"}
	if a.output != nil {
		options["url"] = a.output.cfg.URL.String() // the same output as before
	}
	a.output = newOutput(a.t, a.loki, io.Discard, options)
}

// kill ends the process as kill -9 does: what it has written so far is what the next one
// finds.
func (a *agent) kill() {
	next := a.t.TempDir()
	if err := os.CopyFS(next, os.DirFS(a.state)); err != nil {
		a.t.Fatal(err)
	}
	a.state = next
	a.start()
}

// flush delivers a part; a fault keeps it.
func (a *agent) flush(p *part, faults bool) bool {
	p.tries++
	if faults && p.tries < 4 {
		switch a.random.IntN(6) {
		case 0:
			a.loki.FailNext(1, 500, nil, "fault")
		case 1:
			a.loki.StoreButLoseReply(1)
		}
	}
	ok := a.output.Flush("t", p.chunk(), func() {}) == OK
	a.loki.ClearFaults()
	return ok
}

// run delivers parts in the orders that faults and kills make, and ends the stories.
func (a *agent) run(parts []*part, faults bool, kills int) {
	var retries []*part
	queue := slices.Clone(parts)
	for len(queue)+len(retries) > 0 {
		if kills > 0 && !a.rereads && a.random.IntN(max(len(queue)/2, 1)) == 0 {
			// What was not delivered, or not even flushed, comes behind new lines.
			kills--
			n := min(a.random.IntN(4), len(queue))
			backlog := append(retries, queue[:n]...)
			retries, queue = nil, slices.Clone(queue[n:])
			at := min(a.random.IntN(4), len(queue))
			queue = slices.Insert(queue, at, backlog...)
			a.kill()
			continue
		}
		var p *part
		if len(queue) == 0 || len(retries) > 0 && a.random.IntN(4) == 0 {
			i := a.random.IntN(len(retries))
			p = retries[i]
			retries = slices.Delete(retries, i, i+1)
		} else {
			p, queue = queue[0], queue[1:]
		}
		if !a.flush(p, faults) {
			retries = append(retries, p)
		} else if kills > 0 && a.random.IntN(10) == 0 {
			kills-- // before Fluent Bit could note the OK, or how far it had read
			a.kill()
			again := p
			if n := len(p.records); a.rereads {
				again = &part{file: p.file, records: p.records[a.random.IntN(n):]}
				if a.random.IntN(2) == 0 { // it has forgotten that it ever read the file
					again = &part{file: p.file}
					for _, other := range parts {
						again.records = append(again.records, other.records...)
						if other == p {
							break
						}
					}
					for i := range again.records {
						again.records[i].Time = time.Now()
					}
				}
			}
			at := 0
			if !a.rereads {
				at = min(a.random.IntN(3), len(queue))
			}
			queue = slices.Insert(queue, at, again)
		}
	}
	a.finish()
}

// finish ends the stories, as a tick does.
func (a *agent) finish() {
	o := a.output
	batch := &loki.Batch{Placement: o.cfg.Placement}
	pass := o.kept.state.Begin(enrich.Teller{ID: o.id, SumStalls: true, Emit: func(e *parsers.Event, isMade bool) { o.add(batch, e, isMade) }})
	defer pass.Abandon()
	pass.Finish()
	if err := pass.End(""); err != nil {
		a.t.Fatal(err)
	}
	for _, request := range batch.Encode() {
		if err := o.delivery.Deliver(a.t.Context(), request); err != nil {
			a.t.Fatal(err)
		}
	}
}

// realLogs are the logs of a scenario that match a pattern, cut into parts.
func realLogs(t *testing.T, scenario, pattern string, cutAt func(line []byte) bool) (parts []*part) {
	t.Helper()
	files, _ := filepath.Glob("../../test/logs/" + scenario + "/" + pattern)
	if len(files) == 0 {
		t.Fatalf("no logs of %s", scenario)
	}
	for _, file := range files {
		parts = append(parts, cut(t, file, cutAt)...)
	}
	slices.SortStableFunc(parts, func(a, b *part) int { return a.at.Compare(b.at) })
	return parts
}

var ordered = []string{"1.9.3/expired", "1.11.6/mixed", "1.13.6/declined", "1.14.6/mixed", "1.20.5/expired", "1.20.5/rocksdb-stalls", "2.3.0/debug-mixed"}

// onePass is what Loki has of logs that were read in one go.
func onePass(t *testing.T, scenario, pattern string) entries {
	t.Helper()
	a := newAgent(t, 0)
	a.run(realLogs(t, scenario, pattern, func([]byte) bool { return false }), false, 0)
	return identities(t, scenario, a.loki)
}

// TestOrder_inOrder: chunks in the order of their file give the entries of one pass, in
// whatever way the file is cut between its entries, and whatever has to be tried again.
func TestOrder_inOrder(t *testing.T) {
	for _, scenario := range ordered {
		events := 0
		for _, pattern := range []string{"jobmanager.log", "taskmanager-1.log", "rocksdb*2.LOG"} {
			if files, _ := filepath.Glob("../../test/logs/" + scenario + "/" + pattern); len(files) == 0 {
				continue
			}
			want := onePass(t, scenario, pattern)
			events += len(want)
			for seed := range uint64(3) {
				random := rand.New(rand.NewPCG(seed, 2))
				a := newAgent(t, seed)
				a.run(realLogs(t, scenario, pattern, func(line []byte) bool {
					_, isHeader := lineTime(line)
					return isHeader && random.IntN(40) == 0
				}), true, 0)
				compare(t, fmt.Sprintf("%s, seed %d", scenario, seed), identities(t, scenario, a.loki), want, func(field string) bool { return false })
			}
		}
		if events < 50 {
			t.Errorf("%s: only %d events", scenario, events)
		}
	}
}

var orderSeeds = flag.Int("seeds", 8, "orders that the tests of any order try of each scenario")

func seeds() uint64 {
	if testing.Short() {
		return 1
	}
	return uint64(*orderSeeds)
}

// TestOrder_anyOrder: however files are cut, and in whatever order a real Fluent Bit
// brings the chunks, again and again, each event comes once, and no field says otherwise
// than in one pass.
func TestOrder_anyOrder(t *testing.T) {
	for _, scenario := range ordered {
		want := onePass(t, scenario, "*.[lL][oO][gG]")
		for seed := range seeds() {
			random := rand.New(rand.NewPCG(seed, 3))
			a := newAgent(t, seed)
			parts := realLogs(t, scenario, "*.[lL][oO][gG]", func(line []byte) bool { return random.IntN(30) == 0 })
			a.run(parts, true, 1+int(seed%3))
			compare(t, fmt.Sprintf("%s, seed %d", scenario, seed), identities(t, scenario, a.loki), want, ofTrace)
		}
	}
}

// TestOrder_readAgain: lines of one log that tail reads again after a kill, into other
// chunks, give the same entries.
func TestOrder_readAgain(t *testing.T) {
	for _, scenario := range ordered {
		for _, pattern := range []string{"jobmanager.log", "taskmanager-1.log"} {
			want := onePass(t, scenario, pattern)
			for seed := range seeds() {
				random := rand.New(rand.NewPCG(seed, 4))
				a := newAgent(t, seed)
				a.rereads = true
				parts := realLogs(t, scenario, pattern, func(line []byte) bool {
					_, isHeader := lineTime(line)
					return isHeader && random.IntN(30) == 0
				})
				a.run(parts, false, 3)
				compare(t, fmt.Sprintf("%s, seed %d", scenario, seed), identities(t, scenario, a.loki), want, ofTrace)
			}
		}
	}
}

// hangingLog writes a copy of a real log whose jobs hang for a while behind a checkpoint that
// completed: all later lines are written, and checkpoints triggered, so much later.
func hangingLog(t *testing.T, scenario string, hang time.Duration) (file string) {
	t.Helper()
	log, err := os.ReadFile("../../test/logs/" + scenario + "/jobmanager.log")
	if err != nil {
		t.Fatal(err)
	}
	triggered := regexp.MustCompile(`@ \d{13}\b`)
	var b strings.Builder
	completed := 0
	for line := range strings.Lines(string(log)) {
		if at, ok := lineTime([]byte(line)); ok && completed >= 5 {
			const stamp = "2006-01-02 15:04:05,000"
			line = at.Add(hang).Format(stamp) + line[len(stamp):]
			line = triggered.ReplaceAllStringFunc(line, func(at string) string {
				ms, _ := strconv.ParseInt(at[len("@ "):], 10, 64)
				return fmt.Sprintf("@ %d", ms+hang.Milliseconds())
			})
		}
		if strings.Contains(line, "Completed checkpoint") {
			completed++
		}
		b.WriteString(line)
	}
	file = filepath.Join(t.TempDir(), "jobmanager.log")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOrder_hangs: what is told of a job that hangs does not depend on how its log is cut and
// in which order the chunks come.
func TestOrder_hangs(t *testing.T) {
	for _, scenario := range []string{"1.9.3/normal-full", "1.20.5/tm-killed", "2.3.0/aligned-timeout"} {
		file := hangingLog(t, scenario, 45*time.Minute)
		a := newAgent(t, 0)
		a.run(cut(t, file, func([]byte) bool { return false }), false, 0)
		want := identities(t, scenario, a.loki)
		told := map[string]int{}
		for _, fields := range want {
			told[fields["event"]+fields["repeat"]]++
		}
		if told["checkpoint_overdue0"] == 0 || told["checkpoint_overdue2"] == 0 || told["checkpoint_recovered"] == 0 {
			t.Errorf("%s: told %v", scenario, told)
		}
		for seed := range 3 * seeds() {
			random := rand.New(rand.NewPCG(seed, 5))
			a := newAgent(t, seed)
			parts := cut(t, file, func(line []byte) bool {
				_, isHeader := lineTime(line)
				return isHeader && random.IntN(6) == 0
			})
			// It is read in a moment: no chunk comes so late that it is not waited for.
			at := parts[0].at
			for _, p := range parts {
				for i := range p.records {
					at = at.Add(time.Millisecond)
					p.records[i].Time = at
				}
			}
			a.run(parts, true, 6)
			compare(t, fmt.Sprintf("%s, seed %d", scenario, seed), identities(t, scenario, a.loki), want, ofTrace)
		}
	}
}

// ofTrace are the fields that the lines below a header tell, which a chunk's end can cut
// off; a summary tells what was known when it was made.
func ofTrace(field string) bool {
	return slices.Contains([]string{"failure_reason", "counted", "reason", "exception_class", "root_cause_class"}, field)
}

// compare compares what Loki has with what it should have: the same events, and no field
// that differs. Where anyOrder names fields, they may, and others may be absent.
func compare(t *testing.T, name string, got, want entries, mayDiffer func(field string) bool) {
	t.Helper()
	for id := range got {
		if want[id] == nil {
			t.Errorf("%s: more than in one pass: %s", name, id)
		}
	}
	strict := !mayDiffer("reason")
	for id, fields := range want {
		if got[id] == nil {
			t.Errorf("%s: not there: %s", name, id)
			continue
		}
		if !strict && (strings.HasPrefix(id, "checkpoint_failure_summary") || fields["stalls"] != "") {
			continue
		}
		for field, value := range fields {
			switch {
			case strict:
			case field == "job_candidates": // the more is known of other logs, the fewer there are
				continue
			case field == "message" && fields["event"] == "checkpoint_failure_threshold_exceeded": // that of the header
				continue
			}
			if other, ok := got[id][field]; other != value && (ok || strict) && !mayDiffer(field) {
				t.Errorf("%s: %s: %s is %q, %q in one pass", name, id, field, other, value)
			}
		}
	}
}
