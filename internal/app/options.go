package app

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/middleware/jwt"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/redis"
)

// What Options stand for when they say nothing.
const (
	DefaultHTTP          = "127.0.0.1:8080"
	DefaultGRPC          = "127.0.0.1:8081"
	DefaultListen        = "127.0.0.1:8000"
	exampleRESP          = "127.0.0.1:6380"
	DefaultRules         = "rules.yaml"
	DefaultStore         = "memory://"
	DefaultGrace         = 10 * time.Second
	DefaultStreamGrace   = time.Minute
	DefaultSnapshotEvery = 10 * time.Second
)

// InRedis, as Options.Rules, keeps the rules in the Redis of the store.
const InRedis = "redis"

// Options of a server. The zero value is a service on the loopback address that keeps
// everything in memory.
type Options struct {
	// HTTP is where the API listens. Default DefaultHTTP. On an address that others
	// can reach, there must be tokens.
	HTTP string

	// GRPC is where the API listens for gRPC, and Envoy's rate limit service. Default
	// DefaultGRPC; Off for nowhere. On an address that others can reach, there must be tokens,
	// or OpenChecks.
	GRPC string

	// RESP is where Redis clients are answered. Default Off. On an address that others can
	// reach, there must be tokens.
	RESP string

	// Envoy is about Envoy's rate limit service. Default there is none.
	Envoy Envoy

	// TLS is the certificate of the API. Default none: plain HTTP.
	TLS trust.Options

	// TokenFile has the tokens for checks, and for managing weir. Token is a single one
	// instead, of an administrator. Default none.
	TokenFile string
	Token     string

	// OpenChecks lets everybody check and charge who can reach an address. Default false: if
	// there are tokens, it takes one.
	OpenChecks bool

	// Store is the URL of where limits are kept: memory://, or one that
	// redis.ParseURL takes. Default DefaultStore.
	Store string

	// Lease is how long units of any limit that can be leased are on lease. Default 0: only those of rules that say so. It has no
	// effect on a store in memory.
	Lease time.Duration

	// RequireStore makes Start fail if the store does not answer. Default false: it
	// starts, and each rule goes on as it says.
	RequireStore bool

	// Instances is among how many a limit is divided while each has to go on by
	// itself. Default 1.
	Instances int

	// Rules is the file of rules, which is made if it is not there, or InRedis, or
	// NoRules. Default DefaultRules; NoRules if that is not there and Envoy is served,
	// or if the working directory is not writable.
	Rules string

	// RuleOptions say how rules are read.
	RuleOptions rule.Options

	Clients Clients
	Prices  Prices

	// JWT says whose tokens tell who a client is, in requests to the gateway, and to proxies that ask.
	// Its Logger is the one below. Default nobody's.
	JWT jwt.Options

	// Data is a directory of what should survive a restart: what is in a store in
	// memory, older versions of the rules. Default none does.
	Data string

	// SnapshotEvery is how often that is saved, besides at the end. Default
	// DefaultSnapshotEvery.
	SnapshotEvery time.Duration

	// Stats is what is remembered of what happened, in the store and in Data.
	Stats Stats

	// Alerts are made of the statistics.
	Alerts Alerts

	// Queues are for work of applications, by name. Default none.
	Queues map[string]queue.Settings

	// CounterCapacity is memory.Options.MaxEntries of counters in memory, and CounterKeep how
	// long counters are kept. Defaults as there, and in counter.Retention.
	CounterCapacity int
	CounterKeep     counter.Retention

	// HostNames are names by which the API may be called without tokens, besides
	// localhost and addresses.
	HostNames []string

	// Limits say how requests are limited, by the gateway or a proxy that asks: which proxies are
	// trusted, the headers in which they write who the client is, and those of responses.
	Limits httplimit.Options

	// SignInHeader is where trusted proxies write whom they have authenticated, for the
	// management. Default nowhere. SignInScope is what these people may do.
	SignInHeader string
	SignInScope  trust.Rights

	// Gateway makes it a gateway, too. Default it is none.
	Gateway *Gateway

	// Grace is how long Stop waits for requests that are under way. Default
	// DefaultGrace.
	Grace time.Duration

	// Traces is the URL of an OpenTelemetry collector that takes OTLP over HTTP.
	// Default what OTEL_EXPORTER_OTLP_ENDPOINT says; if that is not set, none.
	Traces string

	// Profiles lets administrators take profiles of the process, by /debug/pprof/. There must be
	// a token with the right admin. Default false.
	Profiles bool

	// Logger is told what happens. Default slog.Default().
	Logger *slog.Logger
}

