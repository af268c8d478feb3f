package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/internal/server/httpapi"
)

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
			if err := atMostOne("the number of a version")(cmd, args); err != nil || len(args) == 0 {
				return err
			}
			_, err := parseVersion(args[0])
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q := question{method: http.MethodGet, path: append([]string{"rules", "history"}, args...)}
			if len(args) == 0 {
				_, err := show(&c, cmd, q, printHistory)
				return err
			}
			_, err := show(&c, cmd, q, func(w io.Writer, v *httpapi.VersionAnswer) error {
				_, err := io.WriteString(w, v.Source)
				return err
			})
			return err
		},
	}
	return c.add(cmd)
}

func parseVersion(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, usage("%q is not a version number; weir rules history lists them", text)
	}
	return n, nil
}

func printHistory(w io.Writer, all *httpapi.HistoryAnswer) error {
	if len(all.Versions) == 0 {
		_, err := fmt.Fprintln(w, "no versions")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "version\ttime\tauthor\tsummary")
	for _, v := range all.Versions {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\n", v.Number, v.Time.Local().Format(time.DateTime), column(v.Author), printable(v.Summary))
	}
	return t.Flush()
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
		Args: exactlyOne("the number of a version"),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := parseVersion(args[0])
			if err != nil {
				return err
			}
			body := httpapi.RollbackRequest{Version: number}
			return w.write(cmd, question{method: http.MethodPost, path: []string{"rules", "rollback"}, body: body})
		},
	}
	return w.add(cmd)
}
