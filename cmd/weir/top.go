package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
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
	return f.client.addClientFlags(cmd)
}

// Bounds of --interval. Each update is six to nine requests, and rankings are work for the server.
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
		page := n.page(server, cmp.Or(max(rows, 0), 24)-1) // the last row has the note
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
	return n, cmp.Or(
		server.fetch(ctx, "stats/summary", recent, &n.recent),
		server.fetch(ctx, "stats/top", ranked("denied"), &n.denied),
		server.fetch(ctx, "stats/top", ranked("allowed"), &n.allowed),
		optional(server.fetch(ctx, "alerts", nil, &n.alerts)),
		optional(server.fetch(ctx, "stats/warnings", url.Values{"n": {"20"}}, &n.warnings)),
	)
}

// page is the tables as text, in at most so many rows; 0 is no bound.
func (n *figures) page(server *client, rows int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "weir top  %s  %s  %s\n", printable(server.base.String()), time.Now().Format(time.TimeOnly), n.state())
	n.writeAlerts(&b)
	n.writeWarnings(&b)
	n.writeOutcomes(&b)
	n.writeLoad(&b)
	n.writeInFlight(&b)
	n.writeReserved(&b)
	rules, clients := 20, 10
	if rows > 0 {
		const headings = 3 * 2 // each with a blank line
		rest := max(0, rows-strings.Count(b.String(), "\n")-headings)
		clients = min(clients, rest/4)
		rules = rest - 2*clients
	}
	n.writeRules(&b, rules)
	writeClients(&b, "most denied, last minute", &n.denied, clients)
	writeClients(&b, "most allowed, last minute", &n.allowed, clients)
	text := b.String()
	if lines := strings.SplitAfter(text, "\n"); rows > 0 && len(lines) > rows+1 {
		text = strings.Join(lines[:rows], "")
	}
	return text
}

// state is whether the store is available, and what else a reader of the figures must know.
func (n *figures) state() string {
	s, text := &n.minute, "store available"
	since, why := s.Recorder.UnavailableSince, s.Recorder.Error // the archive of the statistics
	if !s.Store.Up {
		since, why = cmp.Or(s.Store.UnavailableSince, new(int64)), s.Store.Error
	}
	if since != nil {
		text = "store unavailable since " + clockTime(*since)
	}
	var notes []string
	if s.Local {
		notes = append(notes, "figures of this instance only")
	}
	if since := s.Recorder.CompleteSince; since != nil && *since > s.From {
		notes = append(notes, "figures incomplete before "+clockTime(*since))
	}
	if why != "" {
		notes = append(notes, printable(why))
	}
	if s.NotLoaded != nil {
		notes = append(notes, fmt.Sprintf("stored rules not loaded since %s: %s", clockTime(s.NotLoaded.Since), printable(s.NotLoaded.Error)))
	}
	if len(notes) > 0 {
		text += "\n" + strings.Join(notes, "; ")
	}
	return text
}

func clockTime(unix int64) string { return time.Unix(unix, 0).Format(time.TimeOnly) }

// maxListed is how many alerts, warnings and limits are listed; "and 4 more" stands for the rest.
const maxListed = 3

// writeAlerts lists the alerts whose condition holds.
func (n *figures) writeAlerts(b *strings.Builder) {
	all := slices.DeleteFunc(slices.Clone(n.alerts.Active), func(a alert.Alert) bool { return !a.QuietSince.IsZero() })
	for _, a := range all[:min(len(all), maxListed)] {
		note := ""
		if a.Silenced {
			note = ", silenced"
		}
		fmt.Fprintf(b, "! %-10s %s (since %s%s)\n", column(string(a.Kind)), printable(a.Summary), a.StartsAt.Local().Format(time.TimeOnly), note)
	}
	if more := len(all) - maxListed; more > 0 {
		fmt.Fprintf(b, "! and %d more; weir alerts lists them\n", more)
	}
}

