package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
)

// requestFlags are a request as one writes it on a command line.
type requestFlags struct{ httpapi.CheckRequest }

func (f *requestFlags) addRequestFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.Method, "method", "GET", "HTTP `method` of the request")
	flags.StringVar(&f.Host, "host", "", "`host` of the request")
	flags.StringVar(&f.Path, "path", "/", "`path` of the request")
	flags.StringVar(&f.IP, "ip", "", "IP `address` of the client")
	flags.StringVar(&f.User, "user", "", "`name` of the user")
	flags.StringVar(&f.APIKey, "api-key", "", "API `key` of the client; shown only as a hash")
	flags.StringVar(&f.Tier, "tier", "", "`tier` of the client")
	flags.StringVar(&f.Priority, "priority", "", "`priority` of the request: critical, high, normal or low (default that of the rules)")
	pairs(flags, &f.Attributes, "attr", "attribute `name=value` (repeatable)")
	pairs(flags, &f.Headers, "header", "header `name=value` (repeatable)")
	pairs(flags, &f.Cookies, "cookie", "cookie `name=value` (repeatable)")
	pairs(flags, &f.Query, "query", "query parameter `name=value` (repeatable)")
	flags.Int64Var(&f.Cost.Units, "cost", 0, "cost of the request in `units` (default the cost in each rule)")
}

// pairs defines a flag for a name and a value, which can be repeated.
func pairs(flags *pflag.FlagSet, to *map[string]string, name, usage string) {
	flags.StringToStringVar(to, name, nil, usage)
	flags.Lookup(name).DefValue = "" // otherwise the help says (default [])
}

func (f *requestFlags) request() (*rule.Request, error) {
	req := &rule.Request{
		User: f.User, APIKey: f.APIKey, Tier: f.Tier, Method: f.Method, Host: f.Host, Path: f.Path,
		Attributes: f.Attributes, Cost: f.Cost.Units, Costs: f.Cost.ByUnit,
	}
	headers := map[string]string{}
	for name, value := range f.Headers {
		headers[http.CanonicalHeaderKey(name)] = value
	}
	req.Values = &manage.Question{Headers: headers, Cookies: f.Cookies, Parameters: f.Query}
	if f.IP != "" {
		var err error
		if req.IP, err = netip.ParseAddr(f.IP); err != nil {
			return nil, usage("--ip: %q is not an IP address; write for example --ip 203.0.113.7", f.IP)
		}
	}
	if !strings.HasPrefix(f.Path, "/") {
		return nil, usage("--path: %q does not begin with a slash; write for example --path /api", f.Path)
	}
	if err := req.Priority.UnmarshalText([]byte(f.Priority)); err != nil {
		return nil, usage("--priority: %v", err)
	}
	if f.Cost.Units < 0 {
		return nil, usage("--cost: %d is negative; a request costs at least 1", f.Cost.Units)
	}
	return req, nil
}

func newRulesExplain() *cobra.Command {
	var f requestFlags
	var output, clients string
	cmd := &cobra.Command{
		Use:   "explain FILE",
		Short: "Show which rules of a file apply to a request, and why the others do not",
		Long: `Show which rules of a file (- for standard input) apply to a request, with their keys
and limits, and why the other rules do not apply. Nothing is charged.`,
		Example: `  weir rules explain rules.yaml --method POST --path /api/login --ip 203.0.113.7
  weir rules explain rules.yaml --path /api/x --user alice --tier pro --attr action=post`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := f.request()
			if err != nil {
				return err
			}
			table, err := compileFile(cmd, args[0])
			if err != nil {
				return err
			}
			found := rule.Resolution{}
			if clients != "" {
				d, err := readClients(cmd, clients)
				if err != nil {
					return err
				}
				found = req.Resolve(d, false)
			}
			_, tier := req.Client()
			noteTier(cmd, table, tier)
			if output == "text" {
				printLine(cmd.OutOrStdout(), req.Lines())
				if found.Blocked {
					fmt.Fprintln(cmd.OutOrStdout(), "blocked: a client is blocked; the request is denied")
				}
			}
			return explain(cmd.OutOrStdout(), table, req, output)
		},
	}
	f.addRequestFlags(cmd)
	cmd.Flags().StringVar(&clients, "clients", "", "`file` of clients, as for weir serve")
	addOutput(cmd, &output)
	return cmd
}

// noteTier tells on standard error of a tier that no rule has, which is often misspelt.
func noteTier(cmd *cobra.Command, table *rule.Table, tier string) {
	known := map[string]bool{"": true}
	for _, c := range table.Rules() {
		for name := range c.Tiers {
			known[name] = true
		}
	}
	if !known[tier] {
		delete(known, "")
		cmd.PrintErrf("weir: no rule has the tier %q, so it gets the limits without a tier; %s\n", tier,
			notation.Hint(tier, slices.Sorted(maps.Keys(known)), "check --tier"))
	}
}

