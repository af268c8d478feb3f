package grpcapi

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/inbound"
	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/middleware/grpclimit"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// Options of a server.
type Options struct {
	// Service is what all servers need. No browser can call a gRPC server by accident.
	manage.Service

	// HealthNames are services that the health knows besides those that are registered.
	// Default none.
	HealthNames []string

	// TrustedProxies are the networks of the proxies in front, which are believed about
	// whom they serve when calls of the management are counted. Default none.
	TrustedProxies []netip.Prefix

	// ProxyHeader is where these proxies write whom they serve. Default
	// grpclimit.EitherHeader.
	ProxyHeader grpclimit.ProxyHeader

	// Observe is called for every answer, with the context of the call. The method is a
	// registered one, such as "/weir.v1.Limiter/Check", whatever the client requested.
	// Default none.
	Observe func(ctx context.Context, method string, code codes.Code, took time.Duration)
}

// Server is the API. It is safe for concurrent use.
type Server struct {
	options  Options
	clients  *clientip.Resolver
	policies manage.Policies

	open     *inbound.Guard  // of what anybody may call
	checking *inbound.Guard  // of checks
	managed  *inbound.Guard  // of the management, which needs a token
	counting *inbound.Guard  // of counters, which need one, too
	longest  time.Duration   // a call may take
	poll     time.Duration   // how often a watcher of the health looks
	streams  chan struct{}   // has room for those that may be open at once
	down     context.Context // ended by Shutdown
	shutDown context.CancelFunc
	names    func() map[string]bool // of the services that are registered
	warned   atomic.Int64           // the second in which the store of counters was last reported
}

// New returns the API of an engine and its rules.
func New(o Options) (*Server, error) {
	if err := o.Complete("grpcapi"); err != nil {
		return nil, err
	}
	clients, err := clientip.New(o.TrustedProxies, clientip.Header(o.ProxyHeader))
	if err != nil {
		return nil, fmt.Errorf("grpcapi: TrustedProxies: %w", err)
	}
	s := &Server{
		options: o, clients: clients,
		longest: maxCall, poll: time.Second, streams: make(chan struct{}, maxStreams),
		names: func() map[string]bool { return known(o.HealthNames) },
	}
	s.down, s.shutDown = context.WithCancel(context.Background())
	s.open, s.checking, s.managed, s.counting = newOpen(), newChecking(s.knowsChecker), newManaged(s.knows), newCounting(s.knows)
	return s, nil
}

// Register makes the services known to a gRPC server, which should have been made with
// the ServerOptions. A server that can describe itself gets reflection, too: it tells
// what can be called, which anybody may know.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	open, managed := s.open.Registrar(r), s.managed.Registrar(r)
	pb.RegisterLimiterServer(s.checking.Registrar(r), limiter{s: s})
	pb.RegisterRulesServer(managed, rules{s: s})
	pb.RegisterKeysServer(managed, keys{s: s})
	if s.options.Counters != nil {
		pb.RegisterCountersServer(s.counting.Registrar(r), counters{s: s})
	}
	healthpb.RegisterHealthServer(open, health{s: s})
	describer, ok := r.(reflection.GRPCServer)
	if !ok {
		return
	}
	reflection.Register(described{open, describer})
	s.names = sync.OnceValue(func() map[string]bool { // when all others are registered, too
		names := known(s.options.HealthNames)
		for name := range describer.GetServiceInfo() {
			names[name] = true
		}
		return names
	})
}

func known(names []string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

// described registers services with a server that can describe itself.
type described struct {
	grpc.ServiceRegistrar
	reflection.ServiceInfoProvider
}

// Shutdown tells clients that watch the health to send no more requests, and ends their
// streams, for which GracefulStop of the gRPC server would wait. Calls are answered as
// before.
func (s *Server) Shutdown() { s.shutDown() }
