// Package faults breaks everything around the plug-in, and counts what arrives: each
// event once, or it says which are lost and which are there twice.
package faults

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/klauspost/compress/snappy"
	"github.com/rs/zerolog"

	"flink-loki/parsers"
	"flink-loki/test/agent"
	"flink-loki/test/fakeloki"
	"flink-loki/test/lokitest"
)

var long = flag.Bool("long", false, "outages of a minute, and 20 kills")

// scene is an agent between a log and a Loki that can fail.
type scene struct {
	t       *testing.T
	dir     string
	loki    *fakeloki.Loki   // makes the faults
	store   *fakeloki.Loki   // behind it
	real    *lokitest.Server // in place of the store, nil for none
	proxy   *toxiproxy.Proxy // in front of Loki
	options agent.Options
	outputs []agent.Options // those, and of others
	agent   agent.Agent
	random  *rand.Rand

	parts   []agent.Part
	sent    []agent.Part
	pending []agent.Part // that were not delivered at once

	mu     sync.Mutex
	poison map[string]bool // texts of entries that Loki refuses for ever
}

// fault is one thing that goes wrong.
type fault struct {
	name string
	log  string // of test/logs; empty: 2.3.0/debug-mixed/jobmanager.log
	// hostOnly faults need an agent that does what it is told.
	hostOnly bool
	play     func(*scene)
}

const defaultLog = "2.3.0/debug-mixed/jobmanager.log"

