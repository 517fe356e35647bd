// Command flink-loki shows what the output plugin makes of a log, without Fluent Bit
// and without Loki.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{
		Use:           "flink-loki",
		Short:         "Typed checkpoint events from Flink and RocksDB logs",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(parseCommand(), stateCommand(), shipCommand(), rulesCommand(), versionCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "flink-loki:", err)
		os.Exit(1)
	}
}
