package parsers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers/layout"
)

// A log of a real cluster, in any layout and any wrapper, gives the same events: the
// tests here write the lines of real logs again in each shape.

// entry is one line of a log with the trace below it.
type entry struct {
	time                   time.Time
	level, logger, message string
	trace                  []string
}

const entryThread = "AsyncOperations-thread-1"

// readEntries reads a log in Flink's own layout.
func readEntries(t testing.TB, file string) []entry {
	t.Helper()
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clock := layout.NewClock(time.UTC, false)
	var entries []entry
	for text := range bytes.Lines(log) {
		text = bytes.TrimSuffix(text, []byte("\n"))
		line, ok := layout.Shipped(text)
		if !ok {
			if len(entries) > 0 && len(text) > 0 {
				last := &entries[len(entries)-1]
				last.trace = append(last.trace, string(text))
			}
			continue
		}
		at, ok := clock.Instant(line.Stamp)
		if !ok {
			t.Fatalf("no time: %s", text)
		}
		entries = append(entries, entry{at, string(line.Level), string(line.Logger), string(line.Message()), nil})
	}
	return entries
}

// shape writes an entry as lines.
type shape struct {
	name  string
	lines func(e entry) []string
	// precision is what the shape keeps of a time; 0 where it has none.
	precision time.Duration
	lost      []Field // what it does not keep
}

func pattern(name string, precision time.Duration, head func(e entry) string, lost ...Field) shape {
	return shape{name, func(e entry) []string { return append([]string{head(e) + e.message}, e.trace...) }, precision, lost}
}

// object is a JSON layout.
func object(name string, members func(e entry) []any) shape {
	return shape{name, func(e entry) []string {
		var b strings.Builder
		list := members(e)
		for i := 0; i < len(list); i += 2 {
			if value, err := json.Marshal(list[i+1]); err == nil && string(value) != "null" {
				fmt.Fprintf(&b, `,%q:%s`, list[i], value)
			}
		}
		return []string{"{" + b.String()[1:] + "}"}
	}, time.Millisecond, nil}
}

func (e entry) stamp(layout string) string {
	return strings.Replace(e.time.Format(strings.Replace(layout, ",", ".", 1)), ".", ",", strings.Count(layout, ","))
}

// stack is the trace as one text, nil for none.
func (e entry) stack() any {
	if e.trace == nil {
		return nil
	}
	return strings.Join(e.trace, "\n")
}

func shortLogger(logger string) string { return logger[strings.LastIndexByte(logger, '.')+1:] }

