package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/server/httpapi"
)

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
		Args: exactlyOne("the key of a client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(&c, cmd, keyQuestion(http.MethodGet, args[0], ruleID, tier), printKeys)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&ruleID, "rule", "", "only the rule with this `id`")
	flags.StringVar(&tier, "tier", "", "`tier` of the client (default the tier of its last request)")
	_ = cmd.RegisterFlagCompletionFunc("rule", completeRules(&c))
	c.add(cmd)
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
		Args:    exactlyOne("the key of a client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(&c, cmd, keyQuestion(http.MethodDelete, args[0], ruleID, ""), func(w io.Writer, a *httpapi.ResetAnswer) error {
				_, err := fmt.Fprintf(w, "%s: usage reset under %s\n", column(a.Key), column(strings.Join(a.Rules, ", ")))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&ruleID, "rule", "", "only the rule with this `id`")
	_ = cmd.RegisterFlagCompletionFunc("rule", completeRules(&c))
	return c.add(cmd)
}

func keyQuestion(method, key, rule, tier string) question {
	return question{method: method, path: []string{"keys"}, query: given(map[string]string{"key": key, "rule": rule, "tier": tier})}
}

func printKeys(w io.Writer, a *httpapi.KeysAnswer) error {
	if len(a.Results) == 0 {
		_, err := fmt.Fprintf(w, "%s: no limit applies\n", column(a.Key))
		return err
	}
	return printLimits(w, a.Results)
}
