package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"flink-loki/rules/ruletest"
)

// errFaults is the end of a run in which something was not as expected.
var errFaults = errors.New("tests failed")

func rulesTestCommand() *cobra.Command {
	var bin, url, tenant string
	var metadata bool
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Test alert rules on raw log lines",
		Long: `Run tests of alert rules: raw log lines go through the parser, the enrichment and the
placement of the plug-in into a Loki, and a clock steps over the rules' queries. The files
are in the words of "promtool test rules", with input_logs in place of input_series:

  rule_files: [rules/*.yaml]
  evaluation_interval: 1m
  tests:
    - name: a checkpoint expires
      input_logs:
        - file: jobmanager.log          # or lines: |
          labels: {cluster: prod}
          time_offset: 0s
        - heartbeats: 20m               # of the agent on a node, one a minute
          node: tm-1
      alert_rule_test:
        - alertname: FlinkCheckpointExpired
          eval_time: 2m                 # since the minute of the first event
          exp_alerts:                   # labels as a whole, annotations as far as given
            - exp_labels: {severity: ticket, cluster: prod, checkpoint_id: "3"}
              exp_annotations: {summary: Checkpoint 3 expired}
      logql_expr_test:
        - expr: sum(count_over_time({event="checkpoint_expired"} [5m]))
          eval_time: 2m
          exp_samples: [{labels: {}, value: 1}]

It works for rules of your own as well. Each test sees its own lines only. The Loki is
one that is started from a program (--loki-bin) and ended, or one that runs (--loki-url),
in which the tests' streams have a label ` + "rules_test" + `. It must be one for tests: what they store
there has present times, and a ruler with these rules would raise their alerts.`,
		Example: `  flink-loki rules test --loki-bin /usr/bin/loki rules/tests/*.yaml
  flink-loki rules test --loki-url http://localhost:3100 --tenant test my-tests.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (bin == "") == (url == "") {
				return errors.New("give a Loki to test in: --loki-url of one that runs, or --loki-bin of a program to start")
			}
			var files []*ruletest.File
			for _, name := range args {
				f, err := ruletest.Load(name)
				if err != nil {
					return err
				}
				files = append(files, f)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			l := &ruletest.Loki{URL: url, Tenant: tenant}
			if bin != "" {
				var err error
				if l, err = ruletest.Start(ctx, bin); err != nil {
					return fmt.Errorf("--loki-bin: %w", err)
				}
				defer l.Close()
			}
			l.Metadata = metadata
			version, err := l.Version(ctx)
			if err != nil {
				return fmt.Errorf("--loki-url: %w", err)
			}
			report := newReport(cmd.OutOrStdout(), version)
			for i, f := range files {
				results, err := f.Run(ctx, l)
				report.add(args[i], results)
				if err != nil {
					return fmt.Errorf("%s: %w", args[i], err)
				}
			}
			return report.end()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&bin, "loki-bin", "", "program of a Loki 2.x or 3.x to start")
	flags.StringVar(&url, "loki-url", "", "address of a Loki that runs")
	flags.StringVar(&tenant, "tenant", "", "tenant of the Loki at --loki-url")
	flags.BoolVar(&metadata, "structured-metadata", false, "send structured metadata as well (Loki 3.x)")
	return cmd
}

// report tells how the tests went, by alert.
type report struct {
	out     io.Writer
	version string
	tests   map[string]int
	passed  map[string]int
	failed  bool
}

func newReport(out io.Writer, version string) *report {
	return &report{out: out, version: version, tests: map[string]int{}, passed: map[string]int{}}
}

// add takes the results of a file, and says at once what is not as expected.
func (r *report) add(file string, results []ruletest.Result) {
	for _, result := range results {
		alert := result.Alert
		if alert == "" {
			alert = "(queries)"
		}
		r.tests[alert]++
		if len(result.Faults) == 0 {
			r.passed[alert]++
			continue
		}
		r.failed = true
		fmt.Fprintf(r.out, "FAIL %s: %s\n", file, result.Test)
		for _, fault := range result.Faults {
			fmt.Fprintf(r.out, "  %s\n", strings.TrimRight(fault, "\n"))
		}
	}
}

// end prints the table.
func (r *report) end() error {
	if len(r.tests) == 0 {
		return errors.New("there are no tests")
	}
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "ALERT\tTESTS\tPASS\tLOKI\n")
	for _, alert := range slices.Sorted(maps.Keys(r.tests)) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", alert, r.tests[alert], r.passed[alert], r.version)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.failed {
		return errFaults
	}
	return nil
}