var shapes = []shape{
	pattern("log4j 1.2", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %-5s %-60s  - ", e.stamp("2006-01-02 15:04:05,000"), e.level, e.logger)
	}),
	pattern("log4j 2", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %-5s %-60s [] - ", e.stamp("2006-01-02 15:04:05,000"), e.level, e.logger)
	}),
	pattern("logback", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s [%s] %-5s %s  - ", e.stamp("2006-01-02 15:04:05.000"), entryThread, e.level, e.logger)
	}),
	pattern("logback without ms", time.Second, func(e entry) string {
		return fmt.Sprintf("%s %-5s %s  - ", e.stamp("2006-01-02 15:04:05"), e.level, e.logger)
	}),
	pattern("logback, packages shortened", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s [%s] %-5s %s  - ", e.stamp("2006-01-02 15:04:05.000"), entryThread, e.level, abbreviate(e.logger))
	}, Logger),
	pattern("thread after the level", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %-5s [%s] %s - ", e.stamp("2006-01-02 15:04:05,000"), e.level, "Source: a -> (b, c[1]) (1/2)#0", e.logger)
	}, TaskName, SubtaskIndex, Parallelism, TaskAttemptNum),
	pattern("thread without brackets", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %-5s %s %s - ", e.stamp("2006-01-02 15:04:05,000"), e.level, entryThread, e.logger)
	}),
	pattern("thread after the logger", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %-5s %s [%s] - ", e.stamp("2006-01-02 15:04:05,000"), e.level, e.logger, entryThread)
	}),
	pattern("level in brackets", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("[%s] [%s] [%s] %s: ", e.stamp("2006-01-02 15:04:05,000"), e.level, entryThread, e.logger)
	}),
	pattern("level first", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %s %s:1234 - ", e.level, e.stamp("2006-01-02T15:04:05,000"), e.logger)
	}),
	pattern("zone", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %-5s %s - ", e.time.In(time.FixedZone("", 2*3600)).Format("2006-01-02T15:04:05.000-0700"), e.level, e.logger)
	}),
	pattern("UTC", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s UTC %-5s %s - ", e.stamp("2006-01-02 15:04:05.000"), e.level, e.logger)
	}),
	pattern("Spark", time.Second, func(e entry) string {
		return fmt.Sprintf("%s %s %s: ", e.stamp("06/01/02 15:04:05"), e.level, shortLogger(e.logger))
	}, Logger),
	pattern("Spring", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %5s 1 --- [%15.15s] %-40s : ", e.stamp("2006-01-02 15:04:05.000"), e.level, "main", abbreviate(e.logger))
	}, Logger),
	pattern("bars", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s | %-5s | %s | %s | ", e.stamp("2006-01-02 15:04:05.000"), e.level, entryThread, e.logger)
	}),
	pattern("log4j's DATE", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %s %s - ", e.stamp("02 Jan 2006 15:04:05,000"), e.level, e.logger)
	}),
	pattern("milliseconds since 1970", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%d %s %s - ", e.time.UnixMilli(), e.level, e.logger)
	}),
	pattern("TTCC", 0, func(e entry) string {
		return fmt.Sprintf("%d [%s] %-5s %s [] - ", 4873, entryThread, e.level, e.logger)
	}),
	pattern("no date", 0, func(e entry) string {
		return fmt.Sprintf("%s [%s] %s %s - ", e.stamp("15:04:05,000"), entryThread, e.level, e.logger)
	}),
	pattern("no logger", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %-5s [%s] - ", e.stamp("2006-01-02 15:04:05,000"), e.level, entryThread)
	}, Logger, Component),
	pattern("MDC", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %-5s %-60s [%s] - ", e.stamp("2006-01-02 15:04:05,000"), e.level, e.logger, entryJob)
	}, JobID),
	pattern("MDC, all of it", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %-5s %-60s {flink-job-id=%s, user=x} - ", e.stamp("2006-01-02 15:04:05,000"), e.level, e.logger, entryJob)
	}, JobID),
	pattern("MDC before the logger", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("%s %-5s [%s] [%s] %s - ", e.stamp("2006-01-02 15:04:05,000"), e.level, entryThread, entryJob, e.logger)
	}, JobID),
	pattern("colours", time.Millisecond, func(e entry) string {
		return fmt.Sprintf("\x1b[2m%s\x1b[m \x1b[1;32m%-5s\x1b[m \x1b[36m%s\x1b[0;39m - \x1b[0m", e.stamp("2006-01-02 15:04:05,000"), e.level, e.logger)
	}),
	object("ECS", func(e entry) []any {
		return []any{"@timestamp", e.stamp("2006-01-02T15:04:05.000Z"), "ecs.version", "1.2.0", "log.level", e.level, "message", e.message,
			"process.thread.name", entryThread, "log.logger", e.logger, "error.stack_trace", e.stack()}
	}),
	object("ECS, nested", func(e entry) []any {
		return []any{"@timestamp", e.stamp("2006-01-02T15:04:05.000Z"), "log", map[string]any{"level": e.level, "logger": e.logger},
			"process", map[string]any{"thread": map[string]any{"name": entryThread}}, "message", e.message, "error", map[string]any{"stack_trace": e.stack()}}
	}),
	object("Logstash template", func(e entry) []any {
		return []any{"mdc", map[string]any{"flink-job-id": "none"}, "@version", 1, "source_host", "h", "message", e.message, "thread_name", entryThread,
			"@timestamp", e.stamp("2006-01-02T15:04:05.000+0000"), "level", e.level, "logger_name", e.logger,
			"exception", map[string]any{"stacktrace": e.stack()}}
	}),
	object("LogstashEncoder", func(e entry) []any {
		return []any{"@timestamp", e.time.In(time.FixedZone("", 3600)).Format("2006-01-02T15:04:05.000Z07:00"), "@version", "1", "message", e.message,
			"logger_name", e.logger, "thread_name", entryThread, "level", e.level, "level_value", 20000, "stack_trace", e.stack()}
	}),
	object("GELF", func(e entry) []any {
		level := map[string]int{"ERROR": 3, "WARN": 4, "INFO": 6, "DEBUG": 7, "TRACE": 7}[e.level]
		return []any{"version", "1.1", "host", "h", "short_message", e.message, "full_message", e.stack(),
			"timestamp", json.Number(fmt.Sprintf("%d.%03d", e.time.Unix(), e.time.UnixMilli()%1000)), "level", level, "_logger", e.logger, "_thread", entryThread}
	}),
	object("JsonLayout", func(e entry) []any {
		members := []any{"instant", map[string]any{"epochSecond": e.time.Unix(), "nanoOfSecond": e.time.Nanosecond()}, "thread", entryThread,
			"level", e.level, "loggerName", e.logger, "message", e.message, "endOfBatch", false, "loggerFqcn", "org.apache.logging.slf4j.Log4jLogger"}
		if thrown := thrown(e.trace); thrown != nil {
			members = append(members, "thrown", thrown)
		}
		return members
	}),
	object("Managed Flink", func(e entry) []any {
		return []any{"applicationARN", "arn", "locationInformation", "a.B.c(B.java:1)", "logger", e.logger, "message", e.message, "messageType", e.level,
			"threadName", entryThread, "throwableInformation", e.trace, "timestamp", e.time.UnixMilli()}
	}),
	object("pattern that writes JSON", func(e entry) []any {
		stack := ""
		if e.trace != nil {
			stack = " " + strings.Join(e.trace, "\n")
		}
		return []any{"timestamp", e.stamp("2006-01-02T15:04:05.000Z"), "level", e.level, "thread", entryThread, "logger", e.logger,
			"message", e.message, "exception", stack}
	}),
}

