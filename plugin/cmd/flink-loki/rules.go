package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"flink-loki/rules"
)

func rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Render the alert rules with your thresholds, or test rules on raw logs",
	}
	cmd.AddCommand(renderCommand(), rulesTestCommand())
	return cmd
}

// tenants are the names that Loki takes.
var tenants = regexp.MustCompile(`^[A-Za-z0-9!\-_.*'()]{1,150}$`)

func renderCommand() *cobra.Command {
	var set []string
	var overrides, tenant, dir, inhibition string
	cmd := &cobra.Command{
		Use:   "render -o DIR",
		Short: "Write the alert rules for Loki's ruler",
		Long: `Write the alert rules for Loki's ruler, with thresholds of your own, into a directory;
with --tenant into one of that name below it, which is how Loki's ruler reads local files.

Some jobs can have settings of their own, from a file of overrides:

  - name: nightly               # of the groups that their rules stand in
    job_name: nightly .*        # a regular expression, or job_id
    set: {failures: 9, window: 1h}

Settings and their defaults:

` + settingsHelp(),
		Example: `  flink-loki rules render -o /etc/loki/rules --tenant fake
  flink-loki rules render --set window=20m --set failures=5 --overrides jobs.yaml -o rules`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := renderOptions(set, overrides)
			if err != nil {
				return err
			}
			files, err := rules.Render(o)
			if err != nil {
				return fmt.Errorf("--set: %w", err)
			}
			if tenant != "" {
				if !tenants.MatchString(tenant) || tenant == "." || tenant == ".." {
					return fmt.Errorf("--tenant %q is no name of a tenant", tenant)
				}
				dir = filepath.Join(dir, tenant)
			}
			if err := writeRules(cmd, dir, files); err != nil || inhibition == "" {
				return err
			}
			return writeRules(cmd, filepath.Dir(inhibition), []rules.File{{Name: filepath.Base(inhibition), Text: rules.Alertmanager()}})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&set, "set", nil, "a setting, as name=value")
	flags.StringVar(&overrides, "overrides", "", "file of settings for some jobs")
	flags.StringVar(&tenant, "tenant", "", "tenant whose rules they are; \"fake\" where Loki has none")
	flags.StringVarP(&dir, "output", "o", "", "directory to write to, made if missing")
	flags.StringVar(&inhibition, "alertmanager", "", "file to write the inhibition rules to, a part of Alertmanager's configuration")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}

func settingsHelp() string {
	var b strings.Builder
	for _, s := range rules.Settings {
		fmt.Fprintf(&b, "  %-18s %-6s %s\n", s.Name, s.Default, s.Doc)
	}
	return strings.TrimRight(b.String(), "\n")
}

// renderOptions reads settings, and the overrides of a file.
func renderOptions(set []string, overrides string) (rules.Options, error) {
	o := rules.Options{Set: map[string]string{}}
	for _, pair := range set {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return o, fmt.Errorf("--set %q: give name=value", pair)
		}
		o.Set[name] = value
	}
	if overrides == "" {
		return o, nil
	}
	file, err := os.Open(overrides)
	if err != nil {
		return o, fmt.Errorf("--overrides: %w", err)
	}
	defer file.Close()
	if o.Overrides, err = rules.ReadOverrides(file); err != nil {
		return o, fmt.Errorf("--overrides %s: %w", overrides, err)
	}
	return o, nil
}

// writeRules writes rule files, and says which.
func writeRules(cmd *cobra.Command, dir string, files []rules.File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		name := filepath.Join(dir, f.Name)
		if err := os.WriteFile(name, f.Text, 0o644); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), name); err != nil {
			return err
		}
	}
	return nil
}