// Off, as an address, is none.
const Off = "off"

// Gateway is what makes a server a reverse proxy.
type Gateway struct {
	// Listen is where requests come in. Default DefaultListen.
	Listen string

	// TLS is the certificate for them. Default none: plain HTTP.
	TLS trust.Options

	// Options of the proxy. Limit, Observe and Logger are filled in.
	gateway.Options

	// UpstreamCA has the authorities, in PEM, one of which must vouch for each upstream with https.
	// Default those of the system.
	UpstreamCA string

	// StreamGrace is how long Stop waits for streams: responses that have begun and have no
	// length or are of events, and WebSockets. They have Grace at least. Default
	// DefaultStreamGrace.
	StreamGrace time.Duration

	// MaxDelayed, Protect, BodyTimeout and BodyRate are as in httplimit.Options.
	MaxDelayed  int
	Protect     engine.Protect
	BodyTimeout time.Duration
	BodyRate    int64
}

// ready fills in defaults, and reports everything that is wrong.
func (o *Options) ready() error {
	o.HTTP = cmp.Or(o.HTTP, DefaultHTTP)
	o.GRPC = cmp.Or(o.GRPC, DefaultGRPC)
	o.RESP = cmp.Or(o.RESP, Off)
	o.Store = cmp.Or(o.Store, DefaultStore)
	o.Rules = cmp.Or(o.Rules, o.usualRules())
	if o.Gateway != nil {
		o.Gateway.Listen = cmp.Or(o.Gateway.Listen, DefaultListen)
		o.Gateway.StreamGrace = cmp.Or(o.Gateway.StreamGrace, DefaultStreamGrace)
	}
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.SnapshotEvery = cmp.Or(o.SnapshotEvery, DefaultSnapshotEvery)
	o.Instances = max(1, o.Instances)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return errors.Join(o.checkAddress(), o.checkStore(), o.checkTokens(), o.checkRest())
}

func (o *Options) checkAddress() error {
	wrong := []error{checkAddress("--http", o.HTTP, DefaultHTTP, "")}
	if o.GRPC != Off {
		wrong = append(wrong, checkAddress("--grpc", o.GRPC, DefaultGRPC, ", or off"))
	}
	if o.RESP != Off {
		wrong = append(wrong, checkAddress("--resp", o.RESP, exampleRESP, ", or off"))
	}
	if o.Gateway != nil {
		wrong = append(wrong, checkAddress("--listen", o.Gateway.Listen, "0.0.0.0:8000", ""))
	}
	return errors.Join(wrong...)
}

// checkAddress says how to write an address that is none. One that is only a port keeps it.
func checkAddress(flag, address, example, more string) error {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return nil
	}
	if _, err := strconv.ParseUint(address, 10, 16); err == nil {
		host, _, _ := net.SplitHostPort(example)
		example = net.JoinHostPort(host, address)
	}
	return fmt.Errorf("%s: %q is not an address; write host:port, as in %s%s", flag, address, example, more)
}

// checkTokens demands one where others can get at the API.
func (o *Options) checkTokens() error {
	switch {
	case o.Token != "" && o.TokenFile != "":
		return errors.New("--admin-token-file and WEIR_ADMIN_TOKEN exclude each other; use one of them")
	case o.hasTokens():
		return nil
	}
	const open = ", or let everybody check with --open-checks"
	var wrong []error
	switch {
	case o.SignInHeader == "":
		wrong = append(wrong, checkReach("--http", o.HTTP, ""))
	case !o.OpenChecks:
		wrong = append(wrong, checkReach("--http", o.HTTP, open))
	}
	if o.GRPC != Off && !o.OpenChecks {
		wrong = append(wrong, checkReach("--grpc", o.GRPC, open))
	}
	if o.RESP != Off {
		wrong = append(wrong, checkReach("--resp", o.RESP, ""))
	}
	return errors.Join(wrong...)
}

func (o *Options) hasTokens() bool { return o.Token != "" || o.TokenFile != "" }

