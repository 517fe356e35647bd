package enrich

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers"
)

const (
	jobA = "773447a9ef79a98f17c218e138dbb0b9"
	jobB = "fef61425e149c9b56545204c60d72fcc"
)

// lines are lines of one log, told to a state.
type lines struct {
	t     *testing.T
	state *State
	at    time.Time
	pos   int64
}

// read reads lines "LEVEL class - message" of a log, each a second after the one before.
func (l *lines) read(file string, texts ...string) (events []*parsers.Event) {
	l.t.Helper()
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	if err != nil {
		l.t.Fatal(err)
	}
	pass := l.state.Begin(Teller{ID: "out", SumStalls: true, Emit: func(e *parsers.Event, _ bool) { events = append(events, e.Clone()) }})
	defer pass.Abandon()
	log := pass.Log("prod", file, "")
	source := parser.NewSource(log.Event)
	source.Lesson = log.Lesson
	for _, text := range texts {
		l.at = l.at.Add(time.Second)
		line := l.at.UTC().Format("2006-01-02 15:04:05,000 ") + text
		log.Line(l.pos, []byte(line), l.at)
		source.Record(parsers.Origin{Offset: l.pos}, []byte(line))
		l.pos += int64(len(line)) + 1
	}
	source.Flush()
	if err := pass.End(""); err != nil {
		l.t.Fatal(err)
	}
	return events
}

