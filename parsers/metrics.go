package parsers

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"flink-loki/parsers/internal/ascii"
)

// metricSet says which metrics of a report become events. It does not change once made.
type metricSet struct {
	exact map[string][]wantedMetric // by the last part of the name
	globs []glob
	scope map[string]MetricScope // of the metrics in the tables
}

// wantedMetric is a metric that a metricSet has by its name.
type wantedMetric struct {
	name string // with its groups, without the statistic
	stat string // statistic of a histogram; empty for any other metric
	text []byte // what the field metric gets: name, or name and statistic

	scope MetricScope
	// known metrics are Flink's own: their names alone say enough where the scope is in a
	// format of the user's.
	known bool
	// dotted metrics were there before Flink 1.13: names in their scope can have dots.
	dotted bool
}

// newMetricSet returns the metrics that the patterns name: a metric's name with its
// groups, such as "numRestarts" or "KafkaConsumer.records-lag-max", or one with "*" for
// any text in it, dots included. A statistic of a histogram (count, min, max, mean,
// stddev, p50 to p999) is named like a metric below it: "mailboxLatencyMs.p99". With "+"
// before each pattern they are added to [DefaultMetrics]; without patterns the set is
// DefaultMetrics.
//
// Up to Flink 1.12 a name in a scope keeps its dots, so that a scope can't always be told
// from the metric behind it. DefaultMetrics are read all the same, without the names that
// are not certain; other metrics only where no job, task or operator has a dot.
func newMetricSet(patterns []string) (metricSet, error) {
	s := metricSet{exact: map[string][]wantedMetric{}, scope: map[string]MetricScope{}}
	byName := map[string]Metric{}
	for _, m := range DefaultMetrics {
		byName[m.Name] = m
		s.scope[m.Name] = m.Scope
	}
	for _, name := range taskMetrics {
		s.scope[name] = TaskScope
	}
	added := 0
	for _, pattern := range patterns {
		name, plus := strings.CutPrefix(pattern, "+")
		if plus {
			added++
		}
		m, known := byName[name]
		switch {
		case name == "" || strings.TrimSpace(name) != name || strings.HasPrefix(name, ".") || strings.HasSuffix(name, "."):
			return metricSet{}, fmt.Errorf("%q names no metric: give names such as numRestarts, * standing for any text", pattern)
		case strings.Contains(name, "*"):
			s.globs = append(s.globs, bytes.Split([]byte(name), []byte("*")))
		case known:
			s.add(m)
		default:
			s.addUnknown(name)
		}
	}
	if added != 0 && added != len(patterns) {
		return metricSet{}, fmt.Errorf(`of the metrics %q only some have a "+": with it on all they are added to the default ones, with it on none they take their place`, patterns)
	}
	if added == len(patterns) { // none is the default
		for _, m := range DefaultMetrics {
			s.add(m)
		}
	}
	return s, nil
}

// CheckMetrics says what in [Options.Metrics] can't be used.
func CheckMetrics(patterns []string) error {
	_, err := newMetricSet(patterns)
	return err
}

func (s *metricSet) add(m Metric) {
	s.addWanted(wantedMetric{name: m.Name, text: []byte(m.Name), scope: m.Scope, known: true, dotted: m.hadDots()})
}

// addUnknown adds a metric that is not in DefaultMetrics.
func (s *metricSet) addUnknown(name string) {
	s.addWanted(wantedMetric{name: name, text: []byte(name), scope: s.scopeOf(name)})
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		histogram := name[:dot]
		s.addWanted(wantedMetric{name: histogram, stat: name[dot+1:], text: []byte(name), scope: s.scopeOf(histogram)})
	}
}

func (s *metricSet) addWanted(w wantedMetric) {
	last := w.name[strings.LastIndexByte(w.name, '.')+1:]
	s.exact[last] = append(s.exact[last], w)
}

// scopeOf returns the scope of a metric by its name, anyScope where that does not tell.
func (s *metricSet) scopeOf(name string) MetricScope {
	scope := s.scope[name]
	for _, group := range taskGroups {
		if strings.HasPrefix(name, group) {
			scope = TaskScope
		}
	}
	return scope
}

// hadDots reports whether Flink had the metric before 1.13.
func (m *Metric) hadDots() bool {
	first, _, _ := strings.Cut(m.Versions, "-")
	minor, isOne := strings.CutPrefix(first, "1.")
	n, err := strconv.Atoi(minor)
	return isOne && err == nil && n < 13
}

