// Command generate writes the parts of README.md that come from the program's own
// tables, between the markers "<!-- name -->" and "<!-- /name -->". "make golden" runs
// it, and CI checks that it changes nothing.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"flink-loki/parsers"
	"flink-loki/plugin/ship"
	"flink-loki/plugin/telemetry"
)

const readme = "README.md"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	for name, write := range map[string]func(*strings.Builder) error{
		"options":  writeOptions,
		"kinds":    writeKinds,
		"fields":   writeFields,
		"metrics":  writeMetrics,
		"alerts":   writeAlerts,
		"settings": writeSettings,
		"watch":    writeWatch,
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			return err
		}
		if text, err = replace(text, name, b.String()); err != nil {
			return err
		}
	}
	return os.WriteFile(readme, text, 0o644)
}

// replace puts a text between the two markers of a name.
func replace(text []byte, name, generated string) ([]byte, error) {
	start, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, ok := bytes.Cut(text, []byte(start))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, fmt.Errorf("%s has no markers %s", readme, name)
	}
	return []byte(string(before) + start + generated + end + string(after)), nil
}

func writeOptions(b *strings.Builder) error {
	b.WriteString("| option | default | value | what it does |\n| --- | --- | --- | --- |\n")
	for _, o := range ship.Options {
		value := ""
		if o.Default != "" {
			value = "`" + o.Default + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", o.Name, value, o.Unit, o.Help)
	}
	return nil
}

func writeKinds(b *strings.Builder) error {
	b.WriteString("| event | sent | what happened |\n| --- | --- | --- |\n")
	for _, k := range parsers.Kinds {
		sent := "yes"
		switch {
		case k.Quiet:
			sent = "on demand"
		case k.Core:
			sent = "core"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", k.Name, sent, k.Doc)
	}
	return nil
}

func writeFields(b *strings.Builder) error {
	b.WriteString("| field | type | meaning |\n| --- | --- | --- |\n")
	for _, f := range parsers.Fields {
		if f.Lesson {
			continue
		}
		kind := f.Type.String()
		if f.Unit != "" {
			kind += ", " + f.Unit
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.Name, kind, f.Doc)
	}
	return nil
}

func writeMetrics(b *strings.Builder) error {
	b.WriteString("| metric | of a | Flink | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range parsers.DefaultMetrics {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", m.Name, m.Scope, m.Versions, m.Doc)
	}
	return nil
}

func writeWatch(b *strings.Builder) error {
	b.WriteString("| metric | type | label | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range telemetry.Metrics {
		label := ""
		if m.Label != "" {
			label = "`" + m.Label + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, label, m.Help)
	}
	return nil
}
