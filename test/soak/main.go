// Command soak runs a real Fluent Bit with the plug-in for a long time, at a rate, with a
// Loki that fails every minute and a log that rotates. It prints what the agent takes, and
// at the end what was lost and what came twice.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"flink-loki/test/agent"
	"flink-loki/test/fakeloki"
)

const (
	plainLine = "%s INFO  org.apache.flink.runtime.taskexecutor.slot.TaskSlotTableImpl     [] - Activate slot %032x, which is a line that is no event.\n"
	eventHead = "%s INFO  org.apache.flink.runtime.checkpoint.CheckpointCoordinator    [] - "
	// eventEvery lines is an event.
	eventEvery = 100
	jobs       = 50
	rotateAt   = 64 << 20
)

func main() {
	duration := flag.Duration("duration", time.Hour, "how long to run")
	rate := flag.Int("rate", 5000, "lines a second")
	flag.Parse()
	if err := run(*duration, *rate); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(duration time.Duration, rate int) error {
	if !agent.Real() {
		return errors.New("set FLUENT_BIT to the path of a fluent-bit")
	}
	dir, err := os.MkdirTemp("", "soak-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	loki := fakeloki.New(fakeloki.Config{})
	server := httptest.NewServer(loki)
	defer server.Close()
	defer loki.Close()
	state := filepath.Join(dir, "state")
	a, err := agent.New(dir, agent.Options{
		"url": server.URL, "timezone": "UTC", "state_path": state, "labels": "cluster=soak", "timeout": "2s",
		"dead_letter_path": filepath.Join(dir, "dead.jsonl"), "metrics_listen": metricsAddress,
	})
	if err != nil {
		return err
	}
	if err := a.Start(); err != nil {
		return err
	}
	w := &writer{path: filepath.Join(dir, "jobmanager.log"), sent: map[string]bool{}}
	fmt.Println("minute   lines  events  stored  RSS MB  threads  files  goroutines  state KB  journal KB")
	started := time.Now()
	for second := 0; time.Since(started) < duration; second++ {
		switch second % 60 {
		case 20:
			loki.FailNext(1_000_000, []int{500, 429, 503}[second/60%3], nil, "a fault of the soak")
		case 30:
			loki.ClearFaults()
		case 45:
			loki.StoreButLoseReply(3)
		}
		if err := w.second(rate); err != nil {
			return err
		}
		if second%60 == 59 {
			fmt.Printf("%6d %8d %7d %7d  %s  %8d %11d\n", second/60+1, w.lines, len(w.sent), len(loki.Entries()), usage(a), size(filepath.Join(state, "state"))>>10, size(filepath.Join(state, "journal"))>>10)
		}
		time.Sleep(time.Until(started.Add(time.Duration(second+1) * time.Second)))
	}
	loki.ClearFaults()
	var lost, twice int
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		if lost, twice = w.compare(loki); lost == 0 {
			break
		}
	}
	fmt.Printf("sent %d events in %d lines: lost %d, twice %d\n", len(w.sent), w.lines, lost, twice)
	return a.Stop()
}

// writer writes a log.
type writer struct {
	path  string
	file  *os.File
	size  int
	lines int
	event int
	sent  map[string]bool // events, by job and checkpoint
}

// second writes the lines of a second.
func (w *writer) second(rate int) error {
	if w.file == nil || w.size > rotateAt {
		if w.file != nil {
			if err := w.file.Close(); err != nil {
				return err
			}
			if err := os.Rename(w.path, w.path+".1"); err != nil {
				return err
			}
		}
		var err error
		if w.file, err = os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return err
		}
		w.size = 0
	}
	var b strings.Builder
	for range rate {
		now := time.Now().UTC().Format("2006-01-02 15:04:05,000")
		if w.lines++; w.lines%eventEvery != 0 {
			fmt.Fprintf(&b, plainLine, now, w.lines)
			continue
		}
		w.event++
		job, id := fmt.Sprintf("%032x", w.event%jobs+1), w.event/jobs/2+1
		if w.event/jobs%2 == 0 {
			fmt.Fprintf(&b, eventHead+"Triggering checkpoint %d (type=CHECKPOINT) @ %d for job %s.\n", now, id, time.Now().UnixMilli(), job)
			w.sent[fmt.Sprintf("checkpoint_triggered %s %d", job, id)] = true
		} else {
			fmt.Fprintf(&b, eventHead+"Completed checkpoint %d for job %s (12345 bytes, checkpointDuration=17 ms, finalizationTime=1 ms).\n", now, id, job)
			w.sent[fmt.Sprintf("checkpoint_completed %s %d", job, id)] = true
		}
	}
	w.size += b.Len()
	_, err := w.file.WriteString(b.String())
	return err
}

var identity = regexp.MustCompile(` event=(\S+) .* job_id=(\S+) checkpoint_id=(\d+)`)

func (w *writer) compare(loki *fakeloki.Loki) (lost, twice int) {
	got := map[string]int{}
	for _, e := range loki.Entries() {
		if m := identity.FindStringSubmatch(e.Line); m != nil {
			got[m[1]+" "+m[2]+" "+m[3]]++
		}
	}
	for id := range w.sent {
		switch n := got[id]; {
		case n == 0:
			lost++
		case n > 1:
			twice++
		}
	}
	return lost, twice
}

// usage says what the agent's process takes: resident MB, threads, open files.
func usage(a agent.Agent) string {
	pid := a.(interface{ Pid() int }).Pid()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err.Error()
	}
	field := func(name string) (n int) {
		_, rest, _ := strings.Cut(string(status), name+":")
		_, _ = fmt.Sscan(rest, &n)
		return n
	}
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return fmt.Sprintf("%6d %8d %6d %11s", field("VmRSS")>>10, field("Threads"), len(files), goroutines())
}

// metricsAddress is where the agent tells its metrics.
const metricsAddress = "127.0.0.1:12021"

var goroutinesLine = regexp.MustCompile(`(?m)^flink_loki_goroutines\{[^}]*\} (\d+)$`)

// goroutines returns how many the plug-in has.
func goroutines() string {
	resp, err := http.Get("http://" + metricsAddress + "/metrics")
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if m := goroutinesLine.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return fmt.Sprint("none: ", err)
}

// size returns the sum of the sizes of a directory's files, in bytes.
func size(dir string) (n int64) {
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}