// match fills the event with the name and the scope of a metric, and reports whether it
// is in the set. The identifier is what stands before the value; wanted are the set's
// metrics by the last part of its name; stat is the statistic, nil for a metric that is
// no histogram. buf is room for a name that has to be put together.
func (s *metricSet) match(id []byte, wanted []wantedMetric, stat []byte, e *Event, buf []byte) bool {
	for i := range wanted {
		w := &wanted[i]
		if w.stat != string(stat) {
			continue
		}
		e.Reset()
		if scope, ok := cutName(id, w.name); ok && w.fillScope(scope, e) {
			e.SetText(MetricName, w.text)
			return true
		}
	}
	if len(s.globs) == 0 {
		return false
	}
	e.Reset()
	name := cutScope(id, e)
	if name == nil {
		return false
	}
	full := name
	if len(stat) > 0 {
		full = append(append(append(buf[:0], name...), '.'), stat...)
	}
	if !slices.ContainsFunc(s.globs, func(g glob) bool { return g.match(full) }) {
		return false
	}
	if e.Has(SubtaskIndex) && s.scopeOf(string(name)) == TaskScope {
		e.SetText(TaskName, e.Text(OperatorName))
		e.Drop(OperatorName)
	}
	e.SetText(MetricName, full)
	return true
}

// cutName cuts a metric's name off the end of its identifier.
func cutName(id []byte, name string) (scope []byte, ok bool) {
	n := len(id) - len(name) - 1
	if n < 1 || id[n] != '.' || string(id[n+1:]) != name {
		return nil, false
	}
	return id[:n], true
}

// glob is a pattern cut at its stars: two or more literals.
type glob [][]byte

func (g glob) match(name []byte) bool {
	name, ok := bytes.CutPrefix(name, g[0])
	if !ok {
		return false
	}
	for _, literal := range g[1 : len(g)-1] {
		if _, name, ok = bytes.Cut(name, literal); !ok {
			return false
		}
	}
	return bytes.HasSuffix(name, g[len(g)-1])
}

// Scopes, in the formats that Flink has where none is configured (ConfigConstants and
// MetricOptions, metrics.scope.…):
//
//	jm           <host>.jobmanager
//	jm-job       <host>.jobmanager.<job_name>
//	jm-operator  <host>.jobmanager.<job_name>.<operator_name>    since 1.18
//	tm           <host>.taskmanager.<tm_id>
//	tm-job       <host>.taskmanager.<tm_id>.<job_name>
//	task         <host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>
//	operator     <host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>
//
// Slf4jReporter.filterCharacters changes nothing. Since Flink 1.13 FrontMetricGroup has
// replaced each dot in a variable, a group or a name by "_" before, so that dots only
// stand between them. Up to 1.12 nothing was replaced: there the number of dots says
// whether any name has one.

var (
	jobManagerMark  = []byte(".jobmanager")
	taskManagerMark = []byte(".taskmanager")
)

// cutProcess cuts what names the process off the head of a scope or an identifier: its
// host, whether it is a TaskManager, and what follows. ok is false where neither mark is
// there, as in formats of the user's.
func cutProcess(s []byte) (host, rest []byte, isTaskManager, ok bool) {
	for from := 1; from < len(s); {
		i := bytes.IndexByte(s[from:], '.')
		if i < 0 {
			break
		}
		at := from + i
		for _, mark := range [...][]byte{taskManagerMark, jobManagerMark} {
			rest, found := bytes.CutPrefix(s[at:], mark)
			if found && (len(rest) == 0 || rest[0] == '.') {
				return s[:at], bytes.TrimPrefix(rest, []byte(".")), mark[1] == 't', true
			}
		}
		from = at + 1
	}
	return nil, nil, false, false
}

// hasScope reports whether a line starts with the scope of one of Flink's processes.
func hasScope(line []byte) bool {
	_, _, _, ok := cutProcess(line)
	return ok && bytes.IndexByte(line, '\t') < 0
}

// fillScope fills the event with what a scope tells. It reports whether the scope can be
// that of the metric.
func (w *wantedMetric) fillScope(scope []byte, e *Event) bool {
	host, rest, isTaskManager, ok := cutProcess(scope)
	if !ok {
		return true // a format of the user's
	}
	switch w.scope {
	case JobScope:
		if isTaskManager || len(rest) == 0 {
			return false
		}
		if bytes.IndexByte(rest, '.') >= 0 && (!w.dotted || hasMark(rest)) {
			return w.known
		}
		e.SetText(JobName, rest)
	case TaskScope, OperatorScope:
		names, index, ok := cutIndex(rest)
		if !isTaskManager || !ok {
			return false
		}
		tm, job, name, ok := cutNames(names)
		switch {
		case ok:
			w.setName(e, job, name)
		case w.dotted && !hasMark(rest):
			tm, _ = cutResourceID(names)
		default:
			return w.known
		}
		e.SetInt(SubtaskIndex, index)
		e.SetText(TMID, tm)
	default:
		if !fillAnyScope(rest, isTaskManager, strings.HasPrefix(w.name, "coordinator."), e) {
			return false
		}
	}
	e.SetText(Host, host)
	return true
}