const entryJob = "a6996fd336a9e7633a23127bb2a5a8e1"

// thrown is what log4j 2's JsonLayout writes of an exception.
func thrown(trace []string) map[string]any {
	var chain []map[string]any
	for _, line := range trace {
		line, isCause := strings.CutPrefix(line, "Caused by: ")
		if strings.HasPrefix(line, "\t") || !isCause && len(chain) > 0 {
			continue
		}
		class, words, _ := strings.Cut(line, ": ")
		chain = append(chain, map[string]any{"commonElementCount": 0, "name": class, "message": words, "extendedStackTrace": []any{map[string]any{"class": "a.B"}}})
	}
	if len(chain) == 0 {
		return nil
	}
	for i := len(chain) - 1; i > 0; i-- {
		chain[i-1]["cause"] = chain[i]
	}
	return chain[0]
}

// wrapping puts something before each line.
type wrapping struct {
	name string
	wrap func(lines []string, at time.Time) []string
}

func each(f func(line string, at time.Time) string) func([]string, time.Time) []string {
	return func(lines []string, at time.Time) []string {
		for i := range lines {
			lines[i] = f(lines[i], at)
		}
		return lines
	}
}

// split cuts a line into parts of n bytes.
func split(line string, n int) []string {
	var parts []string
	for len(line) > n {
		parts, line = append(parts, line[:n]), line[n:]
	}
	return append(parts, line)
}

var wrappings = []wrapping{
	{"none", func(lines []string, _ time.Time) []string { return lines }},
	{"CRLF", each(func(line string, _ time.Time) string { return line + "\r" })},
	{"blanks", each(func(line string, _ time.Time) string {
		if strings.HasPrefix(line, "\t") {
			return line
		}
		return "  " + line
	})},
	{"CRI", each(func(line string, at time.Time) string {
		return at.Format("2006-01-02T15:04:05.000000000Z") + " stdout F " + line
	})},
	{"CRI in parts, stderr between", func(lines []string, at time.Time) []string {
		stamp := at.Format("2006-01-02T15:04:05.000000000Z")
		var out []string
		for _, line := range lines {
			parts := split(line, 100)
			for _, part := range parts[:len(parts)-1] {
				out = append(out, stamp+" stdout P "+part, stamp+" stderr F java: warning", stamp+" stderr F Caused by: a.B: c")
			}
			out = append(out, stamp+" stdout F "+parts[len(parts)-1])
		}
		return out
	}},
	{"Docker", each(func(line string, at time.Time) string {
		text, _ := json.Marshal(line + "\n")
		return fmt.Sprintf(`{"log":%s,"stream":"stdout","time":%q}`, text, at.Format(time.RFC3339Nano))
	})},
	{"Docker in parts", func(lines []string, at time.Time) []string {
		var out []string
		for _, line := range lines {
			for _, part := range split(strings.ToValidUTF8(line, "?")+"\n", 200) {
				text, _ := json.Marshal(part)
				out = append(out, fmt.Sprintf(`{"log":%s,"stream":"stdout","attrs":{"tag":"x"},"time":%q}`, text, at.Format(time.RFC3339Nano)))
			}
		}
		return out
	}},
	{"Compose", each(func(line string, _ time.Time) string { return "taskmanager-1  | " + line })},
	{"Compose, another between", func(lines []string, _ time.Time) []string {
		var out []string
		for _, line := range lines {
			out = append(out, "\x1b[36mtaskmanager-1  | \x1b[0m"+line, "\x1b[33mjobmanager-1   | \x1b[0mCaused by: a.B: c",
				"\x1b[33mdatabase-1     | \x1b[0m2024-08-28 14:13:15.900 UTC [27] LOG:  checkpoint starting: time")
		}
		return out
	}},
	{"kubectl --prefix", each(func(line string, _ time.Time) string { return "[pod/flink-taskmanager-1/main] " + line })},
	{"kubectl --timestamps", each(func(line string, at time.Time) string {
		return at.Format("2006-01-02T15:04:05.000000000Z") + " " + line
	})},
	{"kubectl --prefix --timestamps", each(func(line string, at time.Time) string {
		return "[pod/flink-taskmanager-1/main] " + at.Format("2006-01-02T15:04:05.000000000Z") + " " + line
	})},
	{"aws logs", each(func(line string, at time.Time) string {
		return at.Format("2006-01-02T15:04:05.000000-07:00") + " app/stream-1 " + line
	})},
	{"aws logs --format short", each(func(line string, at time.Time) string { return at.Format("2006-01-02T15:04:05") + " " + line })},
}

