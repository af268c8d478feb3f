package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/envoyconfig"
	"github.com/weirhq/weir/internal/phrase"
	"github.com/weirhq/weir/rule"
)

func newRules() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Check files of rules, and manage those of a running weir",
		Long: `Check, explain and format files of rules; list, change and roll back those that a
running weir has.

A file of rules, in YAML or JSON, says who is limited, by what:

  rules:
    - id: login
      match: {method: POST, path: /api/login}
      key: ip
      limit: 5/1m`,
		Args: noOtherVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRulesValidate(), newRulesExplain(), newRulesFmt(), newRulesCode(), newRulesImport())
	cmd.AddCommand(newRulesList(), newRulesGet(), newRulesPut(), newRulesDelete(), newRulesHistory(), newRulesRollback(), newRulesSuggest())
	return cmd
}

// oneFile is for verbs that take one file of rules.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("%s takes one file of rules (- for standard input), not %d; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
	}
	return nil
}

// readRules reads a file of rules, or standard input.
func readRules(cmd *cobra.Command, name string) ([]byte, error) {
	_, source, err := readInput(cmd, name, rule.MaxDocument, "file of rules")
	return source, err
}

// readInput reads a file, or standard input, of at most so many bytes, and returns its name
// for people.
func readInput(cmd *cobra.Command, path string, most int, what string) (name string, source []byte, err error) {
	if path == "-" {
		name = "standard input"
		source, err = disk.ReadAll(cmd.InOrStdin(), name, most, what)
		return name, source, err
	}
	source, err = disk.ReadFile(path, most, what)
	return path, source, err
}

// compileFile parses and compiles a file, and prints what is doubtful about it.
func compileFile(cmd *cobra.Command, name string) (*rule.Table, error) {
	src, err := readRules(cmd, name)
	if err != nil {
		return nil, err
	}
	set, problems := rule.Parse(name, src)
	if err := unusable(cmd, name, "used", problems); err != nil {
		return nil, err
	}
	return rule.Compile(set, rule.Options{})
}

// unusable prints the errors of a file as weir rules validate does, if there are any.
func unusable(cmd *cobra.Command, name, done string, problems rule.Problems) error {
	errs := problems.Errors()
	if len(errs) == 0 {
		return nil
	}
	fmt.Fprint(cmd.ErrOrStderr(), printableAll(errs.String()))
	return fmt.Errorf("%s cannot be %s, it has %s", name, done, phrase.Count(len(errs), "error"))
}

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
			dir, err := envoyconfig.Open(args[1], envoyconfig.Options{})
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
