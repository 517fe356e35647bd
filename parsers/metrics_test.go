package parsers

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// metricFields are what tells one value of a report from another.
var metricFields = []Field{MetricName, MetricValue, Part, Host, TMID, JobName, TaskName, OperatorName, SubtaskIndex}

func describeMetric(e *Event) string {
	var parts []string
	for _, f := range metricFields {
		if e.Has(f) {
			parts = append(parts, Fields[f].Name+"="+string(e.AppendValue(nil, f)))
		}
	}
	return strings.Join(parts, "|")
}

func newReport(t testing.TB, patterns ...string) *metricReport {
	t.Helper()
	set, err := newMetricSet(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return &metricReport{set: &set, kind: newParser(t).table.metric}
}

// read returns what a line of a report becomes.
func (r *metricReport) read(line string) []string {
	var all []string
	r.line([]byte(line), new(Event), func(e *Event) { all = append(all, describeMetric(e)) })
	return all
}

func metricReportLogs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(logsDir + "/*/metric-report/*manager*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs with metric reports: %v", err)
	}
	return files
}

// The scopes of Flink 1.13 and later, where names have no dots. The groups that are
// named as fields become them; "name" is a task or an operator.
var (
	metricLine   = regexp.MustCompile(`(?m)^([\w-]+)\.(job|task)manager\.(.*): ([^:\n]*)$`)
	inJobManager = regexp.MustCompile(`^(?:(?P<job_name>[^.]+)\.(?P<metric>[^.]+)|(?P<metric>Status\..*|[^.]+))$`)
	inTask       = regexp.MustCompile(`^(?P<tm_id>[^.]+)\.(?:(?P<job_name>[^.]+)\.(?P<name>[^.]+)\.(?P<subtask_index>\d+)\.(?P<metric>.*)|(?P<metric>Status\..*))$`)
	inHistogram  = regexp.MustCompile(`(\w+)=([^,]+)`)
	aNumber      = regexp.MustCompile(`^[0-9]+(\.[0-9]+(E-?[0-9]+)?)?$`)
	ofTask       = regexp.MustCompile(`TimeMsPerSecond$|^buffers|^Shuffle|^mailbox|^(max|accumulate|checkpoint)|^isBack|^initializationTime|^numFired|^num(Buffers|Bytes)[A-Za-z]*(Out|Local|Remote)(PerSecond)?$`)
	ofBoth       = regexp.MustCompile(`^num(Records|Bytes)(In|Out)(PerSecond)?$|Watermark$`)
)

// readReport reads the lines of reports in another way, and returns what each value
// should become.
func readReport(t *testing.T, log []byte, wanted func(metric string) bool) map[string]int {
	all := map[string]int{}
	for _, m := range metricLine.FindAllSubmatch(log, -1) {
		scope := inJobManager
		if string(m[2]) == "task" {
			scope = inTask
		}
		found := scope.FindSubmatch(m[3])
		if found == nil {
			if bytes.Contains(m[3], []byte("lastCheckpointExternalPath")) {
				continue
			}
			t.Fatalf("what is %s?", m[0])
		}
		fields := map[string]string{"host": string(m[1])}
		for i, name := range scope.SubexpNames() {
			if name != "" && len(found[i]) > 0 {
				fields[name] = string(found[i])
			}
		}
		if name, ok := fields["name"]; ok {
			delete(fields, "name")
			if metric := fields["metric"]; ofTask.MatchString(metric) && !ofBoth.MatchString(metric) {
				fields["task_name"] = name
			} else {
				fields["operator_name"] = name
			}
		}
		add := func(metric, value string) bool {
			value = strings.NewReplacer("true", "1", "false", "0").Replace(value)
			if !aNumber.MatchString(value) || !wanted(metric) {
				return false
			}
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			fields["metric"], fields["metric_value"] = metric, strconv.FormatFloat(n, 'f', -1, 64)
			var parts []string
			for _, f := range metricFields {
				if v, ok := fields[Fields[f].Name]; ok {
					parts = append(parts, Fields[f].Name+"="+v)
				}
			}
			all[strings.Join(parts, "|")]++
			return true
		}
		if metric := fields["metric"]; !bytes.HasPrefix(m[4], []byte("count=")) {
			add(metric, string(m[4]))
		} else {
			part := 0
			for _, stat := range inHistogram.FindAllSubmatch(m[4], -1) {
				if add(metric+"."+string(stat[1]), string(stat[2])) {
					part++
					fields["part"] = strconv.Itoa(part)
				}
			}
		}
	}
	return all
}

