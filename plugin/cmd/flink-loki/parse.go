package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zone names work on hosts without a zone database

	"github.com/spf13/cobra"

	"flink-loki/parsers"
	"flink-loki/parsers/layout"
)

// parseFlags are the flags of the command parse.
type parseFlags struct {
	format, timezone, fileName string
	jsonKeys, metrics          []string
	unrecognised               bool
}

func parseCommand() *cobra.Command {
	var f parseFlags
	cmd := &cobra.Command{
		Use:   "parse FILE...|-",
		Short: "Print the events of log files, one a line",
		Long: `Print the events of log files, one a line, in the order of the files. "-" reads
standard input. Lines that are no event print nothing.`,
		Example: `  flink-loki parse jobmanager.log taskmanager.log
  kubectl logs flink-jobmanager | flink-loki parse - --format table
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
			for _, name := range args {
				if err := f.parseFile(parser, cmd.InOrStdin(), name, out); err != nil {
					return err
				}
			}
			return out.close()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "json", "one of "+strings.Join(formatNames(), ", "))
	flags.StringVar(&f.timezone, "timezone", "UTC", "zone of the times in the files; auto: learnt from the lines")
	flags.StringVar(&f.fileName, "file-name", "", "take the lines as those of a file with this name")
	flags.StringArrayVar(&f.jsonKeys, "json-key", nil, "a further key of JSON layouts, such as message=text (parts: "+strings.Join(layout.PartNames, ", ")+")")
	flags.StringSliceVar(&f.metrics, "metrics", nil, "metrics of Flink's reports to print, * for any text; with + before each they are added to the default ones")
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

// parseFile prints each event of a file. The name "-" is standard input.
func (f *parseFlags) parseFile(parser *parsers.Parser, stdin io.Reader, name string, out *printer) error {
	in, known := stdin, &parsers.Event{}
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
		parsers.AddFileName(known, []byte(name))
	}
	if f.fileName != "" {
		parsers.AddFileName(known, []byte(f.fileName))
		known.SetText(parsers.Filename, []byte(f.fileName))
	}
	source := parser.NewSource(out.add)
	source.Known = known
	if file, ok := in.(io.Seeker); ok && strings.EqualFold(f.timezone, "auto") && isSeekable(file) {
		// The lines that tell the zone can come late: look for one first.
		learner := parser.NewSource(func(*parsers.Event) {})
		learner.Clock = source.Clock
		if err := readLines(in, func(origin parsers.Origin, line []byte) bool {
			learner.Record(origin, line)
			return !source.Clock.Learnt()
		}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		learner.Flush()
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if f.unrecognised {
		source.Unrecognised = out.add
	}
	source.WrongZone = func(offset time.Duration) {
		if !strings.EqualFold(f.timezone, "auto") {
			fmt.Fprintf(os.Stderr, "%s: the file's clock is %s ahead of UTC, and --timezone is %s: give its zone, or auto\n", name, offset, f.timezone)
			source.WrongZone = nil
		}
	}
	err := readLines(in, func(origin parsers.Origin, line []byte) bool {
		source.Record(origin, line)
		if held, ok := source.Oldest(); ok {
			out.release(held)
		} else {
			out.release(math.MaxInt)
		}
		return true
	})
	source.Flush()
	out.release(math.MaxInt)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// isSeekable tells files from pipes.
func isSeekable(file io.Seeker) bool {
	_, err := file.Seek(0, io.SeekCurrent)
	return err == nil
}

// readLines hands the lines of a file to read until it returns false.
func readLines(in io.Reader, read func(origin parsers.Origin, line []byte) bool) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	for number := 1; ; number++ {
		// Each line is memory of its own, as Source.Record asks.
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 && !read(parsers.Origin{Line: number, Offset: -1}, bytes.TrimSuffix(line, []byte("\n"))) || err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
}

func formatNames() []string {
	var names []string
	for name := range formats {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