// faults are played one by one.
var faults = []fault{
	{name: "none", play: func(s *scene) { s.send(len(s.parts)) }},
	{name: "Loki is down", play: func(s *scene) {
		s.send(3)
		s.proxy.Stop()
		s.send(4)
		s.wait(time.Minute)
		s.must(s.proxy.Start())
		s.send(2)
	}},
	{name: "429 for everything", play: func(s *scene) {
		s.send(2)
		s.loki.FailNext(always, 429, http.Header{"Retry-After": {"1"}}, "rate limit")
		s.send(4)
		s.loki.ClearFaults()
	}},
	{name: "500 for everything", play: func(s *scene) {
		s.loki.FailNext(always, 500, nil, "internal error")
		s.send(4)
		s.loki.ClearFaults()
		s.send(2)
	}},
	{name: "401 until the token is mended", play: func(s *scene) {
		s.loki.FailNext(always, 401, nil, "no org id")
		s.send(3)
		s.loki.ClearFaults()
	}},
	{name: "each second push fails", play: func(s *scene) {
		for range 200 {
			s.loki.Pass(1)
			s.loki.FailNext(1, 503, nil, "one in two")
		}
		s.send(len(s.parts))
		s.loki.ClearFaults()
	}},
	{name: "Loki does not answer", play: func(s *scene) {
		s.send(2)
		s.loki.HangNext(always)
		s.send(2)
		s.loki.ClearFaults()
	}},
	{name: "a slow network", play: func(s *scene) {
		s.toxic(`{"type":"bandwidth","stream":"upstream","attributes":{"rate":2}}`)
		s.send(3)
		s.heal()
	}},
	{name: "reset in the middle of a request", play: func(s *scene) {
		s.send(1)
		s.toxic(`{"type":"limit_data","stream":"upstream","attributes":{"bytes":700}}`)
		s.send(3)
		s.heal()
		s.toxic(`{"type":"reset_peer","stream":"downstream","attributes":{"timeout":0}}`)
		s.send(2)
		s.heal()
	}},
	{name: "the reply is lost after storing", play: func(s *scene) {
		s.loki.StoreButLoseReply(always)
		s.send(5)
		s.loki.ClearFaults()
	}},
	{name: "no such host until the agent's configuration is mended", play: func(s *scene) {
		s.must(s.agent.Stop())
		good := s.options["url"]
		s.options["url"] = "http://loki.invalid:3100"
		s.start()
		s.send(2)
		s.must(s.agent.Kill())
		s.options["url"] = good
		s.start()
	}},
	{name: "kill -9 again and again", play: func(s *scene) {
		kills := 4
		if *long {
			kills = 20
		}
		for range kills {
			switch s.random.IntN(3) {
			case 0:
				s.loki.FailNext(3, 503, nil, "not now")
			case 1:
				s.loki.StoreButLoseReply(2)
			}
			s.send(1)
			time.Sleep(time.Duration(s.random.IntN(300)) * time.Millisecond)
			s.must(s.agent.Kill())
			s.loki.ClearFaults()
			s.start()
		}
	}},
	{name: "SIGTERM with chunks that wait", play: func(s *scene) {
		s.loki.FailNext(always, 503, nil, "not now")
		s.send(3)
		s.must(s.agent.Stop())
		s.loki.ClearFaults()
		s.start()
	}},
	{name: "an exit while a push hangs", play: func(s *scene) {
		s.send(1)
		s.loki.HangNext(always)
		s.send(1)
		s.must(s.agent.Stop())
		s.loki.ClearFaults()
		s.start()
	}},
	{name: "an outage longer than Loki's window", log: "spread", hostOnly: true, play: func(s *scene) {
		s.loki.FailNext(always, 503, nil, "not now")
		s.send(6) // hours, which come behind the later ones
		s.loki.ClearFaults()
		s.send(len(s.parts))
	}},
	{name: "the log's clock is 8 h ahead", log: "ahead", play: func(s *scene) { s.send(len(s.parts)) }},
	{name: "Loki is restarted", play: func(s *scene) {
		s.send(3)
		s.proxy.Stop()
		if s.real != nil {
			s.must(s.real.Kill())
		}
		s.send(2)
		if s.real != nil {
			s.must(s.real.Restart(s.t.Context()))
		}
		s.must(s.proxy.Start())
	}},
	{name: "entries in each position that Loki refuses for ever", play: func(s *scene) {
		for i, p := range s.parts {
			s.spoil(p, i)
		}
	}},
	{name: "pieces of chunks are no records", hostOnly: true, play: func(s *scene) {
		for i := range s.parts {
			s.parts[i].Torn = true
		}
	}},
	{name: "two outputs", play: func(s *scene) {
		s.must(s.agent.Stop())
		s.addOutput()
		s.start()
		s.send(2)
		s.loki.Pass(1)
		s.loki.FailNext(5, 503, nil, "not now")
		s.send(3)
		s.must(s.agent.Kill())
		s.loki.ClearFaults()
		s.start()
	}},
	{name: "two workers", play: func(s *scene) { s.work("2") }},
	{name: "four workers", play: func(s *scene) { s.work("4") }},
	{name: "a reload in full flow", play: func(s *scene) {
		s.send(2)
		s.loki.FailNext(5, 503, nil, "not now") // a reload waits for what is pending
		s.send(2)
		s.must(s.agent.Reload())
		s.send(2)
		if !agent.Real() { // where 5.1.1 ends with SIGSEGV in code of its own
			s.loki.FailNext(always, 503, nil, "not now")
			s.send(2)
			s.must(s.agent.Reload())
			s.loki.ClearFaults()
		}
	}},
	{name: "state_path is full", play: func(s *scene) {
		disk := filepath.Join(s.dir, "disk")
		s.must(os.Mkdir(disk, 0o700))
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=256k"); err != nil {
			s.t.Skipf("no tmpfs can be mounted here: %v", err)
		}
		s.t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
		s.must(s.agent.Stop())
		s.options["state_path"] = disk
		s.start()
		s.send(2)
		_ = os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 1<<20), 0o600) // as much as there is
		s.loki.FailNext(always, 503, nil, "not now")
		s.send(3)
		s.must(s.agent.Kill())
		s.start() // all the same
		s.loki.ClearFaults()
		s.must(os.Remove(filepath.Join(disk, "filler")))
		s.settle()
		s.must(s.agent.Stop())
		s.options["state_path"] = filepath.Join(s.dir, "state")
		s.start()
	}},
	{name: "the state's files are torn", play: func(s *scene) {
		s.send(3)
		s.loki.FailNext(always, 503, nil, "not now")
		s.send(2)
		s.must(s.agent.Kill())
		s.loki.ClearFaults()
		s.tear(filepath.Join(s.options["state_path"], "state", "facts"))
		s.start()
	}},
	{name: "lines are read again after a kill", play: func(s *scene) {
		s.send(4)
		s.must(s.agent.Kill())
		if agent.Real() { // it reads the whole file again, in other chunks
			files, _ := filepath.Glob(filepath.Join(s.dir, "tail.db*"))
			for _, file := range files {
				s.must(os.Remove(file))
			}
			s.start()
			return
		}
		s.start()
		last, next := s.sent[len(s.sent)-1], &s.parts[0]
		next.First, next.Count, next.Name = last.First, next.Count+last.Count, "again"
	}},
}

const always = 100_000

// numParts is how many chunks a log comes in.
const numParts = 12

