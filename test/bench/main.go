// Command bench measures what the plug-in costs a real Fluent Bit: CPU time of the whole
// agent on one log, for several outputs in turn, as ratios to reading the log and
// throwing it away. "make bench" runs it; FLUENT_BIT names the binary.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"flink-loki/parsers"
	"flink-loki/test/agent"
	"flink-loki/test/fakeloki"
	"flink-loki/test/replay"
)

func main() {
	size := flag.Int("mb", 100, "size of the log in MB")
	rounds := flag.Int("rounds", 3, "runs of each output")
	flag.Parse()
	if !agent.Real() {
		fmt.Println("Set FLUENT_BIT to a fluent-bit (5.1 or later) to measure the plug-in in a real agent.")
		return
	}
	for _, share := range []int{1000, 100} {
		if err := run(*size<<20, *rounds, share); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
}

// setup is one configuration of the agent behind its tail input.
type setup struct {
	name     string
	plugins  []string
	pipeline string // YAML of filters and outputs
}

// run measures on a log in which one line in share is an event.
func run(size, rounds, share int) error {
	dir, err := os.MkdirTemp("", "flink-loki-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "flink.log")
	lines, events, err := writeLog(log, size, share)
	if err != nil {
		return err
	}
	so, err := agent.Built("out_flink_loki.so")
	if err != nil {
		return err
	}
	getRecord := filepath.Join(dir, "getrecord.so")
	if out, err := exec.Command("go", "build", "-buildmode=c-shared", "-o", getRecord, "./test/bench/getrecord").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	loki := fakeloki.New(fakeloki.Config{Limits: &fakeloki.Limits{}})
	server := httptest.NewServer(loki)
	defer server.Close()
	address := server.Listener.Addr().String()
	host, port, _ := bytes.Cut([]byte(address), []byte(":"))
	setups := []setup{
		{"tail -> null", nil, "  outputs:\n    - {name: 'null', match: '*'}\n"},
		{
			"tail -> flink_loki", []string{so},
			fmt.Sprintf("  outputs:\n    - {name: flink_loki, match: '*', workers: 1, url: 'http://%s', timezone: UTC, retry_limit: no_limits}\n", address),
		},
		{
			"tail -> grep, parser -> loki", nil, fmt.Sprintf(`  filters:
    - {name: grep, match: '*', regex: 'log (Triggering|Completed|Decline|Checkpoint \d+ of job|late message|switched from)'}
    - {name: parser, match: '*', key_name: log, parser: flink, reserve_data: on}
  outputs:
    - {name: loki, match: '*', workers: 1, host: %s, port: %s, labels: 'job=flink', line_format: json}
`, host, port),
		},
		{"tail -> GetRecord (fluent-bit-go)", []string{getRecord}, "  outputs:\n    - {name: getrecord, match: '*', workers: 1}\n"},
	}
	fmt.Printf("\n%d MB, %d lines, %d events (%.1f %%)\n", size>>20, lines, events, 100*float64(events)/float64(lines))
	times := make([][]time.Duration, len(setups))
	ratios := make([][]float64, len(setups))
	for range rounds {
		for i, s := range setups {
			cpu, err := measure(dir, log, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			times[i] = append(times[i], cpu)
			ratios[i] = append(ratios[i], float64(cpu)/float64(times[0][len(times[0])-1]))
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "agent\tCPU s (median)\tratio (median)\tratios\t")
	for i, s := range setups {
		slices.Sort(times[i])
		slices.Sort(ratios[i])
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t\n", s.name, times[i][rounds/2].Seconds(), ratios[i][rounds/2], ratios[i])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	stored := 0
	for _, e := range loki.Entries() {
		if e.Labels.Get("component") != "" {
			stored++
		}
	}
	fmt.Printf("events that flink_loki stored: %d\n", stored)
	return nil
}

// measure runs the agent until it has read the log, and returns its CPU time.
func measure(dir, log string, s setup) (time.Duration, error) {
	config := filepath.Join(dir, "fluent-bit.yaml")
	var b bytes.Buffer
	b.WriteString("service: {flush: 1, log_level: error}\n")
	b.WriteString("parsers:\n  - {name: flink, format: regex, regex: '^(?<time>[^ ]+ [^ ]+) (?<level>[A-Z]+) +(?<logger>[^ ]+) .*?- (?<message>.*)$'}\n")
	if len(s.plugins) > 0 {
		fmt.Fprintf(&b, "plugins:\n  - %s\n", s.plugins[0])
	}
	fmt.Fprintf(&b, `pipeline:
  inputs:
    - {name: tail, path: %s, read_from_head: true, exit_on_eof: true, path_key: filename, offset_key: offset, buffer_max_size: 1M}
%s`, log, s.pipeline)
	if err := os.WriteFile(config, b.Bytes(), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.Command(os.Getenv("FLUENT_BIT"), "--config", config)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// writeLog writes a log of real lines, as a busy cluster at INFO has them: the lines of
// test/logs without event, over and over, and one event in share lines.
func writeLog(path string, size, share int) (lines, events int, err error) {
	var plain, eventful [][]byte
	files, err := filepath.Glob("test/logs/2.3.0/*/*manager*.log")
	if err != nil || len(files) == 0 {
		return 0, 0, fmt.Errorf("no logs: %w", err)
	}
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	if err != nil {
		return 0, 0, err
	}
	for _, name := range files {
		log, err := os.ReadFile(name)
		if err != nil {
			return 0, 0, err
		}
		log = replay.Shift(log, time.Since(replay.Last(log)).Truncate(time.Millisecond))
		for line := range bytes.Lines(log) {
			line = bytes.Clone(line)
			isEvent, isPlain := false, true // plain: neither an event, one that is sent on demand included, nor a lesson
			source := parser.NewSource(func(e *parsers.Event) { isEvent, isPlain = !e.Kind.Quiet, false })
			source.Lesson = func(*parsers.Event) { isPlain = false }
			source.Record(parsers.Origin{}, bytes.TrimSuffix(line, []byte("\n")))
			source.Flush()
			switch {
			case isEvent:
				eventful = append(eventful, line)
			case isPlain:
				plain = append(plain, line)
			}
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	w := bufio.NewWriterSize(file, 1<<20)
	for written := 0; written < size; lines++ {
		line := plain[lines%len(plain)]
		if lines%share == 0 {
			line = eventful[events%len(eventful)]
			events++
		}
		n, err := w.Write(line)
		if err != nil {
			return 0, 0, err
		}
		written += n
	}
	return lines, events, w.Flush()
}
