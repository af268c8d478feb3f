package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/traffic/loadgen"
)

func newDemo() *cobra.Command {
	d := &demonstration{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run weir with sample rules and traffic, to try it",
		Long: `Run weir in memory, with the rules of an API with three plans, and send it the traffic of 60
users, a login attack, an abuser, a spike and an app that retries in a loop. Look at the dashboard
and at weir top, and change the rules. No request leaves this machine. When the demo ends, it
deletes its files.

  weir demo
  weir demo --speed 4 --http 127.0.0.1:9000`,
		Args: noArguments,
		PreRunE: func(*cobra.Command, []string) error {
			if !(d.speed >= 0.1 && d.speed <= 100) {
				return usage("--speed: %v is not between 0.1 and 100", d.speed)
			}
			if d.duration <= 0 {
				return usage("--duration: %v is not positive; write for example 10m", d.duration)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&d.http, "http", app.DefaultHTTP, "listen `address` of the HTTP API and the dashboard")
	cmd.Flags().DurationVar(&d.duration, "duration", time.Hour, "how long the demo runs")
	cmd.Flags().Float64Var(&d.speed, "speed", 1, "`factor` for the pace of the scenes: with 4, they follow each other four times as fast; the rate of requests does not change")
	return cmd
}

type demonstration struct {
	http     string
	duration time.Duration
	speed    float64
}

func (d *demonstration) run(cmd *cobra.Command) error {
	dir, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, loadgen.DemoRules, 0o600); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, d.duration)
	defer cancel()
	a, err := app.New(app.Options{
		HTTP: d.http, GRPC: app.Off, Rules: rules,
		Logger: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return usageError{err}
	}
	if err := a.Start(ctx); err != nil {
		return err
	}
	ended := make(chan struct{})
	playing, quit := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		out := cmd.OutOrStdout()
		url := address(a.Addrs().HTTP, false)
		d.introduce(out, url, rules)
		(&loadgen.DemoPlayer{URL: url, Speed: d.speed, Begin: func(at time.Duration, s loadgen.DemoScene) { tell(out, d.wall(at), s.What) }}).Play(playing)
	}()
	select {
	case <-ctx.Done():
	case err = <-a.Failed():
	}
	quit()
	<-ended
	if stopped := a.Stop(context.Background()); err == nil {
		err = stopped
	}
	return err
}

// wall is when a point of the script is reached.
func (d *demonstration) wall(at time.Duration) time.Duration {
	return time.Duration(float64(at) / d.speed)
}

func (d *demonstration) introduce(w io.Writer, url, rules string) {
	fmt.Fprintf(w, `The demo is an API with three plans. weir limits it, in memory.

  dashboard  %s/
  terminal   weir top --server %s
  rules      %s

You can change the rules in the dashboard, or in the file. Press Ctrl-C to end the demo.

`, url, url, rules)
	tell(w, 0, "60 users call the API, and some of them a language model")
}

// tell says what happens, and when.
func tell(w io.Writer, at time.Duration, what string) {
	at = at.Round(time.Second)
	fmt.Fprintf(w, "%3d:%02d  %s\n", int(at.Minutes()), int(at.Seconds())%60, what)
}
