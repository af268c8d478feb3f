package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/server/httpapi"
)

func newSpend() *cobra.Command {
	var c clientFlags
	var by, from, to, ruleID string
	var asCSV bool
	cmd := &cobra.Command{
		Use:   "spend",
		Short: "Report what requests cost under rules that count money",
		Long: `Report what requests cost under rules that count money, by rule and, with --by, by client,
model and day. Days are those in UTC. Each rule counts by itself, so do not add up rules. weir
keeps 90 days by default; see --stats-keep of weir serve.`,
		Example: `  weir spend
  weir spend --by model --from 2026-01-01 --to 2026-01-31
  weir spend --by client,model,day --csv >spend.csv`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := question{path: []string{"spend"}, query: given(map[string]string{"by": by, "from": from, "to": to, "rule": ruleID})}
			if !asCSV {
				return show(&c, cmd, q, new(httpapi.SpendAnswer), printSpend)
			}
			server, err := c.client(cmd)
			if err != nil {
				return err
			}
			q.accept = "text/csv"
			got, err := server.ask(cmd.Context(), q, nil)
			if err != nil {
				return err
			}
			return say(cmd, "%s", got.body)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&by, "by", "", "what lines tell apart (`list` of client, model and day)")
	flags.StringVar(&from, "from", "", "first `day`, as in 2026-01-31 (default 29 days before --to)")
	flags.StringVar(&to, "to", "", "last `day` (default today)")
	c.addRule(cmd, &ruleID, "only the rule with this `id`")
	flags.BoolVar(&asCSV, "csv", false, "print a table for spreadsheets, with all digits")
	return c.addClientFlags(cmd)
}

// printSpend prints a report as a table, without columns that are empty.
func printSpend(b *strings.Builder, a *httpapi.SpendAnswer) {
	fmt.Fprintf(b, "%s to %s (UTC)", a.From, a.To)
	if a.Local {
		b.WriteString("; the statistics are unavailable, and this instance alone has charged this")
	}
	if len(a.Lines) == 0 {
		b.WriteString(": nothing was charged\n")
		return
	}
	b.WriteString("\n\n")
	columns := []string{"rule", "level", "client", "model", "day", "requests", "spent", "input tokens", "output tokens"}
	var rows [][]string
	for _, l := range a.Lines {
		rows = append(rows, []string{
			l.Rule, column(l.Level), column(l.Client), column(l.Model), l.Day, grouped(l.Requests), l.Display, grouped(l.InputTokens), grouped(l.OutputTokens),
		})
	}
	for i := len(columns) - 1; i >= 0; i-- {
		if !slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" }) {
			columns = slices.Delete(columns, i, i+1)
			for j := range rows {
				rows[j] = slices.Delete(rows[j], i, i+1)
			}
		}
	}
	printTable(b, columns, rows)
}
