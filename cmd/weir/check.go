package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/server/httpapi"
)

// errDenied is that a request may not pass: neither a failure nor wrong usage, and with
// an exit code of its own.
var errDenied = errors.New("denied")

const exitDenied = 3

func newCheck() *cobra.Command {
	var f checkFlags
	var c clientFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether a running weir allows a request",
		Long: `Check whether a running weir allows a request. The request is charged, except with --peek.

The output lists every limit that applies. The exit status is 0 if the request is
allowed, 3 if it is denied, and 1 if the check failed.`,
		Example: `  weir check --method POST --path /api/login --ip 203.0.113.7
  weir check --path /api/x --user alice --tier pro --attr action=post --peek
  weir check --user alice >/dev/null || echo "denied, or the check failed"`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := f.request(); err != nil {
				return err // as weir would not accept it
			}
			req, err := f.checkRequest()
			if err != nil {
				return err
			}
			q := question{method: http.MethodPost, path: []string{"check"}, body: req}
			var verdict httpapi.CheckAnswer
			err = show(&c, cmd, q, &verdict, func(b *strings.Builder, v *httpapi.CheckAnswer) { printVerdict(b, v, req.Peek) })
			if err == nil && !verdict.Allowed {
				return errDenied
			}
			return err
		},
	}
	f.addCheckFlags(cmd)
	return c.addClientFlags(cmd)
}

// checkFlags are the flags of a request that a running weir checks.
type checkFlags struct {
	requestFlags
	apiKeyFile string
}

func (f *checkFlags) addCheckFlags(cmd *cobra.Command) {
	f.requestFlags.addRequestFlags(cmd)
	cmd.Flags().StringVar(&f.apiKeyFile, "api-key-file", "", "`file` with the API key, which keeps it out of the process list")
	cmd.Flags().BoolVar(&f.Peek, "peek", false, "check without charging anything")
}

// checkRequest is what to send, with the API key of the file.
func (f *checkFlags) checkRequest() (*httpapi.CheckRequest, error) {
	if f.apiKeyFile != "" {
		if f.APIKey != "" {
			return nil, usage("--api-key and --api-key-file exclude each other; use one of them")
		}
		var err error
		if f.APIKey, err = readSecret(f.apiKeyFile); err != nil {
			return nil, err
		}
	}
	req := f.CheckRequest
	return &req, nil
}

// readSecret reads a file with one secret in it.
func readSecret(name string) (string, error) {
	content, err := disk.ReadFile(name, 8<<10, "key")
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" || strings.ContainsAny(secret, "\r\n") {
		return "", fmt.Errorf("%s does not contain exactly one key; write the key on a line of its own, and nothing else", name)
	}
	return secret, nil
}

// printLimits prints what each limit says.
func printLimits(b *strings.Builder, none string, all []httpapi.LimitAnswer) {
	printList(b, none, []string{"rule", "key", "limit", "remaining", "resets in", "retry after"}, all, limitRow)
}

func printVerdict(b *strings.Builder, v *httpapi.CheckAnswer, peek bool) {
	fmt.Fprintln(b, summarize(v, peek))
	if v.Message != "" && !v.Allowed {
		fmt.Fprintf(b, "message to the client: %s\n", printable(v.Message))
	}
	if len(v.Results) > 0 {
		b.WriteByte('\n')
		printLimits(b, "", v.Results)
	}
}

// summarize is the answer in one line.
func summarize(v *httpapi.CheckAnswer, peek bool) string {
	var b strings.Builder
	switch {
	case v.Allowed && v.DelayMS > 0:
		fmt.Fprintf(&b, "allowed after %s", span(v.DelayMS))
	case v.Allowed:
		b.WriteString("allowed")
	default:
		b.WriteString("denied")
	}
	b.WriteString(": ")
	switch {
	case v.Reason == "exempt":
		b.WriteString("the client is exempt, and no limit applies")
	case v.Reason == "blocked":
		b.WriteString("the client is blocked")
	case v.Reason == "unknown_client":
		b.WriteString("the client is unknown")
	case v.Reason == "unavailable":
		fmt.Fprintf(&b, "the store is unavailable, and rule %s fails closed", v.Rule)
	case len(v.Results) == 0:
		b.WriteString("no rule applies")
	case v.Rule == "" || v.Limit == 0:
		b.WriteString("no limit could be checked")
	case v.Allowed:
		fmt.Fprintf(&b, "%s has %s remaining, resets in %s", v.Rule, ofLimit(v.Display, v.Remaining, v.Limit), span(v.ResetAfterMS))
	case v.RetryAfterMS == nil:
		fmt.Fprintf(&b, "the cost is more than %s ever allows at once", v.Rule)
	default:
		fmt.Fprintf(&b, "%s has %s remaining, retry after %s", v.Rule, ofLimit(v.Display, v.Remaining, v.Limit), span(*v.RetryAfterMS))
	}
	if v.Priority != "" {
		fmt.Fprintf(&b, "; its priority is %s", v.Priority)
	}
	switch {
	case !v.Degraded || v.Reason == "unavailable":
	case slices.ContainsFunc(v.Results, func(r httpapi.LimitAnswer) bool { return !r.Asked || r.Local }):
		b.WriteString("; degraded, because the store is unavailable")
	default:
		b.WriteString("; degraded, because the rules or the clients are not loaded yet")
	}
	if peek {
		b.WriteString("; nothing was charged")
	}
	return b.String()
}

