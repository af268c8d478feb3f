package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/traffic/loadgen"
)

// Bounds on a measurement.
const (
	maxBenchCallers = 1024
	maxBenchTime    = 10 * time.Minute
	maxBenchKeys    = 10_000_000
)

// benchFlags is what weir bench is told.
type benchFlags struct {
	clientFlags
	checkFlags
	concurrency int
	duration    time.Duration
	count       int64
	keys        int
	url         string
}

func newBench() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the throughput and latency of a running weir",
		Long: `Measure how many checks a running weir answers, and how fast. Each caller has its own
connection. It sends a check, waits for the answer, and sends the next one at once.

The flags of the request are the same as for weir check. In their values, {n} is the
number of a client, from 0, and {ip} is its address in 198.18.0.0/15, a network for
benchmarks. The default is --user bench-{n} --ip {ip}. The checks are charged.

With --url, bench sends other requests, for example through weir gateway, and counts
their status codes; --method, --host and --header apply to them.

The exit status is 1 if any request had no answer.`,
		Example: `  weir bench --path /api/x
  weir bench --concurrency 128 --duration 30s --keys 100000
  weir bench --user 'alice-{n}' --path '/users/{n}' --output json
  weir bench --url 'http://127.0.0.1:8000/items/{n}' --count 10000`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.concurrency, "concurrency", 32, "`count` of concurrent callers")
	flags.DurationVar(&f.duration, "duration", 10*time.Second, "how long to measure, at most 10m")
	flags.Int64Var(&f.count, "count", 0, "stop after this `count` of requests (default no maximum)")
	flags.IntVar(&f.keys, "keys", 1000, "`count` of different clients for {n} and {ip}")
	flags.StringVar(&f.url, "url", "", "send requests to this `url` instead of checks")
	f.checkFlags.addCheckFlags(cmd)
	return f.clientFlags.addClientFlags(cmd)
}

func (f *benchFlags) validate(cmd *cobra.Command) error {
	switch {
	case f.concurrency < 1 || f.concurrency > maxBenchCallers:
		return usage("--concurrency: %d is out of range; write 1 to %d", f.concurrency, maxBenchCallers)
	case f.duration <= 0 || f.duration > maxBenchTime:
		return usage("--duration: %v is out of range; write up to 10m", f.duration)
	case f.count < 0:
		return usage("--count: %d is negative; write 1 or more, or 0 for no maximum", f.count)
	case f.keys < 1 || f.keys > maxBenchKeys:
		return usage("--keys: %d is out of range; write 1 to %d", f.keys, maxBenchKeys)
	}
	if f.url == "" {
		return nil
	}
	for _, other := range []string{"server", "ip", "user", "api-key", "api-key-file", "tier", "path", "attr", "cookie", "query", "cost", "peek"} {
		if cmd.Flags().Changed(other) {
			return usage("--%s and --url exclude each other; with --url, use --method, --host and --header", other)
		}
	}
	if u, err := url.Parse(newTemplate(f.url).of(0)); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return usage("--url: not an HTTP URL; write for example http://127.0.0.1:8000/")
	}
	return nil
}

func (f *benchFlags) run(cmd *cobra.Command) error {
	if err := f.validate(cmd); err != nil {
		return err
	}
	// Ctrl-C ends the measurement early, and prints the result so far.
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	t, err := f.target(cmd)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.tryOnce(ctx); err != nil {
		return err
	}
	bar := newBar(cmd.ErrOrStderr())
	r := loadgen.Run(ctx, loadgen.Options{
		Workers: f.concurrency, Duration: f.duration, Count: f.count, Grace: f.timeout, Do: t.sendForAny,
		Progress: func(s loadgen.Snapshot) { bar.draw(s.Part, "%d requests", s.Done) },
	})
	bar.clear()
	write := writeBenchText
	if f.output == "json" {
		write = writeBenchJSON
	}
	if err := write(cmd.OutOrStdout(), f, t, r); err != nil {
		return err
	}
	if r.Errors > 0 {
		return fmt.Errorf("%s had no answer; first error: %s", notation.Count(int(r.Errors), "request"), printable(r.Texts[0]))
	}
	if r.Answered == 0 {
		return fmt.Errorf("no request was answered within %v; check that %s is running", f.duration+f.timeout, t.name)
	}
	return nil
}

// template is a text in which {n} and {ip} stand for a client.
type template struct {
	text     string
	variable bool
}

func newTemplate(text string) template {
	return template{text, strings.Contains(text, "{n}") || strings.Contains(text, "{ip}")}
}

// of is the text for a client.
func (t template) of(n int) string {
	if !t.variable {
		return t.text
	}
	return strings.NewReplacer("{n}", fmt.Sprint(n), "{ip}", benchAddress(n)).Replace(t.text)
}

