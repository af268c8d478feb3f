package app

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/server/envoyrls"
	"github.com/weirhq/weir/internal/server/grpcapi"
	"github.com/weirhq/weir/middleware/grpclimit"
)

// openGRPC listens for gRPC: the API, and Envoy's rate limit service if there is a
// configuration for it.
func (a *App) openGRPC(ctx, _ context.Context) error {
	if a.options.GRPC == Off {
		return nil
	}
	o := grpcapi.Options{
		Service:        a.service(a.grpcTokens()),
		TrustedProxies: a.options.TrustedProxies, ProxyHeader: grpclimit.ProxyHeader(a.options.ProxyHeader),
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
func (a *App) grpcTokens() func() *bearer.List {
	if a.tokens.Load() == nil && !isLoopback(a.options.GRPC) {
		a.options.Logger.Info("management over gRPC is off, because the address is reachable from other machines and no tokens are set", "grpc", a.options.GRPC)
		return func() *bearer.List { return new(bearer.List) }
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
