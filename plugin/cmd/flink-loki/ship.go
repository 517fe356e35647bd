package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"flink-loki/plugin/loki"
	"flink-loki/plugin/ship"
)

func shipCommand() *cobra.Command {
	var deadLetters string
	var settings []string
	cmd := &cobra.Command{
		Use:   "ship --dead-letters FILE",
		Short: "Send the entries of a dead-letter file again",
		Long: `Send the entries of a dead-letter file to Loki again, when what Loki refused them for is
mended. Entries that Loki has already stay there once. What it refuses again is printed
on standard output, as lines of another dead-letter file; the exit status is then 1.`,
		Example: `  flink-loki ship --dead-letters /var/lib/flink-loki/dead.jsonl --set url=http://loki:3100 --set tenant_id=prod > still-dead.jsonl`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			values := map[string]string{}
			for _, s := range settings {
				name, value, ok := strings.Cut(s, "=")
				if _, known := ship.OptionByName(name); !ok || !known {
					return fmt.Errorf("--set %q: give name=value with an option of the plug-in", s)
				}
				values[name] = value
			}
			file, err := os.Open(deadLetters)
			if err != nil {
				return err
			}
			defer file.Close()
			sender, err := ship.NewSender(func(name string) string { return values[name] }, cmd.ErrOrStderr(), version)
			if err != nil {
				return err
			}
			defer sender.Close()
			sent, dead, bad := 0, 0, 0
			send := func(l *loki.DeadLetter) error {
				refused, err := sender.Send(cmd.Context(), l)
				if err != nil {
					return err
				}
				if refused == nil {
					sent++
				}
				dead += len(refused)
				return loki.WriteDeadLetters(cmd.OutOrStdout(), refused...)
			}
			err = loki.ReadDeadLetters(file, send, func(err error) {
				bad++
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", deadLetters, err)
			})
			fmt.Fprintf(cmd.ErrOrStderr(), "%d entries are delivered, %d are not\n", sent, dead)
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", deadLetters, err)
			case dead > 0:
				return fmt.Errorf("%d entries are refused again, or are no entries", dead)
			case bad > 0:
				return fmt.Errorf("%d lines are no dead letters", bad)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&deadLetters, "dead-letters", "", "the file, one letter a line")
	flags.StringArrayVar(&settings, "set", nil, "an option of the plug-in, such as url=http://loki:3100")
	_ = cmd.MarkFlagRequired("dead-letters")
	return cmd
}
