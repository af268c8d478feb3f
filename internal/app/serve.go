package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/server/envoyrls"
	"github.com/weirhq/weir/internal/server/grpcapi"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/internal/server/respapi"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/metrics"
	"github.com/weirhq/weir/middleware/grpclimit"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/web"
)

// server is one address that is listened on.
type server struct {
	flag     string // that has the address
	listener net.Listener
	serve    func(net.Listener) error
	shutDown func(context.Context) error // waits for what is under way; then it is cut off

	// waitStreams waits for what may outlast the grace, and returns how many are left when the
	// context ends; nil if there is no such thing.
	waitStreams func(context.Context) int
}

// Addrs is where a server listens.
type Addrs struct {
	HTTP    net.Addr // the API
	GRPC    net.Addr // nil if it is off
	RESP    net.Addr // nil if it is off
	Gateway net.Addr // requests to be passed on; nil if it is no gateway
}

// Addrs returns where it listens; ports that were 0 are known by then.
func (a *App) Addrs() (addrs Addrs) {
	by := map[string]*net.Addr{"--http": &addrs.HTTP, "--grpc": &addrs.GRPC, "--resp": &addrs.RESP, "--listen": &addrs.Gateway}
	for _, s := range a.servers {
		*by[s.flag] = s.listener.Addr()
	}
	return addrs
}

func (a *App) openServers(ctx, background context.Context) error {
	api, err := a.newAPI()
	if err != nil {
		return err
	}
	err = a.listenHTTP(ctx, "--http", a.options.HTTP, "--tls-cert", &http.Server{
		Handler:        a.traced("api", api),
		ReadTimeout:    30 * time.Second, // of a whole request; streams lift it themselves
		WriteTimeout:   time.Minute,
		MaxHeaderBytes: 32 << 10,
	})
	if err != nil || a.options.Gateway == nil {
		return err
	}
	proxy, err := a.newGateway()
	if err != nil {
		return err
	}
	a.background.Go(func() { proxy.Run(background) }) // until the end, which is its error
	// A request or an answer may take as long as the two ends like; how long a head
	// or a silence may take is bounded.
	err = a.listenHTTP(ctx, "--listen", a.options.Gateway.Listen, "--listen-tls-cert", &http.Server{
		Handler:        a.traced("gateway", proxy),
		MaxHeaderBytes: 64 << 10,
		BaseContext:    func(net.Listener) context.Context { return background }, // or WebSockets would outlive it
	})
	if err == nil {
		a.servers[len(a.servers)-1].waitStreams = proxy.WaitStreams
	}
	return err
}

func (a *App) newAPI() (http.Handler, error) {
	home := web.Handler()
	if a.envoy != nil {
		mux := http.NewServeMux()
		mux.Handle("/json", a.envoy.JSON())
		mux.Handle("/", home)
		home = mux
	}
	o := httpapi.Options{
		Home:    home,
		Service: a.service(a.tokens.Load),
		SignIn:  httpapi.SignIn{Header: a.options.SignInHeader, Scope: a.options.SignInScope},
		Authz:   a.limits(),
		Hosts:   a.options.HostNames,
		Trouble: func() error {
			return errors.Join(a.store.trouble(), a.rules.trouble(), a.clientsTrouble(), a.prices.trouble(), a.jwtTrouble(), a.notSaved())
		},
		NotLoaded:  a.rules.notLoaded,
		Metrics:    a.metrics.Handler(),
		Profiles:   a.options.Profiles,
		Observe:    a.observeHTTP,
		Stats:      a.recorder,
		StoreKind:  a.store.kind(),
		Outage:     a.store.outage,
		Adaptive:   a.adaptiveLimits,
		Protect:    a.protectStats,
		Stopping:   a.stopping,
		Queues:     a.applications.queues,
		QueueNames: a.applications.queueNames,
	}
	if usage := a.applications.counterUsage; usage != nil {
		o.CounterUsage = func() httpapi.CounterUsage { return httpapi.CounterUsage(usage()) }
	}
	if a.store.leases != nil {
		o.Leases = a.store.leases.Stats
	}
	if a.watcher != nil {
		o.Alerts, o.TestAlerts = a.watcher.List(), a.watcher.Test
	}
	o.Envoy = a.envoyConfig
	return httpapi.New(o)
}

