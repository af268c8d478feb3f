package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/envoyconfig"
	"github.com/weirhq/weir/internal/phrase"
	"github.com/weirhq/weir/rule"
)

func newRules() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Check rules files, and manage the rules of a running weir",
		Long: `Check, explain and format rules files; list, change and roll back the rules of a
running weir.

A rules file, in YAML or JSON, says which clients are limited, and by which limits:

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
		return usage("%s takes one rules file (- for standard input), not %d; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
	}
	return nil
}

// readRules reads a file of rules, or standard input.
func readRules(cmd *cobra.Command, name string) ([]byte, error) {
	_, source, err := readInput(cmd, name, rule.MaxDocument, "rules file")
	return source, err
}

// readInput reads a file, or standard input, of at most so many bytes, and returns its name
// for people. A pipe is as good as a file here, because somebody waits for the command.
func readInput(cmd *cobra.Command, path string, most int, what string) (name string, source []byte, err error) {
	if path == "-" {
		name = "standard input"
		source, err = disk.ReadAll(cmd.InOrStdin(), name, most, what)
		return name, source, err
	}
	file, err := os.Open(path)
	if err != nil {
		return path, nil, err
	}
	defer file.Close()
	source, err = disk.ReadAll(file, path, most, what)
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
	return fmt.Errorf("%s cannot be %s; it has %s", name, done, phrase.Count(len(errs), "error"))
}

func newRulesImport() *cobra.Command {
	return &cobra.Command{
		Use:   "import envoy DIR",
		Short: "Convert a configuration of envoyproxy/ratelimit to rules",
		Long: `Convert a configuration of envoyproxy/ratelimit to rules, and print them. Notes on
standard error list what rules cannot express in the same way.

  weir rules import envoy /data/ratelimit/config > rules.yaml

If you only serve Envoy, you do not need rules: weir serve --envoy-config DIR reads the
same files.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("%s takes a format and a directory, as in %s envoy DIR", cmd.CommandPath(), cmd.CommandPath())
			}
			if args[0] != "envoy" {
				return usage("%q is not a known format; write envoy", args[0])
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
