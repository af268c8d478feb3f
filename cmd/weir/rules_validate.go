package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/phrase"
	"github.com/weirhq/weir/rule"
)

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
			return oneOf("output", output, "text", "json")
		},
		RunE: func(cmd *cobra.Command, files []string) error { return validate(cmd, files, output, strict) },
	}
	cmd.Flags().StringVar(&output, "output", "text", "output `format`: text or json")
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
		return fmt.Errorf("%s, %s", phrase.Count(errors, "error"), phrase.Count(warnings, "warning"))
	}
	if output == "text" {
		fmt.Fprintf(cmd.OutOrStdout(), "%s in %s, %s\n", phrase.Count(rules, "rule"), phrase.Count(len(files), "file"), phrase.Count(warnings, "warning"))
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
