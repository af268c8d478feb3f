package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/envoy"
	"github.com/weirhq/weir/rule"
)

func newRulesImport() *cobra.Command {
	return &cobra.Command{
		Use:   "import envoy DIR",
		Short: "Turn a configuration of envoyproxy/ratelimit into rules",
		Long: `Turn a configuration of envoyproxy/ratelimit into rules, which are printed. What rules
cannot say in the same way is told on standard error.

  weir rules import envoy /data/ratelimit/config > rules.yaml

Envoy itself needs no rules: weir serve --envoy-config DIR reads such a directory as it
is.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("%s takes what to import and from where, as in %s envoy DIR", cmd.CommandPath(), cmd.CommandPath())
			}
			if args[0] != "envoy" {
				return usage("%q cannot be imported; write envoy", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := envoy.Open(args[1], envoy.Options{})
			if err != nil {
				return err
			}
			set, notes := dir.Config().Rules()
			for _, note := range notes {
				fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
			}
			_, err = cmd.OutOrStdout().Write(rule.Format(set))
			return err
		},
	}
}
