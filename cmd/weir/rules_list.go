package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
)

func newRulesList() *cobra.Command {
	var c clientFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the rules of a running weir",
		Long: `List the rules of a running weir, in their order. If the rules in force differ from the
stored ones, or the stored ones cannot be loaded, list those in force, and say so on
standard error.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("%q is unexpected; %s asks a running weir (--server) and reads no file; for a file, use weir rules validate FILE or weir rules explain FILE", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := c.client(cmd)
			if err != nil {
				return err
			}
			all, got, err := rulesInForce(cmd, server)
			if err != nil {
				return err
			}
			if c.output == "json" {
				return printJSON(cmd.OutOrStdout(), got.body)
			}
			set, err := answeredSet(all)
			if err != nil {
				return fmt.Errorf("the rules of %s cannot be read; it may be a newer version of weir: %w", server.base, err)
			}
			return say(cmd, "%s", listRules(set, all.Version))
		},
	}
	return c.addClientFlags(cmd)
}

// rulesInForce returns the rules that a server applies. It prints a note on standard
// error if other rules are stored.
func rulesInForce(cmd *cobra.Command, server *client) (*httpapi.RulesAnswer, *answer, error) {
	var stored, judging httpapi.RulesAnswer
	got, err := server.ask(cmd.Context(), question{path: []string{"rules"}}, &stored)
	if err != nil {
		return nil, nil, err
	}
	if n := stored.NotLoaded; n != nil && !stored.Unavailable {
		cmd.PrintErrf("weir: the stored rules have failed to load since %s, so version %d stays in force: %s\n",
			time.Unix(n.Since, 0).Format(time.DateTime), stored.InForce, printable(n.Error))
	}
	switch {
	case stored.Unavailable:
		cmd.PrintErrf("weir: the store of the rules is unavailable; these are the rules in force on %s\n", server.base)
	case stored.InForce != stored.Version:
		got, err = server.ask(cmd.Context(), question{path: []string{"rules"}, query: url.Values{"in_force": {"true"}}}, &judging)
		if err != nil {
			return nil, nil, err
		}
		cmd.PrintErrf("weir: version %d is stored, but %s applies version %d, which is listed here; \"weir rules get --in-force\" prints it\n",
			stored.Version, server.base, stored.InForce)
		return &judging, got, nil
	}
	return &stored, got, nil
}

func listRules(set *rule.Set, version int64) string {
	var b strings.Builder
	if len(set.Rules) > 0 {
		var rows [][]string
		for i := range set.Rules {
			r := &set.Rules[i]
			rows = append(rows, []string{r.ID, r.Mode.String(), column(notation.Join(r.Key, " + ")), limitText(r), matchText(&r.Match), shortFields(otherFields(r, listedFields))})
		}
		printTable(&b, []string{"id", "mode", "key", "limit", "match", "other fields"}, rows)
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s in version %d", notation.Count(len(set.Rules), "rule"), version)
	if n := listed(set.Exempt); n > 0 {
		fmt.Fprintf(&b, ", %d exempt", n)
	}
	if n := listed(set.Block); n > 0 {
		fmt.Fprintf(&b, ", %d blocked", n)
	}
	return b.String() + "\n"
}

func listed(l rule.List) int { return len(l.IPs) + len(l.Users) + len(l.APIKeys) }

// listedFields are the fields of a rule that have a column, and its note.
var listedFields = []string{"id", "description", "mode", "key", "match", "algorithm", "limit", "limits", "levels", "burst", "zone", "starts", "concurrency", "tiers", "overrides"}

// otherFields are all fields of a rule that differ from their defaults, except some, by the table of package rule.
func otherFields(r *rule.Rule, except []string) *document.Element {
	e := document.Read("rule.json", string(rule.RuleToJSON(r)), func(document.Fault) {})
	e.Members = slices.DeleteFunc(e.Members, func(m document.Member) bool { return slices.Contains(except, m.Name.Text) })
	return e
}

// fieldsText is fields in one line, as in "on_failure: local, cost: 3".
func fieldsText(e *document.Element) string {
	text := e.Brief()
	return printable(text[1 : len(text)-1])
}

// shortFields is fieldsText with the names alone of what is long, so that none has to be cut.
func shortFields(e *document.Element) string {
	const longest = 80 // has room for any on_failure
	short := []string{}
	for _, m := range e.Members {
		one := fieldsText(&document.Element{Kind: document.Mapping, Members: []document.Member{m}})
		if len(one) > len(m.Name.Text)+longest {
			one = m.Name.Text
		}
		short = append(short, one)
	}
	return cmp.Or(strings.Join(short, ", "), "-")
}

func limitText(r *rule.Rule) string {
	text := quotaText(strings.Join(r.Quota.Texts(), ", "), r.Quota.Burst, r.Quota.Zone, r.Quota.Starts)
	if len(r.Quota.Rates) > 0 || r.Quota.Unlimited {
		algorithm := r.Algorithm
		if len(r.Quota.Rates) > 0 && r.Quota.Rates[0].Currency != "" && algorithm == weir.TokenBucket {
			algorithm = weir.FixedWindow // a budget is one by default
		}
		text = algorithm.String() + " " + text
	}
	for _, name := range slices.Sorted(maps.Keys(r.Quota.Levels)) {
		q := r.Quota.Levels[name]
		text = strings.TrimPrefix(text+"; "+name+" "+quotaText(strings.Join(q.Texts(), ", "), q.Burst, q.Zone, q.Starts), "; ")
	}
	if len(r.Tiers) > 0 {
		text += " + " + notation.Count(len(r.Tiers), "tier")
	}
	if len(r.Overrides) > 0 {
		text += " + " + notation.Count(len(r.Overrides), "override")
	}
	return text
}

// quotaText is limits with what else is said of them.
func quotaText(limits string, burst int64, zone, starts string) string {
	if burst > 0 {
		limits += fmt.Sprintf(" burst %d", burst)
	}
	if zone != "" {
		limits += " zone " + zone
	}
	if starts != "" {
		limits += " starts " + starts
	}
	return limits
}

func matchText(m *rule.Match) string {
	var parts []string
	for _, values := range [][]string{m.Methods, m.Hosts, m.Paths} {
		if len(values) > 0 {
			parts = append(parts, strings.Join(values, ","))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		values := m.Attributes[name]
		if len(values) == 0 {
			values = []string{"*"}
		}
		parts = append(parts, name+"="+strings.Join(values, ","))
	}
	if m.When != "" {
		parts = append(parts, "when "+m.When)
	}
	if len(parts) == 0 {
		return "everything"
	}
	return column(strings.Join(parts, " "))
}

// completeRules offers the ids of rules, if the server answers quickly. Errors are not
// shown during completion.
func completeRules(c *clientFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		server, err := c.client(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		server.timeout = completionTimeout
		return ruleIDs(cmd.Context(), server, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

func ruleIDs(ctx context.Context, server *client, prefix string) (ids []cobra.Completion) {
	const most = 1000
	var all struct {
		Rules []struct{ ID, Description string }
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if err := server.fetch(ctx, "rules", nil, &all); err != nil {
		return nil
	}
	for _, r := range all.Rules {
		if strings.HasPrefix(r.ID, prefix) && len(ids) < most {
			ids = append(ids, cobra.CompletionWithDesc(r.ID, printable(r.Description)))
		}
	}
	return ids
}

// answeredSet is the set of an answer with rules.
func answeredSet(a *httpapi.RulesAnswer) (*rule.Set, error) {
	document := map[string]json.RawMessage{"rules": a.Rules, "exempt": a.Exempt, "block": a.Block}
	if len(a.Levels) > 0 {
		document["levels"], _ = json.Marshal(a.Levels) // cannot fail: they are texts
	}
	maps.DeleteFunc(document, func(_ string, value json.RawMessage) bool { return len(value) == 0 })
	source, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return rule.Usable("rules.json", source)
}