// TestShapes reads real logs in each layout and wrapper.
func TestShapes(t *testing.T) {
	for _, file := range []string{
		"1.9.3/alignment-limit/taskmanager-1.log", "1.13.6/expired-fail/jobmanager.log", "2.3.0/debug-mixed/jobmanager.log", "2.3.0/debug-mixed/taskmanager-2.log",
	} {
		entries := telling(t, readEntries(t, logsDir+"/"+file))
		want := shapedEvents(t, entries, shapes[1], wrappings[0])
		if len(want) < 20 {
			t.Fatalf("%s: %d events", file, len(want))
		}
		for _, s := range shapes {
			for _, w := range wrappings {
				if s.name == "TTCC" && w.name == "aws logs --format short" {
					continue // nothing tells whose the time is
				}
				t.Run(fmt.Sprintf("%s/%s/%s", file, s.name, w.name), func(t *testing.T) {
					got := shapedEvents(t, entries, s, w)
					faults := 0
					for i := range max(len(got), len(want)) {
						if i >= len(got) || i >= len(want) {
							t.Fatalf("%d events, want %d", len(got), len(want))
						}
						if fault := differ(got[i], want[i], s); fault != "" {
							t.Errorf("event %d: %s", i, fault)
							if faults++; faults == 3 {
								t.FailNow()
							}
						}
					}
				})
			}
		}
	}
}

// telling returns the first few entries of each kind of event, and those around them.
func telling(t *testing.T, entries []entry) []entry {
	t.Helper()
	const each = 3
	seen := map[string]int{}
	last := -1
	var kept []entry
	source := newParser(t).NewSource(func(e *Event) {
		if seen[e.Kind.Name]++; seen[e.Kind.Name] <= each && e.Origin.Line > last {
			kept = append(kept, entries[max(last+1, e.Origin.Line-1):e.Origin.Line+1]...)
			last = e.Origin.Line
		}
	})
	for i, e := range entries {
		for _, line := range shapes[1].lines(e) {
			source.Record(Origin{Line: i, Offset: -1}, []byte(line))
		}
	}
	source.Flush()
	return kept
}

// shapedEvents returns the events of a log in a shape.
func shapedEvents(t *testing.T, entries []entry, s shape, w wrapping) []map[Field]string {
	t.Helper()
	var events []map[Field]string
	source := newParser(t).NewSource(func(e *Event) {
		m := map[Field]string{}
		for f := range e.All {
			m[f] = string(e.AppendValue(nil, f))
		}
		events = append(events, m)
	})
	for _, e := range entries {
		for _, line := range w.wrap(s.lines(e), e.time.Add(time.Millisecond)) {
			source.Record(Origin{Offset: -1}, []byte(line))
		}
	}
	source.Flush()
	return events
}

// differ says how an event differs from what it should be.
func differ(got, want map[Field]string, s shape) string {
	for f := range Fields {
		f := Field(f)
		g, w := got[f], want[f]
		switch {
		case f == Thread || f == RecordTime || f == Container || f == Pod || slices.Contains(s.lost, f):
			continue
		case f == Part: // whether a trace is in the record of its header
			continue
		case f == Time && s.precision == 0:
			continue
		case f == Reason && slices.Contains(s.lost, Component):
			g, w = strings.TrimRight(g, "."), strings.TrimRight(w, ".") // two classes end the same sentence differently
		case f == Time && s.precision > 0:
			at, err := time.Parse(time.RFC3339Nano, w)
			if err != nil {
				return err.Error()
			}
			w = at.Truncate(s.precision).Format(time.RFC3339Nano)
		}
		if g != w {
			return fmt.Sprintf("%s: %s is %q, want %q", want[Message], Fields[f].Name, g, w)
		}
	}
	return ""
}