func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the built plug-in and host")
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "fault\tsent\tdelivered\tdead letters\ttwice\tlost\t")
	real := realLoki(t)
	for _, f := range faults {
		if f.hostOnly && agent.Real() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			s := newScene(t, f.log, real)
			f.play(s)
			s.send(len(s.parts))
			s.settle()
			sent, delivered, dead, twice, lost := s.count()
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t\n", f.name, sent, delivered, dead, len(twice), len(lost))
			if dead != len(s.poison) {
				t.Errorf("%d dead letters, and Loki refuses %d entries for ever", dead, len(s.poison))
			}
			for _, id := range lost {
				t.Errorf("lost: %s", id)
			}
			for _, id := range twice {
				t.Errorf("twice: %s", id)
			}
			if sent < 50 {
				t.Errorf("only %d events", sent)
			}
			s.must(s.agent.Stop())
		})
	}
	_ = w.Flush()
	t.Logf("\n%s", b.String())
}

// realLoki returns a Loki that stands behind the fake one, which then only makes the
// faults: where LOKI_URL or LOKI_BIN asks for one.
func realLoki(t *testing.T) *lokitest.Server {
	if os.Getenv("LOKI_URL") == "" && os.Getenv("LOKI_BIN") == "" {
		return nil
	}
	server, err := lokitest.Start(t.Context(), lokitest.Options{MinMajor: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("behind the faults: Loki %s", server.Version())
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

// forward hands a push on to a real Loki.
func forward(real *lokitest.Server) func(http.Header, []byte) (int, string) {
	return func(header http.Header, body []byte) (int, string) {
		resp, err := http.Post(real.URL()+"/loki/api/v1/push", header.Get("Content-Type"), bytes.NewReader(body))
		if err != nil {
			return http.StatusBadGateway, err.Error()
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return http.StatusBadGateway, err.Error()
		}
		return resp.StatusCode, string(text)
	}
}

// keep hands a push on to a fake Loki.
func keep(store *fakeloki.Loki) func(http.Header, []byte) (int, string) {
	return func(header http.Header, body []byte) (int, string) {
		request := httptest.NewRequest(http.MethodPost, "/loki/api/v1/push", bytes.NewReader(body))
		request.Header = header
		answer := httptest.NewRecorder()
		store.ServeHTTP(answer, request)
		return answer.Code, answer.Body.String()
	}
}

// refuse refuses pushes with a poisoned entry in them.
func (s *scene) refuse(next func(http.Header, []byte) (int, string)) func(http.Header, []byte) (int, string) {
	return func(header http.Header, body []byte) (int, string) {
		text, err := snappy.Decode(nil, body)
		s.mu.Lock()
		defer s.mu.Unlock()
		for poison := range s.poison {
			if err == nil && bytes.Contains(text, []byte(poison)) {
				return http.StatusBadRequest, "this entry is refused for ever"
			}
		}
		return next(header, body)
	}
}

func newScene(t *testing.T, log string, real *lokitest.Server) *scene {
	s := &scene{t: t, dir: t.TempDir(), store: fakeloki.New(fakeloki.Config{}), real: real, random: rand.New(rand.NewPCG(1, 2)), poison: map[string]bool{}}
	behind := keep(s.store)
	if real != nil {
		behind = forward(real)
	}
	s.loki = fakeloki.New(fakeloki.Config{Behind: s.refuse(behind)})
	server := httptest.NewServer(s.loki)
	quiet := zerolog.Nop()
	s.proxy = toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), quiet), "loki", "127.0.0.1:0", strings.TrimPrefix(server.URL, "http://"))
	s.must(s.proxy.Start())
	t.Cleanup(func() {
		s.proxy.Stop()
		s.loki.Close()
		server.Close()
	})
	s.options = agent.Options{
		"url": "http://" + s.proxy.Listen, "timezone": "UTC", "timeout": "1s", "labels": fmt.Sprintf("cluster=faults-%d", time.Now().UnixNano()),
		"state_path": filepath.Join(s.dir, "state"), "dead_letter_path": filepath.Join(s.dir, "dead.jsonl"),
	}
	s.outputs = []agent.Options{s.options}
	s.start()
	s.split(log)
	return s
}

// addOutput adds an output with another cluster, which shares the state's directory.
func (s *scene) addOutput() {
	other := maps.Clone(s.options)
	other["labels"] += "-b"
	other["dead_letter_path"] += "-b"
	s.outputs = append(s.outputs, other)
}

// clusters are those of the outputs.
func (s *scene) clusters() (names []string) {
	for _, o := range s.outputs {
		names = append(names, strings.TrimPrefix(o["labels"], "cluster="))
	}
	return names
}

