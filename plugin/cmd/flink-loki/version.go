package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"flink-loki/parsers"
	"flink-loki/plugin/enrich"
)

// version is the program's, set when it is built.
var version = "dev"

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of program, event schema and state",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "flink-loki %s\nevent schema %d\nstate format %d\n",
				version, parsers.SchemaVersion, enrich.StateFormat)
			return err
		},
	}
}
