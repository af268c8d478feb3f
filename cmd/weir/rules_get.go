package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/rules/repo"
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
		Args:              arguments(0, 1, "the id of a rule"),
		ValidArgsFunction: completeRules(&c),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := c.client(cmd)
			if err != nil {
				return err
			}
			q := question{path: append([]string{"rules"}, args...)}
			if inForce {
				q.query = url.Values{"in_force": {"true"}}
			}
			if c.output == "text" {
				q.accept = "application/yaml"
			}
			got, err := server.ask(cmd.Context(), q, nil)
			if err != nil {
				return err
			}
			return c.print(cmd, got, func(b *strings.Builder) { b.Write(got.body) })
		},
	}
	cmd.Flags().BoolVar(&inForce, "in-force", false, "print the rules that the server applies, even if other rules are stored")
	return c.addClientFlags(cmd)
}

func newRulesDelete() *cobra.Command {
	var w writeFlags
	cmd := &cobra.Command{
		Use:               "delete ID",
		Short:             "Delete a rule of a running weir",
		Long:              "Delete a rule of a running weir. The rest of the document, with its comments, stays as it is.",
		Example:           `  weir rules delete login --summary "replaced by the rule api"`,
		Args:              arguments(1, 1, "the id of a rule"),
		ValidArgsFunction: completeRules(&w.clientFlags),
		RunE: func(cmd *cobra.Command, args []string) error {
			return w.write(cmd, question{method: http.MethodDelete, path: []string{"rules", args[0]}})
		},
	}
	return w.addWriteFlags(cmd)
}

// writeFlags are common to all that change the rules.
type writeFlags struct {
	clientFlags
	version int64
	summary string
	placed  func(rule.Problems) rule.Problems // where warnings belong; nil leaves them as they are
}

func (f *writeFlags) addWriteFlags(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.Int64Var(&f.version, "if-version", 0, "`version` that the rules must have, otherwise nothing is written (default the current one)")
	flags.StringVar(&f.summary, "summary", "", "summary `text` for the history (default a list of the changes)")
	return f.clientFlags.addClientFlags(cmd)
}

// current asks for the document that is in force, and its version.
var current = question{path: []string{"rules"}, accept: "application/yaml"}

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
		return say(cmd, "version %d is the same already; nothing was written\n", written.Version.Number)
	}
	if f.placed != nil {
		written.Warnings = f.placed(written.Warnings)
	}
	return printWritten(cmd, &written)
}

func newRulesHistory() *cobra.Command {
	var c clientFlags
	cmd := &cobra.Command{
		Use:   "history [VERSION]",
		Short: "List the versions of the rules of a running weir",
		Long: fmt.Sprintf(`List the versions of the rules of a running weir, the latest first: when each was
written, by whom, and what changed. With VERSION, print the document of that version.
weir keeps the last %d versions.`, repo.MaxHistory),
		Example: `  weir rules history
  weir rules history 7 | diff - <(weir rules get)`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := arguments(0, 1, "the number of a version")(cmd, args); err != nil || len(args) == 0 {
				return err
			}
			_, err := parseVersion(args[0])
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q := question{path: append([]string{"rules", "history"}, args...)}
			if len(args) == 0 {
				return show(&c, cmd, q, new(httpapi.HistoryAnswer), printHistory)
			}
			return show(&c, cmd, q, new(httpapi.VersionAnswer), func(b *strings.Builder, v *httpapi.VersionAnswer) { b.WriteString(v.Source) })
		},
	}
	return c.addClientFlags(cmd)
}

func parseVersion(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, usage("%q is not a version number; weir rules history lists them", text)
	}
	return n, nil
}

func printHistory(b *strings.Builder, all *httpapi.HistoryAnswer) {
	printList(b, "no versions", []string{"version", "time", "author", "summary"}, all.Versions, func(v *httpapi.VersionAnswer) []string {
		return []string{fmt.Sprint(v.Number), localTime(v.Time), column(v.Author), printable(v.Summary)}
	})
}

func newRulesRollback() *cobra.Command {
	var w writeFlags
	cmd := &cobra.Command{
		Use:   "rollback VERSION",
		Short: "Restore an older version of the rules of a running weir",
		Long: `Restore an older version of the rules of a running weir, as a new version. The versions
in between stay in the history.`,
		Example: `  weir rules history
  weir rules rollback 7`,
		Args: arguments(1, 1, "the number of a version"),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := parseVersion(args[0])
			if err != nil {
				return err
			}
			body := httpapi.RollbackRequest{Version: number}
			return w.write(cmd, question{method: http.MethodPost, path: []string{"rules", "rollback"}, body: body})
		},
	}
	return w.addWriteFlags(cmd)
}
