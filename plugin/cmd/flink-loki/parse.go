package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	_ "time/tzdata" // zone names work on hosts without a zone database

	"github.com/spf13/cobra"

	"flink-loki/parsers"
)

func parseCommand() *cobra.Command {
	var format, timezone, fileName string
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
			loc, err := time.LoadLocation(timezone)
			if err != nil {
				return fmt.Errorf("--timezone %q is no zone name: give one like UTC or Europe/Berlin", timezone)
			}
			newPrinter, ok := printers[format]
			if !ok {
				return fmt.Errorf("--format %q is not one of %s", format, strings.Join(formatNames(), ", "))
			}
			parser, err := parsers.New(parsers.Options{Location: loc})
			if err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			printer := newPrinter(out)
			for _, name := range args {
				err := parseFile(parser, cmd.InOrStdin(), name, fileName, printer.print)
				if err != nil {
					return err
				}
			}
			printer.end()
			return out.Flush()
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "json", "one of "+strings.Join(formatNames(), ", "))
	flags.StringVar(&timezone, "timezone", "UTC", "zone of the times in the files")
	flags.StringVar(&fileName, "file-name", "", "take the lines as those of a file with this name")
	return cmd
}

// parseFile hands each event of a file to print. The name "-" is standard input.
func parseFile(parser *parsers.Parser, stdin io.Reader, name, fileName string, print func(*parsers.Event)) error {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	source := parser.NewSource(func(e *parsers.Event) {
		if fileName != "" {
			e.SetText(parsers.Filename, []byte(fileName))
		}
		print(e)
	})
	lines := bufio.NewReaderSize(in, 1<<20)
	for number := 1; ; number++ {
		// Each line is memory of its own, as Source.Record asks.
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			source.Record(parsers.Origin{Line: number, Offset: -1}, bytes.TrimSuffix(line, []byte("\n")))
		}
		if err == io.EOF {
			source.Flush()
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", name, number, err)
		}
	}
}

// printer prints events in one format.
type printer struct {
	print func(*parsers.Event)
	end   func()
}

// printers are the formats of --format.
var printers = map[string]func(*bufio.Writer) printer{
	"json": func(out *bufio.Writer) printer {
		var buf []byte
		return printer{func(e *parsers.Event) {
			buf = fmt.Appendf(buf[:0], `{"line":%d,`, e.Origin.Line)
			out.Write(append(e.AppendJSON(buf), '}', '\n'))
		}, func() {}}
	},
	"logfmt": func(out *bufio.Writer) printer {
		var buf []byte
		return printer{func(e *parsers.Event) {
			buf = fmt.Appendf(buf[:0], "line=%d ", e.Origin.Line)
			out.Write(append(e.AppendLogfmt(buf), '\n'))
		}, func() {}}
	},
	"table": func(out *bufio.Writer) printer {
		tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "TIME\tEVENT\tCHECKPOINT\tTASK\tHOST\tMS\tREASON")
		return printer{func(e *parsers.Event) { printRow(tw, e) }, func() { tw.Flush() }}
	},
}

func formatNames() []string {
	var names []string
	for name := range printers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// printRow prints the fields that a person looks at first.
func printRow(w io.Writer, e *parsers.Event) {
	value := func(f parsers.Field) string { return string(e.AppendValue(nil, f)) }
	when := ""
	if t, ok := e.Time(parsers.Time); ok {
		when = t.Format("2006-01-02 15:04:05.000")
	}
	task := value(parsers.TaskName)
	if index, ok := e.Int(parsers.SubtaskIndex); ok {
		n, _ := e.Int(parsers.Parallelism)
		task = fmt.Sprintf("%s (%d/%d)", task, index+1, n)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", when, e.Kind.Name, value(parsers.CheckpointID),
		shorten(task, 40), value(parsers.Host), value(parsers.DurationMs), shorten(value(parsers.Reason), 60))
}

func shorten(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}