// limitRow is what one limit says, for a table.
func limitRow(r *httpapi.LimitAnswer) []string {
	name := r.Rule
	switch {
	case r.Soft:
		name += " (soft)"
	case r.Shadow:
		name += " (shadow)"
	}
	if r.Penalty {
		name += " (penalty)"
	}
	if r.Warning > 0 {
		name += fmt.Sprintf(" (at least %d %% used)", r.Warning)
	}
	policy := r.Policy
	if r.Display != nil {
		policy = r.Display.Policy
	}
	row := []string{name, printable(r.Key), r.Algorithm + " " + policy, "?", "?", "-"}
	if !r.Asked {
		return row
	}
	row[3], row[4] = ofLimit(r.Display, r.Remaining, r.Limit), span(r.ResetAfterMS)
	if r.Leased > 0 {
		row[3] += fmt.Sprintf(", %d on lease", r.Leased)
	}
	if r.Leave > 0 {
		row[3] += fmt.Sprintf(", leaves %d", r.Leave)
	}
	switch {
	case r.Allowed:
	case r.RetryAfterMS == nil:
		row[5] = "never"
	default:
		row[5] = span(*r.RetryAfterMS)
	}
	return row
}

// ofLimit is what is left of a limit, as people read it if it is one of money.
func ofLimit(d *httpapi.Display, remaining, limit int64) string {
	if d != nil && d.Limit != "" {
		return d.Remaining + " of " + d.Limit
	}
	return fmt.Sprintf("%d of %d", remaining, limit)
}

func newKeys() *cobra.Command {
	var c clientFlags
	var ruleID, tier string
	cmd := &cobra.Command{
		Use:   "keys KEY",
		Short: "Show or reset the usage of a client",
		Long: `Show the limits and the usage of a client, and charge nothing. A key is written as in answers and
overrides. The tier, host, method and route in it may be omitted: user:alice is then every key
that a rule with key [user, route] counts for her.`,
		Example: `  weir keys user:alice
  weir keys 'user:alice|route:/api/orders/{id}' --rule endpoints
  weir keys reset ip:203.0.113.7 --rule login`,
		Args: arguments(1, 1, "the key of a client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(&c, cmd, keyQuestion(http.MethodGet, args[0], ruleID, tier), new(httpapi.KeysAnswer), func(b *strings.Builder, a *httpapi.KeysAnswer) {
				printLimits(b, column(a.Key)+": no limit applies", a.Results)
			})
		},
	}
	flags := cmd.Flags()
	c.addRule(cmd, &ruleID, "only the rule with this `id`")
	flags.StringVar(&tier, "tier", "", "`tier` of the client (default the tier of its last request)")
	c.addClientFlags(cmd)
	cmd.AddCommand(newKeysReset())
	return cmd
}

func newKeysReset() *cobra.Command {
	var c clientFlags
	var ruleID string
	cmd := &cobra.Command{
		Use:     "reset KEY",
		Short:   "Reset the usage of a client",
		Long:    `Reset the usage of a client under one rule, or under every rule that counts by such keys.`,
		Example: "  weir keys reset user:alice --rule endpoints",
		Args:    arguments(1, 1, "the key of a client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(&c, cmd, keyQuestion(http.MethodDelete, args[0], ruleID, ""), new(httpapi.ResetAnswer), func(b *strings.Builder, a *httpapi.ResetAnswer) {
				fmt.Fprintf(b, "%s: usage reset under %s\n", column(a.Key), column(strings.Join(a.Rules, ", ")))
			})
		},
	}
	c.addRule(cmd, &ruleID, "only the rule with this `id`")
	return c.addClientFlags(cmd)
}

func keyQuestion(method, key, rule, tier string) question {
	return question{method: method, path: []string{"keys"}, query: given(map[string]string{"key": key, "rule": rule, "tier": tier})}
}
