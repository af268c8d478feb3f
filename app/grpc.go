package app

import (
	"context"
	"fmt"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirhq/weir/envoy"
	"github.com/weirhq/weir/internal/token"
	"github.com/weirhq/weir/middleware/grpclimit"
	"github.com/weirhq/weir/server/envoyrls"
	"github.com/weirhq/weir/server/grpcapi"
)

// openGRPC listens for gRPC: the API, and Envoy's rate limit service if there is a
// configuration for it.
func (a *App) openGRPC(ctx, _ context.Context) error {
	if a.options.GRPC == Off {
		return nil
	}
	api, err := grpcapi.New(grpcapi.Options{
		Engine: a.engine, Editor: a.editor, Guard: a.guard, Tokens: a.grpcTokens(), Ready: a.ready,
		TrustedProxies: a.options.TrustedProxies, ProxyHeader: grpclimit.ProxyHeader(a.options.ProxyHeader),
		Logger: a.options.Logger,
	})
	if err != nil {
		return err
	}
	options := append(api.ServerOptions(), envoyrls.ServerOptions()...)
	if c := a.certsOf("--tls-cert"); c != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(c.TLS())))
	}
	a.grpc = grpc.NewServer(options...)
	api.Register(a.grpc)
	if a.envoy != nil {
		ratelimit.RegisterRateLimitServiceServer(a.grpc, a.envoy)
	}
	listener, err := listen(ctx, "--grpc", a.options.GRPC)
	if err != nil {
		return err
	}
	shutDown := func(ctx context.Context) error {
		api.Shutdown() // or whoever watches its health would hold it up
		return a.stopGRPC(ctx)
	}
	a.servers = append(a.servers, &server{name: "grpc", listener: listener, serve: a.grpc.Serve, shutDown: shutDown})
	a.later(func() { listener.Close() })
	return nil
}

// grpcTokens are who may manage. Where others can reach it and there are no tokens,
// nobody may.
func (a *App) grpcTokens() func() *token.List {
	if a.tokens.Load() == nil && !isLoopback(a.options.GRPC) {
		a.options.Logger.Info("gRPC offers no management: it can be reached by others, and there are no tokens", "grpc", a.options.GRPC)
		return func() *token.List { return new(token.List) }
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

// openEnvoy reads the configuration of Envoy's rate limit service, and follows it.
func (a *App) openEnvoy(_, background context.Context) error {
	o := a.options.Envoy
	if o.Config == "" {
		return nil
	}
	dir, err := envoy.Open(o.Config, envoy.Options{MergeDomains: o.MergeDomains})
	if err != nil {
		return fmt.Errorf("--envoy-config: %w", err)
	}
	a.envoyDir = dir
	for _, w := range dir.Warnings() {
		a.options.Logger.Warn("the configuration for Envoy is doubtful", "problem", w.String())
	}
	service := o.Options
	service.Engine, service.Config, service.Logger = a.engine, dir.Config, a.options.Logger
	if a.envoy, err = envoyrls.New(service); err != nil {
		return err
	}
	a.background.Go(func() {
		for background.Err() == nil {
			err := dir.Watch(background, func(c *envoy.Config, trouble error) {
				if trouble != nil {
					a.metrics.ReloadFailed()
					a.options.Logger.Error("the configuration for Envoy cannot be used; the old one stays in force", "error", trouble)
					return
				}
				a.options.Logger.Info("the configuration for Envoy is in force", "domains", c.Domains())
			})
			if background.Err() == nil {
				a.options.Logger.Error("the configuration for Envoy cannot be watched; trying again", "error", err)
				pause(background, time.Second)
			}
		}
	})
	return nil
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
