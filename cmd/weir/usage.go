package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/internal/notation"
)

// usageError is a mistake in how the command was called, rather than in what it
// did.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// badFlag is what a package says of the value of a flag, without the name of the package.
func badFlag(flag, pkg string, err error) error {
	return usage("--%s: %s", flag, strings.TrimPrefix(err.Error(), pkg+": "))
}

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// maxReported keeps a long list of mistakes from scrolling away.
const maxReported = 20

// report writes an error, each line of it a sentence, and returns the exit code.
func report(w io.Writer, err error) int {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		if i == maxReported {
			fmt.Fprintf(w, "weir: and %d more.\n", len(lines)-i)
			break
		}
		// Errors of package weir bring its name along; once is enough.
		line = strings.Replace(strings.TrimPrefix(line, "weir: "), ": weir: ", ": ", 1)
		fmt.Fprintf(w, "weir: %s\n", line)
	}
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// flagError says what is wrong with a flag, and what may have been meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		return unknownFlag(cmd, unknown.GetSpecifiedName())
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		if f.Value.Type() == "stringToString" {
			placeholder, _ := pflag.UnquoteUsage(f)
			return usage("--%s: %q is invalid; write %s", f.Name, invalid.GetValue(), placeholder)
		}
		return usage("--%s: %q is invalid; write %s, as in --%s %s", f.Name, invalid.GetValue(), kind(f), f.Name, f.DefValue)
	case errors.As(err, &missing):
		return usage("--%s requires a value; see %s --help", missing.GetSpecifiedName(), cmd.CommandPath())
	}
	return usage("%w; see %s --help", err, cmd.CommandPath())
}

func unknownFlag(cmd *cobra.Command, name string) error {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := notation.Nearest(name, names); near != "" {
		return usage("--%s is unknown; did you mean --%s?", name, near)
	}
	return usage("--%s is unknown; see %s --help", name, cmd.CommandPath())
}

// kind says in words what a flag's value is.
func kind(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64", "uint64":
		return "a whole number"
	case "bool":
		return "true or false"
	case "stringToString":
		return "a list of name=value"
	}
	return "a " + f.Value.Type()
}

func unknownVerb(root *cobra.Command, args []string) error {
	verb := ""
	if i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }); i >= 0 {
		verb = args[i]
	}
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usage("%q is unknown; %s", verb, notation.Hint(verb, names, "see "+root.CommandPath()+" --help"))
}

// noOtherVerb is for verbs that have others below them.
func noOtherVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownVerb(cmd, args)
}

// oneOf checks a flag that takes one of a few words.
func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return usage("--%s: %q is unknown; %s", flag, value, notation.Hint(value, words, "write "+strings.Join(words, " or ")))
}

// addOutput adds the flag --output to a verb, which is checked before the verb runs.
func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVar(output, "output", "text", "output `format`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error { return oneOf("output", *output, "text", "json") }
}

// oneFile is for verbs that take one file of rules.
var oneFile = arguments(1, 1, "one rules file (- for standard input)")

// arguments is for verbs that take from least to most arguments; 0 is no maximum.
func arguments(least, most int, what string) cobra.PositionalArgs {
	takes := what
	if least == 0 {
		takes = "at most " + what
	}
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most > 0 && len(args) > most {
			return usage("%s takes %s, not %d arguments; see %s --help", cmd.CommandPath(), takes, len(args), cmd.CommandPath())
		}
		// A variable that was never set in a script must not mean the whole document.
		if slices.ContainsFunc(args, func(arg string) bool { return strings.TrimSpace(arg) == "" }) {
			empty := what
			if len(args) > 1 {
				empty = "an argument"
			}
			return usage("%s is empty; write a value, or leave the argument out if it is optional", empty)
		}
		return nil
	}
}

// noArguments is for verbs that are told everything by flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage("%q is unexpected; %s takes only flags, see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
}

// printUsage prints how a command is called, as cobra does, but with describeFlags. cobra would
// take a template for that; a program with a template keeps every method of every type, because a
// template may name any, and weir would be a third larger.
func printUsage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:")
	if cmd.Runnable() {
		b.WriteString("\n  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n  " + cmd.CommandPath() + " [command]")
	}
	if cmd.HasExample() {
		b.WriteString("\n\nExamples:\n" + cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n\nAvailable Commands:")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(&b, "\n  %-*s %s", c.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	if cmd.HasAvailableLocalFlags() {
		b.WriteString("\n\nFlags:")
		describeFlags(&b, cmd.LocalFlags())
	}
	if cmd.HasAvailableInheritedFlags() {
		b.WriteString("\n\nGlobal Flags:")
		describeFlags(&b, cmd.InheritedFlags())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\nUse \"%s [command] --help\" for more information about a command.", cmd.CommandPath())
	}
	_, err := fmt.Fprintln(cmd.OutOrStderr(), b.String())
	return err
}

const (
	width      = 80 // of the help
	textColumn = 33 // where the texts of flags begin, unless all names are shorter
)

// describeFlags writes a line for each flag, and its text beside it. If the name is too long for
// that, the text is below it, so that one long name does not make the texts of all others narrow.
func describeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	column := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if n := len(nameOf(f)) + len("   "); !f.Hidden && n <= textColumn {
			column = max(column, n)
		}
	})
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := nameOf(f)
		if len(name)+len("   ") > column {
			b.WriteString("\n" + name)
			name = ""
		}
		fmt.Fprintf(b, "\n%-*s", column, name)
		used := column
		for i, word := range strings.Fields(textOf(f)) {
			if used += len(word) + len(" "); used > width && i > 0 {
				fmt.Fprintf(b, "\n%*s", column, "")
				used = column + len(word) + len(" ")
			} else if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(word)
		}
	})
}

// nameOf is such as "  -h, --help" or "      --http address".
func nameOf(f *pflag.Flag) string {
	name := "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	if kind, _ := pflag.UnquoteUsage(f); kind != "" {
		name += " " + kind
	}
	return name
}

// textOf is what a flag is for, and its default.
func textOf(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return text
	}
	if f.Value.Type() == "string" {
		return fmt.Sprintf("%s (default %q)", text, f.DefValue)
	}
	return fmt.Sprintf("%s (default %s)", text, f.DefValue)
}
