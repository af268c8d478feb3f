package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/server/httpapi"
)

type topFlags struct {
	client   clientFlags
	once     bool
	interval time.Duration
	ascii    bool
}

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a running weir live",
		Long: `Watch a running weir live: requests by outcome, the latency of decisions, alerts that
fire, clients near their limits, the busiest rules, and the clients that are denied and allowed most.

The screen updates every --interval, until you press q or Ctrl-C. With --once, or if the
output is not a terminal, top prints one screen. Set NO_COLOR to turn off colours.`,
		Example: `  weir top
  weir top --server https://weir.example.com --token-file token
  weir top --once | mail -s weir ops@example.com`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.once, "once", false, "print one screen and exit")
	flags.DurationVar(&f.interval, "interval", time.Second, "time between updates")
	flags.BoolVar(&f.ascii, "ascii", false, "draw with ASCII characters only")
	return f.client.add(cmd)
}

// Bounds of --interval. Rankings and alerts are asked for more seldom than this: they
// are work for the server.
const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Hour
	pollEvery   = 2 * time.Second
)

func (f *topFlags) run(cmd *cobra.Command) error {
	if f.interval < minInterval || f.interval > maxInterval {
		return usage("--interval: %v is out of range; write %v to %v", f.interval, minInterval, maxInterval)
	}
	server, err := f.client.client(cmd)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	screen := terminalOf(out)
	v := &view{server: server.base.String()}
	// A server that cannot be reached is an error, not a screen that waits.
	if err := v.begin(cmd.Context(), server); err != nil {
		return err
	}
	if f.client.output == "json" {
		return writeJSON(out, map[string]any{"summary": v.minute, "denied": v.denied, "allowed": v.allowed, "alerts": v.alerts, "warnings": v.warnings})
	}
	k := look{pencil: unicodePencil, coloured: os.Getenv("NO_COLOR") == ""}
	if f.ascii {
		k.pencil = asciiPencil
	}
	if screen != nil && !f.once {
		return watch(cmd.Context(), server, v, k, f.interval, screen, keyboardOf(cmd.InOrStdin()))
	}
	k.width, _ = sizeFromEnvironment()
	if screen != nil {
		k.width, _ = screen.size()
	} else {
		k.coloured = false
	}
	for _, text := range v.lines(k, time.Now()) {
		if _, err := io.WriteString(out, text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// begin asks for all that a first screen needs.
func (v *view) begin(ctx context.Context, server *client) error {
	var err error
	if v.news, err = ask(ctx, server); err != nil {
		return err
	}
	// By the server's clock, which may not be ours; without the second that is not over.
	to := v.minute.To - 1
	minute := url.Values{"from": {strconv.FormatInt(to-historySeconds, 10)}, "to": {strconv.FormatInt(to, 10)}, "step": {"1"}}
	rules := []string{""}
	for _, r := range v.minute.Rules[:min(len(v.minute.Rules), 12)] {
		rules = append(rules, r.Rule)
	}
	for _, rule := range rules {
		if rule != "" {
			minute.Set("rule", rule)
		}
		var s httpapi.SeriesAnswer
		if _, err := server.ask(ctx, question{method: http.MethodGet, path: []string{"stats", "series"}, query: minute}, &s); err != nil {
			return err
		}
		v.past.recall(&s, rule)
	}
	return nil
}

// news is what is asked for from time to time.
type news struct {
	minute          httpapi.SummaryAnswer
	denied, allowed httpapi.TopAnswer
	alerts          httpapi.AlertsAnswer
	warnings        httpapi.WarningsAnswer
}

func ask(ctx context.Context, server *client) (n news, err error) {
	ranked := func(by string) url.Values { return url.Values{"by": {by}, "window": {"minute"}, "n": {"20"}} }
	for _, q := range []struct {
		path  []string
		query url.Values
		into  any
	}{
		{[]string{"stats", "summary"}, nil, &n.minute},
		{[]string{"stats", "top"}, ranked("denied"), &n.denied},
		{[]string{"stats", "top"}, ranked("allowed"), &n.allowed},
		{[]string{"alerts"}, nil, &n.alerts},
		{[]string{"stats", "warnings"}, url.Values{"n": {"20"}}, &n.warnings},
	} {
		_, err := server.ask(ctx, question{method: http.MethodGet, path: q.path, query: q.query}, q.into)
		if r, ok := errors.AsType[*rejection](err); ok && (q.into == any(&n.alerts) || q.into == any(&n.warnings)) && r.Status == http.StatusNotFound {
			continue // it watches for nothing, or is older
		}
		if err != nil {
			return news{}, err
		}
	}
	return n, nil
}
