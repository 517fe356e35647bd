// Command querycost measures what the alert rules cost Loki: the bytes that one evaluation of all of them scans, as
// Loki's statistics of queries have it, against the same alerts written as |~ over the raw logs.
//
// A fleet of jobs, each a cluster of its own, writes a day of logs: a real log of test/logs, replayed once an hour. Both
// kinds of streams go into one Loki, a 3.x: the plug-in's events, and the raw lines with cluster and component as their
// labels, a line an entry, as Fluent Bit's own loki output sends them. With them go the heartbeats of three hosts of each
// cluster, one a minute. Each range of a rule is then asked as a range of
// the raw logs of the components that write such events. "make bench" runs it where LOKI_BIN is a Loki 3.x.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"gopkg.in/yaml.v3"

	"flink-loki/parsers"
	"flink-loki/rules"
	"flink-loki/test/lokitest"
)

func main() {
	jobs := flag.Int("jobs", 100, "jobs of the fleet")
	hours := flag.Int("hours", 24, "hours of logs; each job's log is replayed once an hour")
	metadata := flag.Bool("metadata", false, "send structured metadata as well")
	flag.Parse()
	switch err := run(context.Background(), *jobs, *hours, *metadata); {
	case errors.Is(err, lokitest.ErrTooOld), errors.Is(err, lokitest.ErrNone):
		fmt.Println("Set LOKI_BIN to a Loki 3.x to measure what the rules' queries scan.")
	case err != nil:
		fmt.Fprintln(os.Stderr, "querycost:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, jobs, hours int, metadata bool) error {
	server, err := lokitest.Start(ctx, lokitest.Options{MinMajor: 3, Args: []string{
		"-distributor.ingestion-rate-limit-mb=10000", "-distributor.ingestion-burst-size-mb=10000",
		"-ingester.per-stream-rate-limit=10GB", "-ingester.per-stream-rate-limit-burst=10GB",
		"-server.http-read-timeout=10m", "-server.http-write-timeout=10m", "-querier.query-timeout=10m",
		"-querier.query-ingesters-within=0",
		// Chunks stay in the ingester, so that it does not matter when they would be flushed.
		"-ingester.max-chunk-age=48h", "-ingester.chunks-idle-period=48h",
		"-querier.max-query-series=1000000", "-ruler.alertmanager-url=",
	}})
	if err != nil {
		return err
	}
	defer server.Stop()
	logs, err := readLogs()
	if err != nil {
		return err
	}
	start := time.Now()
	fleet := fleet{url: server.URL(), metadata: metadata, files: map[string][]string{}}
	for hour := range hours {
		for job := range jobs {
			log := logs[job%len(logs)]
			// The jobs' replays are spread over the hour, the last one ends now.
			end := start.Add(-time.Duration(hours-1-hour)*time.Hour - time.Duration(jobs-1-job)*time.Hour/time.Duration(jobs))
			if err := fleet.push(ctx, log, fmt.Sprintf("job-%03d", job), end); err != nil {
				return err
			}
		}
	}
	fmt.Printf("Loki %s, structured metadata %v: %d jobs, %d real logs, replayed for %d h: %.1f MB of raw lines, %.1f MB of events (%d of %d lines), in %v\n",
		server.Version(), metadata, jobs, len(logs), hours, megabytes(fleet.rawBytes), megabytes(fleet.eventBytes), fleet.events, fleet.lines, time.Since(start).Round(time.Second))
	return fleet.measure(ctx, start)
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }

// evaluated is a rule and what its evaluation scans.
type evaluated struct {
	alert      string
	typed, raw int64
}

var (
	// ranges of a rule: the events and pipeline of each, and how far it looks back.
	ranges     = regexp.MustCompile(`\{event=~?"([^"]*)"\}([^\[]*)(\[\w+\])`)
	metricName = regexp.MustCompile(`metric="([^"]*)"`)
)

func (f *fleet) measure(ctx context.Context, now time.Time) error {
	files, err := rules.Render(rules.Options{})
	if err != nil {
		return err
	}
	if err := f.complete(ctx, now); err != nil {
		return err
	}
	var all []evaluated
	for _, file := range files {
		var text struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
		if err := yaml.Unmarshal(file.Text, &text); err != nil {
			return err
		}
		for _, group := range text.Groups {
			for _, rule := range group.Rules {
				e := evaluated{alert: rule.Alert}
				if e.typed, err = f.scanned(ctx, rule.Expr, now); err != nil {
					return fmt.Errorf("%s: %w", rule.Alert, err)
				}
				for _, r := range ranges.FindAllStringSubmatch(rule.Expr, -1) {
					if slices.Contains(made, r[1]) {
						continue
					}
					n, err := f.scanned(ctx, f.rawQuery(r[1], r[2], r[3]), now)
					if err != nil {
						return fmt.Errorf("%s on raw logs: %w", rule.Alert, err)
					}
					e.raw += n
				}
				all = append(all, e)
			}
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "rule\tevents MB\traw MB\tratio\t")
	var sum evaluated
	for _, e := range all {
		fmt.Fprintf(w, "%s\t%.3f\t%.1f\t%s\t\n", e.alert, megabytes(e.typed), megabytes(e.raw), ratio(e))
		sum.typed, sum.raw = sum.typed+e.typed, sum.raw+e.raw
	}
	fmt.Fprintf(w, "all %d rules\t%.3f\t%.1f\t%s\t\n", len(all), megabytes(sum.typed), megabytes(sum.raw), ratio(sum))
	return w.Flush()
}

// complete checks that queries see all that was pushed: Loki keeps equal lines of one time once.
func (f *fleet) complete(ctx context.Context, now time.Time) error {
	seen, err := f.scanned(ctx, `sum(count_over_time({raw="true"}[8d]))`, now)
	if err == nil && float64(seen) < 0.9*float64(f.rawBytes) {
		err = fmt.Errorf("of %d bytes of raw lines queries scan %d", f.rawBytes, seen)
	}
	return err
}

func ratio(e evaluated) string {
	if e.typed == 0 || e.raw == 0 {
		return "-"
	}
	return fmt.Sprintf("1:%.0f", float64(e.raw)/float64(e.typed))
}

// made are the events that no raw lines tell: alerts that stand on them raw logs can't raise.
var made = []string{"checkpoint_overdue", "checkpoint_recovered", "agent_heartbeat"}

// rawQuery returns a range of events as a range of the raw lines that tell them.
func (f *fleet) rawQuery(events, pipeline, over string) string {
	names := regexp.MustCompile("^(?:" + events + ")$")
	var files, texts []string
	for _, k := range parsers.Kinds {
		if !names.MatchString(k.Name) {
			continue
		}
		sources := []string{k.Name}
		if k.Name == "checkpoint_failure_summary" { // no line of its own: it is made of these
			sources = []string{"checkpoint_expired", "checkpoint_declined", "checkpoint_discarded", "checkpoint_failed", "checkpoint_late_message"}
		}
		for _, name := range sources {
			files = append(files, f.writers(name)...)
			texts = append(texts, wordings(name)...)
		}
	}
	if metric := metricName.FindStringSubmatch(pipeline); metric != nil {
		texts = []string{regexp.QuoteMeta(metric[1])}
	}
	slices.Sort(files)
	return fmt.Sprintf("sum by (cluster) (count_over_time({raw=\"true\", component=~%q} |~ %q %s))",
		strings.Join(slices.Compact(files), "|"), strings.Join(texts, "|"), over)
}

// writers returns the components in whose logs an event is.
func (f *fleet) writers(kind string) []string {
	if files := f.files[kind]; len(files) > 0 {
		return files
	}
	for prefix, file := range map[string]string{"rocksdb_": rocksDB, "kafka_": taskManager, "snapshot_": taskManager, "barrier_": taskManager, "alignment_": taskManager, "state_backend_": taskManager, "metric_": taskManager, "backpressure_": "rest"} {
		if strings.HasPrefix(kind, prefix) {
			return []string{file}
		}
	}
	return []string{jobManager}
}

var hole = regexp.MustCompile(`\{[^}]*\}`)

// wordings returns regular expressions for the lines of a kind of event.
func wordings(kind string) (texts []string) {
	for _, k := range parsers.Kinds {
		if k.Name != kind {
			continue
		}
		for _, form := range k.Forms {
			var parts []string
			for _, part := range hole.Split(strings.TrimSuffix(form.Text, "."), -1) {
				if strings.TrimSpace(part) != "" {
					parts = append(parts, regexp.QuoteMeta(part))
				}
			}
			if text := strings.Join(parts, ".*"); text != "" && !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// scanned evaluates a query and returns how many bytes of lines Loki has scanned.
func (f *fleet) scanned(ctx context.Context, query string, at time.Time) (int64, error) {
	args := url.Values{"query": {query}, "time": {strconv.FormatInt(at.UnixNano(), 10)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/loki/api/v1/query", strings.NewReader(args.Encode()))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	body, err := do(request)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", query, err)
	}
	var answer struct {
		Data struct {
			Stats struct {
				Summary struct {
					TotalBytesProcessed int64 `json:"totalBytesProcessed"`
				} `json:"summary"`
			} `json:"stats"`
		} `json:"data"`
	}
	err = json.NewDecoder(bytes.NewReader(body)).Decode(&answer)
	return answer.Data.Stats.Summary.TotalBytesProcessed, err
}

func do(request *http.Request) ([]byte, error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(body))
	}
	return body, err
}
