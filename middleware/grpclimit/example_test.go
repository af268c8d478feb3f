package grpclimit_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/grpclimit"
	_ "github.com/weirhq/weir/rule/rulefile" // reads YAML
)

// newEngine is an engine with these rules, in memory.
func newEngine(rules string) (*engine.Engine, error) {
	e, err := engine.New(engine.Options{})
	if err != nil {
		return nil, err
	}
	return e, e.Load("rules.yaml", []byte(rules))
}

func Example() {
	e, err := newEngine(`
rules:
  - {id: health, match: {path: /grpc.health.v1.Health/**}, key: ip, algorithm: sliding_log, limit: 2/1m}
`)
	if err != nil {
		panic(err)
	}
	limit, err := grpclimit.New(e, grpclimit.Options{})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(limit.Unary()),
		grpc.ChainStreamInterceptor(limit.Stream()),
	)
	healthpb.RegisterHealthServer(server, health.NewServer())
	client, stop := start(server)
	defer stop()

	for range 3 {
		_, err := healthpb.NewHealthClient(client).Check(context.Background(), &healthpb.HealthCheckRequest{})
		fmt.Println(status.Code(err))
		for _, detail := range status.Convert(err).Details() {
			if retry, ok := detail.(*errdetails.RetryInfo); ok {
				fmt.Println("come back in a minute:", retry.RetryDelay.AsDuration().Seconds() > 59)
			}
		}
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
	// come back in a minute: true
}

func ExampleNew() {
	e, err := newEngine("rules: [{id: api, key: user, limit: 100/1m, tiers: {pro: 1000/1m}}]")
	if err != nil {
		panic(err)
	}
	limit, err := grpclimit.New(e, grpclimit.Options{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		ProxyHeader:    grpclimit.XForwardedFor,
		User:           func(ctx context.Context, method string) string { return session(ctx).user },
		Tier:           func(ctx context.Context, method string) string { return session(ctx).tier },
		Skip:           func(ctx context.Context, method string) bool { return method == "/grpc.health.v1.Health/Check" },
		PerMessage:     true,
		Deny: func(ctx context.Context, method string, d *grpclimit.Denial) error {
			d.Detail = "Slow down: " + d.Detail
			return d.Err()
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(limit.Delayed(), "calls wait for their turn")
	// Output:
	// 0 calls wait for their turn
}

// session is what another interceptor has put into the context.
func session(context.Context) (s struct{ user, tier string }) { return s }

// start serves on a free port, and connects.
func start(server *grpc.Server) (*grpc.ClientConn, func()) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go server.Serve(listen)
	client, err := grpc.NewClient(listen.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	return client, func() {
		client.Close()
		server.Stop()
	}
}