// hasMark reports whether what follows a mark has another one in it, so that it is not
// certain which of them is Flink's.
func hasMark(rest []byte) bool {
	_, _, _, ok := cutProcess(rest)
	return ok
}

func (w *wantedMetric) setName(e *Event, job, name []byte) {
	e.SetText(JobName, job)
	if w.scope == TaskScope {
		e.SetText(TaskName, name)
	} else {
		e.SetText(OperatorName, name)
	}
}

// fillAnyScope reads a scope whose kind is told by the number of its parts.
func fillAnyScope(rest []byte, isTaskManager, isCoordinator bool, e *Event) bool {
	if !isTaskManager {
		job, operator, two := bytes.Cut(rest, []byte("."))
		if two && !(isCoordinator && isPart(operator)) || isProcessGroup(job) {
			return false
		}
		e.SetText(JobName, job)
		e.SetText(OperatorName, operator)
		return true
	}
	if names, index, ok := cutIndex(rest); ok {
		if tm, job, name, ok := cutNames(names); ok {
			e.SetText(TMID, tm)
			e.SetText(JobName, job)
			e.SetText(OperatorName, name)
			e.SetInt(SubtaskIndex, index)
			return true
		}
	}
	tm, job := cutResourceID(rest)
	if tm == nil {
		tm, job, _ = bytes.Cut(rest, []byte("."))
	}
	if len(tm) == 0 || bytes.IndexByte(job, '.') >= 0 || isProcessGroup(job) {
		return false
	}
	e.SetText(TMID, tm)
	e.SetText(JobName, job)
	return true
}

// cutScope reads the scope at the head of an identifier and returns the metric's name
// behind it, nil where it can't be told. What stands for a task or an operator becomes
// the operator's name.
func cutScope(id []byte, e *Event) (name []byte) {
	host, rest, isTaskManager, ok := cutProcess(id)
	if !ok {
		return nil
	}
	e.SetText(Host, host)
	if isTaskManager {
		tm, behind := cutResourceID(rest)
		if tm == nil {
			tm, behind, _ = bytes.Cut(rest, []byte("."))
		}
		if len(tm) == 0 {
			return nil
		}
		e.SetText(TMID, tm)
		rest = behind
	}
	first, behind, more := bytes.Cut(rest, []byte("."))
	if isTaskManager {
		operator, behind, _ := bytes.Cut(behind, []byte("."))
		digits, metric, _ := bytes.Cut(behind, []byte("."))
		if index, ok := ascii.Int(digits); ok && len(first) > 0 && len(operator) > 0 && len(metric) > 0 {
			e.SetText(JobName, first)
			e.SetText(OperatorName, operator)
			e.SetInt(SubtaskIndex, index)
			return metric
		}
	}
	if len(rest) > 0 && (!more || isProcessGroup(first)) {
		return rest
	}
	if isTaskManager || len(first) == 0 || len(behind) == 0 {
		return nil
	}
	if isPart(behind) {
		e.SetText(JobName, first)
		return behind
	}
	if operator, metric, _ := bytes.Cut(behind, []byte(".")); bytes.HasPrefix(metric, []byte("coordinator.")) {
		e.SetText(JobName, first)
		e.SetText(OperatorName, operator)
		return metric
	}
	return nil
}

// isProcessGroup reports whether a part can be one of the groups that Flink has for a
// process itself (MetricUtils, SystemResourcesMetricsInitializer).
func isProcessGroup(part []byte) bool { return string(part) == "Status" || string(part) == "System" }

// isPart reports whether a text is one part of an identifier.
func isPart(s []byte) bool { return len(s) > 0 && bytes.IndexByte(s, '.') < 0 }

// cutIndex cuts a subtask's index off the end of a scope.
func cutIndex(s []byte) (names []byte, index int64, ok bool) {
	dot := bytes.LastIndexByte(s, '.')
	if dot < 0 {
		return nil, 0, false
	}
	index, ok = ascii.Int(s[dot+1:])
	return s[:dot], index, ok
}

// cutNames splits <tm_id>.<job_name>.<task_name or operator_name>. ok is false where the
// names have dots, so that it is not certain where one ends.
func cutNames(s []byte) (tm, job, name []byte, ok bool) {
	tm, rest := cutResourceID(s)
	if job, name, ok = bytes.Cut(rest, []byte(".")); ok && len(job) > 0 && isPart(name) {
		return tm, job, name, true
	}
	tm, rest, _ = bytes.Cut(s, []byte("."))
	job, name, _ = bytes.Cut(rest, []byte("."))
	return tm, job, name, len(tm) > 0 && len(job) > 0 && isPart(name)
}

