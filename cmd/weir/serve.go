package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/ballast"
	"github.com/weirhq/weir/internal/server/envoyrls"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/stats/alert"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/redis"
)

func newServe() *cobra.Command {
	f := &serverFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer over HTTP whether requests may pass",
		Long: `Answer over HTTP whether requests may pass, until told to stop.

  weir serve --rules rules.yaml
  weir serve --rules redis --store redis://10.0.0.5:6379 --http 0.0.0.0:8080 --admin-token-file tokens

` + settingsHelp,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			return f.serve(cmd, o)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

const settingsHelp = `Every flag is also a key of the file that --config names, with underscores for
dashes, and a variable of the environment: --store, store and WEIR_STORE. The flag
beats the variable, and that the file. A single token may be in WEIR_ADMIN_TOKEN.

SIGHUP reads rules, tokens and certificates again, which also happens by itself when
they change. SIGTERM finishes what is under way and stops.`

// serverFlags are common to the servers.
type serverFlags struct {
	app.Options
	trusted     []string
	proxyHeader string
	headers     []string

	envoyHeaderNames []string

	stats     bool
	statsKeep string
	alerts    []string
	queues    []string

	logFormat string
	logLevel  string
}

func (f *serverFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.String("config", "", "`file` of settings, in YAML")
	flags.StringVar(&f.Rules, "rules", app.DefaultRules, "`file` of rules, made if it is not there; or redis: they are kept there; or none, as with --envoy-config if there is no such file")
	flags.StringVar(&f.Store, "store", app.DefaultStore, "`URL` of where limits are kept: memory://, redis://, rediss://, redis+sentinel://, redis+cluster://")
	flags.BoolVar(&f.RequireStore, "require-store", false, "do not start if the store does not answer")
	flags.IntVar(&f.Instances, "instances", 1, "how many servers share the limits: while the store is unavailable, each goes on with its share")
	flags.StringVar(&f.HTTP, "http", app.DefaultHTTP, "`address` of the API")
	flags.StringVar(&f.GRPC, "grpc", app.DefaultGRPC, "`address` of the API for gRPC, and of Envoy's rate limit service; off for none")
	flags.StringVar(&f.Envoy.Config, "envoy-config", "", "`directory` of a configuration for Envoy's rate limit service, as envoyproxy/ratelimit reads it")
	flags.BoolVar(&f.Envoy.RequireConfig, "envoy-require-config", false, "do not start if that configuration cannot be used; without, Envoy's requests get an error until it can")
	flags.BoolVar(&f.Envoy.ReadyWithConfig, "envoy-ready-with-config", false, "be ready only once such a configuration is loaded")
	flags.BoolVar(&f.Envoy.CountDenied, "envoy-count-denied", false, "count as envoyproxy/ratelimit does: each descriptor by itself, and what is denied, too")
	flags.BoolVar(&f.Envoy.ResponseHeaders, "envoy-headers", false, "let Envoy add RateLimit-* headers to its responses")
	flags.StringSliceVar(&f.envoyHeaderNames, "envoy-header-names", []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}, "their three `names`")
	flags.BoolVar(&f.Envoy.DynamicMetadata, "envoy-metadata", false, "tell Envoy what was asked, for its logs and other filters")
	flags.BoolVar(&f.Envoy.MergeDomains, "envoy-merge-domains", false, "let several files say something of the same domain")
	flags.BoolVar(&f.Envoy.GlobalQuota, "envoy-quota", false, "treat every descriptor as if it had quota_mode")
	flags.BoolVar(&f.Envoy.GlobalShadow, "envoy-shadow", false, "let every request of Envoy's pass")
	flags.StringVar(&f.TokenFile, "admin-token-file", "", "`file` of tokens for managing weir: a line each, \"name read|use|admin token\"")
	flags.StringSliceVar(&f.HostNames, "host-names", nil, "`names` by which the API may be called without tokens, besides localhost and addresses")
	flags.StringVar(&f.TLS.CertFile, "tls-cert", "", "certificate `file` of the API, which is plain HTTP without")
	flags.StringVar(&f.TLS.KeyFile, "tls-key", "", "its private key `file`")
	flags.StringVar(&f.TLS.ClientCAFile, "tls-client-ca", "", "`file` of authorities: clients must have a certificate of one")
	flags.StringSliceVar(&f.TLS.ClientSANs, "tls-client-san", nil, "`names`, one of which the client's certificate must have: DNS name, IP address, URI or e-mail address")
	flags.StringVar(&f.Data, "data", "", "`directory` of what should survive a restart")
	flags.DurationVar(&f.SnapshotEvery, "snapshot-every", app.DefaultSnapshotEvery, "how often what is in memory is saved in there, besides at the end")
	flags.BoolVar(&f.stats, "stats", true, "remember what happened, and make alerts of it")
	flags.StringVar(&f.statsKeep, "stats-keep", "seconds=1h,minutes=1d,hours=30d,days=366d", "for how `long`, in which detail")
	flags.StringArrayVar(&f.alerts, "alert", nil, "`check` that is not as by default, such as denied=10%,window=5m or slow=off; checks: "+strings.Join(alert.Kinds(), ", ")+"; options: "+strings.Join(alert.OptionNames, ", "))
	flags.StringVar(&f.Alerts.Webhook, "alert-webhook", "", "`URL` to which alerts are posted")
	flags.StringVar(&f.Alerts.WebhookSecretFile, "alert-webhook-secret-file", "", "`file` of the secret by which they are signed")
	flags.StringVar(&f.Alerts.Alertmanager, "alertmanager", "", "`URL` of an Alertmanager that is told of alerts")
	flags.StringVar(&f.Alerts.Link, "alert-link", "", "`URL` of the dashboard, for links in alerts (default the address of --http)")
	flags.StringArrayVar(&f.queues, "queue", nil, "`queue` for work of applications: mail=10/1s,capacity=5000")
	flags.StringSliceVar(&f.trusted, "trusted-proxies", nil, "`networks` of the proxies in front, which are believed about whom they serve")
	flags.StringVar(&f.proxyHeader, "proxy-header", "either", "where they write that: x-forwarded-for, forwarded or either")
	flags.StringVar(&f.UserHeader, "user-header", "", "`header` in which they write who the user is")
	flags.StringVar(&f.TierHeader, "tier-header", "", "`header` in which they write the tier of the user")
	flags.StringSliceVar(&f.headers, "headers", []string{"x-ratelimit", "ratelimit", "retry-after"}, "`families` of headers that end users get; none for none")
	flags.IntVar(&f.RuleOptions.IPv6Bits, "ipv6-bits", 64, "how much of an IPv6 address tells clients apart")
	flags.BoolVar(&f.RuleOptions.IgnoreCase, "ignore-path-case", false, "match paths whatever their case")
	flags.DurationVar(&f.Grace, "grace", app.DefaultGrace, "how long to wait at the end for requests that are under way")
	flags.StringVar(&f.Traces, "traces", "", "`URL` of an OpenTelemetry collector (OTLP over HTTP)")
	flags.StringVar(&f.logFormat, "log-format", "auto", "text, json or auto: text on a terminal")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
}