// service is what the servers share. Who may manage is asked of each in its own way.
func (a *App) service(tokens func() *trust.List) manage.Service {
	return manage.Service{
		Engine: a.engine, Editor: a.editor, Overrides: a.overrides, Guard: a.guard, Tokens: tokens, Checks: a.checks, Ready: a.ready,
		Counters: a.applications.counters, Clients: a.registry, Logger: a.options.Logger, RuleOptions: a.options.RuleOptions,
	}
}

// limits are how requests are limited, here or at a proxy that asks.
func (a *App) limits() httplimit.Options {
	o := a.options.Limits
	o.Logger = a.options.Logger
	if a.jwt != nil {
		o.Token = a.jwt.Verify
	}
	return o
}

func (a *App) newGateway() (*gateway.Gateway, error) {
	o := a.options.Gateway
	how := a.limits()
	how.MaxDelayed, how.Protect = o.MaxDelayed, o.Protect
	how.BodyTimeout, how.BodyRate = o.BodyTimeout, o.BodyRate
	limit, err := httplimit.New(a.engine, how)
	if err != nil {
		return nil, err
	}
	a.limit.Store(limit)
	proxy := o.Options
	if o.UpstreamCA != "" {
		if proxy.TLS, err = (trust.ClientCert{CAFile: o.UpstreamCA}).TLS(); err != nil {
			return nil, fmt.Errorf("--upstream-tls-ca: %w", err)
		}
	}
	proxy.Limit, proxy.Logger = limit, a.options.Logger
	proxy.TrustedProxies, proxy.ProxyHeader = how.TrustedProxies, how.ProxyHeader
	proxy.Observe = a.observeUpstream
	g, err := gateway.New(proxy)
	if err != nil {
		return nil, err
	}
	a.proxy.Store(g)
	a.later(g.Close)
	return g, nil
}

// listenHTTP opens an address; it is not answered yet.
func (a *App) listenHTTP(ctx context.Context, flag, address, certFlag string, h *http.Server) error {
	h.ReadHeaderTimeout = 10 * time.Second
	h.IdleTimeout = 2 * time.Minute
	h.ErrorLog = slog.NewLogLogger(a.options.Logger.Handler(), slog.LevelDebug)
	h.Protocols = new(http.Protocols)
	h.Protocols.SetHTTP1(true)
	serve := h.Serve
	if c := a.certs[certFlag]; c != nil {
		h.TLSConfig = c.TLS()
		h.Protocols.SetHTTP2(true)
		serve = func(l net.Listener) error { return h.ServeTLS(l, "", "") }
	} else {
		h.Protocols.SetUnencryptedHTTP2(true)
	}
	return a.listen(ctx, flag, address, serve, func(ctx context.Context) error {
		err := h.Shutdown(ctx)
		if err != nil && h.Shutdown(ctx) == nil { // it looks only now and then, and so a last time
			return nil
		}
		if err != nil {
			h.Close()
		}
		return err
	})
}

// listen opens an address, which serve will answer.
func (a *App) listen(ctx context.Context, flag, address string, serve func(net.Listener) error, shutDown func(context.Context) error) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s: address %s is already in use; stop the other program, or choose another port", flag, address)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	a.servers = append(a.servers, &server{flag: flag, listener: listener, serve: serve, shutDown: shutDown})
	a.later(func() { listener.Close() })
	return nil
}

// run answers until the server is shut down.
func (a *App) run(s *server) {
	go func() {
		err := s.serve(s.listener)
		if err == nil || errors.Is(err, http.ErrServerClosed) || errors.Is(err, grpc.ErrServerStopped) {
			return
		}
		select {
		case a.failed <- fmt.Errorf("the server on %s failed: %w", s.listener.Addr(), err):
		default:
		}
	}()
}

// shutDown stops accepting requests, and waits for requests in flight as long as their grace;
// then it cuts them off. The HTTP API stops last, so that health checks see that weir is stopping
// while other servers still answer.
func (a *App) shutDown(ctx context.Context) error {
	longest := a.options.longestGrace()
	long, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var mu sync.Mutex
	var wrong []error
	for _, last := range []bool{false, true} {
		grace, cancel := context.WithTimeout(long, a.options.Grace)
		var wg sync.WaitGroup
		for _, s := range a.servers {
			if (s.flag == "--http") != last {
				continue
			}
			wg.Go(func() {
				if a.finish(s, grace, long) == nil {
					return
				}
				within := a.options.Grace
				if long.Err() != nil {
					within = longest
				}
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, fmt.Errorf("requests on %s did not finish within %s and were cut off", s.listener.Addr(), within))
			})
		}
		wg.Wait()
		cancel()
	}
	return errors.Join(wrong...)
}

