package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/stats/archive"
)

type suggestFlags struct {
	client clientFlags
	since  string
	shares []string
	json   bool
}

func newRulesSuggest() *cobra.Command {
	var f suggestFlags
	cmd := &cobra.Command{
		Use:   "suggest [RULE]",
		Short: "Suggest limits from the traffic of a running weir",
		Long: `Suggest limits from the recorded traffic of a running weir: limits that would have denied
at most the given share of requests, for one rule or for every rule with traffic.

"19/1m" is a limit, and "100/1s burst 7" is a limit with a burst: for a token or leaky bucket,
weir knows which burst is enough at the current rate, but not whether another rate is.
"-" means that the data is shorter than the period, or that the limit is not in force any more.
"> 120" means that the current limit of 120 already denies more than this share, so weir
cannot tell which limit is enough. Add a copy of the rule with a higher limit and
"mode: shadow", and try again later.`,
		Example: `  weir rules suggest
  weir rules suggest login --since 24h --share 0.1%,1%,5%`,
		Args:              arguments(0, 1, "the id of a rule"),
		ValidArgsFunction: completeRules(&f.client),
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.since, "since", "7d", "how far to look back (`duration`)")
	flags.StringSliceVar(&f.shares, "share", []string{"0.1%", "1%"}, "shares of requests that a limit may deny (`percent list`)")
	flags.BoolVar(&f.json, "json", false, "short for --output json")
	return f.client.addClientFlags(cmd)
}

func (f *suggestFlags) run(cmd *cobra.Command, args []string) error {
	since, err := notation.ParseDuration(f.since)
	if err != nil || since < time.Second {
		return usage("--since: %q is not a valid duration; write for example 12h or 7d", f.since)
	}
	var shares []float64
	for _, text := range f.shares {
		share, err := parseShare(text)
		if err != nil {
			return err
		}
		shares = append(shares, share)
	}
	if len(shares) == 0 {
		return usage("--share is empty; write for example --share 0.1%%,1%%")
	}
	server, err := f.client.client(cmd)
	if err != nil {
		return err
	}
	all, err := suggestions(cmd.Context(), server, args, since, shares)
	if err != nil {
		return err
	}
	if f.json || f.client.output == "json" {
		return writeJSON(cmd.OutOrStdout(), map[string]any{"rules": all})
	}
	return say(cmd, "%s", suggestionTable(all, shares, f.since))
}

// parseShare reads a part of a whole: 1%, or 0.01.
func parseShare(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if isPercent {
		share = math.Round(share*1e10) / 1e12 // 0.1 of a hundred is 0.001, and not almost
	}
	if err != nil || !(share >= 0 && share < 1) {
		return 0, usage("--share: %q is not a share; write for example 1%% or 0.01", text)
	}
	return share, nil
}

// suggestions asks about a rule, or about all of which something is remembered.
func suggestions(ctx context.Context, server *client, rules []string, since time.Duration, shares []float64) ([]httpapi.SuggestAnswer, error) {
	// By the server's clock, which may not be ours.
	var now, summary httpapi.SummaryAnswer
	if err := server.fetch(ctx, "stats/summary", nil, &now); err != nil {
		return nil, err
	}
	from := max(0, now.To-int64(since/time.Second))
	query := url.Values{"from": {strconv.FormatInt(from, 10)}, "to": {strconv.FormatInt(now.To, 10)}}
	if len(rules) == 0 {
		if err := server.fetch(ctx, "stats/summary", query, &summary); err != nil {
			return nil, err
		}
		for _, r := range summary.Rules {
			if r.Rule != archive.Other {
				rules = append(rules, r.Rule)
			}
		}
	}
	var texts []string
	for _, share := range shares {
		texts = append(texts, strconv.FormatFloat(share, 'g', -1, 64))
	}
	query.Set("share", strings.Join(texts, ","))
	all := []httpapi.SuggestAnswer{}
	for _, rule := range rules {
		query.Set("rule", rule)
		var answer httpapi.SuggestAnswer
		if err := server.fetch(ctx, "stats/suggest", query, &answer); err != nil {
			return nil, err
		}
		for _, s := range answer.Suggestions {
			if s.Period <= 0 {
				return nil, server.stranger(http.StatusOK)
			}
		}
		all = append(all, answer)
	}
	return all, nil
}

func suggestionTable(all []httpapi.SuggestAnswer, shares []float64, since string) string {
	columns := []string{"rule", "tier", "period", "data", "requests", "denied"}
	for _, share := range shares {
		columns = append(columns, "limit for "+shareText(share))
	}
	var rows [][]string
	for _, answer := range all {
		for _, s := range answer.Suggestions {
			row := []string{column(answer.Rule), cmp.Or(column(s.Tier), "-"), periodText(s.Period), notation.Span(time.Duration(s.Data) * time.Second), grouped(s.Requests), deniedText(&s)}
			for _, share := range shares {
				row = append(row, targetText(&s, share))
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return fmt.Sprintf("no traffic was recorded in the last %s; weir records every 10 s, so send requests and try again, or look back further with --since\n", since)
	}
	var b strings.Builder
	printTable(&b, columns, rows)
	return b.String()
}

func periodText(seconds float64) string {
	if !(seconds > 0 && seconds < 1e9) {
		return "?"
	}
	return notation.FormatDuration(time.Duration(seconds * float64(time.Second)).Round(time.Microsecond))
}

func deniedText(s *httpapi.Suggestion) string {
	if s.Requests <= 0 {
		return grouped(s.Denied)
	}
	return fmt.Sprintf("%s (%s)", grouped(s.Denied), percent(float64(s.Denied)/float64(s.Requests)))
}

func targetText(s *httpapi.Suggestion, share float64) string {
	for _, t := range s.Targets {
		switch {
		case t.Share != share:
		case t.Above:
			return "> " + cmp.Or(printable(t.Display), grouped(t.Units))
		default:
			return column(t.Limit)
		}
	}
	return "-"
}

// shareText is a share as it was asked for.
func shareText(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e10)/1e8, 'f', -1, 64) + " %"
}
