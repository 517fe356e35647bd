package ruletest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"flink-loki/parsers"
	"flink-loki/plugin/enrich"
	"flink-loki/plugin/loki"
)

// entry is an event as it is stored.
type entry struct {
	labels map[string]string
	event  *parsers.Event
	at     time.Time
}

// line is an event, or a line that only teaches, of one of the logs.
type line struct {
	input    *Input
	file     string
	event    *parsers.Event
	isLesson bool
	at       time.Time // never before the line above it
}

// entries reads the logs of a test: through the parser, in the order of their times
// through the enrichment, and leaves out what the plug-in does not send by default.
func (f *File) entries(t *Test) ([]entry, error) {
	parser, err := parsers.New(parsers.Options{Location: time.UTC})
	if err != nil {
		return nil, err
	}
	var lines []line
	for i := range t.InputLogs {
		in := &t.InputLogs[i]
		if in.Heartbeats != 0 {
			continue
		}
		logs, err := f.read(in, i)
		if err != nil {
			return nil, fmt.Errorf("input_logs, number %d: %w", i+1, err)
		}
		for _, name := range slices.Sorted(maps.Keys(logs)) {
			lines = append(lines, parse(parser, in, name, logs[name])...)
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })

	var entries []entry
	for node := range t.nodes() {
		entries = append(entries, t.enrich(slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.input.Node != node }))...)
	}
	entries = append(entries, t.heartbeats(t.start(entries))...)
	slices.SortStableFunc(entries, func(a, b entry) int { return a.at.Compare(b.at) })
	return entries, nil
}

// nodes yields the nodes of the test's logs. Each has an agent of its own, which knows what
// is logged there.
func (t *Test) nodes() iter.Seq[string] {
	return func(yield func(string) bool) {
		var seen []string
		for _, in := range t.InputLogs {
			if slices.Contains(seen, in.Node) {
				continue
			}
			if seen = append(seen, in.Node); !yield(in.Node) {
				return
			}
		}
	}
}

// enrich returns the entries that an agent makes of the lines that it reads.
func (t *Test) enrich(lines []line) (entries []entry) {
	current := 0
	emit := func(e *parsers.Event, isMade bool) {
		if e.Kind.Quiet {
			return
		}
		in := lines[current].input
		if isMade {
			in = t.inputOf(string(e.Text(parsers.Cluster)), in)
		}
		if in.Node != "" {
			e.SetText(parsers.Node, []byte(in.Node))
		}
		at, ok := e.Time(parsers.Time)
		if !ok {
			at = lines[current].at
		}
		entries = append(entries, entry{in.Labels, e.Clone(), at})
	}
	pass := enrich.NewState(0).Begin(enrich.Teller{Emit: emit, SumStalls: true, Complete: true})
	defer pass.Abandon()
	for i := range lines {
		current = i
		l := &lines[i]
		if log := pass.Log(l.input.Labels["cluster"], l.file, format(l.input.Labels)); l.isLesson {
			log.Lesson(l.event)
		} else {
			log.Event(l.event)
		}
	}
	pass.Finish()
	return entries
}

// heartbeats returns those of the test's agents, whose clock starts at a time.
func (t *Test) heartbeats(start time.Time) (entries []entry) {
	for i := range t.InputLogs {
		in := &t.InputLogs[i]
		for after := time.Duration(0); after < time.Duration(in.Heartbeats); after += time.Minute {
			at := start.Add(time.Duration(in.TimeOffset) + after)
			e := enrich.Heartbeat(at, in.Labels["cluster"], enrich.Counts{Uptime: after})
			e.SetText(parsers.Node, []byte(in.Node))
			entries = append(entries, entry{in.Labels, e, at})
		}
	}
	return entries
}

// inputOf returns the log of an agent that an event of a cluster, made of several lines,
// stands with.
func (t *Test) inputOf(cluster string, current *Input) *Input {
	if current.Labels["cluster"] == cluster {
		return current
	}
	for i := range t.InputLogs {
		if t.InputLogs[i].Labels["cluster"] == cluster && t.InputLogs[i].Node == current.Node {
			return &t.InputLogs[i]
		}
	}
	return current
}

// read returns the text of an input's logs by their names.
func (f *File) read(in *Input, number int) (map[string][]byte, error) {
	if in.Lines != "" {
		name := cmp.Or(in.Name, in.Component, fmt.Sprintf("input-%d", number+1))
		return map[string][]byte{name: []byte(in.Lines)}, nil
	}
	paths, err := f.glob(in.File)
	if err != nil {
		return nil, err
	}
	logs := map[string][]byte{}
	for _, path := range paths {
		text, err := readFile(path)
		if err != nil {
			return nil, err
		}
		name := path
		if len(paths) == 1 && in.Name != "" {
			name = in.Name
		}
		logs[name] = text
	}
	return logs, nil
}

func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return text, err
	}
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return io.ReadAll(r)
}

// parse returns the lines of a log that are events or teach.
func parse(parser *parsers.Parser, in *Input, name string, text []byte) (lines []line) {
	var newest time.Time
	take := func(isLesson bool) func(*parsers.Event) {
		return func(e *parsers.Event) {
			e = e.Clone()
			if at, ok := e.Time(parsers.Time); ok {
				at = at.Add(time.Duration(in.TimeOffset))
				e.SetTime(parsers.Time, at)
				if at.After(newest) {
					newest = at
				}
			}
			if cluster := in.Labels["cluster"]; cluster != "" {
				e.SetText(parsers.Cluster, []byte(cluster))
			}
			e.SetText(parsers.Filename, []byte(name))
			e.SetInt(parsers.Offset, e.Origin.Offset)
			lines = append(lines, line{in, name, e, isLesson, newest})
		}
	}
	source := parser.NewSource(take(false))
	source.Lesson = take(true)
	source.Known = &parsers.Event{}
	parsers.AddFileName(source.Known, []byte(name))
	var url []byte
	if in.URL != "" {
		url = []byte(in.URL)
	}
	offset := int64(0)
	for one := range bytes.Lines(text) {
		source.Record(parsers.Origin{Offset: offset, URL: url}, bytes.TrimRight(one, "\r\n"))
		offset += int64(len(one))
	}
	source.Flush()
	return lines
}

// encode returns the push requests for entries, each moved by the same time.
func encode(entries []entry, extra map[string]string, metadata bool, by time.Duration) [][]byte {
	batches := map[string]*loki.Batch{}
	for _, e := range entries {
		labels := model.LabelSet{}
		for _, set := range []map[string]string{e.labels, extra} {
			for name, value := range set {
				labels[model.LabelName(name)] = model.LabelValue(value)
			}
		}
		key := labels.String()
		if batches[key] == nil {
			keys := []parsers.Field{parsers.Component, parsers.EventName, parsers.Level}
			batches[key] = &loki.Batch{Placement: loki.Placement{Labels: labels, LabelKeys: keys, Metadata: metadata}}
		}
		batches[key].Add(e.event, e.at.Add(by))
	}
	var requests [][]byte
	for _, key := range slices.Sorted(maps.Keys(batches)) {
		requests = append(requests, batches[key].Encode()...)
	}
	return requests
}
