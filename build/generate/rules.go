package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"flink-loki/rules"
)

var (
	alertRule = regexp.MustCompile(`(?s)- alert: (\w+)\n.*?severity: (\w+)\n`)
	meaning   = regexp.MustCompile(`(?s)## (\w+)\n\n\*\*Means\.\*\* (?:\*\*Pages\.\*\* )?(.*?)\n\n`)
)

// writeAlerts writes each alert with what the runbook says it means.
func writeAlerts(b *strings.Builder) error {
	text, err := os.ReadFile("rules/runbook.md")
	if err != nil {
		return err
	}
	means := map[string]string{}
	for _, m := range meaning.FindAllStringSubmatch(string(text), -1) {
		means[m[1]] = strings.ReplaceAll(m[2], "\n", " ")
	}
	files, err := rules.Render(rules.Options{})
	if err != nil {
		return err
	}
	b.WriteString("| alert | severity | means |\n| --- | --- | --- |\n")
	for _, f := range files {
		for _, m := range alertRule.FindAllStringSubmatch(string(f.Text), -1) {
			fmt.Fprintf(b, "| [%s](rules/runbook.md#%s) | %s | %s |\n", m[1], strings.ToLower(m[1]), m[2], means[m[1]])
		}
	}
	return nil
}

func writeSettings(b *strings.Builder) error {
	b.WriteString("| setting | default | for some jobs | what it sets |\n| --- | --- | --- | --- |\n")
	for _, s := range rules.Settings {
		value, perJob := "", "yes"
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		if s.Global {
			perJob = ""
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", s.Name, value, perJob, s.Doc)
	}
	return nil
}
