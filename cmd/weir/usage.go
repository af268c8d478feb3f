package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
