package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
)

// clientArgument returns a client as rules count it, so that no API key leaves the machine.
func clientArgument(text string) (string, error) {
	name, err := rule.ClientName(text)
	if err != nil {
		return "", usageError{err}
	}
	return name, nil
}

func newClientsGet() *cobra.Command {
	var c clientFlags
	cmd := &cobra.Command{
		Use:     "get CLIENT",
		Short:   "Show a client and those that it belongs to",
		Long:    `Show a client of the directory, and those that it belongs to, from the nearest upwards.`,
		Example: "  weir clients get user:ann",
		Args:    arguments(1, 1, "a client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := clientArgument(args[0])
			if err != nil {
				return err
			}
			return show(&c, cmd, question{path: []string{"clients", name}}, new(httpapi.EntryAnswer), func(b *strings.Builder, e *httpapi.EntryAnswer) {
				printEntry(b, e)
				for i := range e.Line {
					printEntry(b, &e.Line[i])
				}
			})
		},
	}
	return c.addClientFlags(cmd)
}

// printEntry prints a client in one line.
func printEntry(b *strings.Builder, e *httpapi.EntryAnswer) {
	text := "client " + e.Client
	for _, more := range [][2]string{{"tier", e.Tier}, {"zone", e.Zone}, {"starts", string(e.Starts)}, {"parent", e.Parent}, {"limits", ownLimits(e)}} {
		if more[1] != "" {
			text += ", " + more[0] + " " + more[1]
		}
	}
	if e.Blocked {
		text += ", blocked"
	}
	if e.Note != "" {
		text += ", note " + strconv.Quote(e.Note)
	}
	if e.By != "" {
		text += ", changed by " + e.By + " at " + localTime(e.At)
	}
	fmt.Fprintln(b, printable(text))
	for _, warning := range e.Warnings {
		fmt.Fprintln(b, "  warning: "+printable(warning.Message))
	}
}

// ownLimits are a client's limits by rule, in one line.
func ownLimits(e *httpapi.EntryAnswer) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(e.Limits)) {
		all = append(all, id+": "+strings.Trim(string(e.Limits[id]), `"`))
	}
	return strings.Join(all, "; ")
}

