package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/weirhq/weir/internal/build"
)

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of weir, and what it was built from",
		Args:  noArguments,
		PreRunE: func(*cobra.Command, []string) error {
			return oneOf("output", output, "text", "json")
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), build.Read())
			}
			return printBuild(cmd.OutOrStdout(), build.Read())
		},
	}
	cmd.Flags().StringVar(&output, "output", "text", "output `format`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func printBuild(w io.Writer, b build.Info) error {
	commit := "(unknown)"
	if b.Commit != "" {
		commit = fmt.Sprintf("%s of %s", b.Commit, b.Time)
	}
	if b.Modified {
		commit += ", with changes"
	}
	_, err := fmt.Fprintf(w, "weir      %s\ncommit    %s\ngo        %s\nplatform  %s\n", b.Version, commit, b.Go, b.Platform)
	return err
}
