// Command demo shows the main job on a real log: a log line becomes an alert. It starts
// a Loki with the shipped rules, replays the log of a Flink 2.3.0 cluster whose
// checkpoints expired through the built plug-in, with its times moved to now, and
// shows the events, two queries and the alert. "make demo" runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"flink-loki/test/agent"
	"flink-loki/test/lokitest"
	"flink-loki/test/replay"
)

// limit bounds each step that waits for another process.
const limit = time.Minute

func main() {
	keep := flag.Bool("keep", false, "leave Loki up")
	flag.Parse()
	if err := run(*keep); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func say(format string, args ...any) { fmt.Printf("\n== "+format+"\n", args...) }

func run(keep bool) error {
	dir, err := os.MkdirTemp("", "flink-loki-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	say("Starting Loki with rules/checkpoint.yaml")
	server, err := lokitest.Start(ctx, lokitest.Options{RuleFiles: []string{"rules/checkpoint.yaml"}, Outlive: keep})
	if err != nil {
		return err
	}
	fmt.Printf("Loki %s answers at %s\n", server.Version(), server.URL())
	if keep {
		defer fmt.Printf("\nLoki stays up at %s. It ends with: kill %d\n", server.URL(), server.Pid())
	} else {
		defer server.Stop()
	}

	say("Moving the log of a real Flink 2.3.0 cluster to now (test/logs/2.3.0/expired: a slow job, checkpoint timeout 3 s)")
	parts, err := prepare(dir, demoLogs)
	if err != nil {
		return err
	}
	sent, err := ship(dir, server, "demo", parts)
	if err != nil {
		return err
	}
	start := time.Now().Add(-10 * time.Minute)

	say("The events, as Loki has them (of %d lines)", sent)
	if err := showEvents(ctx, server, start); err != nil {
		return err
	}
	for _, query := range []string{
		`sum by (event) (count_over_time({component=~".+", event=~"checkpoint_.+"}[15m]))`,
		`sum by (job_id, checkpoint_id) (count_over_time({event="checkpoint_late_message"} | logfmt [15m])) and ` +
			`sum by (job_id, checkpoint_id) (count_over_time({event="checkpoint_expired"} | logfmt [15m]))`,
	} {
		say("LogQL: %s", query)
		samples, err := server.Query(ctx, query, time.Now())
		if err != nil {
			return err
		}
		showSamples(samples)
	}
	if err := showAlert(ctx, server); err != nil || !keep || !hasDocker(ctx) {
		return err
	}
	return showDashboards(ctx, dir, server)
}

// showDashboards starts a Grafana, with more logs in Loki for it to show.
func showDashboards(ctx context.Context, dir string, server *lokitest.Server) error {
	say("Starting Grafana in Docker, and replaying more logs for its dashboards")
	for _, logs := range more {
		into := filepath.Join(dir, filepath.Base(logs))
		if err := os.Mkdir(into, 0o700); err != nil {
			return err
		}
		parts, err := prepare(into, logs)
		if err != nil {
			return err
		}
		if _, err := ship(into, server, filepath.Base(logs), parts); err != nil {
			return err
		}
	}
	container, err := startGrafana(ctx, server.URL())
	if err != nil {
		return err
	}
	fmt.Printf("\nGrafana is soon at http://127.0.0.1:3000/dashboards. It ends with: docker stop %s\n", container)
	return nil
}

// demoLogs are the logs of the cluster that the demo shows.
const demoLogs = "test/logs/2.3.0/expired"

// prepare writes the shifted logs of a directory into dir.
func prepare(dir, from string) ([]agent.Part, error) {
	names, err := filepath.Glob(from + "/*.[lL][oO][gG]")
	if err != nil {
		return nil, err
	}
	jobManager, err := os.ReadFile(from + "/jobmanager.log")
	if err != nil {
		return nil, err
	}
	by := time.Since(replay.Last(jobManager)).Truncate(time.Millisecond)
	var parts []agent.Part
	for _, name := range names {
		log, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(name)
		path := filepath.Join(dir, base)
		log = replay.Shift(log, by)
		if err := os.WriteFile(path, log, 0o600); err != nil {
			return nil, err
		}
		lines := strings.Count(string(log), "\n")
		parts = append(parts, agent.Part{Name: base, File: "/opt/flink/log/" + filepath.Base(from) + "/" + base, Log: path, First: 1, Count: lines})
		fmt.Printf("  %-40s %5d lines\n", base, lines)
	}
	return parts, nil
}

// ship runs an agent with the built plug-in until Loki has the events of all parts. It
// returns how many lines it was given.
func ship(dir string, server *lokitest.Server, cluster string, parts []agent.Part) (lines int, err error) {
	a, err := startAgent(dir, agent.Options{
		"url": server.URL(), "timezone": "UTC", "node": "demo", "labels": "cluster=" + cluster,
		// Loki 2.2.1 wants the entries of a stream in order: one stream a file.
		"label_keys": "component,event,level,node,filename",
	})
	if err != nil {
		return 0, err
	}
	for _, p := range parts {
		if _, err := a.Send(p); err != nil {
			return 0, err
		}
		lines += p.Count
		fmt.Printf("  %s\n", p.Name)
	}
	return lines, a.Stop()
}

// startAgent starts the fluent-bit on PATH where there is one that can, else the C host.
func startAgent(dir string, options agent.Options) (agent.Agent, error) {
	if path, err := exec.LookPath("fluent-bit"); err == nil {
		say("Replaying it through the plug-in in %s", path)
		runDir := filepath.Join(dir, "fluent-bit")
		if err := os.Mkdir(runDir, 0o700); err != nil {
			return nil, err
		}
		a, err := agent.NewFluentBit(path, runDir, options)
		if err == nil {
			err = a.Start()
		}
		if err == nil {
			return a, nil
		}
		fmt.Println("  it does not start with the plug-in:", err)
	}
	say("Replaying it through the plug-in in a small host that speaks Fluent Bit's ABI")
	a, err := agent.NewHost(dir, options)
	if err != nil {
		return nil, err
	}
	return a, a.Start()
}

// maxRows bounds the table of events.
const maxRows = 60

func showEvents(ctx context.Context, server *lokitest.Server, start time.Time) error {
	streams, err := server.QueryRange(ctx, `{component=~".+", event=~"checkpoint_.+|snapshot_.+|job_state_changed"} | logfmt`,
		start, time.Now().Add(time.Minute), 5000)
	if err != nil {
		return err
	}
	type row struct {
		at    time.Time
		cells string
	}
	var rows []row
	for _, s := range streams {
		l := s.Labels
		task := l["task_name"]
		if index, err := strconv.Atoi(l["subtask_index"]); err == nil {
			task = fmt.Sprintf("%s (%d/%s)", task, index+1, l["parallelism"])
		}
		if task == "" {
			task = l["task_attempt_id"]
		}
		for _, e := range s.Entries {
			rows = append(rows, row{e.Time, strings.Join([]string{l["event"], l["checkpoint_id"], l["component"],
				shorten(task, 44), l["host"], l["duration_ms"]}, "\t")})
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return strings.Compare(a.cells, b.cells)
	})
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tEVENT\tCHECKPOINT\tBY\tTASK\tHOST\tMS")
	for _, r := range rows[max(0, len(rows)-maxRows):] {
		fmt.Fprintf(w, "%s\t%s\n", r.at.Format("15:04:05.000"), r.cells)
	}
	if n := len(rows) - maxRows; n > 0 {
		fmt.Fprintf(w, "(and %d before these)\n", n)
	}
	return w.Flush()
}

func shorten(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

func showSamples(samples []lokitest.Sample) {
	var rows []string
	for _, s := range samples {
		var labels []string
		for name, value := range s.Labels {
			labels = append(labels, name+"="+value)
		}
		slices.Sort(labels)
		rows = append(rows, fmt.Sprintf("  %-80s %g", strings.Join(labels, " "), s.Value))
	}
	slices.Sort(rows)
	fmt.Println(strings.Join(rows, "\n"))
}

// showAlert waits for the alert that names late tasks of an expired checkpoint.
func showAlert(ctx context.Context, server *lokitest.Server) error {
	const name = "FlinkCheckpointExpiredWithLateMessages"
	say("Waiting for Loki's ruler to raise %s", name)
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(250 * time.Millisecond) {
		alerts, err := server.Alerts(ctx)
		if err != nil {
			return err
		}
		var firing []string
		for _, a := range alerts {
			if a.State == "firing" && a.Labels["alertname"] == name {
				firing = append(firing, "  FIRING  "+a.Annotations["summary"])
			}
		}
		if len(firing) > 0 {
			slices.Sort(firing)
			fmt.Println(strings.Join(firing, "\n"))
			return nil
		}
	}
	return fmt.Errorf("%s did not fire within %v", name, limit)
}
