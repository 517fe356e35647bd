package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zone names work on hosts without a zone database

	"github.com/spf13/cobra"

	"flink-loki/parsers"
	"flink-loki/parsers/layout"
	"flink-loki/plugin/enrich"
)

// parseFlags are the flags of the command parse.
type parseFlags struct {
	format, timezone, fileName string
	jsonKeys, metrics          []string
	unrecognised, enrich       bool
}

func parseCommand() *cobra.Command {
	var f parseFlags
	cmd := &cobra.Command{
		Use:   "parse FILE...|-",
		Short: "Print the events of log files, one a line",
		Long: `Print the events of log files, one a line, in the order of the files. "-" reads
standard input. Lines that are no event print nothing.

With --enrich, events tell as well what the plug-in would know when it reads these
files: which task an attempt is, and on which host, how late a message is, how many
checkpoints failed in a row; and there is a summary of each failed checkpoint. The files
of a cluster are best given together: they are read as one, in the order of their times.`,
		Example: `  flink-loki parse jobmanager.log taskmanager.log
  kubectl logs flink-jobmanager | flink-loki parse - --format table
  flink-loki parse --enrich --format logfmt log/*.log*
  flink-loki parse --timezone Europe/Berlin --format logfmt LOG`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			parser, err := f.parser()
			if err != nil {
				return err
			}
			format, ok := formats[f.format]
			if !ok {
				return fmt.Errorf("--format %q is not one of %s", f.format, strings.Join(formatNames(), ", "))
			}
			out := newPrinter(cmd.OutOrStdout(), format)
			if f.enrich {
				err = f.enrichFiles(parser, cmd.InOrStdin(), args, out)
			} else {
				err = f.parseFiles(parser, cmd.InOrStdin(), args, out)
			}
			if err == nil && out.events == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no events: are these logs of Flink or RocksDB? --unrecognised shows lines of theirs that are not known")
			}
			return errors.Join(err, out.close())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "json", "one of "+strings.Join(formatNames(), ", "))
	flags.StringVar(&f.timezone, "timezone", "UTC", "zone of the times in the files; auto: learnt from the lines")
	flags.StringVar(&f.fileName, "file-name", "", "take the lines as those of a file with this name")
	flags.StringArrayVar(&f.jsonKeys, "json-key", nil, "a further key of JSON layouts, such as message=text (parts: "+strings.Join(layout.PartNames, ", ")+")")
	flags.StringSliceVar(&f.metrics, "metrics", nil, "metrics of Flink's reports to print, * for any text; with + before each they are added to the default ones")
	flags.BoolVar(&f.enrich, "enrich", false, "add what is known from other lines, and summaries of failures")
	flags.BoolVar(&f.unrecognised, "unrecognised", false, "print lines as well that are not known though their class is")
	return cmd
}

// parser returns a parser as the flags say.
func (f *parseFlags) parser() (*parsers.Parser, error) {
	options := parsers.Options{Location: time.UTC, Keys: layout.DefaultKeys()}
	if options.LearnZone = strings.EqualFold(f.timezone, "auto"); !options.LearnZone {
		var err error
		if options.Location, err = time.LoadLocation(f.timezone); err != nil {
			return nil, fmt.Errorf("--timezone %q is no zone name: give one like UTC or Europe/Berlin, or auto", f.timezone)
		}
	}
	for _, pair := range f.jsonKeys {
		part, path, _ := strings.Cut(pair, "=")
		if path == "" || !options.Keys.Add(part, path) {
			return nil, fmt.Errorf("--json-key %q: give part=key, where part is one of %s", pair, strings.Join(layout.PartNames, ", "))
		}
	}
	for _, name := range f.metrics {
		options.Metrics = append(options.Metrics, strings.TrimSpace(name))
	}
	if err := parsers.CheckMetrics(options.Metrics); err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	return parsers.New(options)
}

// parseFiles prints each event of files, one file after the other.
func (f *parseFlags) parseFiles(parser *parsers.Parser, stdin io.Reader, names []string, out *printer) error {
	for _, name := range names {
		in, err := f.open(parser, stdin, name, out.add)
		if err != nil {
			return err
		}
		for more := true; more; {
			if more, err = in.read(); err != nil {
				break
			}
			if held, ok := in.source.Oldest(); ok {
				out.release(held)
			} else {
				out.release(math.MaxInt)
			}
		}
		if err := errors.Join(err, in.close()); err != nil {
			return err
		}
	}
	return nil
}

// enrichFiles prints each event of files in the order of their times, with what an agent
// that reads them knows.
func (f *parseFlags) enrichFiles(parser *parsers.Parser, stdin io.Reader, names []string, out *printer) error {
	pass := enrich.NewState(0).Begin(enrich.Teller{Emit: out.print, Complete: true})
	defer pass.Abandon()
	err := f.merge(parser, stdin, names, func(l *line) {
		if log := pass.Log("", l.file, ""); l.isLesson {
			log.Lesson(l.event)
		} else {
			log.Event(l.event)
		}
	})
	pass.Finish()
	return err
}

func formatNames() []string {
	var names []string
	for name := range formats {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