// writeWarnings lists the clients that have reached a threshold in the last ten minutes.
func (n *figures) writeWarnings(b *strings.Builder) {
	all := n.warnings.Warnings // the latest first
	if i := slices.IndexFunc(all, func(w archive.Warning) bool { return w.At.Time().Unix() < n.minute.To-600 }); i >= 0 {
		all = all[:i]
	}
	for _, w := range all[:min(len(all), maxListed)] {
		at := w.At.Time().Local().Format(time.TimeOnly)
		used, limit := grouped(w.Used), grouped(w.Limit)
		if w.Display != nil {
			used, limit = printable(w.Display.Used), printable(w.Display.Limit)
		}
		fmt.Fprintf(b, "~ %-10s %s has used %s of %s of %s (at %s)\n", fmt.Sprintf("%d %%", w.Threshold), column(w.Key), used, limit, column(w.Rule), at)
	}
	if more := len(all) - maxListed; more > 0 {
		fmt.Fprintf(b, "~ and %d more clients near their limits\n", more)
	}
}

// rate is so many in the time of a summary.
func rate(s *httpapi.SummaryAnswer, count int64) string {
	if text := decimal(float64(count) / float64(max(1, s.Window))); text != "?" {
		return text + "/s"
	}
	return "?"
}

// writeTable writes rows below a heading, or nothing if there are none.
func writeTable(b *strings.Builder, rows [][]string, left int) {
	if len(rows) > 1 {
		b.WriteString("\n" + notation.Grid(rows, left))
	}
}

// writeOutcomes writes how many requests ended in which way. Outcomes that did not occur in the
// last minute have no line.
func (n *figures) writeOutcomes(b *strings.Builder) {
	rows := [][]string{{"", fmt.Sprintf("last %d s", recentSeconds), "last minute"}}
	for i, outcome := range []struct {
		name  string
		count func(archive.Counts) int64
	}{
		{"requests", archive.Counts.Total},
		{"allowed", func(c archive.Counts) int64 { return c.Allowed }},
		{"denied", func(c archive.Counts) int64 { return c.Denied }},
		{"shadow denied", func(c archive.Counts) int64 { return c.ShadowDenied }},
		{"soft denied", func(c archive.Counts) int64 { return c.SoftDenied }},
		{"degraded, allowed", func(c archive.Counts) int64 { return c.DegradedAllowed }},
		{"degraded, denied", func(c archive.Counts) int64 { return c.DegradedDenied }},
		{"blocked", func(c archive.Counts) int64 { return c.Blocked }},
		{"unknown client", func(c archive.Counts) int64 { return c.UnknownClient }},
	} {
		if count := outcome.count(n.minute.Counts); count != 0 || i < 3 {
			rows = append(rows, []string{outcome.name, rate(&n.recent, outcome.count(n.recent.Counts)), rate(&n.minute, count)})
		}
	}
	rows = append(rows, []string{"denied share", percent(n.recent.Counts.DeniedShare()), percent(n.minute.Counts.DeniedShare())})
	writeTable(b, rows, 1)
	rows = [][]string{{"priority", "last minute", "denied share"}}
	for _, p := range n.minute.Priorities[:min(len(n.minute.Priorities), 4)] {
		rows = append(rows, []string{column(p.Priority), rate(&n.minute, p.Requests), percent(p.DeniedShare())})
	}
	writeTable(b, rows, 1)
}

// writeLoad writes how long decisions and upstreams take, and how near to their limits they are.
func (n *figures) writeLoad(b *strings.Builder) {
	percentiles := func(l stats.Percentiles) string {
		return fmt.Sprintf("p50 %s   p90 %s   p99 %s", micros(stats.Micros(l.P50)), micros(stats.Micros(l.P90)), micros(stats.Micros(l.P99)))
	}
	decisions := "-"
	if n.minute.Requests > 0 {
		decisions = percentiles(n.minute.Latency)
	}
	fmt.Fprintf(b, "\ndecisions   %s\n", decisions)
	if u := n.minute.Upstream; u != nil {
		fmt.Fprintf(b, "upstream    %s   errors %s\n", percentiles(u.Latency), percent(u.ErrorShare))
	}
	limits := slices.Clone(n.minute.Adaptive)
	slices.SortStableFunc(limits, func(a, b engine.UpstreamLimit) int { return cmp.Compare(a.Limit-a.InFlight, b.Limit-b.InFlight) })
	for _, a := range limits[:min(len(limits), maxListed)] { // those that are nearest to their limits
		fmt.Fprintf(b, "adaptive    %s of %s   denied %s   %s\n", grouped(int64(a.InFlight)), grouped(int64(a.Limit)), grouped(int64(min(a.Denied, math.MaxInt64))), column(a.Upstream))
	}
	if p := n.minute.Protect; p != nil {
		b.WriteString("protect     ")
		if p.CPULimit > 0 {
			fmt.Fprintf(b, "cpu %s of %s   ", percent(p.CPU), percent(p.CPULimit))
		}
		if p.MemoryLimit > 0 {
			fmt.Fprintf(b, "memory %s of %s   ", percent(p.Memory), percent(p.MemoryLimit))
		}
		shed := ""
		for _, priority := range []string{"low", "normal", "high"} { // critical requests are never shed
			if n := p.Shed[priority]; n > 0 {
				shed += " " + priority + " " + grouped(int64(min(n, math.MaxInt64)))
			}
		}
		fmt.Fprintf(b, "shed%s\n", cmp.Or(shed, " 0"))
	}
}