// work lets several workers deliver all parts at the same time, while some pushes fail.
func (s *scene) work(workers string) {
	s.must(s.agent.Stop())
	s.options["workers"] = workers
	s.start()
	for range 5 {
		s.loki.Pass(1)
		s.loki.FailNext(1, 503, nil, "not now")
	}
	delivered, err := s.agent.Send(s.parts...)
	s.must(err)
	if s.sent = append(s.sent, s.parts...); !delivered {
		s.pending = append(s.pending, s.parts...)
	}
	s.parts = nil
}

// spoil lets Loki refuse one event of a part for ever: the first of the first part, and so on.
func (s *scene) spoil(p agent.Part, position int) {
	var offsets []int64
	for _, e := range s.events(p.Log) {
		if line := e.Origin.Line; line >= p.First && line < p.First+p.Count && !e.Has(parsers.Part) && !e.Kind.Quiet {
			offsets = append(offsets, e.Origin.Offset)
		}
	}
	if len(offsets) > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.poison[fmt.Sprintf(" offset=%d ", offsets[position%len(offsets)])] = true
	}
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) start() {
	s.t.Helper()
	var err error
	s.agent, err = agent.New(s.dir, s.outputs...)
	s.must(err)
	s.must(s.agent.Start())
}

var stamp = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}`)

// split makes the parts: of a log of a real cluster, whose lines may get other times.
func (s *scene) split(log string) {
	name := log
	if name == "" || name == "spread" || name == "ahead" {
		name = defaultLog
	}
	content, err := os.ReadFile("../logs/" + name)
	s.must(err)
	const layout = "2006-01-02 15:04:05,000"
	first, err := time.Parse(layout, string(stamp.Find(content)))
	s.must(err)
	shift := func(t time.Time) time.Time { return time.Now().UTC().Add(-time.Hour).Add(t.Sub(first)) }
	switch log {
	case "spread": // a minute takes six hours
		shift = func(t time.Time) time.Time { return time.Now().UTC().Add(-8 * time.Hour).Add(t.Sub(first) * 360) }
	case "ahead":
		shift = func(t time.Time) time.Time { return time.Now().UTC().Add(8 * time.Hour).Add(t.Sub(first)) }
	}
	content = stamp.ReplaceAllFunc(content, func(b []byte) []byte {
		at, err := time.Parse(layout, string(b))
		s.must(err)
		return []byte(shift(at).Format(layout))
	})
	path := filepath.Join(s.dir, "source.txt")
	s.must(os.WriteFile(path, content, 0o600))
	// Each part ends where a line with a time begins: a header and its trace are written at
	// once.
	lines := bytes.SplitAfter(content, []byte("\n"))
	lines = lines[:len(lines)-1]
	each := len(lines)/numParts + 1
	for first := 0; first < len(lines); {
		end := min(first+each, len(lines))
		for end < len(lines) && !stamp.Match(lines[end]) {
			end++
		}
		s.parts = append(s.parts, agent.Part{Name: fmt.Sprintf("P%d", first), Log: path, File: "/log/jobmanager.log", First: first + 1, Count: end - first})
		first = end
	}
}

// send gives the agent the next n parts.
func (s *scene) send(n int) {
	s.t.Helper()
	for range min(n, len(s.parts)) {
		p := s.parts[0]
		s.parts = s.parts[1:]
		s.sent = append(s.sent, p)
		delivered, err := s.agent.Send(p)
		s.must(err)
		if !delivered {
			s.pending = append(s.pending, p)
		}
	}
}

// wait is the length of an outage.
func (s *scene) wait(d time.Duration) {
	if *long {
		time.Sleep(d)
	}
}

func (s *scene) toxic(toxic string) {
	s.t.Helper()
	_, err := s.proxy.Toxics.AddToxicJson(strings.NewReader(toxic))
	s.must(err)
}

func (s *scene) heal() { s.proxy.Toxics.ResetToxics(s.t.Context()) }

func (s *scene) tear(path string) {
	info, err := os.Stat(path)
	s.must(err)
	s.must(os.Truncate(path, info.Size()-7))
}

// settle lets the agent deliver what is left.
func (s *scene) settle() {
	s.t.Helper()
	const patience = 90 * time.Second
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var left []agent.Part
		for _, p := range s.pending {
			delivered, err := s.agent.Retry(p)
			s.must(err)
			if !delivered {
				left = append(left, p)
			}
		}
		if !agent.Real() {
			s.pending = left
		}
		if len(s.pending) == 0 || agent.Real() && s.isThere() {
			s.pending = nil
			return
		}
		if time.Now().After(deadline) {
			return
		}
	}
}

// events returns the events of a log.
func (s *scene) events(log string) (events []*parsers.Event) {
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	s.must(err)
	content, err := os.ReadFile(log)
	s.must(err)
	source := parser.NewSource(func(e *parsers.Event) { events = append(events, e.Clone()) })
	offset, line := int64(0), 0
	for text := range bytes.Lines(content) {
		line++
		source.Record(parsers.Origin{Line: line, Offset: offset}, bytes.TrimSuffix(text, []byte("\n")))
		offset += int64(len(text))
	}
	source.Flush()
	return events
}

// expected are the identities of the events that were sent.
func (s *scene) expected() map[string]bool {
	ids := map[string]bool{}
	last := s.sent[len(s.sent)-1]
	for _, e := range s.events(last.Log) { // the parts are in the order of the log
		if e.Kind.Quiet || e.Origin.Line >= last.First+last.Count {
			continue
		}
		id := fmt.Sprintf("%s offset=%d", e.Kind.Name, e.Origin.Offset)
		if part, ok := e.Int(parsers.Part); ok {
			id += fmt.Sprintf(" part=%d", part)
		}
		for _, cluster := range s.clusters() {
			ids[cluster+" "+id] = true
		}
	}
	return ids
}

var field = regexp.MustCompile(` (event|offset|part|cluster|checkpoint_id|job_id|trigger_time)=(\S+)`)

// identities counts lines of events by their identity.
func identities(lines []string) map[string]int {
	ids := map[string]int{}
	for _, line := range lines {
		f := map[string]string{}
		for _, m := range field.FindAllStringSubmatch(" "+line, -1) {
			if f[m[1]] == "" {
				f[m[1]] = m[2]
			}
		}
		id := f["cluster"] + " " + f["event"]
		switch {
		case f["event"] == "checkpoint_failure_summary":
			id += " " + f["job_id"] + " " + f["checkpoint_id"] + " " + f["trigger_time"]
		case f["part"] != "":
			id += " offset=" + f["offset"] + " part=" + f["part"]
		default:
			id += " offset=" + f["offset"]
		}
		ids[id]++
	}
	return ids
}

// deadLetters returns the entries in the outputs' dead-letter files.
func (s *scene) deadLetters() (lines []string) {
	for _, o := range s.outputs {
		content, _ := os.ReadFile(o["dead_letter_path"])
		for line := range bytes.Lines(content) {
			var letter struct{ Line string }
			s.must(json.Unmarshal(line, &letter))
			if letter.Line != "" {
				lines = append(lines, letter.Line)
			}
		}
	}
	return lines
}

// lines returns what Loki has.
func (s *scene) lines() (all []string) {
	if s.real == nil {
		for _, e := range s.store.Entries() {
			all = append(all, e.Line)
		}
		return all
	}
	const most = 5000 // of one query
	for _, cluster := range s.clusters() {
		streams, err := s.real.Stored(s.t.Context(), fmt.Sprintf("{cluster=%q}", cluster), time.Now().Add(-24*time.Hour), time.Now().Add(12*time.Hour), most)
		s.must(err)
		for _, stream := range streams {
			for _, e := range stream.Entries {
				all = append(all, e.Line)
			}
		}
	}
	return all
}

func (s *scene) isThere() bool {
	got := identities(slices.Concat(s.lines(), s.deadLetters()))
	for id := range s.expected() {
		if got[id] == 0 {
			return false
		}
	}
	return true
}

// count compares what was sent with what Loki has, and the dead-letter file. The agent's own
// events count once each, too; which of them are due depends on how far the log goes.
func (s *scene) count() (sent, delivered, dead int, twice, lost []string) {
	want, got, letters := s.expected(), identities(s.lines()), identities(s.deadLetters())
	for id := range want {
		switch {
		case got[id] > 0:
			delivered++
		case letters[id] > 0:
			dead++
		default:
			lost = append(lost, id)
		}
	}
	for id, n := range got {
		if n > 1 {
			twice = append(twice, id)
		}
		if !want[id] && !strings.Contains(id, " checkpoint_failure_summary ") {
			s.t.Errorf("was not sent: %s", id)
		}
	}
	slices.Sort(lost)
	slices.Sort(twice)
	return len(want), delivered, dead, twice, lost
}