// values is how many different texts it makes at most.
func (t template) values() int {
	switch {
	case strings.Contains(t.text, "{n}"):
		return maxBenchKeys
	case t.variable:
		return benchAddresses
	}
	return 1
}

// benchAddresses is how many addresses the network has; then they repeat.
const benchAddresses = 1 << 17

// benchAddress is the address of a client.
func benchAddress(n int) string {
	n %= benchAddresses
	return fmt.Sprintf("198.%d.%d.%d", 18+n>>16, n>>8&255, n&255)
}

// quantiles are those that are shown.
var quantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}}

func writeBenchText(w io.Writer, f *benchFlags, t *target, r *loadgen.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s for %v, %s, %s\n\n", notation.Count(f.concurrency, "caller"), short(r.Elapsed), notation.Count(t.clients(), "client"), printable(t.name))
	writeOutcomes(&b, r)
	for _, text := range r.Texts {
		fmt.Fprintf(&b, "  %s\n", printable(text))
	}
	if r.Answered > 0 {
		var parts []string
		for _, p := range quantiles {
			parts = append(parts, fmt.Sprintf("%s %v", p.name, short(r.Latency.Quantile(p.q))))
		}
		fmt.Fprintf(&b, "\n%s\n\n", strings.Join(parts, "  "))
		writeBars(&b, &r.Latency)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeOutcomes says how many requests ended in which way.
func writeOutcomes(w io.Writer, r *loadgen.Report) {
	type row struct {
		name string
		n    int64
		note string
	}
	rows := []row{{"answered", r.Answered, fmt.Sprintf("%.0f/s", r.Rate())}}
	for _, outcome := range slices.Sorted(maps.Keys(r.Outcomes)) {
		n := r.Outcomes[outcome]
		rows = append(rows, row{outcome, n, fmt.Sprintf("%.1f%%", 100*float64(n)/float64(r.Answered))})
	}
	if r.Errors > 0 {
		rows = append(rows, row{"no answer", r.Errors, ""})
	}
	if r.Unfinished > 0 {
		rows = append(rows, row{"unfinished", r.Unfinished, ""})
	}
	wide := 0
	for _, row := range rows {
		wide = max(wide, len(row.name))
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s  %9d  %9s", wide, row.name, row.n, row.note)
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// writeBars draws how many took how long, in steps of 1, 2 and 5.
func writeBars(w io.Writer, h *loadgen.Histogram) {
	type row struct {
		upTo time.Duration
		n    int64
	}
	var rows []row
	most, before := int64(0), int64(0)
	for step, i := time.Microsecond, 0; before < h.Count() && i < 40; i++ {
		upTo := step * time.Duration([]int{1, 2, 5}[i%3])
		if i%3 == 2 {
			step *= 10
		}
		if within := h.Within(upTo); within > 0 {
			rows = append(rows, row{upTo, within - before})
			most, before = max(most, within-before), within
		}
	}
	const columns = 40
	for _, r := range rows {
		// What is there is seen, however little it is.
		wide := int(math.Ceil(columns * float64(r.n) / float64(most)))
		line := fmt.Sprintf("up to %-7v%9d  %s", r.upTo, r.n, strings.Repeat("█", wide))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// short is a length of time in three digits, about as exact as it was measured.
func short(d time.Duration) time.Duration {
	to := time.Duration(1)
	for d/to >= 1000 {
		to *= 10
	}
	return d.Round(to)
}

// benchJSON is a measurement for programs. Times are in microseconds.
type benchJSON struct {
	Target      string             `json:"target"`
	Concurrency int                `json:"concurrency"`
	Keys        int                `json:"keys"`
	Seconds     float64            `json:"seconds"`
	Answered    int64              `json:"answered"`
	Rate        float64            `json:"rate"`
	Outcomes    map[string]int64   `json:"outcomes"`
	Errors      int64              `json:"errors"`
	Texts       []string           `json:"error_texts,omitempty"`
	Unfinished  int64              `json:"unfinished"`
	Latency     map[string]float64 `json:"latency_us"`
}

func writeBenchJSON(w io.Writer, f *benchFlags, t *target, r *loadgen.Report) error {
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	out := benchJSON{
		Target: t.name, Concurrency: f.concurrency, Keys: t.clients(), Seconds: r.Elapsed.Seconds(), Answered: r.Answered, Rate: r.Rate(),
		Outcomes: r.Outcomes, Errors: r.Errors, Texts: r.Texts, Unfinished: r.Unfinished,
		Latency: map[string]float64{"mean": micros(r.Latency.Mean())},
	}
	for _, p := range quantiles {
		out.Latency[p.name] = micros(r.Latency.Quantile(p.q))
	}
	return writeJSON(w, out)
}