// options are what the flags, the environment and the file say together.
func (f *serverFlags) options(cmd *cobra.Command) (app.Options, error) {
	if err := settle(cmd); err != nil {
		return app.Options{}, err
	}
	o := f.Options
	var err error
	if o.Logger, err = f.logger(cmd.ErrOrStderr()); err != nil {
		return o, err
	}
	if !cmd.Flags().Changed("rules") {
		o.Rules = "" // which depends on the others
	}
	o.Stats.Off = !f.stats
	if o.Stats.Keep, err = archive.ParseKeep(f.statsKeep); err != nil {
		return o, usage("--stats-keep: %w", err)
	}
	if o.Alerts.Checks, err = alert.Parse(strings.Join(f.alerts, ";")); err != nil {
		return o, usage("--alert: %w", err)
	}
	if o.Queues, err = queue.Parse(strings.Join(f.queues, ";")); err != nil {
		return o, usage("--queue: %w", err)
	}
	o.Version, o.Token = version(), os.Getenv("WEIR_ADMIN_TOKEN")
	for _, text := range f.trusted {
		network, err := parseNetwork(text)
		if err != nil {
			return o, err
		}
		o.TrustedProxies = append(o.TrustedProxies, network)
	}
	if err := oneOf("proxy-header", f.proxyHeader, "either", "x-forwarded-for", "forwarded"); err != nil {
		return o, err
	}
	o.ProxyHeader = map[string]httplimit.ProxyHeader{
		"either": httplimit.EitherHeader, "x-forwarded-for": httplimit.XForwardedFor, "forwarded": httplimit.Forwarded,
	}[f.proxyHeader]
	if len(f.envoyHeaderNames) != 3 {
		return o, usage("--envoy-header-names: there are %d names; write three, for the limit, the remaining and the reset", len(f.envoyHeaderNames))
	}
	o.Envoy.HeaderNames = envoyrls.HeaderNames{Limit: f.envoyHeaderNames[0], Remaining: f.envoyHeaderNames[1], Reset: f.envoyHeaderNames[2]}
	for _, name := range f.headers {
		if err := oneOf("headers", name, "x-ratelimit", "ratelimit", "retry-after", "none"); err != nil {
			return o, err
		}
		o.Headers |= map[string]httplimit.Headers{
			"x-ratelimit": httplimit.XRateLimit, "ratelimit": httplimit.RateLimit, "retry-after": httplimit.RetryAfter, "none": httplimit.NoHeaders,
		}[name]
	}
	return o, nil
}