func newLines(t *testing.T, s *State) *lines {
	return &lines{t: t, state: s, at: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
}

func openState(t *testing.T, dir string) (s *State, isIntact bool, notes []string) {
	t.Helper()
	s, isIntact, err := OpenState(dir, 0, func(note string) { notes = append(notes, note) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, isIntact, notes
}

const (
	executionGraph = "INFO  org.apache.flink.runtime.executiongraph.ExecutionGraph [] - "
	coordinator    = "INFO  org.apache.flink.runtime.checkpoint.CheckpointCoordinator [] - "
	attemptID      = "350cc82262a03a1b3af74d0256088d70"
)

var (
	named   = executionGraph + "Join (2/4) (" + attemptID + ") switched from SCHEDULED to DEPLOYING."
	decline = coordinator + "Decline checkpoint 7 by task " + attemptID + " of job " + jobA + " at tm-1 @ host-1 (dataPort=1)."
)

// TestState_restart: what was read before a restart names the task after it.
func TestState_restart(t *testing.T) {
	dir := t.TempDir()
	first, isIntact, _ := openState(t, dir)
	if isIntact {
		t.Error("a new state knows all marks")
	}
	newLines(t, first).read("/log/jobmanager.log", named)
	if _, _, err := OpenState(dir, 0, nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second process: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, isIntact, notes := openState(t, dir)
	if !isIntact || len(notes) > 0 {
		t.Errorf("after a restart: %v", notes)
	}
	l := newLines(t, second)
	l.at = l.at.Add(time.Minute)
	events := l.read("/log/jobmanager.log", decline)
	if len(events) != 1 || value(events[0], parsers.TaskName) != "Join" || value(events[0], parsers.SubtaskIndex) != "1" {
		t.Errorf("got %v", describe(events))
	}
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f.Name(), info.Mode(), err)
		}
	}
}

func describe(events []*parsers.Event) (all []string) {
	for _, e := range events {
		all = append(all, string(e.AppendLogfmt(nil)))
	}
	return all
}

// TestState_damaged: a file that is torn, foreign or of a newer format is set aside, and
// what can be read of it is kept.
func TestState_damaged(t *testing.T) {
	dir := t.TempDir()
	s, _, _ := openState(t, dir)
	l := newLines(t, s)
	l.read("/log/jobmanager.log", named)
	l.read("/log/jobmanager.log", executionGraph+"Join (3/4) ("+strings.Repeat("a", 32)+") switched from SCHEDULED to DEPLOYING.")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, storeName))
	if err != nil {
		t.Fatal(err)
	}
	newer := append([]byte(nil), whole...)
	newer[len(storeMagic)-2]++
	flipped := append([]byte(nil), whole...)
	flipped[len(whole)-10] ^= 1
	for _, c := range []struct {
		name, note string
		content    []byte
		attempts   int
	}{
		{"torn", "torn", whole[:len(whole)-5], 1},
		{"torn in a frame's head", "torn", append(append([]byte(nil), whole...), 0, 0), 2},
		{"a bit flipped", "torn", flipped, 1},
		{"newer", "format 2", newer, 0},
		{"foreign", "no file of a state", []byte("#!/bin/sh\nexit 0\n"), 0},
		{"empty", "no file of a state", nil, 0},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, storeName), c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		s, isIntact, notes := openState(t, dir)
		if isIntact || len(notes) != 1 || !strings.Contains(notes[0], c.note) || !strings.Contains(notes[0], storeName+".bad") {
			t.Errorf("%s: %q", c.name, notes)
		}
		attempts := 0
		for key := range s.Each {
			if strings.HasPrefix(key, "attempt/") {
				attempts++
			}
		}
		if attempts != c.attempts {
			t.Errorf("%s: %d attempts, want %d", c.name, attempts, c.attempts)
		}
		if bad, err := os.ReadFile(filepath.Join(dir, storeName+".bad")); err != nil || string(bad) != string(c.content) {
			t.Errorf("%s: what is set aside differs: %v", c.name, err)
		}
		if _, isIntact, notes := openState(t, copyDir(t, dir)); !isIntact || len(notes) > 0 {
			t.Errorf("%s: the next start: %v", c.name, notes)
		}
	}
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestState_bounded: a million attempts of 300 jobs stay within the bound, in memory and
// on disk; the last 10,000 are known.
func TestState_bounded(t *testing.T) {
	if testing.Short() || isRace {
		t.Skip("takes some seconds, and measures memory")
	}
	dir := t.TempDir()
	s, _, _ := openState(t, dir)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	l := newLines(t, s)
	parser, _ := parsers.New(parsers.Options{Location: time.UTC})
	const attempts, jobs, chunk = 1_000_000, 300, 1000
	id := func(i int) string { return fmt.Sprintf("%032x", i) }
	for i := 0; i < attempts; i += chunk {
		pass := s.Begin(Teller{ID: "out", Emit: func(*parsers.Event, bool) {}})
		log := pass.Log("prod", "/log/jobmanager.log", "")
		source := parser.NewSource(log.Event)
		for k := i; k < i+chunk; k++ {
			line := fmt.Sprintf("2026-11-29 12:00:00,000 "+executionGraph+"Source: Orders of customer %d -> Map -> Filter (%d/4) (%s) switched from SCHEDULED to DEPLOYING.", k%jobs, k%4+1, id(k))
			source.Record(parsers.Origin{Offset: -1}, []byte(line))
			if k%10 == 0 {
				line = fmt.Sprintf("2026-11-29 12:00:00,001 "+coordinator+"Triggering checkpoint %d (type=CHECKPOINT) @ 1795959970289 for job %s.", k/jobs+1, id(k%jobs))
				source.Record(parsers.Origin{Offset: -1}, []byte(line))
			}
		}
		source.Flush()
		if err := pass.End(""); err != nil {
			t.Fatal(err)
		}
	}
	grown := int64(heap()) - int64(before)
	info, err := os.Stat(filepath.Join(dir, storeName))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d facts, %d evicted, %d MB of memory, %d MB on disk", len(s.facts), s.Evicted(), grown>>20, info.Size()>>20)
	if grown > MaxStateBytes || s.bytes > MaxStateBytes || s.Evicted() == 0 {
		t.Errorf("%d bytes of memory, %d by its own count, %d evicted", grown, s.bytes, s.Evicted())
	}
	if info.Size() > 3*MaxStateBytes {
		t.Errorf("%d bytes on disk", info.Size())
	}
	for _, k := range []int{attempts - 1, attempts - 10_000} {
		events := l.read("/log/of-another-jobmanager.log", strings.ReplaceAll(decline, attemptID, id(k)))
		if len(events) != 1 || value(events[0], parsers.TaskName) == "" {
			t.Errorf("attempt %d is forgotten", k)
		}
	}
	runtime.KeepAlive(s)
}
