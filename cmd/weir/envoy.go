package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/notation"
)

func newEnvoy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "envoy",
		Short: "Check configurations of Envoy's rate limit service",
		Long: `Check files of envoyproxy/ratelimit, which weir serve --envoy-config reads:

  weir envoy check /data/ratelimit/config`,
		Args: noOtherVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEnvoyCheck())
	return cmd
}

func newEnvoyCheck() *cobra.Command {
	var options envoyconfig.Options
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Report all errors in a configuration, and which fields only weir has",
		Long: `Report all errors and warnings in a directory of files of envoyproxy/ratelimit, each
with its place and a remedy. The result goes to standard output: the limits, as at
/rlconfig, and the fields that only weir has. envoyproxy/ratelimit does not load files
with these fields. The exit status is 1 if there are errors.`,
		Example: `  weir envoy check /data/ratelimit/config`,
		Args:    arguments(1, 1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := envoyconfig.Open(args[0], options)
			if invalid, ok := errors.AsType[*envoyconfig.InvalidError](err); ok {
				return unusable(cmd, args[0], "used", invalid.Problems)
			}
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.ErrOrStderr(), printableAll(dir.Warnings().String()))
			c := dir.Config()
			if err := c.Dump(cmd.OutOrStdout()); err != nil {
				return err
			}
			only := "none"
			if own := c.Own(); len(own) > 0 {
				only = strings.Join(own, ", ")
			}
			return say(cmd, "%s, %s; fields that only weir has: %s\n",
				notation.Count(len(c.Domains()), "domain"), notation.Count(c.Descriptors(), "descriptor"), only)
		},
	}
	cmd.Flags().BoolVar(&options.MergeDomains, "envoy-merge-domains", false, "allow several files to configure the same domain")
	return cmd
}