// TestMetricReports reads whole reports and compares with another reading of them: the
// default metrics, all, and some of histograms.
func TestMetricReports(t *testing.T) {
	isDefault := func(metric string) bool {
		return slices.ContainsFunc(DefaultMetrics, func(m Metric) bool { return m.Name == metric })
	}
	for _, test := range []struct {
		patterns []string
		wanted   func(metric string) bool
		lowest   int // number of events in a log
	}{
		{nil, isDefault, 39},
		{[]string{"*"}, func(string) bool { return true }, 120},
		{[]string{"+*mailbox*.p9*", "+numBytesOut"}, func(metric string) bool {
			return isDefault(metric) || strings.HasPrefix(metric, "mailbox") && strings.Contains(metric, ".p9") || metric == "numBytesOut"
		}, 39},
		{[]string{"*.*Count", "numRecordsInPerSecond", "mailboxLatencyMs.max"}, func(metric string) bool {
			return strings.Contains(metric, ".") && strings.HasSuffix(metric, "Count") || metric == "numRecordsInPerSecond" || metric == "mailboxLatencyMs.max"
		}, 10},
	} {
		for _, file := range metricReportLogs(t) {
			log, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := readReport(t, log, test.wanted)
			got := map[string]int{}
			p := newParser(t)
			if p.metrics, err = newMetricSet(test.patterns); err != nil {
				t.Fatal(err)
			}
			source := p.NewSource(func(e *Event) {
				if e.Kind.Name == "metric_reported" {
					got[describeMetric(e)]++
				}
			})
			lines, n := bytes.Split(log, []byte("\n")), 0
			for i, line := range lines {
				source.Record(Origin{Line: i + 1}, line)
			}
			source.Flush()
			for _, key := range slices.Sorted(maps.Keys(want)) {
				n += want[key]
				if got[key] != want[key] {
					t.Errorf("%s, %q: %d times, want %d: %s", file, test.patterns, got[key], want[key], key)
				}
			}
			for _, key := range slices.Sorted(maps.Keys(got)) {
				if want[key] == 0 {
					t.Errorf("%s, %q: too much: %s", file, test.patterns, key)
				}
			}
			if n < test.lowest {
				t.Errorf("%s, %q: only %d events", file, test.patterns, n)
			}
			t.Logf("%s: %d lines, %d events of the metrics %q", strings.TrimPrefix(file, logsDir+"/"), len(lines), n, test.patterns)
		}
	}
}

// TestDefaultMetrics compares the versions of the table with real reports: a version
// reports what the table says it has, and nothing that it has not.
func TestDefaultMetrics(t *testing.T) {
	inLogs := map[string]map[string]bool{} // version, metric
	for _, file := range metricReportLogs(t) {
		version := strings.Split(strings.TrimPrefix(file, logsDir+"/"), "/")[0]
		log, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if inLogs[version] == nil {
			inLogs[version] = map[string]bool{}
		}
		for _, m := range metricLine.FindAllSubmatch(log, -1) {
			for _, metric := range DefaultMetrics {
				if bytes.HasSuffix(m[3], []byte("."+metric.Name)) {
					inLogs[version][metric.Name] = true
				}
			}
		}
	}
	number := func(version string) int {
		var major, minor int
		_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
		return 100*major + minor
	}
	names := map[string]bool{}
	for _, m := range DefaultMetrics {
		if names[m.Name] || m.Scope == anyScope || m.Doc == "" {
			t.Errorf("%s: twice, or without a scope or words", m.Name)
		}
		names[m.Name] = true
		first, last, _ := strings.Cut(m.Versions, "-")
		if m.hadDots() != (number(first) < 113) {
			t.Errorf("%s of %s: hadDots is %v", m.Name, m.Versions, m.hadDots())
		}
		if m.Scope == OperatorScope {
			continue // the jobs of these logs have no Kafka source
		}
		for version, has := range inLogs {
			if want := number(first) <= number(version) && number(version) <= number(last); has[m.Name] != want {
				t.Errorf("%s is of %s; in the reports of %s: %v", m.Name, m.Versions, version, has[m.Name])
			}
		}
	}
	for _, name := range taskMetrics {
		if names[name] {
			t.Errorf("%s is in both tables", name)
		}
	}
}