// writeRules writes what the busiest rules decided in the last minute.
func (n *figures) writeRules(b *strings.Builder, most int) {
	rows := [][]string{{"rule", "requests", "allowed", "denied", "degraded", "denied share"}}
	for _, r := range n.minute.Rules[:min(len(n.minute.Rules), most)] { // the busiest first
		denied, degraded := r.Denied+r.DegradedDenied, r.DegradedAllowed+r.DegradedDenied
		row := []string{column(r.Rule)}
		for _, count := range []int64{r.Counts.Total(), r.Counts.Total() - denied - r.Blocked, denied, degraded} {
			row = append(row, rate(&n.minute, count))
		}
		rows = append(rows, append(row, percent(float64(denied)/float64(max(1, r.Counts.Total())))))
	}
	writeTable(b, rows, 1)
}

// writeInFlight writes the rules with the most requests in flight: now, the most of one client,
// and how long they were in flight.
func (n *figures) writeInFlight(b *strings.Builder) {
	now := map[string]float64{}
	for _, r := range n.recent.Rules {
		if r.InFlight != nil {
			now[r.Rule] = r.InFlight.Mean
		}
	}
	rules := slices.DeleteFunc(slices.Clone(n.minute.Rules), func(r stats.RuleSummary) bool { return r.InFlight == nil })
	slices.SortStableFunc(rules, func(a, b stats.RuleSummary) int { return cmp.Compare(b.InFlight.Mean, a.InFlight.Mean) })
	rows := [][]string{{"in flight", fmt.Sprintf("last %d s", recentSeconds), "most", "p50", "p99"}}
	for _, r := range rules[:min(len(rules), maxListed)] {
		row := []string{column(r.Rule), decimal(now[r.Rule]), grouped(r.InFlight.Highest), "-", "-"}
		if held := r.InFlight.Held; held != (stats.Percentiles{}) {
			row[3], row[4] = micros(stats.Micros(held.P50)), micros(stats.Micros(held.P99))
		}
		rows = append(rows, row)
	}
	writeTable(b, rows, 1)
}

// writeReserved writes the rules and models with the most open requests. Amounts may be of several currencies.
func (n *figures) writeReserved(b *strings.Builder) {
	all := slices.Clone(n.minute.Reserved)
	slices.SortStableFunc(all, func(a, b engine.Reserved) int { return cmp.Compare(b.Requests, a.Requests) })
	rows := [][]string{{"reserved under", "model", "open", "now", "may exceed", "used", "refunded"}}
	for _, r := range all[:min(len(all), 2*maxListed)] {
		write := grouped
		if r.Currency != "" {
			write = func(n int64) string { return printable(rule.MoneyText(r.Currency, n)) }
		}
		rows = append(rows, []string{column(r.Rule), column(cmp.Or(r.Model, "(none)")), grouped(r.Requests), write(r.Units), write(r.Excess), write(r.Used), write(r.Refunded)})
	}
	writeTable(b, rows, 2)
}

// writeClients writes a ranking. A count that may be too high has a tilde.
func writeClients(b *strings.Builder, heading string, top *httpapi.TopAnswer, most int) {
	if top.Sampling > 1 {
		heading += fmt.Sprintf(" (1 in %d)", top.Sampling)
	}
	rows := [][]string{{"requests", heading}}
	for _, e := range top.Entries[:min(len(top.Entries), most)] {
		count := grouped(e.Count)
		if e.Error > 0 {
			count = "~" + count
		}
		rows = append(rows, []string{count, column(e.Key)})
	}
	writeTable(b, rows, 2)
}
