package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"flink-loki/parsers"
	"flink-loki/plugin/enrich"
)

func stateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Look at what an agent knows, or teach it",
	}
	cmd.AddCommand(learnCommand(), showCommand())
	return cmd
}

func learnCommand() *cobra.Command {
	var f parseFlags
	var statePath, cluster string
	cmd := &cobra.Command{
		Use:   "learn FILE...",
		Short: "Teach an agent from logs that were written before it was installed",
		Long: `Read log files, rotated and packed (.gz) ones too, and keep under the state_path of
the plug-in what they tell: which task an attempt is and where it runs, which jobs live
on a TaskManager, how checkpoints ended. Nothing is sent.

Run it on the agent's host, under the names that the agent will read the files by, and
before Fluent Bit starts: a state_path belongs to one process at a time.`,
		Example: `  flink-loki state learn --state-path /var/lib/flink-loki --cluster prod /opt/flink/log/*.log*`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			parser, err := f.parser()
			if err != nil {
				return err
			}
			if statePath == "" {
				return errors.New("--state-path is empty: give the plug-in's option state_path")
			}
			dir := stateDir(statePath)
			state, _, err := enrich.OpenState(dir, 0, func(note string) { fmt.Fprintln(cmd.ErrOrStderr(), note) })
			if err != nil {
				return fmt.Errorf("--state-path %q: %w: is Fluent Bit running with it?", statePath, err)
			}
			if args, err = oldestFirst(args); err == nil {
				for _, name := range args {
					if err = f.learn(parser, state, cluster, name); err != nil {
						break
					}
				}
			}
			if err = errors.Join(err, state.Close()); err != nil {
				return err
			}
			return summarize(cmd, state)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&statePath, "state-path", "", "the plug-in's option state_path")
	flags.StringVar(&cluster, "cluster", "", "the label cluster in the plug-in's option labels, if there is one")
	flags.StringVar(&f.timezone, "timezone", "Local", "zone of the times in the files; auto: learnt from the lines")
	_ = cmd.MarkFlagRequired("state-path")
	return cmd
}

// stateDir is where the plug-in keeps the state under its state_path.
func stateDir(statePath string) string { return filepath.Join(statePath, "state") }

// oldestFirst sorts files by when they were last written.
func oldestFirst(names []string) ([]string, error) {
	type dated struct {
		name string
		at   time.Time
	}
	var files []dated
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		files = append(files, dated{name, info.ModTime()})
	}
	slices.SortStableFunc(files, func(a, b dated) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name)) })
	sorted := make([]string, 0, len(files))
	for _, f := range files {
		sorted = append(sorted, f.name)
	}
	return sorted, nil
}

// learn reads a file into the state.
func (f *parseFlags) learn(parser *parsers.Parser, state *enrich.State, cluster, name string) error {
	pass := state.Begin(enrich.Teller{ID: enrich.Learner, Emit: func(*parsers.Event, bool) {}})
	defer pass.Abandon()
	log := pass.Log(cluster, name, "")
	in, err := f.open(parser, nil, name, log.Event)
	if err != nil {
		return err
	}
	in.source.Lesson = log.Lesson
	in.each = func(offset int64, line []byte) { log.Line(offset, line, time.Now()) }
	for more := true; more && err == nil; {
		more, err = in.read()
	}
	pass.Finish() // to nobody
	return errors.Join(err, in.close(), pass.End(""))
}

// summarize says what the state holds.
func summarize(cmd *cobra.Command, state *enrich.State) error {
	counts := map[string]int{}
	for key := range state.Each {
		kind, _, _ := strings.Cut(key, "/")
		counts[kind]++
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "the state holds %d logs, %d jobs with %d checkpoints, %d attempts of tasks\n",
		counts["log"], counts["job"], counts["checkpoint"], counts["attempt"])
	return err
}

func showCommand() *cobra.Command {
	var statePath string
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Print what an agent knows, one fact a line",
		Example: `  flink-loki state show --state-path /var/lib/flink-loki | grep ^job/`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := enrich.ReadState(stateDir(statePath))
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("--state-path %q: the plug-in has kept no state there", statePath)
			}
			if err != nil && state == nil {
				return err
			}
			for key, value := range state.Each {
				key = strings.ReplaceAll(key, "\x00", `\0`) // which grep would take for the sign of a binary
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", key, value); err != nil {
					return err
				}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&statePath, "state-path", "", "the plug-in's option state_path")
	_ = cmd.MarkFlagRequired("state-path")
	return cmd
}
