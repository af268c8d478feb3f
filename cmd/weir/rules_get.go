package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
)

func newRulesGet() *cobra.Command {
	var c clientFlags
	var inForce bool
	cmd := &cobra.Command{
		Use:   "get [ID]",
		Short: "Print the rules of a running weir, or one of them",
		Long: `Print the rules document of a running weir as it was written, with its comments, or one
rule of it. "weir rules put" accepts both.

With --in-force, print the document that this instance applies, even if another one is
stored. After Redis has lost its data, this brings the rules back:

  weir rules get --in-force >rules.yaml && weir rules put rules.yaml`,
		Example: `  weir rules get >rules.yaml
  weir rules get login
  weir rules get login --output json`,
		Args:              atMostOne("the id of a rule"),
		ValidArgsFunction: completeRules(&c),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := question{method: http.MethodGet, path: append([]string{"rules"}, args...)}
			if inForce {
				q.query = url.Values{"in_force": {"true"}}
			}
			if c.output == "text" {
				q.accept = "application/yaml"
			}
			got, err := c.ask(cmd, q, nil)
			switch {
			case err != nil:
				return err
			case c.output == "json":
				return printJSON(cmd.OutOrStdout(), got.body)
			}
			_, err = cmd.OutOrStdout().Write(got.body)
			return err
		},
	}
	cmd.Flags().BoolVar(&inForce, "in-force", false, "print the rules that the server applies, even if other rules are stored")
	return c.add(cmd)
}

func newRulesDelete() *cobra.Command {
	var w writeFlags
	cmd := &cobra.Command{
		Use:               "delete ID",
		Short:             "Delete a rule of a running weir",
		Long:              "Delete a rule of a running weir. The rest of the document, with its comments, stays as it is.",
		Example:           `  weir rules delete login --summary "replaced by the rule api"`,
		Args:              exactlyOne("the id of a rule"),
		ValidArgsFunction: completeRules(&w.clientFlags),
		RunE: func(cmd *cobra.Command, args []string) error {
			return w.write(cmd, question{method: http.MethodDelete, path: []string{"rules", args[0]}})
		},
	}
	return w.add(cmd)
}

// atMostOne is for verbs with an argument that may be left out.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage("%s takes at most %s, not %d arguments; see %s --help", cmd.CommandPath(), what, len(args), cmd.CommandPath())
		}
		return notEmpty(what, args)
	}
}

// exactlyOne is for verbs with one argument.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("%s takes %s, not %d arguments; see %s --help", cmd.CommandPath(), what, len(args), cmd.CommandPath())
		}
		return notEmpty(what, args)
	}
}

// notEmpty keeps a variable that was never set in a script from meaning the whole
// document.
func notEmpty(what string, args []string) error {
	if len(args) == 1 && strings.TrimSpace(args[0]) == "" {
		return usage("%s is empty; write a value, or leave the argument out if it is optional", what)
	}
	return nil
}

// writeFlags are common to all that change the rules.
type writeFlags struct {
	clientFlags
	version int64
	summary string
	placed  func(rule.Problems) rule.Problems // where warnings belong; nil leaves them as they are
}

func (f *writeFlags) add(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.Int64Var(&f.version, "if-version", 0, "`version` that the rules must have, otherwise nothing is written (default the current one)")
	flags.StringVar(&f.summary, "summary", "", "summary `text` for the history (default a list of the changes)")
	return f.clientFlags.add(cmd)
}

// current asks for the document that is in force, and its version.
var current = question{method: http.MethodGet, path: []string{"rules"}, accept: "application/yaml"}

// write sends a change of the version that was named, or of the current one, and says
// what has become of it.
func (f *writeFlags) write(cmd *cobra.Command, q question) error {
	server, err := f.client(cmd)
	if err != nil {
		return err
	}
	q.match = fmt.Sprintf(`"%d"`, f.version)
	if !cmd.Flags().Changed("if-version") {
		now, err := server.ask(cmd.Context(), current, nil)
		if err != nil {
			return err
		}
		q.match = now.tag
	}
	if f.summary != "" {
		q.query = url.Values{"summary": {f.summary}}
	}
	var written httpapi.WriteAnswer
	got, err := server.ask(cmd.Context(), q, &written)
	if err != nil {
		return server.lost(cmd.Context(), err)
	}
	if f.output == "json" {
		return printJSON(cmd.OutOrStdout(), got.body)
	}
	if q.match == fmt.Sprintf(`"%d"`, written.Version.Number) {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "version %d is the same already; nothing was written\n", written.Version.Number)
		return err
	}
	if f.placed != nil {
		written.Warnings = f.placed(written.Warnings)
	}
	return printWritten(cmd, &written)
}
