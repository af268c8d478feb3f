package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/server/httpapi"
)

type topFlags struct {
	client   clientFlags
	once     bool
	interval time.Duration
}

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch a running weir live",
		Long: `Watch a running weir live: requests by outcome, the latency of decisions, alerts that
fire, clients near their limits, the busiest rules, and the clients that are denied and allowed most.

The tables update every --interval, until you press Ctrl-C. With --once, or if the output is
not a terminal, top prints them once. The dashboard has charts.`,
		Example: `  weir top
  weir top --server https://weir.example.com --token-file token
  weir top --once | mail -s weir ops@example.com`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.once, "once", false, "print the tables once and exit")
	flags.DurationVar(&f.interval, "interval", 2*time.Second, "time between updates")
	return f.client.add(cmd)
}

// Bounds of --interval. Each update is six requests, and rankings are work for the server.
const minInterval, maxInterval = time.Second, time.Hour

func (f *topFlags) run(cmd *cobra.Command) error {
	if f.interval < minInterval || f.interval > maxInterval {
		return usage("--interval: %v is out of range; write %v to %v", f.interval, minInterval, maxInterval)
	}
	server, err := f.client.client(cmd)
	if err != nil {
		return err
	}
	// A server that cannot be reached is an error, not a screen that waits.
	n, err := fetchFigures(cmd.Context(), server)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.client.output == "json" {
		return writeJSON(out, map[string]any{"summary": n.minute, "denied": n.denied, "allowed": n.allowed, "alerts": n.alerts, "warnings": n.warnings})
	}
	if _, live := terminal(out); f.once || !live {
		return say(cmd, "%s", n.page(server, 0))
	}
	return watch(cmd.Context(), server, n, f.interval, out)
}

// What a terminal is told to draw a page over the previous one without a moment in which it is
// empty. Lines that are too long do not wrap meanwhile.
const (
	pageStart = "\x1b[H\x1b[?7l"
	lineEnd   = "\x1b[K\n"
	pageEnd   = "\x1b[J\x1b[?7h"
)

// watch draws again and again until somebody interrupts it.
func watch(ctx context.Context, server *client, n *figures, interval time.Duration, out io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ticks := time.Tick(interval)
	updated, note := time.Now(), ""
	for {
		rows, _ := terminal(out)
		if rows < 1 {
			rows = 24
		}
		page := n.page(server, rows-1) // the last row has the note
		if _, err := io.WriteString(out, pageStart+strings.ReplaceAll(page, "\n", lineEnd)+printable(note)+pageEnd); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			_, err := io.WriteString(out, "\n")
			return err
		case <-ticks:
		}
		latest, err := fetchFigures(ctx, server)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			note = fmt.Sprintf("no update since %s: %v", updated.Format(time.TimeOnly), err)
		default:
			n, updated, note = latest, time.Now(), ""
		}
	}
}

// figures is what top shows.
type figures struct {
	minute, recent  httpapi.SummaryAnswer
	denied, allowed httpapi.TopAnswer
	alerts          httpapi.AlertsAnswer
	warnings        httpapi.WarningsAnswer
}

// What is recent: so many seconds, up to so long ago. Instances that share a Redis have saved
// what they counted by then.
const recentSeconds, recentDelay = 5, 2

func fetchFigures(ctx context.Context, server *client) (*figures, error) {
	n := &figures{}
	optional := func(err error) error {
		if r, ok := errors.AsType[*rejection](err); ok && r.Status == http.StatusNotFound {
			return nil // it watches for nothing, or is older
		}
		return err
	}
	ranked := func(by string) url.Values { return url.Values{"by": {by}, "window": {"minute"}, "n": {"20"}} }
	if err := server.fetch(ctx, "stats/summary", nil, &n.minute); err != nil {
		return nil, err
	}
	to := n.minute.To - recentDelay // by the server's clock, which may not be ours
	recent := url.Values{"from": {strconv.FormatInt(to-recentSeconds, 10)}, "to": {strconv.FormatInt(to, 10)}}
	for _, err := range []error{
		server.fetch(ctx, "stats/summary", recent, &n.recent),
		server.fetch(ctx, "stats/top", ranked("denied"), &n.denied),
		server.fetch(ctx, "stats/top", ranked("allowed"), &n.allowed),
		optional(server.fetch(ctx, "alerts", nil, &n.alerts)),
		optional(server.fetch(ctx, "stats/warnings", url.Values{"n": {"20"}}, &n.warnings)),
	} {
		if err != nil {
			return nil, err
		}
	}
	return n, nil
}
