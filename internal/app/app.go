// Package app puts a server together: options in, New, Start, Addrs, Reload, Stop.
//
// It is the only package that knows all the others. What belongs to a request is in
// those; here is what belongs to a process: what is opened in which order, what is
// undone when that fails half-way, and what has to be saved at the end.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/envoy/envoyxds"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/server/envoyrls"
	"github.com/weirhq/weir/internal/server/respapi"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/metrics"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/middleware/jwt"
	"github.com/weirhq/weir/stats"
)

// App is a server. Its methods may be called from any goroutine, but for Start, which
// is called once.
type App struct {
	options  Options
	engine   *engine.Engine
	metrics  *metrics.Metrics
	store    store
	rules    *rules
	clients  *followed // of --clients; nil if they are in the registry's store
	registry *clients.Registry

	clientsChanged atomic.Bool // since it was looked for settings without effect

	prices *followed
	jwt    *jwt.Verifier // nil if there are no tokens of clients
	editor *manage.Editor

	overrides *manage.Overrides // nil if there are no rules
	guard     *manage.Guard
	tokens    atomic.Pointer[trust.List]
	checks    *manage.Checks
	certs     map[string]*trust.Certs // by flag
	servers   []*server
	grpc      *grpc.Server
	resp      atomic.Pointer[respapi.Server] // nil if it is off
	envoy     *envoyrls.Service              // nil if there is no configuration for it

	envoyConfig func() *envoyconfig.Config // in force; nil likewise
	envoyDir    *envoyconfig.Dir           // nil if it does not come from files
	envoyXDS    *envoyxds.Client           // nil if it does not come by xDS

	recorder     *stats.Recorder // nil if there are no statistics
	watcher      *alert.Watcher  // nil if there are no alerts
	applications applications

	data    *dataDir      // nil if nothing survives a restart
	kept    []kept        // in it
	started chan struct{} // closed when what is kept may be saved

	tracer *trace.TracerProvider                // nil if there are no traces
	limit  atomic.Pointer[httplimit.Middleware] // of the gateway
	proxy  atomic.Pointer[gateway.Gateway]

	// undo is what to do at the end, the last first.
	undo []func()

	background sync.WaitGroup
	quit       context.CancelFunc // ends what runs in the background
	stopping   chan struct{}      // closed when it stops
	stopped    sync.Once
	failed     chan error
}

// New checks the options; nothing is opened yet.
func New(o Options) (*App, error) {
	if err := o.ready(); err != nil {
		return nil, err
	}
	return &App{
		options: o, certs: map[string]*trust.Certs{},
		started: make(chan struct{}), stopping: make(chan struct{}), failed: make(chan error, 1),
	}, nil
}

// Options returns the options with what New has filled in.
func (a *App) Options() Options { return a.options }

// Start opens everything, and returns when requests are answered. If anything cannot
// be had, what was opened is closed again, and the error says what and why.
func (a *App) Start(ctx context.Context) error {
	background, quit := context.WithCancel(context.WithoutCancel(ctx))
	a.quit = quit
	for _, step := range []func(ctx, background context.Context) error{
		a.openSecrets, a.openTraces, a.openJWT, a.openData, a.openStore, a.openStats, a.openApplications, a.openEngine,
		a.openPrices, a.openRules, a.openClients, a.openOverrides, a.openLearning, a.openEnvoy, a.openServers, a.openGRPC, a.openRESP, a.beginSaving,
	} {
		if err := step(ctx, background); err != nil {
			a.close()
			return err
		}
	}
	for _, s := range a.servers {
		a.run(s)
	}
	return nil
}

// Failed tells why a server ended that was not told to.
func (a *App) Failed() <-chan error { return a.failed }

// Reload reads again what lies in files: rules, clients, prices, tokens and certificates. What cannot be
// used stays as it was, and the error says why.
func (a *App) Reload(ctx context.Context) error {
	wrong := []error{a.reloadSecrets(), a.rules.reload(ctx), a.reloadClients(ctx), a.prices.reload()}
	if a.envoyDir != nil {
		wrong = append(wrong, a.envoyDir.Reload())
	}
	return errors.Join(wrong...)
}

// Stop stops accepting requests, waits for those that are under way as long as Grace
// and StreamGrace say, and saves what should survive. It is an error if requests were cut off, or
// something could not be saved.
func (a *App) Stop(ctx context.Context) (err error) {
	a.stopped.Do(func() {
		close(a.stopping)
		err = a.shutDown(ctx)
		a.close()
		err = errors.Join(err, a.notSaved())
	})
	return err
}

// close undoes what Start has done.
func (a *App) close() {
	a.quit()
	a.background.Wait()
	for len(a.undo) > 0 {
		last := a.undo[len(a.undo)-1]
		a.undo = a.undo[:len(a.undo)-1]
		last()
	}
}

// later is called in Start, with what has to be undone.
func (a *App) later(undo func()) { a.undo = append(a.undo, undo) }

// ready is what /readyz says.
func (a *App) ready(context.Context) error {
	select {
	case <-a.stopping:
		return errors.New("weir is stopping")
	default:
	}
	if !a.rules.loaded.Load() {
		return fmt.Errorf("no rules have been read from %s yet", a.rules.where)
	}
	if (a.options.Envoy.ReadyWithConfig || a.envoyXDS != nil) && a.envoyConfig != nil && a.envoyConfig() == nil {
		return fmt.Errorf("no Envoy configuration is loaded from %s", cmp.Or(a.options.Envoy.Config, a.options.Envoy.XDS.Server))
	}
	return nil
}
