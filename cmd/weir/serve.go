package main

import (
	"cmp"
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
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/counter/memory"
	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/app"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/internal/server/envoyrls"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/redis"
)

func newServe() *cobra.Command {
	f := &serverFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the rate limit service (HTTP and gRPC)",
		Long: `Run the rate limit service. It decides over HTTP and gRPC, and with --resp
for Redis clients, whether requests are allowed.

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
	f.addServerFlags(cmd.Flags())
	return cmd
}

const settingsHelp = `You can also set every flag in the --config file, with underscores for dashes, and
with an environment variable: --snapshot-every, snapshot_every, WEIR_SNAPSHOT_EVERY.
Precedence: flag, environment variable, file. WEIR_ADMIN_TOKEN can hold a single token.

weir reloads rules, tokens and certificates when they change, and on SIGHUP. On SIGTERM
it answers the requests in flight, saves its data and exits.`

// serverFlags are common to the servers.
type serverFlags struct {
	app.Options
	trusted     []string
	proxyHeader string
	headers     []string
	signInScope string

	unknownClients string
	unknownPrices  string

	issuers    []string
	attributes []string

	envoyHeaderNames []string
	envoyCalendar    string
	envoyHolds       []string

	stats     bool
	statsKeep string
	alerts    []string
	queues    []string

	counterKeep string

	logFormat string
	logLevel  string
}

func (f *serverFlags) addServerFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.String("config", "", "`file` with settings (YAML)")
	flags.StringVar(&f.Rules, "rules", app.DefaultRules, "rules `file`, which weir creates if it does not exist; or redis, to keep the rules in Redis; or none, for no rules. With --envoy-config or --envoy-xds, or in a directory that is not writable, none is the default if there is no rules.yaml")
	flags.StringVar(&f.Clients.File, "clients", "", "`file` of clients (NDJSON or YAML): to whom an API key belongs, tiers, and limits of single clients")
	flags.StringVar(&f.unknownClients, "clients-unknown", "allow", "what becomes of requests whose API key is not in the directory of clients: `allow` or deny (with status 401)")
	flags.BoolVar(&f.Clients.TrustRequest, "clients-trust-request", false, "let the user and the tier that an application sends take precedence over those of --clients; without it, they count only for what --clients does not say")
	flags.StringArrayVar(&f.issuers, "jwt", nil, "`issuer` of access tokens that tell who a client is, as in issuer=https://id.example.com,audience=api; options: jwks, algorithms (repeatable)")
	flags.BoolVar(&f.JWT.Required, "jwt-required", false, "deny requests without a valid token with status 401; without it, they have no identity, and rules by address still apply")
	flags.StringArrayVar(&f.attributes, "attributes", nil, "attribute that a token gives (`name=expression`), as in org=jwt.claims.org; user, tier and priority are those of the request. Without the flag, a token gives user=jwt.claims.sub (repeatable)")
	flags.StringVar(&f.Prices.File, "prices", "", "`file` of prices of language models (JSON, in LiteLLM's format), for rules with price: usd")
	flags.StringVar(&f.unknownPrices, "prices-unknown", "deny", "what becomes of requests for a model that is not among the --prices: `deny` or highest (the highest price of each kind)")
	flags.StringVar(&f.Store, "store", app.DefaultStore, "`url` of the store: memory://, redis://, rediss://, redis+sentinel:// or redis+cluster://")
	flags.BoolVar(&f.RequireStore, "require-store", false, "exit if the store is unavailable at startup")
	flags.DurationVar(&f.Lease, "lease", 0, "`duration` for which weir leases units of every limit, to decide without asking Redis; 0 leases only for rules that have the field lease")
	flags.IntVar(&f.Instances, "instances", 1, "`count` of instances that share the limits; while the store is unavailable, each instance applies its share")
	flags.StringVar(&f.HTTP, "http", app.DefaultHTTP, "listen `address` of the HTTP API")
	flags.StringVar(&f.GRPC, "grpc", app.DefaultGRPC, "listen `address` of the gRPC API and of Envoy's rate limit service; off for none")
	flags.StringVar(&f.RESP, "resp", app.Off, "listen `address` for Redis clients (RESP), as in 127.0.0.1:6380; off for none")
	flags.StringVar(&f.Envoy.Config, "envoy-config", "", "`directory` with a configuration of envoyproxy/ratelimit, for Envoy's rate limit service")
	flags.StringVar(&f.Envoy.XDS.Server, "envoy-xds", "", "`address` (host:port) of an xDS server that sends a configuration of envoyproxy/ratelimit, instead of --envoy-config")
	flags.BoolVar(&f.Envoy.XDS.UseTLS, "envoy-xds-tls", false, "connect to the xDS server with TLS; the other TLS flags of --envoy-xds imply it")
	flags.StringVar(&f.Envoy.XDS.Files.CAFile, "envoy-xds-tls-ca", "", "CA `file` that verifies the certificate of the xDS server (default the system's CAs)")
	flags.StringVar(&f.Envoy.XDS.Files.CertFile, "envoy-xds-tls-cert", "", "client certificate `file` for the xDS server")
	flags.StringVar(&f.Envoy.XDS.Files.KeyFile, "envoy-xds-tls-key", "", "private key `file` of the client certificate for the xDS server")
	flags.StringVar(&f.Envoy.XDS.Files.ServerName, "envoy-xds-tls-san", "", "`name` that the certificate of the xDS server must have (default the host of --envoy-xds)")
	flags.StringVar(&f.Envoy.XDS.NodeID, "envoy-xds-node-id", "default", "node `id` that weir sends to the xDS server")
	flags.StringToStringVar(&f.Envoy.XDS.NodeMetadata, "envoy-xds-node-metadata", nil, "node metadata (`name=value list`) that weir sends to the xDS server")
	flags.StringVar(&f.Envoy.XDS.HeaderFile, "envoy-xds-header-file", "", "`file` with headers for the xDS server, one per line, such as authorization: Bearer …")
	flags.BoolVar(&f.Envoy.RequireConfig, "envoy-require-config", false, "exit if the configuration of --envoy-config cannot be used at startup; without it, weir starts, and answers Envoy with an error until the configuration can be used")
	flags.BoolVar(&f.Envoy.ReadyWithConfig, "envoy-ready-with-config", false, "report ready only after an Envoy configuration is loaded; with --envoy-xds, weir always does this")
	flags.BoolVar(&f.Envoy.CountDenied, "envoy-count-denied", false, "count as envoyproxy/ratelimit does: each descriptor separately, denied requests included")
	flags.BoolVar(&f.Envoy.ResponseHeaders, "envoy-headers", false, "send RateLimit-* headers, which Envoy adds to its responses")
	flags.StringSliceVar(&f.envoyHeaderNames, "envoy-header-names", []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}, "names (`name list`) of the headers of --envoy-headers: limit, remaining, reset")
	flags.BoolVar(&f.Envoy.DynamicMetadata, "envoy-metadata", false, "send Envoy the checked request as dynamic metadata, for its logs and other filters")
	flags.BoolVar(&f.Envoy.MergeDomains, "envoy-merge-domains", false, "allow several files, or resources of --envoy-xds, to configure the same domain")
	flags.StringVar(&f.envoyCalendar, "envoy-calendar", "", "time `zone`, such as Europe/Berlin, whose calendar limits by the day, week, month and year of an Envoy configuration follow that have no zone (default a month has 30 days, a year 365, and periods begin by UTC)")
	flags.StringArrayVar(&f.envoyHolds, "envoy-hold", nil, "`hold` for descriptors of an Envoy configuration that have none: the key of the entry that names a request, how many units to reserve, and options, as in request_id=4000,end=phase:done,hold_ttl=10m,on_expiry=release (repeatable)")
	flags.BoolVar(&f.Envoy.GlobalQuota, "envoy-quota", false, "treat every descriptor as if it had quota_mode")
	flags.BoolVar(&f.Envoy.GlobalShadow, "envoy-shadow", false, "shadow mode for Envoy: count, and allow every request")
	flags.StringVar(&f.TokenFile, "admin-token-file", "", "`file` of API tokens, one per line: name, rights (read, use, admin, check, charge, clients) and token")
	flags.BoolVar(&f.OpenChecks, "open-checks", false, "let everybody check and charge who can reach an address of weir; without it, a check requires a token if there are tokens")
	flags.StringSliceVar(&f.HostNames, "host-names", nil, "host names (`name list`) that clients may use for the API while no tokens are set; localhost and IP addresses are always allowed")
	flags.StringVar(&f.TLS.CertFile, "tls-cert", "", "TLS certificate `file` of the API; without it, the API uses plain HTTP")
	flags.StringVar(&f.TLS.KeyFile, "tls-key", "", "TLS private key `file` of the API")
	flags.StringVar(&f.TLS.ClientCAFile, "tls-client-ca", "", "CA `file`; clients must have a certificate of one of its authorities")
	flags.StringSliceVar(&f.TLS.ClientSANs, "tls-client-san", nil, "names (`name list`); a client certificate must have at least one of them: DNS name, IP address, URI or e-mail address")
	flags.StringVar(&f.Data, "data", "", "`directory` for data that survives a restart")
	flags.DurationVar(&f.SnapshotEvery, "snapshot-every", app.DefaultSnapshotEvery, "how often weir saves data in memory to --data; it also saves on exit")
	flags.BoolVar(&f.stats, "stats", true, "record statistics and evaluate alerts")
	flags.StringVar(&f.statsKeep, "stats-keep", "seconds=1h,minutes=1d,hours=30d,days=366d", "how long weir keeps statistics of each resolution (`duration list`), and as spend=90d what was spent")
	flags.StringArrayVar(&f.alerts, "alert", nil, "change an alert `check`, as in denied=10%,window=5m or slow=off; checks: "+strings.Join(alert.Kinds(), ", ")+"; options: "+strings.Join(alert.OptionNames, ", ")+" (repeatable)")
	flags.StringVar(&f.Alerts.Webhook, "alert-webhook", "", "`url` to which weir posts alerts")
	flags.StringVar(&f.Alerts.WebhookSecretFile, "alert-webhook-secret-file", "", "`file` with the secret that signs the posts to --alert-webhook")
	flags.StringVar(&f.Alerts.Alertmanager, "alertmanager", "", "`url` of an Alertmanager that receives the alerts")
	flags.StringVar(&f.Alerts.Link, "alert-link", "", "`url` of the dashboard, for links in alerts (default address of --http)")
	flags.StringArrayVar(&f.queues, "queue", nil, "`queue` for applications, as in mail=10/1s,capacity=5000 (repeatable)")
	flags.IntVar(&f.CounterCapacity, "counter-capacity", memory.DefaultMaxEntries, "maximum `count` of entries of counters in memory, of about 400 bytes each; when it is reached, weir rejects new names")
	flags.StringVar(&f.counterKeep, "counter-keep", "seconds=1h,minutes=1d,hours=30d,days=366d,months=60,years=10,ever=366d", "how long weir keeps counters (`duration list`); months and years are numbers of windows, and ever is for counters without a window")
	flags.StringSliceVar(&f.trusted, "trusted-proxies", nil, "proxies (`cidr list`) whose X-Forwarded-For and Forwarded headers weir trusts")
	flags.StringVar(&f.proxyHeader, "proxy-header", "either", "`header` with the client's address, set by trusted proxies: x-forwarded-for, forwarded or either")
	flags.StringVar(&f.Limits.UserHeader, "user-header", "", "`header` with the user, set by trusted proxies")
	flags.StringVar(&f.Limits.TierHeader, "tier-header", "", "`header` with the user's tier, set by trusted proxies")
	flags.StringVar(&f.Limits.PriorityHeader, "priority-header", "", "`header` with the request's priority, set by trusted proxies: critical, high, normal or low")
	flags.StringVar(&f.SignInHeader, "sign-in-header", "", "`header` with the name of a person whom trusted proxies have authenticated, for the dashboard and the management API")
	flags.StringVar(&f.signInScope, "sign-in-scope", "read", "`scope` of people who sign in with --sign-in-header: read, use or admin")
	flags.StringSliceVar(&f.headers, "headers", []string{"x-ratelimit", "ratelimit", "retry-after"}, "rate limit headers (`name list`) in responses to clients: x-ratelimit, ratelimit, retry-after, or none")
	flags.IntVar(&f.RuleOptions.IPv6Bits, "ipv6-bits", 64, "how many leading `bits` of an IPv6 address identify the client")
	flags.BoolVar(&f.RuleOptions.IgnoreCase, "ignore-path-case", false, "match paths of rules regardless of case")
	flags.DurationVar(&f.Grace, "grace", app.DefaultGrace, "how long weir waits on exit for requests in flight")
	flags.StringVar(&f.Traces, "traces", "", "`url` of an OpenTelemetry collector (OTLP over HTTP)")
	flags.BoolVar(&f.Profiles, "pprof", false, "let tokens with the right admin take profiles of the process, by /debug/pprof/ of the HTTP API")
	flags.StringVar(&f.logFormat, "log-format", "auto", "log `format`: text, json, or auto (text on a terminal, json elsewhere)")
	flags.StringVar(&f.logLevel, "log-level", "info", "log `level`: debug, info, warn or error")
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
	if err := oneOf("clients-unknown", f.unknownClients, "allow", "deny"); err != nil {
		return o, err
	}
	o.Clients.DenyUnknown = f.unknownClients == "deny"
	if o.JWT.Issuers, err = app.ParseIssuers(strings.Join(f.issuers, ";")); err != nil {
		return o, usage("--jwt: %w", err)
	}
	if o.JWT.Attributes, err = app.ParseAttributes(f.attributes); err != nil {
		return o, usage("--attributes: %w", err)
	}
	if err := oneOf("prices-unknown", f.unknownPrices, "deny", "highest"); err != nil {
		return o, err
	}
	o.Prices.UnknownHighest = f.unknownPrices == "highest"
	o.Grace = cmp.Or(o.Grace, time.Nanosecond) // a written 0 is none, not the default
	o.Stats.Off = !f.stats
	if o.Stats.Keep, err = archive.ParseKeep(f.statsKeep); err != nil {
		return o, usage("--stats-keep: %w", err)
	}
	if o.Alerts.Checks, err = alert.Parse(strings.Join(f.alerts, ";")); err != nil {
		return o, usage("--alert: %w", err)
	}
	if o.Queues, err = queue.Parse(strings.Join(f.queues, ";")); err != nil {
		return o, badFlag("queue", "queue", err)
	}
	if o.CounterCapacity < 1 {
		return o, usage("--counter-capacity: %d is too small; write 1 or more", o.CounterCapacity)
	}
	if o.CounterKeep, err = counter.ParseRetention(f.counterKeep); err != nil {
		return o, badFlag("counter-keep", "retention", err)
	}
	o.Token = os.Getenv("WEIR_ADMIN_TOKEN")
	for _, text := range f.trusted {
		network, err := parseNetwork(text)
		if err != nil {
			return o, err
		}
		o.Limits.TrustedProxies = append(o.Limits.TrustedProxies, network)
	}
	if err := oneOf("proxy-header", f.proxyHeader, "either", "x-forwarded-for", "forwarded"); err != nil {
		return o, err
	}
	o.Limits.ProxyHeader = map[string]httplimit.ProxyHeader{
		"either": httplimit.EitherHeader, "x-forwarded-for": httplimit.XForwardedFor, "forwarded": httplimit.Forwarded,
	}[f.proxyHeader]
	if err := oneOf("sign-in-scope", f.signInScope, "read", "use", "admin"); err != nil {
		return o, err
	}
	o.SignInScope = map[string]trust.Rights{"read": trust.Read, "use": trust.Use, "admin": trust.Admin}[f.signInScope]
	if len(f.envoyHeaderNames) != 3 {
		return o, usage("--envoy-header-names: got %d names; write three: limit, remaining, reset", len(f.envoyHeaderNames))
	}
	if f.envoyCalendar != "" {
		if o.Envoy.Calendar, err = notation.LoadZone(f.envoyCalendar); err != nil {
			return o, usage("--envoy-calendar: %w", err)
		}
	}
	if o.Envoy.Holds, err = envoyconfig.ParseHolds(strings.Join(f.envoyHolds, ";")); err != nil {
		return o, usage("--envoy-hold: %w", err)
	}
	o.Envoy.HeaderNames = envoyrls.HeaderNames{Limit: f.envoyHeaderNames[0], Remaining: f.envoyHeaderNames[1], Reset: f.envoyHeaderNames[2]}
	for _, name := range f.headers {
		if err := oneOf("headers", name, "x-ratelimit", "ratelimit", "retry-after", "none"); err != nil {
			return o, err
		}
		o.Limits.Headers |= map[string]httplimit.Headers{
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
		return network, usage("--trusted-proxies: %q is not a network; write for example 10.0.0.0/8 or 192.0.2.7", text)
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
			a.Value = slog.StringValue(a.Value.Duration().String()) // a number would have no unit
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
	defer overload.Ballast(overload.ServiceBallast)()
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
			o.Logger.Info("reloading rules, tokens and certificates", "signal", s.String())
			if err := a.Reload(cmd.Context()); err != nil {
				o.Logger.Error("reload failed in part; weir keeps the previous version of what failed", "error", err)
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
	if addrs.RESP != nil {
		fmt.Fprintf(w, "weir listens for Redis clients on %s\n", addrs.RESP)
	}
	if o.Gateway != nil {
		fmt.Fprintf(w, "weir gateway listens on %s\n", address(addrs.Gateway, o.Gateway.TLS.CertFile != ""))
	}
}

func address(a net.Addr, encrypted bool) string {
	if encrypted {
		return "https://" + a.String()
	}
	return "http://" + a.String()
}