// cutResourceID cuts a TaskManager's id off that shows by its form where it ends: an
// AbstractID, a YARN container, or since Flink 1.12 <address>:<port>-<six digits of an
// AbstractID> (TaskManagerRunner), whose address can have dots.
func cutResourceID(s []byte) (tm, rest []byte) {
	n := scanID(s)
	if n == 0 && bytes.HasPrefix(s, []byte("container_")) {
		n = ascii.Span(s, func(c byte) bool { return c != '.' })
	}
	if colon := bytes.IndexByte(s, ':'); n == 0 && colon > 0 && isHost(s[:colon]) {
		digits := ascii.Span(s[colon+1:], ascii.IsDigit)
		end := colon + 1 + digits
		if digits > 0 && len(s) >= end+7 && s[end] == '-' && ascii.Span(s[end+1:end+7], ascii.IsHex) == 6 {
			n = end + 7
		}
	}
	if n == 0 || n < len(s) && s[n] != '.' {
		return nil, nil
	}
	return s[:n], bytes.TrimPrefix(s[n:], []byte("."))
}

// metricReport reads the lines of the reports that Slf4jReporter writes: one message of
// many lines, whose first is empty.
//
//	<blank>
//	=========================== Starting metrics report ===========================
//
//	-- Counters -------------------------------------------------------------------
//	tm-1_example.taskmanager.tm-1_example:34371-942a43.orders.Source: Orders.1.numBytesOut: 0
//
//	-- Gauges ---------------------------------------------------------------------
//	jm-1_example.jobmanager.orders.lastCheckpointDuration: 92
//
//	-- Meters ---------------------------------------------------------------------
//	jm-1_example.jobmanager.Status.JVM.GarbageCollector.All.TimeMsPerSecond: 2.6
//
//	-- Histograms -----------------------------------------------------------------
//	….mailboxLatencyMs: count=6, min=0, max=1, mean=0.2, stddev=0.4, p50=0.0, p75=0.25, p95=1.0, p98=1.0, p99=1.0, p999=1.0
//
//	=========================== Finished metrics report ===========================
//
// Since Flink 1.17 a section without metrics is left out; the dashes differ. The section
// says nothing that the value does not say.
type metricReport struct {
	set  *metricSet
	kind *Kind
	buf  []byte
}

// line reads one line of a report and hands an event to emit for each value in it that is
// wanted: one, or several for a histogram.
func (r *metricReport) line(line []byte, e *Event, emit func(*Event)) {
	id, value, ok := cutMetricValue(line)
	if !ok {
		return
	}
	wanted := r.set.exact[string(id[bytes.LastIndexByte(id, '.')+1:])]
	if wanted == nil && len(r.set.globs) == 0 {
		return
	}
	if !bytes.HasPrefix(value, []byte("count=")) {
		if n, ok := parseMetricValue(value); ok && r.set.match(id, wanted, nil, e, nil) {
			r.emit(n, e, emit)
		}
		return
	}
	for len(value) > 0 {
		var statistic []byte
		statistic, value, _ = bytes.Cut(value, []byte(", "))
		name, number, _ := bytes.Cut(statistic, []byte("="))
		n, ok := parseMetricValue(number)
		if !ok || len(name) == 0 || scanWord(name) < len(name) {
			continue
		}
		if cap(r.buf) < len(line) {
			r.buf = make([]byte, 0, 2*len(line))
		}
		if r.set.match(id, wanted, name, e, r.buf) {
			r.emit(n, e, emit)
		}
	}
}

func (r *metricReport) emit(value float64, e *Event, emit func(*Event)) {
	e.Kind = r.kind
	e.SetText(Component, metricsComponent)
	e.SetNumber(MetricValue, value)
	emit(e)
}

var metricsComponent = []byte(metrics)

// cutMetricValue splits a line at its last ": ". The names before it can have others.
func cutMetricValue(line []byte) (id, value []byte, ok bool) {
	line = ascii.TrimRight(line)
	for i := len(line) - 1; i > 0; i-- {
		if line[i] == ' ' && line[i-1] == ':' {
			return ascii.TrimLeft(line[:i-1]), line[i+1:], true
		}
	}
	return nil, nil, false
}

// parseMetricValue reads a number as Java prints it, or a boolean. A negative number is
// Flink's "not known"; that, NaN, Infinity and texts are no values.
func parseMetricValue(v []byte) (float64, bool) {
	switch string(v) {
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	if len(v) == 0 || !ascii.IsDigit(v[0]) {
		return 0, false
	}
	if n, ok := ascii.Int(v); ok {
		return float64(n), true
	}
	if ascii.Span(v, func(c byte) bool { return ascii.IsDigit(c) || c == '.' || c == 'E' || c == '-' }) < len(v) {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(v), 64)
	return n, err == nil
}
