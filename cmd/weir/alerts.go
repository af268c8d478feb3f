package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/server/httpapi"
)

func newAlerts() *cobra.Command {
	var c clientFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "List the alerts of a running weir, and silence them",
		Long: `List the alerts of a running weir: those that fire, those that have ended but are not
resolved yet, because their condition may soon hold again, those that are resolved, and
silences.`,
		Example: `  weir alerts
  weir alerts silence denied --for 2h --comment "load test"
  weir alerts test`,
		Args: noOtherVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				c.output = "json"
			}
			return show(&c, cmd, question{path: []string{"alerts"}}, new(httpapi.AlertsAnswer), printAlerts)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "short for --output json")
	c.addClientFlags(cmd)
	cmd.AddCommand(newAlertsSilence(), newAlertsTest())
	return cmd
}

func printAlerts(b *strings.Builder, all *httpapi.AlertsAnswer) {
	summary := func(a *alert.Alert) string {
		text := printable(a.Summary)
		if a.Silenced {
			text += " (silenced)"
		}
		return text
	}
	quiet := func(a alert.Alert) bool { return !a.QuietSince.IsZero() }
	firing := slices.DeleteFunc(slices.Clone(all.Active), quiet)
	ended := slices.DeleteFunc(slices.Clone(all.Active), func(a alert.Alert) bool { return !quiet(a) })
	printList(b, "no alert is firing", []string{"firing", "since", "summary"}, firing, func(a *alert.Alert) []string {
		return []string{column(a.ID), localTime(a.StartsAt), summary(a)}
	})
	printMore(b, []string{"ended", "since", "until", "summary"}, ended, func(a *alert.Alert) []string {
		return []string{column(a.ID), localTime(a.StartsAt), localTime(a.QuietSince), summary(a)}
	})
	printMore(b, []string{"resolved", "since", "until", "summary"}, all.Past, func(a *alert.Alert) []string {
		return []string{column(a.ID), localTime(a.StartsAt), localTime(a.EndsAt), printable(a.Summary)}
	})
	printMore(b, []string{"silenced", "until", "by", "comment"}, all.Silences, func(s *alert.Silence) []string {
		return []string{column(s.ID), localTime(s.Until), column(s.Author), printable(s.Comment)}
	})
}

// printMore prints a list below another one, if there is anything on it.
func printMore[T any](b *strings.Builder, columns []string, all []T, row func(*T) []string) {
	if len(all) > 0 {
		b.WriteByte('\n')
		printList(b, "", columns, all, row)
	}
}

func newAlertsSilence() *cobra.Command {
	var c clientFlags
	var forText, comment string
	cmd := &cobra.Command{
		Use:   "silence ID",
		Short: "Silence an alert for a while",
		Long: `Silence an alert, or all alerts of a kind, for a while: weir lists it, but does not send
it. "--for 0" ends the silence.`,
		Example: `  weir alerts silence denied --for 2h --comment "load test"
  weir alerts silence shadow:login --for 1d
  weir alerts silence denied --for 0`,
		Args: arguments(1, 1, "the id of an alert, or a kind"),
		RunE: func(cmd *cobra.Command, args []string) error {
			length, err := notation.ParseDuration(forText)
			if err != nil || length%time.Second != 0 || length > httpapi.MaxSilence {
				return usage("--for: %q is not a valid duration; write whole seconds up to 30d, as in 2h, or 0 to end a silence", forText)
			}
			seconds := int64(length / time.Second)
			body := httpapi.SilenceRequest{ID: args[0], For: &seconds, Comment: comment}
			q := question{method: http.MethodPost, path: []string{"alerts", "silences"}, body: body}
			return show(&c, cmd, q, new(alert.Silence), func(b *strings.Builder, made *alert.Silence) {
				text := "is no longer silenced"
				if seconds > 0 {
					text = "is silenced until " + localTime(made.Until)
				}
				fmt.Fprintln(b, column(made.ID), text)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&forText, "for", "1h", "`duration` of the silence; 0 ends it")
	flags.StringVar(&comment, "comment", "", "reason for the silence (`text`)")
	return c.addClientFlags(cmd)
}

func newAlertsTest() *cobra.Command {
	var c clientFlags
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Send a test alert",
		Long: `Make a running weir send a test alert to its webhook and its Alertmanager, and print
whether they accepted it. The exit status is 1 if one of them did not.`,
		Example: "  weir alerts test",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := question{method: http.MethodPost, path: []string{"alerts", "test"}}
			var answer httpapi.AlertTestAnswer
			err := show(&c, cmd, q, &answer, func(b *strings.Builder, all *httpapi.AlertTestAnswer) {
				for _, s := range all.Sent {
					result := "sent"
					if s.Error != "" {
						result = "failed: " + printable(s.Error)
					}
					fmt.Fprintf(b, "%s: %s\n", column(s.To), result)
				}
			})
			failed := 0
			for _, s := range answer.Sent {
				if s.Error != "" {
					failed++
				}
			}
			if err == nil && failed > 0 {
				err = fmt.Errorf("%d of %d receivers did not accept the alert", failed, len(answer.Sent))
			}
			return err
		},
	}
	return c.addClientFlags(cmd)
}