// checkReach is an error if others can reach an address for which there are no tokens. It names
// a remedy more, if there is one.
func checkReach(flag, address, more string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil || clientip.IsLoopback(address) { // checkAddress reports the error
		return nil
	}
	return fmt.Errorf("%s %s is reachable from other machines, so tokens are required; set --admin-token-file or WEIR_ADMIN_TOKEN (openssl rand -hex 32 makes a token)%s, or listen on %s", flag, address, more, net.JoinHostPort("127.0.0.1", port))
}

func (o *Options) checkStore() error {
	if _, err := memoryKeys(o.Store); err != errNotMemory {
		if err == nil && o.Rules == InRedis {
			err = fmt.Errorf("--rules redis requires a store in Redis, not %s; set --store redis://…", o.Store)
		}
		return err
	}
	if _, err := redis.ParseURL(o.Store); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	return nil
}

func (o *Options) checkRest() error {
	wrong := []error{o.Envoy.check(), o.Prices.check(), o.checkJWT()}
	if l := &o.Limits; (l.UserHeader != "" || l.TierHeader != "" || l.PriorityHeader != "") && len(l.TrustedProxies) == 0 {
		wrong = append(wrong, errors.New("--user-header, --tier-header and --priority-header require --trusted-proxies; weir trusts these headers only from those proxies"))
	}
	if o.SignInHeader != "" && len(o.Limits.TrustedProxies) == 0 {
		wrong = append(wrong, errors.New("--sign-in-header requires --trusted-proxies; weir trusts this header only from those proxies"))
	}
	if o.Grace < 0 {
		wrong = append(wrong, fmt.Errorf("--grace: %s is negative; write how long to wait for requests in flight, as in 10s", o.Grace))
	}
	if g := o.Gateway; g != nil && g.UpstreamCA != "" && !slices.ContainsFunc(g.Routes, gateway.Route.UsesTLS) {
		wrong = append(wrong, errors.New("--upstream-tls-ca: no upstream uses TLS; write its URL with https://, or leave the flag out"))
	}
	if o.Gateway != nil && o.Gateway.StreamGrace < 0 {
		wrong = append(wrong, fmt.Errorf("--stream-grace: %s is negative; write how long to wait for streams, as in 60s", o.Gateway.StreamGrace))
	}
	if o.Lease != 0 && (o.Lease < weir.MinLease || o.Lease > weir.MaxLease) {
		wrong = append(wrong, fmt.Errorf("--lease: %s is out of range; write %s to %s, or 0 for none", o.Lease, weir.MinLease, notation.FormatDuration(weir.MaxLease)))
	}
	if o.SnapshotEvery < time.Second {
		wrong = append(wrong, fmt.Errorf("--snapshot-every: %s is too short; write at least 1s", o.SnapshotEvery))
	}
	return errors.Join(wrong...)
}

// longestGrace is how long Stop may wait.
func (o *Options) longestGrace() time.Duration {
	if o.Gateway == nil {
		return o.Grace
	}
	return max(o.Grace, o.Gateway.StreamGrace)
}

var errNotMemory = errors.New("not in memory")

// memoryKeys reads memory://?max_keys=N.
func memoryKeys(text string) (int, error) {
	if !strings.HasPrefix(text, "memory:") {
		return 0, errNotMemory
	}
	u, err := url.Parse(text)
	if err != nil || u.Host != "" || u.Path != "" || u.Opaque != "" {
		return 0, fmt.Errorf("--store: %q is invalid; write memory:// or memory://?max_keys=1000000", text)
	}
	keys := 0
	for name, values := range u.Query() {
		n, err := strconv.Atoi(values[0])
		if name != "max_keys" || err != nil || n < 1 || len(values) > 1 {
			return 0, fmt.Errorf("--store: %q is invalid; the only option of memory:// is max_keys, as in memory://?max_keys=1000000", text)
		}
		keys = n
	}
	return keys, nil
}

// tokens reads who may use weir; nil is everyone.
func (o *Options) tokens() (*trust.List, error) {
	switch {
	case o.Token != "":
		return trust.ParseTokens([]byte(o.Token))
	case o.TokenFile != "":
		return trust.ReadTokens(o.TokenFile)
	case o.SignInHeader != "":
		return new(trust.List), nil // whoever does not come by the proxy is nobody
	}
	return nil, nil
}
