package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/rules/ruleedit"
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
	return fmt.Errorf("%s cannot be %s; it has %s", name, done, notation.Count(len(errs), "error"))
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
			return say(cmd, "%s", rule.Format(set))
		},
	}
}

func newRulesFmt() *cobra.Command {
	var write, check bool
	cmd := &cobra.Command{
		Use:   "fmt FILE",
		Short: "Format a rules file",
		Long: `Format a rules file (- for standard input): indentation, quotes and the order of
fields. Comments and meaning stay the same. The result goes to standard output, or
with --write to the file.`,
		Example: `  weir rules fmt rules.yaml
  weir rules fmt --write rules.yaml
  weir rules fmt --check rules.yaml`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if write && check {
				return usage("--write and --check exclude each other; use one of them")
			}
			src, err := readRules(cmd, args[0])
			if err != nil {
				return err
			}
			out, problems := ruleedit.Tidy(args[0], src)
			if err := unusable(cmd, args[0], "formatted", problems); err != nil {
				return err
			}
			switch {
			case check && !bytes.Equal(src, out):
				return fmt.Errorf("%s is not formatted; run weir rules fmt --write %s", args[0], args[0])
			case check:
				return nil
			case write:
				return replace(args[0], src, out)
			}
			return say(cmd, "%s", out)
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "write the result to the file")
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; exit with status 1 if the file is not formatted")
	return cmd
}

// replace gives a file another content, the old or the new one at any time.
func replace(name string, old, content []byte) error {
	if name == "-" {
		return usage("--write needs a file, not standard input")
	}
	if bytes.Equal(old, content) {
		return nil
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return disk.Replace(name, info.Mode().Perm(), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

func newRulesValidate() *cobra.Command {
	var output string
	var strict bool
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Report all errors and warnings in rules files",
		Long: `Report all errors and warnings in rules files (- for standard input), each with its
place, a code and a remedy. "weir rules code W003" explains a code. The exit status is
1 if there are errors, or with --strict also if there are warnings.`,
		Example: `  weir rules validate rules.yaml
  weir rules validate --strict --output json rules/*.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("%s needs at least one rules file; see %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error { return validate(cmd, files, output, strict) },
	}
	addOutput(cmd, &output)
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	return cmd
}

func validate(cmd *cobra.Command, files []string, output string, strict bool) error {
	problems, rules := rule.Problems{}, 0
	for _, name := range files {
		src, err := readRules(cmd, name)
		if err != nil {
			return err
		}
		set, found := rule.Parse(name, src)
		if found.Err() == nil {
			if _, err := rule.Compile(set, rule.Options{}); err != nil {
				return err
			}
			rules += len(set.Rules)
		}
		problems = append(problems, found...)
	}
	errors, warnings := len(problems.Errors()), len(problems.Warnings())
	var err error
	if output == "json" {
		err = writeJSON(cmd.OutOrStdout(), problems)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), problems.String())
	}
	if err != nil {
		return err
	}
	if errors > 0 || strict && warnings > 0 {
		return fmt.Errorf("%s, %s", notation.Count(errors, "error"), notation.Count(warnings, "warning"))
	}
	if output == "text" {
		fmt.Fprintf(cmd.OutOrStdout(), "%s in %s, %s\n", notation.Count(rules, "rule"), notation.Count(len(files), "file"), notation.Count(warnings, "warning"))
	}
	return nil
}

func newRulesCode() *cobra.Command {
	return &cobra.Command{
		Use:   "code [CODE...]",
		Short: "Explain the codes of errors and warnings",
		Long:  "Explain codes of errors and warnings: the given ones, or all.",
		RunE: func(cmd *cobra.Command, names []string) error {
			codes := rule.Codes()
			if len(names) > 0 {
				codes = nil
				for _, name := range names {
					code, found := rule.LookUp(name)
					if !found {
						return usage("%q is not a known code; weir rules code lists them all", name)
					}
					codes = append(codes, code)
				}
			}
			for _, c := range codes {
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n    %s\n    %s\n", c.Name, c.Title, c.Meaning, c.Remedy)
			}
			return nil
		},
	}
}