func TestMetricLine(t *testing.T) {
	const (
		task = "task_name"
		op   = "operator_name"
	)
	// what is the event of the metric "m" in a scope, with the value 7
	what := func(metric string, fields ...string) string {
		return strings.Join(append([]string{"metric=" + metric, "metric_value=7"}, fields...), "|")
	}
	inTask := func(metric, host, tm, job, kind, name, index string) string {
		return what(metric, "host="+host, "tm_id="+tm, "job_name="+job, kind+"="+name, "subtask_index="+index)
	}
	for _, test := range []struct {
		patterns   []string
		line, want string
	}{
		// Names hold anything but dots: Flink 1.13 and later.
		{nil, "h.jobmanager.a: b.numRestarts: 7", what("numRestarts", "host=h", "job_name=a: b")},
		{nil, "h.jobmanager.numRestarts: 1.numRestarts: 7", what("numRestarts", "host=h", "job_name=numRestarts: 1")},
		{nil, "h.jobmanager.taskmanager.numRestarts: 7", what("numRestarts", "host=h", "job_name=taskmanager")},
		{nil, "h.jobmanager.jobmanager.numRestarts: 7", what("numRestarts", "host=h", "job_name=jobmanager")},
		{nil, "h.jobmanager.Status.numRestarts: 7", what("numRestarts", "host=h", "job_name=Status")},
		{nil, "jobmanager.jobmanager.uptime.uptime: 7", what("uptime", "host=jobmanager", "job_name=uptime")},
		{nil, "h.taskmanager.h:1-abcdef.5.6.7.isBackPressured: 7", inTask("isBackPressured", "h", "h:1-abcdef", "5", task, "6", "7")},
		{nil, "h.taskmanager.tm.jobmanager.taskmanager.0.isBackPressured: 7", inTask("isBackPressured", "h", "tm", "jobmanager", task, "taskmanager", "0")},
		{nil, "h.taskmanager.tm.Status.JVM.0.isBackPressured: 7", inTask("isBackPressured", "h", "tm", "Status", task, "JVM", "0")},
		{nil, "h.taskmanager.tm.j.Source: a -> (b, c: 3).0.isBackPressured: 7", inTask("isBackPressured", "h", "tm", "j", task, "Source: a -> (b, c: 3)", "0")},
		{nil, "h.taskmanager.tm. . .0.isBackPressured: 7", inTask("isBackPressured", "h", "tm", " ", task, " ", "0")},
		{nil, "h.taskmanager.tm.j.o.0.pendingRecords: 7", inTask("pendingRecords", "h", "tm", "j", op, "o", "0")},
		{nil, "h.taskmanager.tm.j.o.0.KafkaConsumer.records-lag-max: 7.0", inTask("KafkaConsumer.records-lag-max", "h", "tm", "j", op, "o", "0")},
		{nil, "h.taskmanager.tm.j.o.0.KafkaSourceReader.KafkaConsumer.records-lag-max: 7.0", inTask("KafkaSourceReader.KafkaConsumer.records-lag-max", "h", "tm", "j", op, "o", "0")},

		// Names with dots: up to 1.12.
		{nil, "jm.example.org.jobmanager.report v1.2.numRestarts: 7", what("numRestarts", "host=jm.example.org", "job_name=report v1.2")},
		{nil, "10.0.0.1.taskmanager.8dcbf0b9a5c3a1e5ddf1e6b8a0f3b1c2.report v1_2.a.0.isBackPressured: 7",
			inTask("isBackPressured", "10.0.0.1", "8dcbf0b9a5c3a1e5ddf1e6b8a0f3b1c2", "report v1_2", task, "a", "0")},
		{nil, "10.0.0.1.taskmanager.10.0.0.1:6122-7a5b3c.j.a.0.isBackPressured: 7", inTask("isBackPressured", "10.0.0.1", "10.0.0.1:6122-7a5b3c", "j", task, "a", "0")},
		{nil, "h.taskmanager.a:1-abcdef.b.0.isBackPressured: 7", what("isBackPressured", "host=h", "tm_id=a:1-abcdef", "subtask_index=0")},
		// Which dot ends the job's name can't be told.
		{nil, "h.taskmanager.container_e91_1700000000123_0042_01_000006.report v1.2.a.3.isBackPressured: 7",
			what("isBackPressured", "host=h", "tm_id=container_e91_1700000000123_0042_01_000006", "subtask_index=3")},
		{nil, "h.taskmanager.h.x:6122-7a5b3c.report v1.2.a.3.isBackPressured: 7", what("isBackPressured", "host=h", "tm_id=h.x:6122-7a5b3c", "subtask_index=3")},
		// Nor where the TaskManager's id ends, a pod's name.
		{nil, "h.taskmanager.flink-taskmanager-1-1.report v1.2.a.3.isBackPressured: 7", what("isBackPressured", "host=h", "subtask_index=3")},
		// Nor which mark is Flink's.
		{nil, "h.taskmanager.x.taskmanager.tm.j.a.0.isBackPressured: 7", what("isBackPressured")},
		{nil, "h.jobmanager.x.jobmanager.j.numRestarts: 7", what("numRestarts")},
		// A metric that 1.12 did not have.
		{nil, "h.jobmanager.report v1.2.failingTime: 7", what("failingTime")},
		{nil, "h.taskmanager.tm.report v1.2.a.3.busyTimeMsPerSecond: 7", what("busyTimeMsPerSecond")},

		// Scope formats of the user's: the name of the metric is certain, no other is.
		{nil, "j.a.0.isBackPressured: true", "metric=isBackPressured|metric_value=1"},
		{nil, "flink.jobs.j.numRestarts: 7", what("numRestarts")},

		// The same last part, another metric.
		{nil, "h.taskmanager.tm.j.o.0.Split.x.watermark.idleTimeMsPerSecond: 7", ""},
		{nil, "h.taskmanager.tm.j.o.0.uptime: 7", ""},
		{nil, "h.jobmanager.uptime: 7", ""},
		{nil, "h.taskmanager.tm.j.o.0.inPoolUsage: 0.5", ""},
		{nil, "h.taskmanager.tm.j.o.0.xbuffers.inPoolUsage: 0.5", ""},
		{nil, "h.taskmanager.tm.j.o.0.my.KafkaConsumer.records-lag-max: 7", ""},
		{nil, "h.taskmanager.tm.Status.isBackPressured: 7", ""},
		{nil, "h.taskmanager.tm.j.o.x.isBackPressured: 7", ""},
		{nil, "uptime: 7", ""},
		{nil, ".uptime: 7", ""},

		// No values.
		{nil, "h.jobmanager.j.lastCheckpointDuration: -1", ""},
		{nil, "h.taskmanager.tm.j.o.0.busyTimeMsPerSecond: NaN", ""},
		{nil, "h.taskmanager.tm.j.o.0.KafkaConsumer.records-lag-max: -Infinity", ""},
		{nil, "h.taskmanager.tm.j.o.0.KafkaConsumer.records-lag-max: Infinity", ""},
		{nil, "h.jobmanager.j.numRestarts: ", ""},
		{nil, "h.jobmanager.j.numRestarts: n/a", ""},
		{nil, "h.jobmanager.j.numRestarts: null", ""},
		{nil, "h.jobmanager.j.numRestarts: 0x10", ""},
		{nil, "h.jobmanager.j.numRestarts: 1_000", ""},
		{nil, "h.jobmanager.j.numRestarts: 1E999", ""},
		{nil, "h.jobmanager.j.numRestarts: 7 ms", ""},
		{nil, "h.jobmanager.j.numRestarts:7", ""},
		{nil, "h.jobmanager.j.lastCheckpointExternalPath: file:/checkpoints/chk-5", ""},
		{nil, "=========================== Starting metrics report ===========================", ""},
		{nil, "-- Gauges ---------------------------------------------------------------------", ""},
		{nil, "", ""},
		{nil, ": ", ""},
		{nil, "  h.jobmanager.j.numRestarts: 7\r", what("numRestarts", "host=h", "job_name=j")},
		{nil, "h.jobmanager.j.numRestarts: 7E0", what("numRestarts", "host=h", "job_name=j")},

		// Other metrics.
		{[]string{"uptime"}, "h.jobmanager.j.numRestarts: 7", ""},
		{[]string{"+x"}, "h.jobmanager.j.numRestarts: 7", what("numRestarts", "host=h", "job_name=j")},
		{[]string{"x"}, "h.jobmanager.x: 7", what("x", "host=h")},
		{[]string{"x"}, "h.jobmanager.j.x: 7", what("x", "host=h", "job_name=j")},
		{[]string{"x"}, "h.jobmanager.j.g.x: 7", ""},
		{[]string{"x"}, "h.jobmanager.Status.x: 7", ""},
		{[]string{"Status.x"}, "h.jobmanager.Status.x: 7", what("Status.x", "host=h")},
		{[]string{"coordinator.x"}, "h.jobmanager.j.o.coordinator.x: 7", what("coordinator.x", "host=h", "job_name=j", "operator_name=o")},
		{[]string{"x"}, "h.taskmanager.tm.x: 7", what("x", "host=h", "tm_id=tm")},
		{[]string{"x"}, "h.taskmanager.a.b:1-abcdef.x: 7", what("x", "host=h", "tm_id=a.b:1-abcdef")},
		{[]string{"x"}, "h.taskmanager.tm.j.x: 7", what("x", "host=h", "tm_id=tm", "job_name=j")},
		{[]string{"x"}, "h.taskmanager.tm.5.x: 7", what("x", "host=h", "tm_id=tm", "job_name=5")},
		{[]string{"x"}, "h.taskmanager.tm.Status.x: 7", ""},
		{[]string{"x"}, "h.taskmanager.tm.j.o.0.x: 7", inTask("x", "h", "tm", "j", op, "o", "0")},
		{[]string{"x"}, "h.taskmanager.tm.j.o.0.g.x: 7", ""},
		{[]string{"x"}, "h.taskmanager.tm.j.o.0.g.topic.t.partition.0.x: 7", ""},
		{[]string{"x"}, "h.taskmanager.tm.report v1.2.o.0.x: 7", ""},
		{[]string{"numBuffersOut"}, "h.taskmanager.tm.j.a.0.numBuffersOut: 7", inTask("numBuffersOut", "h", "tm", "j", task, "a", "0")},
		{[]string{"buffers.x"}, "h.taskmanager.tm.j.a.0.buffers.x: 7", inTask("buffers.x", "h", "tm", "j", task, "a", "0")},
		{[]string{"*"}, "h.jobmanager.x: 7", what("x", "host=h")},
		{[]string{"*"}, "h.jobmanager.j.x: 7", what("x", "host=h", "job_name=j")},
		{[]string{"*"}, "h.jobmanager.Status.x.y: 7", what("Status.x.y", "host=h")},
		{[]string{"*"}, "h.jobmanager.j.o.coordinator.enumerator.x: 7", what("coordinator.enumerator.x", "host=h", "job_name=j", "operator_name=o")},
		{[]string{"*"}, "h.jobmanager.j.g.x: 7", ""},
		{[]string{"*"}, "h.taskmanager.tm.x: 7", what("x", "host=h", "tm_id=tm")},
		{[]string{"*"}, "h.taskmanager.tm.System.CPU.x: 7", what("System.CPU.x", "host=h", "tm_id=tm")},
		{[]string{"*"}, "h.taskmanager.tm.j.o.0.g.topic.t.partition.0.x: 7", inTask("g.topic.t.partition.0.x", "h", "tm", "j", op, "o", "0")},
		{[]string{"*"}, "h.taskmanager.a.b:1-abcdef.j.a.0.Shuffle.Netty.x: 7", inTask("Shuffle.Netty.x", "h", "a.b:1-abcdef", "j", task, "a", "0")},
		{[]string{"*"}, "h.taskmanager.tm.j.x: 7", ""},
		{[]string{"*"}, "h.taskmanager.tm.report v1.2.o.0.x: 7", ""},
		{[]string{"*"}, "h.taskmanager.tm.j.o.0.: 7", ""},
		{[]string{"*"}, "j.o.0.x: 7", ""},
		{[]string{"*"}, ".taskmanager..j.o.0.x: 7", ""},
		{[]string{"g.*.partition.*.x"}, "h.taskmanager.tm.j.o.0.g.topic.t.partition.0.x: 7", inTask("g.topic.t.partition.0.x", "h", "tm", "j", op, "o", "0")},
		{[]string{"g.*.partition.*.x"}, "h.taskmanager.tm.j.o.0.g.topic.t.partition.x: 7", ""},
		{[]string{"ab*ba"}, "h.jobmanager.aba: 7", ""},
		{[]string{"ab*ba"}, "h.jobmanager.abba: 7", what("abba", "host=h")},
		{[]string{"a**b*"}, "h.jobmanager.ab: 7", what("ab", "host=h")},

		// Histograms.
		{[]string{"l.p99"}, "h.jobmanager.l: count=1, min=2, p99=7.0, p999=8.0", what("l.p99", "host=h")},
		{[]string{"l.p99"}, "h.jobmanager.l: count=1, min=2, p99=NaN, p999=8.0", ""},
		{[]string{"l"}, "h.jobmanager.l: count=7, min=7", ""},
		{[]string{"l.p99"}, "h.jobmanager.j.l.p99: 7", what("l.p99", "host=h", "job_name=j")},
		{[]string{"mailboxLatencyMs.max"}, "h.taskmanager.tm.j.a.0.mailboxLatencyMs: count=1, max=7, p99=7.0", inTask("mailboxLatencyMs.max", "h", "tm", "j", task, "a", "0")},
		{[]string{"mailbox*.max"}, "h.taskmanager.tm.j.a.0.mailboxLatencyMs: count=1, max=7, p99=7.0", inTask("mailboxLatencyMs.max", "h", "tm", "j", task, "a", "0")},
		{[]string{"*"}, "h.jobmanager.l: count=, =7, 7, max=7, min", what("l.max", "host=h")},
	} {
		got := newReport(t, test.patterns...).read(test.line)
		if strings.Join(got, " + ") != test.want {
			t.Errorf("%q of %q:\n got %q\nwant %q", test.patterns, test.line, got, test.want)
		}
	}
	got := newReport(t, "l.min", "l.p*").read("h.jobmanager.l: count=1, min=2, max=3, p50=4.0, p999=5.0")
	want := []string{"metric=l.min|metric_value=2|host=h", "metric=l.p50|metric_value=4|host=h", "metric=l.p999|metric_value=5|host=h"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMetricNames puts hostile names where Flink puts names, as 1.13 and later write them.
func TestMetricNames(t *testing.T) {
	report := newReport(t)
	all := newReport(t, "*")
	filter := func(name string) string { return strings.ReplaceAll(name, ".", "_") }
	names := append(slices.Clone(hostileNames), "5", "x: 5", "h.taskmanager.tm.j.t.0.isBackPressured: 1", "taskmanager", "jobmanager", ": ", "count=1, min=2", "null", "Status", "container_1")
	for i, job := range names {
		name, tm := names[(i+1)%len(names)], names[(i+2)%len(names)]
		line := fmt.Sprintf("%s.taskmanager.%s.%s.%s.3.checkpointStartDelayNanos: 25000000", "h_1", filter(tm), filter(job), filter(name))
		want := fmt.Sprintf("metric=checkpointStartDelayNanos|metric_value=25000000|host=h_1|tm_id=%s|job_name=%s|task_name=%s|subtask_index=3", filter(tm), filter(job), filter(name))
		for _, r := range []*metricReport{report, all} {
			if got := r.read(line); len(got) != 1 || got[0] != want {
				t.Errorf("%q:\n got %q\nwant %q", line, got, want)
			}
		}
		line = fmt.Sprintf("h_1.jobmanager.%s.uptime: 5", filter(job))
		want = "metric=uptime|metric_value=5|host=h_1|job_name=" + filter(job)
		if got := report.read(line); len(got) != 1 || got[0] != want {
			t.Errorf("%q:\n got %q\nwant %q", line, got, want)
		}
	}
}

func TestMetricSetErrors(t *testing.T) {
	for _, patterns := range [][]string{{""}, {"+"}, {" uptime"}, {"uptime", "x "}, {".uptime"}, {"uptime."}, {"uptime", "+x"}, {"+x", "*"}} {
		if _, err := newMetricSet(patterns); err == nil {
			t.Errorf("%q is taken", patterns)
		}
	}
	for _, patterns := range [][]string{nil, {}, {"uptime"}, {"+uptime", "+x.*"}, {"*"}, {"*.x", "y*"}} {
		if _, err := newMetricSet(patterns); err != nil {
			t.Errorf("%q: %v", patterns, err)
		}
	}
}

// TestMetricReportSource reads reports between other lines: what is above and below a
// report is not a part of it.
func TestMetricReportSource(t *testing.T) {
	const (
		header  = "2026-11-29 14:45:01,895 INFO  org.apache.flink.metrics.slf4j.Slf4jReporter                 [] - "
		failure = "2026-11-29 14:45:04,239 WARN  org.apache.flink.runtime.checkpoint.CheckpointFailureManager [] - Failed to trigger or complete checkpoint 3 for job 9c0e4a8185db247038fb26522603fe8c. (0 consecutive failed attempts so far)"
		metric  = "h.jobmanager.j.numRestarts: 7"
	)
	for _, test := range []struct {
		name    string
		records []string // "" flushes
		want    []string // line, event
	}{
		{"report", []string{header, metric, "x", metric}, []string{"2 metric_reported", "4 metric_reported"}},
		{"one record", []string{header + "\n=== Starting\n\n" + metric + "\n" + metric, metric}, []string{"1 metric_reported", "1 metric_reported+", "2 metric_reported"}},
		{"between", []string{failure, "java.io.IOException: x", header, metric, failure, metric}, []string{"1 checkpoint_failed", "4 metric_reported", "5 checkpoint_failed"}},
		{"flush", []string{header, metric, "", metric}, []string{"2 metric_reported"}},
		{"no header", []string{metric}, nil},
		{"nothing to report", []string{header + "Skipping metrics report because no metrics are registered.", failure}, []string{"2 checkpoint_failed"}},
		{"a trace in it", []string{header, "org.apache.flink.x.Y: Exceeded checkpoint tolerable failure threshold.", metric}, []string{"3 metric_reported"}},
		{"thread", []string{"2026-11-29 14:45:01,895 INFO [Flink-Metric-1] org.apache.flink.metrics.slf4j.Slf4jReporter - ", metric}, []string{"2 metric_reported"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			source := newParser(t).NewSource(func(e *Event) {
				got = append(got, fmt.Sprintf("%d %s", e.Origin.Line, e.Text(EventName))+strings.Repeat("+", len(e.AppendValue(nil, Part))))
				if e.Kind.Name != "metric_reported" {
					return
				}
				when, _ := e.Time(Time)
				if want := time.Date(2026, 11, 29, 14, 45, 1, 895e6, time.UTC); !when.Equal(want) ||
					string(e.Text(Message)) != metric || string(e.Text(Level)) != "INFO" || string(e.Text(Component)) != "metrics" ||
					string(e.Text(Logger)) != slf4jReporter.Names[0] || test.name == "thread" && string(e.Text(Thread)) != "Flink-Metric-1" {
					t.Errorf("%s", e.AppendLogfmt(nil))
				}
			})
			source.Unrecognised = func(e *Event) { t.Errorf("unrecognised: %s", e.AppendLogfmt(nil)) }
			for i, record := range test.records {
				if record == "" {
					source.Flush()
					continue
				}
				source.Record(Origin{Line: i + 1}, []byte(record))
			}
			source.Flush()
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// FuzzMetricLine: what is read stands in the line, and the names of a scope stand in it
// in their order, with the metric behind them and the value at the end.
func FuzzMetricLine(f *testing.F) {
	for _, line := range []string{
		"h.jobmanager.j.numRestarts: 7", "h.taskmanager.tm.j.t.0.isBackPressured: true",
		"10.0.0.1.taskmanager.10.0.0.1:6122-7a5b3c.report v1.2.a.0.isBackPressured: 7",
		"h.taskmanager.tm.j.t.0.mailboxLatencyMs: count=1, min=2, p99=1.0E-4",
		"h.jobmanager.j.o.coordinator.enumerator.unassignedSplits: 0",
		"h.taskmanager.container_1.Status.JVM.CPU.Load: 0.1",
		"a.b.taskmanager.8dcbf0b9a5c3a1e5ddf1e6b8a0f3b1c2.j.t.1.KafkaConsumer.records-lag-max: 12.0",
	} {
		f.Add(line, "+mailbox*.p99")
		f.Add(line, "*")
	}
	f.Fuzz(func(t *testing.T, line, pattern string) {
		set, err := newMetricSet([]string{pattern})
		if err != nil {
			set, _ = newMetricSet(nil)
		}
		r := &metricReport{set: &set, kind: newParser(t).table.metric}
		given := []byte(line)
		r.line(given, new(Event), func(e *Event) {
			if v, ok := e.Number(MetricValue); !ok || !(v >= 0) {
				t.Errorf("%q: value %v", line, v)
			}
			if _, ok := e.Int(SubtaskIndex); !ok && (e.Has(TaskName)) || e.Has(TaskName) && e.Has(OperatorName) || !e.Has(MetricName) {
				t.Errorf("%q: %s", line, describeMetric(e))
			}
			id, _, _ := cutMetricValue(given)
			rest := string(id)
			for _, name := range []Field{Host, TMID, JobName, OperatorName, TaskName, SubtaskIndex} {
				if !e.Has(name) {
					continue
				}
				value := string(e.AppendValue(nil, name))
				i := strings.Index(rest, value)
				if name == SubtaskIndex && i < 0 { // 007
					continue
				}
				if i < 0 {
					t.Fatalf("%q: %s is not where it should be", line, describeMetric(e))
				}
				rest = rest[i+len(value):]
			}
			metric := string(e.Text(MetricName))
			if dot := strings.LastIndexByte(metric, '.'); !strings.HasSuffix(rest, metric) && (dot < 0 || !strings.HasSuffix(rest, metric[:dot])) {
				t.Errorf("%q: %s: the metric is not at the end", line, describeMetric(e))
			}
			e.AppendLogfmt(nil)
		})
		if string(given) != line {
			t.Errorf("%q was changed to %q", line, given)
		}
	})
}

// unwantedMetricLines are those of a real TaskManager that the default metrics leave out.
func unwantedMetricLines(b *testing.B) (lines [][]byte, size int) {
	log, err := os.ReadFile(logsDir + "/1.20.5/metric-report/taskmanager-2.log")
	if err != nil {
		b.Fatal(err)
	}
	report := newReport(b)
	for _, m := range metricLine.FindAll(log, -1) {
		if len(report.read(string(m))) == 0 {
			lines, size = append(lines, m), size+len(m)
		}
	}
	return lines, size
}

func BenchmarkMetricLine(b *testing.B) {
	unwanted, size := unwantedMetricLines(b)
	for _, bench := range []struct {
		name     string
		lines    [][]byte
		size     int
		patterns []string
	}{
		{"unwanted", unwanted, size, nil},
		{"unwanted-glob", unwanted, size, []string{"rocksdb.*", "*.nothing"}},
		{"wanted", [][]byte{[]byte("tm-1_example.taskmanager.tm-1_example:34371-942a43.orders report v1_2.Source: Orders Source -> Enrich (v1).1.hardBackPressuredTimeMsPerSecond: 12")}, 145, nil},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r, e, n := newReport(b, bench.patterns...), new(Event), 0
			b.SetBytes(int64(bench.size))
			b.ReportAllocs()
			for b.Loop() {
				for _, line := range bench.lines {
					r.line(line, e, func(*Event) { n++ })
				}
			}
			if (n > 0) != (bench.name == "wanted") {
				b.Errorf("%d events", n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(bench.lines)), "ns/line")
		})
	}
}

// BenchmarkMetricReport reads a whole log of reports through a Source.
func BenchmarkMetricReport(b *testing.B) {
	log, err := os.ReadFile(logsDir + "/1.20.5/metric-report/taskmanager-2.log")
	if err != nil {
		b.Fatal(err)
	}
	n, p := 0, newParser(b)
	source := p.NewSource(func(*Event) { n++ })
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		source.Record(Origin{Line: 1}, log)
		source.Flush()
	}
	b.ReportMetric(float64(n)/float64(b.N), "events")
}
