package main

import (
	"fmt"
	"net/url"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/loadgen"
	"github.com/weirhq/weir/internal/phrase"
)

// Bounds on a measurement. Whoever needs more has a reason to write a program for it.
const (
	maxBenchTime = 10 * time.Minute
	maxBenchKeys = 10_000_000
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
		Short: "Measure how many checks a running weir answers, and how fast",
		Long: `Measure how many checks a running weir answers, and how fast. A number of callers
ask, wait for the answer, and ask again at once, each on a connection of its own.

The request is made as for weir check. In its values, {n} is the number of a client,
from 0, and {ip} an address for it from 198.18.0.0/15, which is there for measurements.
Without any, the clients are --user bench-{n} --ip {ip}. What they use is charged.

With --url, other requests are sent instead, for example through weir gateway, and
their statuses counted; --method, --host and --header apply to them.

The exit code is 1 if any request had no answer.`,
		Example: `  weir bench --path /api/x
  weir bench --concurrency 128 --duration 30s --keys 100000
  weir bench --user 'alice-{n}' --path '/users/{n}' --output json
  weir bench --url 'http://127.0.0.1:8000/items/{n}' --count 10000`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.concurrency, "concurrency", 32, "how many ask at a time")
	flags.DurationVar(&f.duration, "duration", 10*time.Second, "for how long, at most 10m")
	flags.Int64Var(&f.count, "count", 0, "how many requests, if that is reached first (default no end)")
	flags.IntVar(&f.keys, "keys", 1000, "how many different clients {n} and {ip} stand for")
	flags.StringVar(&f.url, "url", "", "`URL` to send requests to, instead of checks")
	f.checkFlags.add(cmd)
	return f.clientFlags.add(cmd)
}

func (f *benchFlags) validate(cmd *cobra.Command) error {
	switch {
	case f.concurrency < 1 || f.concurrency > loadgen.MaxWorkers:
		return usage("--concurrency: %d is out of range; write 1 to %d", f.concurrency, loadgen.MaxWorkers)
	case f.duration <= 0 || f.duration > maxBenchTime:
		return usage("--duration: %v is out of range; write up to 10m", f.duration)
	case f.count < 0:
		return usage("--count: %d is negative", f.count)
	case f.keys < 1 || f.keys > maxBenchKeys:
		return usage("--keys: %d is out of range; write 1 to %d", f.keys, maxBenchKeys)
	}
	if f.url == "" {
		return nil
	}
	for _, other := range []string{"server", "ip", "user", "api-key", "api-key-file", "tier", "path", "attr", "cookie", "query", "cost", "peek"} {
		if cmd.Flags().Changed(other) {
			return usage("--%s and --url exclude each other; the URL says where to go, and --header what to bring along", other)
		}
	}
	if u, err := url.Parse(newTemplate(f.url).of(0)); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return usage("--url: this is no URL to send requests to; write for example http://127.0.0.1:8000/")
	}
	return nil
}

func (f *benchFlags) run(cmd *cobra.Command) error {
	if err := f.validate(cmd); err != nil {
		return err
	}
	// Whoever has seen enough gets the result so far.
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	t, err := f.target(cmd)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.try(ctx); err != nil {
		return err
	}
	bar := newBar(cmd.ErrOrStderr())
	r := loadgen.Run(ctx, loadgen.Options{
		Workers: f.concurrency, Duration: f.duration, Count: f.count, Grace: f.timeout, Do: t.do,
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
		return fmt.Errorf("%s had no answer; the first: %s", phrase.Count(int(r.Errors), "request"), printable(r.Texts[0]))
	}
	if r.Answered == 0 {
		return fmt.Errorf("no request was answered within %v; see whether %s is well", f.duration+f.timeout, t.name)
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
