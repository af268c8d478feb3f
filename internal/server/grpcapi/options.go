package grpcapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/inbound"
	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/middleware/grpclimit"
	pb "github.com/weirhq/weir/proto/weir/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// Options of a server.
type Options struct {
	// Engine judges. It is needed.
	Engine *engine.Engine

	// Rules is where the document of rules is kept. It is needed, unless there is an
	// Editor.
	Rules repo.Repository

	// Apply puts a version that was just written into force, before the writer is
	// answered. Versions come in order. Default nothing: they come by the repository's
	// Watch alone, a moment later.
	Apply func(repo.Version) error

	// Editor changes the rules. Servers of one process share one, so that their versions
	// come into force in order. Default one of Rules and Apply.
	Editor *manage.Editor

	// Guard keeps out who calls the management too often, or tries tokens. Servers of
	// one process share one. Default one with the limits of manage.GuardOptions.
	Guard *manage.Guard

	// Tokens are who may manage. It is asked at every call, so that a list can be
	// replaced. Nil, and a list that is nil, ask nobody for a token, which is for
	// servers on the loopback. No browser can call a gRPC server by accident.
	Tokens func() *bearer.List

	// Ready is why no requests should come yet; nil if they should. Default always.
	Ready func(context.Context) error

	// HealthNames are services that the health knows besides those that are registered.
	// Default none.
	HealthNames []string

	// TrustedProxies are the networks of the proxies in front, which are believed about
	// whom they serve when calls of the management are counted. Default none.
	TrustedProxies []netip.Prefix

	// ProxyHeader is where these proxies write whom they serve. Default
	// grpclimit.EitherHeader.
	ProxyHeader grpclimit.ProxyHeader

	// Observe is told of every answer, with the context of the call. The method is one
	// that is registered, such as "/weir.v1.Limiter/Check", whatever the client asked
	// for. Default nobody.
	Observe func(ctx context.Context, method string, code codes.Code, took time.Duration)

	// Logger is told of every call of the management, and of trouble. Default
	// slog.Default().
	Logger *slog.Logger
}

// Server is the API. It is safe for concurrent use.
type Server struct {
	options  Options
	editor   *manage.Editor
	guard    *manage.Guard
	clients  *clientip.Resolver
	policies manage.Policies

	open     *inbound.Guard // of what anybody may call
	managed  *inbound.Guard // of what needs a token
	longest  time.Duration  // a call may take
	poll     time.Duration  // how often a watcher of the health looks
	streams  chan struct{}  // has room for those that may be open at once
	down     chan struct{}  // closed by Shutdown
	downOnce sync.Once
	names    func() map[string]bool // of the services that are registered
}

// New returns the API of an engine and its rules.
func New(o Options) (*Server, error) {
	switch {
	case o.Engine == nil:
		return nil, errors.New("grpcapi: Options.Engine is missing; engine.New makes one")
	case o.Rules == nil && o.Editor == nil:
		return nil, errors.New("grpcapi: Options.Rules is missing; filerepo.Open opens a document")
	}
	clients, err := clientip.New(o.TrustedProxies, clientip.Header(o.ProxyHeader))
	if err != nil {
		return nil, fmt.Errorf("grpcapi: TrustedProxies: %w", err)
	}
	s := &Server{
		options: o.withDefaults(), editor: o.Editor, guard: o.Guard, clients: clients,
		longest: maxCall, poll: time.Second, streams: make(chan struct{}, maxStreams), down: make(chan struct{}),
		names: func() map[string]bool { return known(o.HealthNames) },
	}
	s.open, s.managed = newOpen(), newManaged(s.knows)
	if s.editor == nil {
		s.editor = manage.NewEditor(o.Rules, o.Apply)
	}
	if s.guard == nil {
		if s.guard, err = manage.NewGuard(manage.GuardOptions{}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Tokens == nil {
		o.Tokens = func() *bearer.List { return nil }
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Register makes the services known to a gRPC server, which should have been made with
// the ServerOptions. A server that can describe itself gets reflection, too: it tells
// what can be called, which anybody may know.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	open, managed := s.open.Registrar(r), s.managed.Registrar(r)
	pb.RegisterLimiterServer(open, limiter{s: s})
	pb.RegisterRulesServer(managed, rules{s: s})
	pb.RegisterKeysServer(managed, keys{s: s})
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

// Shutdown tells whoever watches the health that no more requests should come, and ends
// their streams, for which GracefulStop of the gRPC server would wait. Calls are answered
// as before.
func (s *Server) Shutdown() { s.downOnce.Do(func() { close(s.down) }) }