// explained is what is said of one rule.
type explained struct {
	Rule    string   `json:"rule"`
	Applies bool     `json:"applies"`
	Mode    string   `json:"mode"`
	Why     []string `json:"why,omitempty"`
	Key     string   `json:"key,omitempty"`
	Quota   string   `json:"quota,omitempty"`
	Limits  []string `json:"limits,omitempty"`
	Penalty string   `json:"penalty,omitempty"`

	Priority string `json:"priority,omitempty"` // that the rule gives the request
	Shares   string `json:"shares,omitempty"`

	Fields json.RawMessage `json:"fields,omitempty"` // all other fields of the rule

	spoken []string      // the limits in words
	others string        // the other fields in words
	less   bool          // less is reserved than a request may use
	places time.Duration // after which a place is free that nobody gives back, or 0
}

// saidFields are the fields of a rule that an explanation has in its first line.
var saidFields = []string{"id", "match", "key", "algorithm", "limit", "limits", "levels", "burst", "zone", "starts", "buckets", "shape", "concurrency", "tiers", "overrides"}

// describe adds what else the rule says of a request to which it applies, with the priority that it gives the request. Of a
// client that is unlimited it says nothing about limits.
func (x *explained) describe(c *rule.Entry, priority rule.Priority) {
	r := rule.Rule{ID: c.ID, Description: c.Description, Mode: c.Mode}
	if len(x.Limits) > 0 {
		r, x.Penalty, x.Shares = *c.Rule, c.Penalty.String(), c.Shares.String()
		x.less = c.Tokens != nil && c.Tokens.Reserve != rule.Reserve{}
		r.CountDenied = r.UnlessDeniedEarlier // the limits have the word otherwise
	}
	r.Priority, x.Priority = priority, priority.String()
	if others := otherFields(&r, saidFields).OrNil(); others != nil {
		x.Fields, x.others = others.JSON(), fieldsText(others)
	}
}

// spokenLimit is a limit of a rule, for people.
func spokenLimit(r *rule.Entry, l *weir.Compiled) string {
	text := l.Limit().String()
	if l.Algorithm() == weir.InFlight {
		text = fmt.Sprintf("%d in flight", l.Capacity())
	} else if money, _ := r.DisplayLimit(l); money != "" {
		text = strings.Replace(text, l.Limit().Rate(), money, 1)
	}
	return text
}

func explain(w io.Writer, table *rule.Table, req *rule.Request, output string) error {
	var all []explained
	for _, e := range table.Explain(req) {
		x := explained{
			Rule: e.Rule.ID, Applies: e.Applies, Mode: e.Rule.Mode.String(), Why: e.Why, Key: e.Identity, Quota: e.Quota,
		}
		for _, l := range e.Limits {
			x.Limits = append(x.Limits, l.Limit().String())
			x.spoken = append(x.spoken, spokenLimit(e.Rule, l))
			if l.Algorithm() == weir.InFlight {
				x.places = l.Limit().Period
			}
		}
		if e.Applies {
			_, tier := req.Client()
			x.describe(e.Rule, e.Rule.PriorityOf(e.Identity, tier))
		}
		all = append(all, x)
	}
	exempt, blocked := table.ExplainLists(req)
	if output == "json" {
		return writeJSON(w, map[string]any{"exempt": exempt, "blocked": blocked, "rules": all})
	}
	switch {
	case exempt != "":
		fmt.Fprintf(w, "exempt: %s; no rule applies\n", exempt)
	case blocked != "":
		fmt.Fprintf(w, "blocked: %s; the request is denied\n", blocked)
	}
	for _, x := range all {
		printExplained(w, x)
	}
	return nil
}

func printExplained(w io.Writer, x explained) {
	if !x.Applies {
		fmt.Fprintf(w, "- %s does not apply: %s\n", x.Rule, strings.Join(x.Why, "; "))
		return
	}
	limits := strings.Join(x.spoken, " and ")
	if len(x.Limits) == 0 {
		limits = "unlimited"
	}
	fmt.Fprintf(w, "+ %s applies to %s: %s (%s)", x.Rule, x.Key, limits, x.Quota)
	if x.others != "" {
		fmt.Fprintf(w, "\n    %s", x.others)
	}
	if x.places > 0 {
		fmt.Fprintf(w, "\n    in flight: a request counts until its response ends in the gateway and in middleware, and until its hold ends with /v1/reserve; with /v1/check and /v1/authz, for %s", notation.FormatDuration(x.places))
	}
	if x.less {
		fmt.Fprint(w, "\n    reserve: requests that are open can exceed a limit by the sum of what they may use and have not reserved; the metric weir_reserved_exceed_units and weir top show it")
	}
	fmt.Fprintln(w)
}
