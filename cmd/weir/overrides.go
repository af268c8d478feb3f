package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/server/httpapi"
)

func newOverrides() *cobra.Command {
	var c clientFlags
	var ruleID, key, state string
	cmd := &cobra.Command{
		Use:   "overrides",
		Short: "Raise or lower the limit of one client for a while",
		Long: `List the temporary overrides of a running weir. A temporary override gives one client
another limit under one rule until a given time. It is not part of the rules document.`,
		Example: `  weir overrides
  weir overrides --state all --client user:alice
  weir overrides add api user:alice 500/1m --for 2h --reason "migration"
  weir overrides end 88d2730c83dba781`,
		Args: noOtherVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("state", state, "active", "ended", "all"); err != nil {
				return err
			}
			query := given(map[string]string{"state": state, "rule": ruleID, "key": key})
			return show(&c, cmd, question{path: []string{"overrides"}, query: query}, new(httpapi.OverridesAnswer), printOverrides)
		},
	}
	flags := cmd.Flags()
	c.addRule(cmd, &ruleID, "only overrides of the rule with this `id`")
	flags.StringVar(&key, "client", "", "only overrides of the client with this `key`, such as user:alice")
	flags.StringVar(&state, "state", "active", "`state` of the overrides: active, ended or all")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"active", "ended", "all"}, cobra.ShellCompDirectiveNoFileComp))
	c.addClientFlags(cmd)
	cmd.AddCommand(newOverridesAdd(), newOverridesEnd())
	return cmd
}

func printOverrides(b *strings.Builder, all *httpapi.OverridesAnswer) {
	columns := []string{"id", "rule", "client", "limit", "state", "until", "by", "reason"}
	printList(b, "no overrides", columns, all.Overrides, func(o *httpapi.OverrideAnswer) []string {
		end := o.EndsAt
		if !o.EndedAt.IsZero() {
			end = o.EndedAt
		}
		return []string{column(o.ID), column(o.Rule), column(o.Key), overrideLimit(o), fmt.Sprint(o.State), localTime(end), column(o.Author), printable(o.Reason)}
	})
	for i := range all.Overrides {
		if o := &all.Overrides[i]; o.NoEffect != "" {
			fmt.Fprintf(b, "%s has no effect: %s\n", column(o.ID), printable(o.NoEffect))
		}
	}
}

func overrideLimit(o *httpapi.OverrideAnswer) string {
	return column(quotaText(strings.Join(o.Limits, ", "), o.Burst, o.Zone, string(o.Starts)))
}

func newOverridesAdd() *cobra.Command {
	var c clientFlags
	var body httpapi.OverrideRequest
	cmd := &cobra.Command{
		Use:   "add RULE KEY LIMIT...",
		Short: "Give a client another limit for a while",
		Long: `Give a client another limit under one rule until a given time, instead of the rule's limit, tiers
and overrides. It replaces an active override for the same rule and client. A limit is written
as in a rule, such as 500/1m, or unlimited.`,
		Example: `  weir overrides add api user:alice 500/1m --for 2h --reason "migration"
  weir overrides add login ip:203.0.113.7 1/1m 5/1h --until 2026-12-31T18:00:00Z --reason "scraping"`,
		Args:              arguments(3, 0, "the id of a rule, the key of a client and a limit"),
		ValidArgsFunction: completeRules(&c),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case (body.For == "") == (body.Until == ""):
				return usage("write either --for, as in --for 2h, or --until")
			case body.Reason == "":
				return usage(`--reason is required; write why, as in --reason "migration"`)
			}
			body.Rule, body.Key, body.Limits = args[0], args[1], args[2:]
			q := question{method: http.MethodPost, path: []string{"overrides"}, body: body}
			return show(&c, cmd, q, new(httpapi.OverrideAnswer), func(b *strings.Builder, made *httpapi.OverrideAnswer) {
				fmt.Fprintf(b, "%s: %s has %s under %s until %s\n", column(made.ID), column(made.Key), overrideLimit(made), column(made.Rule), localTime(made.EndsAt))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&body.For, "for", "", "`duration` of the override, such as 2h or 7d, at most 366d")
	flags.StringVar(&body.Until, "until", "", "`time` at which the override ends, such as 2026-12-31T18:00:00Z; instead of --for")
	flags.StringVar(&body.Reason, "reason", "", "reason for the override (`text`)")
	flags.Int64Var(&body.Burst, "burst", 0, "capacity of a bucket, in `units` (default N of the limit)")
	flags.StringVar(&body.Zone, "zone", "", "time zone of calendar limits, such as Asia/Shanghai (`name`; default that of the rule)")
	flags.StringVar((*string)(&body.Starts), "starts", "", "start of calendar periods, such as 15 for months (`day or time`; default that of the rule)")
	return c.addClientFlags(cmd)
}

func newOverridesEnd() *cobra.Command {
	var c clientFlags
	cmd := &cobra.Command{
		Use:     "end ID",
		Short:   "End an override now",
		Long:    `End an override now, before its time. An override that has already ended does not change.`,
		Example: "  weir overrides end 88d2730c83dba781",
		Args:    arguments(1, 1, "the id of an override"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := question{method: http.MethodDelete, path: []string{"overrides", args[0]}}
			return show(&c, cmd, q, new(httpapi.OverrideAnswer), func(b *strings.Builder, ended *httpapi.OverrideAnswer) {
				fmt.Fprintf(b, "%s: the override of %s under %s ended at %s\n", column(ended.ID), column(ended.Key), column(ended.Rule), localTime(ended.EndedAt))
			})
		},
	}
	return c.addClientFlags(cmd)
}