// parseNetwork reads a network, or one address.
func parseNetwork(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return network, usage("--trusted-proxies: %q is no network; write it as 10.0.0.0/8 or 192.0.2.7", text)
	}
	return network, nil
}

// logger writes for people on a terminal, and for programs elsewhere.
func (f *serverFlags) logger(w io.Writer) (*slog.Logger, error) {
	if err := oneOf("log-format", f.logFormat, "auto", "text", "json"); err != nil {
		return nil, err
	}
	if err := oneOf("log-level", f.logLevel, "debug", "info", "warn", "error"); err != nil {
		return nil, err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, err
	}
	o := &slog.HandlerOptions{Level: level}
	if f.logFormat == "text" || f.logFormat == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, o)), nil
	}
	o.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.StringValue(a.Value.Duration().String()) // not a number of nobody knows what
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(w, o)), nil
}

// serve runs a server until it is told to stop.
func (f *serverFlags) serve(cmd *cobra.Command, o app.Options) error {
	a, err := app.New(o)
	if err != nil {
		return usageError{err}
	}
	defer ballast.Room(ballast.Service)()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	// A start may have to wait, and can be stopped meanwhile.
	starting, done := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	err = a.Start(starting)
	done()
	if err != nil {
		return err
	}
	announce(cmd.OutOrStdout(), a.Options(), a.Addrs())
	for {
		select {
		case err := <-a.Failed():
			return errors.Join(err, a.Stop(context.Background()))
		case s := <-signals:
			if s != syscall.SIGHUP {
				signal.Stop(signals) // a second one ends it at once
				o.Logger.Info("stopping", "signal", s.String())
				return a.Stop(context.Background())
			}
			o.Logger.Info("reading rules, tokens and certificates again", "signal", s.String())
			if err := a.Reload(cmd.Context()); err != nil {
				o.Logger.Error("not everything can be used; what cannot stays as it was", "error", err)
			}
		}
	}
}

// announce says where it listens, in a line that scripts can read.
func announce(w io.Writer, o app.Options, addrs app.Addrs) {
	store, _, _ := strings.Cut(o.Store, "?")
	if !strings.HasPrefix(store, "memory:") {
		store = redis.Redact(store)
	}
	fmt.Fprintf(w, "weir listens on %s (rules: %s, store: %s)\n", address(addrs.HTTP, o.TLS.CertFile != ""), o.Rules, store)
	if addrs.GRPC != nil {
		fmt.Fprintf(w, "weir listens for gRPC on %s\n", addrs.GRPC)
	}
	if o.Gateway != nil {
		fmt.Fprintf(w, "weir passes on what comes to %s\n", address(addrs.Gateway, o.Gateway.TLS.CertFile != ""))
	}
}

func address(a net.Addr, encrypted bool) string {
	if encrypted {
		return "https://" + a.String()
	}
	return "http://" + a.String()
}
