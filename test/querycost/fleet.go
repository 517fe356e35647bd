package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logfmt/logfmt"

	"flink-loki/parsers"
	"flink-loki/plugin/enrich"
	"flink-loki/plugin/loki"
	"flink-loki/test/agent"
	"flink-loki/test/replay"
)

// The components whose logs there are.
const (
	jobManager  = "jobmanager"
	taskManager = "taskmanager"
	rocksDB     = "rocksdb"
)

// clusterLog is what a cluster logged: its lines, and the events in them.
type clusterLog struct {
	raw, events []entry
	last        time.Time
}

// entry is one line of Loki's.
type entry struct {
	labels map[string]string
	at     time.Time
	line   string
	file   string // component whose log it is from
	// metadata is what of it is structured metadata, where that is on.
	metadata map[string]string
}

// readLogs reads the logs of test/logs that are written at Flink's usual levels.
func readLogs() ([]clusterLog, error) {
	dirs, err := filepath.Glob("test/logs/*/*")
	if err != nil {
		return nil, err
	}
	tool, err := agent.Built("flink-loki")
	if err != nil {
		return nil, err
	}
	var logs []clusterLog
	for _, dir := range dirs {
		if strings.Contains(dir, "debug") {
			continue
		}
		log, err := readLog(tool, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		if log.last.IsZero() { // a layout that has its times elsewhere
			continue
		}
		logs = append(logs, log)
	}
	return logs, nil
}

func readLog(tool, dir string) (clusterLog, error) {
	names, err := filepath.Glob(dir + "/*.[lL][oO][gG]")
	if err != nil {
		return clusterLog{}, err
	}
	var log clusterLog
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return log, err
		}
		log.raw = append(log.raw, rawLines(component(name), string(text))...)
	}
	out, err := exec.Command(tool, append([]string{"parse", "--enrich", "--format", "logfmt", "--timezone", "UTC"}, names...)...).Output()
	if err != nil {
		return log, err
	}
	log.events = eventLines(string(out))
	for _, e := range log.raw {
		if e.at.After(log.last) {
			log.last = e.at
		}
	}
	return log, nil
}

// component tells a log by its file's name.
func component(name string) string {
	switch base := filepath.Base(name); {
	case strings.HasPrefix(base, jobManager):
		return jobManager
	case strings.HasPrefix(base, rocksDB):
		return rocksDB
	default:
		return taskManager
	}
}

// rawLines are the entries of a raw log. A line without a time has that of the line before.
func rawLines(component, text string) (entries []entry) {
	at := time.Time{}
	for line := range strings.Lines(text) {
		if t := replay.Last([]byte(line)); !t.IsZero() {
			at = t
		} else if len(line) > 26 {
			if t, err := time.Parse("2006/01/02-15:04:05.000000", line[:26]); err == nil {
				at = t
			}
		}
		if line = strings.TrimRight(line, "\r\n"); line != "" && !at.IsZero() {
			entries = append(entries, entry{labels: map[string]string{"raw": "true", "component": component}, at: at, line: line, file: component})
		}
	}
	return entries
}

var place = regexp.MustCompile(`^line=\d+ `)

// eventLines are the entries of the events that the plug-in sends by default.
func eventLines(text string) (entries []entry) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(place.ReplaceAllString(line, ""), "\n")
		fields := map[string]string{}
		d := logfmt.NewDecoder(strings.NewReader(line))
		for d.ScanRecord() {
			for d.ScanKeyval() {
				fields[string(d.Key())] = string(d.Value())
			}
		}
		at, err := time.Parse(time.RFC3339Nano, fields["time"])
		quiet := slices.ContainsFunc(parsers.Kinds, func(k parsers.Kind) bool { return k.Name == fields["event"] && k.Quiet })
		if err != nil || quiet {
			continue
		}
		labels := map[string]string{"component": fields["component"], "event": fields["event"], "level": fields["level"]}
		e := entry{labels: labels, at: at, line: line, metadata: metadata(fields)}
		if name := fields["filename"]; name != "" { // else the agent has made it
			e.file = component(name)
		}
		entries = append(entries, e)
	}
	return entries
}

// metadata returns what the plug-in sends as structured metadata where that is on.
func metadata(fields map[string]string) map[string]string {
	m := map[string]string{}
	for _, f := range loki.MetadataFields {
		if name := parsers.Fields[f].Name; fields[name] != "" {
			m[name] = fields[name]
		}
	}
	return m
}

// heartbeats are those of a host's agent within an hour that ends at a time.
func heartbeats(node string, end time.Time) (entries []entry) {
	labels := map[string]string{"component": "agent", "event": "agent_heartbeat", "level": "INFO"}
	for minute := range 60 {
		e := enrich.Heartbeat(end.Add(-time.Duration(minute)*time.Minute), "", enrich.Counts{Records: 1e7, Events: 1e5, Files: 3})
		e.SetText(parsers.Node, []byte(node))
		at, _ := e.Time(parsers.Time)
		entries = append(entries, entry{labels: labels, at: at, line: string(e.AppendLogfmt(nil)), metadata: map[string]string{"node": node}})
	}
	return entries
}

// nodes are the hosts of each cluster.
var nodes = []string{"jm-1", "tm-1", "tm-2"}

// fleet is what has been pushed.
type fleet struct {
	url                  string
	metadata             bool // structured metadata is on
	lines, events        int
	rawBytes, eventBytes int64
	files                map[string][]string // by kind of event, the components in whose logs it is
}

// push pushes an hour of a cluster's, which ends at a time: its log, and its agents'
// heartbeats.
func (f *fleet) push(ctx context.Context, log clusterLog, cluster string, end time.Time) error {
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][]any           `json:"values"`
	}
	streams := map[string]*stream{}
	var order []string
	add := func(e entry, by time.Duration) {
		key := fmt.Sprint(e.labels)
		if streams[key] == nil {
			labels := map[string]string{"cluster": cluster}
			for name, value := range e.labels {
				labels[name] = value
			}
			streams[key] = &stream{Stream: labels}
			order = append(order, key)
		}
		value := []any{strconv.FormatInt(e.at.Add(by).UnixNano(), 10), e.line}
		if f.metadata && len(e.metadata) > 0 {
			value = append(value, e.metadata)
		}
		streams[key].Values = append(streams[key].Values, value)
	}
	for _, node := range nodes {
		for _, e := range heartbeats(node, end) {
			add(e, 0)
			f.events++
			f.eventBytes += int64(len(e.line))
		}
	}
	by := end.Sub(log.last)
	for _, e := range log.raw {
		add(e, by)
		f.lines++
		f.rawBytes += int64(len(e.line))
	}
	for _, e := range log.events {
		add(e, by)
		f.events++
		f.eventBytes += int64(len(e.line))
		if kind := e.labels["event"]; e.file != "" && !slices.Contains(f.files[kind], e.file) {
			f.files[kind] = append(f.files[kind], e.file)
		}
	}
	for _, key := range order { // one stream a push: Loki answers for the last one only
		body, err := json.Marshal(map[string]any{"streams": []*stream{streams[key]}})
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/loki/api/v1/push", bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		if _, err := do(request); err != nil {
			return err
		}
	}
	return nil
}