func newClientsList() *cobra.Command {
	var c clientFlags
	var parent, tier, kind, contains, after string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List clients",
		Long:  `List clients of the directory, in the order of their names.`,
		Example: `  weir clients list --parent org:acme
  weir clients list --kind user --contains ann`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if parent != "" {
				if parent, err = clientArgument(parent); err != nil {
					return err
				}
			}
			query := given(map[string]string{"parent": parent, "tier": tier, "kind": kind, "contains": contains, "after": after, "limit": strconv.Itoa(limit)})
			return show(&c, cmd, question{path: []string{"clients"}, query: query}, new(httpapi.EntriesAnswer), func(b *strings.Builder, all *httpapi.EntriesAnswer) {
				sayStale(cmd, all.Stale)
				printEntries(b, all)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&parent, "parent", "", "only clients that belong directly to this `client`")
	flags.StringVar(&tier, "tier", "", "only clients with this `tier` of their own")
	flags.StringVar(&kind, "kind", "", "only clients whose name begins with this `word`, such as user")
	flags.StringVar(&contains, "contains", "", "only clients whose name contains this `text`")
	flags.IntVar(&limit, "limit", 100, "`count` of clients, at most 1000")
	flags.StringVar(&after, "after", "", "only clients after this `name`, for the next page")
	return c.addClientFlags(cmd)
}

// sayStale warns that what the server knows of clients may be outdated.
func sayStale(cmd *cobra.Command, s httpapi.Stale) {
	if !s.Since.IsZero() {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: the clients may be outdated since %s, because the store is unavailable\n", localTime(s.Since))
	}
}

func printEntries(b *strings.Builder, all *httpapi.EntriesAnswer) {
	columns := []string{"client", "parent", "tier", "limits", "", "changed", "by"}
	printList(b, "no clients", columns, all.Clients, func(e *httpapi.EntryAnswer) []string {
		blocked, changed := "", ""
		if e.Blocked {
			blocked = "blocked"
		}
		if !e.At.IsZero() {
			changed = localTime(e.At)
		}
		return []string{column(e.Client), column(e.Parent), column(e.Tier), column(ownLimits(e)), blocked, changed, printable(e.By)}
	})
	if all.Next != "" {
		fmt.Fprintf(b, "there are more; see the next with --after %s\n", printable(all.Next))
	}
}

// changeClient changes some fields of a client, and adds it if it may.
func (c *clientFlags) changeClient(cmd *cobra.Command, client string, patch map[string]any, add bool) error {
	name, err := clientArgument(client)
	if err != nil {
		return err
	}
	if parent, ok := patch["parent"].(string); ok {
		if patch["parent"], err = clientArgument(parent); err != nil {
			return err
		}
	}
	server, err := c.client(cmd)
	if err != nil {
		return err
	}
	q := question{method: http.MethodPatch, path: []string{"clients", name}, body: patch}
	var e httpapi.EntryAnswer
	got, err := server.ask(cmd.Context(), q, &e)
	if r, ok := errors.AsType[*rejection](err); ok && add && strings.HasSuffix(r.Type, ":no-client") {
		own, _ := patch["limits"].(map[string]any)
		isNone := func(_ string, value any) bool { return value == nil }
		if maps.DeleteFunc(own, isNone); len(own) == 0 {
			delete(patch, "limits")
		}
		maps.DeleteFunc(patch, isNone)
		q.method, q.fresh = http.MethodPut, true
		got, err = server.ask(cmd.Context(), q, &e)
	}
	if err != nil {
		return err
	}
	return c.print(cmd, got, func(b *strings.Builder) { printEntry(b, &e) })
}

func newClientsSet() *cobra.Command {
	var c clientFlags
	var limits []string
	fields := map[string]*string{"parent": nil, "tier": nil, "zone": nil, "starts": nil, "note": nil}
	cmd := &cobra.Command{
		Use:   "set CLIENT",
		Short: "Add a client, or change some of its fields",
		Long: `Add a client to the directory, or change the fields that flags name. The others stay as
they are. An empty value removes a field, and --limit RULE= the limits of a rule.`,
		Example: `  weir clients set user:ann --parent org:acme --tier pro
  weir clients set user:ann --limit api=500/1m --limit api=9000/day --limit reports=
  weir clients set user:ann --tier ""`,
		Args: arguments(1, 1, "a client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			patch := map[string]any{}
			for name, value := range fields {
				switch {
				case !cmd.Flags().Changed(name):
				case *value == "":
					patch[name] = nil
				default:
					patch[name] = *value
				}
			}
			own, err := parseOwnLimits(limits)
			if err != nil {
				return err
			}
			if len(own) > 0 {
				patch["limits"] = own
			}
			return c.changeClient(cmd, args[0], patch, true)
		},
	}
	flags := cmd.Flags()
	fields["parent"] = flags.String("parent", "", "the `client` to whom it belongs")
	fields["tier"] = flags.String("tier", "", "its `tier`")
	flags.StringArrayVar(&limits, "limit", nil, "limit of its own, as `rule=limit` (repeatable)")
	fields["zone"] = flags.String("zone", "", "time zone of its calendar limits, such as Asia/Shanghai (`name`)")
	fields["starts"] = flags.String("starts", "", "start of its calendar periods, such as 15 for months (`day or time`)")
	fields["note"] = flags.String("note", "", "note for people (`text`)")
	return c.addClientFlags(cmd)
}

// parseOwnLimits reads rule=limit. Several for one rule are a list; an empty one removes those of the rule.
func parseOwnLimits(texts []string) (map[string]any, error) {
	own := map[string]any{}
	for _, text := range texts {
		id, limit, found := strings.Cut(text, "=")
		if !found || id == "" {
			return nil, usage("--limit: %q is not a rule and a limit; write for example --limit api=500/1m", text)
		}
		before, _ := own[id].([]string)
		if own[id] = nil; limit != "" {
			own[id] = append(before, limit)
		}
	}
	return own, nil
}

func newClientsMove() *cobra.Command {
	var c clientFlags
	cmd := &cobra.Command{
		Use:   "move CLIENT PARENT",
		Short: "Let a client belong to another one",
		Long: `Let a client belong to another one. What it has used stays where it was counted; later
requests count for the new parent and those above it.`,
		Example: "  weir clients move user:ann team:search",
		Args:    arguments(2, 2, "a client and its new parent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.changeClient(cmd, args[0], map[string]any{"parent": args[1]}, false)
		},
	}
	return c.addClientFlags(cmd)
}

func newClientsBlock(block bool) *cobra.Command {
	var c clientFlags
	verb, what, value := "block", "Deny all requests of", any(true)
	if !block {
		verb, what, value = "unblock", "No longer deny all requests of", nil
	}
	cmd := &cobra.Command{
		Use:     verb + " CLIENT",
		Short:   what + " a client",
		Long:    what + ` a client, and of all clients that belong to it.`,
		Example: "  weir clients " + verb + " org:acme",
		Args:    arguments(1, 1, "a client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.changeClient(cmd, args[0], map[string]any{"blocked": value}, false)
		},
	}
	return c.addClientFlags(cmd)
}

func newClientsDelete() *cobra.Command {
	var c clientFlags
	cmd := &cobra.Command{
		Use:   "delete CLIENT...",
		Short: "Delete clients to whom no others belong",
		Long: `Delete clients from the directory, in the order given. A client to whom others belong
cannot be deleted; move or delete those first.`,
		Example: "  weir clients delete api_key:sha256:5d41402abc4b2a76b9719d911017c592 user:ann",
		Args:    arguments(1, 0, "at least one client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := c.client(cmd)
			if err != nil {
				return err
			}
			for _, arg := range args {
				name, err := clientArgument(arg)
				if err != nil {
					return err
				}
				if _, err := server.ask(cmd.Context(), question{method: http.MethodDelete, path: []string{"clients", name}}, nil); err != nil {
					return fmt.Errorf("%s: %w", printable(name), err)
				}
			}
			return say(cmd, "deleted %s\n", notation.Count(len(args), "client"))
		},
	}
	return c.addClientFlags(cmd)
}