// finish shuts one server down. After the grace it waits for streams, no longer than long, and
// meanwhile need not cut off other requests, either. When the last stream is over, there is a grace
// again: the server has yet to send the end of it.
func (a *App) finish(s *server, grace, long context.Context) error {
	if s.waitStreams == nil {
		return s.shutDown(grace)
	}
	ctx, cancel := context.WithCancel(long)
	defer cancel()
	defer context.AfterFunc(grace, func() {
		open := s.waitStreams(grace)
		if open > 0 && long.Err() == nil {
			a.options.Logger.Info("waiting for streams to end; a second signal ends weir at once", "streams", open, "at_most", a.options.Gateway.StreamGrace)
		}
		if s.waitStreams(ctx) == 0 && open > 0 {
			_ = clock.Sleep(ctx, a.options.Grace)
		}
		cancel()
	})()
	if err := s.shutDown(ctx); err != nil {
		return err
	}
	if s.waitStreams(ctx) > 0 { // WebSockets, which a server does not wait for
		return ctx.Err()
	}
	return nil
}

// openGRPC listens for gRPC: the API, and Envoy's rate limit service if there is a
// configuration for it.
func (a *App) openGRPC(ctx, _ context.Context) error {
	if a.options.GRPC == Off {
		return nil
	}
	o := grpcapi.Options{
		Service:        a.service(a.grpcTokens()),
		TrustedProxies: a.options.Limits.TrustedProxies, ProxyHeader: grpclimit.ProxyHeader(a.options.Limits.ProxyHeader),
	}
	if a.envoy != nil {
		o.HealthNames = []string{"ratelimit"} // by which envoyproxy/ratelimit is asked for its health
	}
	api, err := grpcapi.New(o)
	if err != nil {
		return err
	}
	options := append(api.ServerOptions(), envoyrls.ServerOptions()...)
	if c := a.certs["--tls-cert"]; c != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(c.TLS())))
	}
	a.grpc = grpc.NewServer(options...)
	a.later(a.grpc.Stop) // its workers, if it is never served
	api.Register(a.grpc)
	if a.envoy != nil {
		a.envoy.Register(a.grpc)
	}
	return a.listen(ctx, "--grpc", a.options.GRPC, a.grpc.Serve, func(ctx context.Context) error {
		api.Shutdown() // otherwise clients that watch the health would delay it
		return a.stopGRPC(ctx)
	})
}

// grpcTokens returns the tokens for management. If other machines can reach the address
// and there are no tokens, management is off.
func (a *App) grpcTokens() func() *trust.List {
	if a.tokens.Load() == nil && !clientip.IsLoopback(a.options.GRPC) {
		a.options.Logger.Info("management over gRPC is off, because the address is reachable from other machines and no tokens are set", "grpc", a.options.GRPC)
		return func() *trust.List { return new(trust.List) }
	}
	return a.tokens.Load
}

// stopGRPC waits for calls under way until the context ends.
func (a *App) stopGRPC(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		a.grpc.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		a.grpc.Stop()
		<-done
		return ctx.Err()
	}
}

// openRESP listens for Redis clients.
func (a *App) openRESP(ctx, _ context.Context) error {
	if a.options.RESP == Off {
		return nil
	}
	api, err := respapi.New(respapi.Options{Service: a.service(a.tokens.Load), Version: build.Read().Version})
	if err != nil {
		return err
	}
	a.resp.Store(api)
	serve := api.Serve
	if c := a.certs["--tls-cert"]; c != nil {
		serve = func(l net.Listener) error { return api.Serve(tls.NewListener(l, c.TLS())) }
	}
	return a.listen(ctx, "--resp", a.options.RESP, serve, api.Shutdown)
}

// respTraffic is what /metrics tells of Redis clients.
func (a *App) respTraffic() metrics.RESP {
	api := a.resp.Load()
	if api == nil {
		return metrics.RESP{} // it is not there yet
	}
	t := api.Traffic()
	m := metrics.RESP{Connections: t.Connected, Rejected: t.Rejected}
	for _, c := range t.Commands {
		m.Commands = append(m.Commands, metrics.Commands(c))
	}
	return m
}
