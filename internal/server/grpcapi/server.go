// Package grpcapi is the gRPC API: protocol to engine and back, nothing else.
//
//	api, err := grpcapi.New(grpcapi.Options{Service: manage.Service{Engine: engine, Rules: repository}})
//	server := grpc.NewServer(api.ServerOptions()...)
//	api.Register(server)
//
// It has the services of package weir.v1, grpc.health.v1 and reflection. Limiter needs a token
// if Checks say so. The others need a token as soon as there is a list of tokens.
// docs/reference/grpc.md is the reference; calls have the same meaning as in the HTTP API.
//
// A denial by a limit is an answer. Every error is a status with an ErrorInfo of
// google.rpc, whose reason is stable.
package grpcapi

import (
	"context"
	"fmt"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/clientip"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/inbound"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/middleware/grpclimit"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// Bounds on what clients may cost.
const (
	maxMessage    = rule.MaxDocument + 64<<10 // bytes; a document, and what goes with it; see bounds
	maxHeader     = 32 << 10                  // bytes of metadata
	maxConcurrent = 256                       // calls on one connection
	maxStreams    = 100                       // open streams: of the health, and of reflection
	maxCall       = time.Minute               // from the first byte to the answer
	maxHandshake  = 10 * time.Second
)

// ServerOptions are for a gRPC server that untrusted clients can reach. They bound
// messages, calls and their duration, close connections of clients that have
// disappeared, and let a panic end one call instead of the process. No other option may
// set InTapHandle.
func (s *Server) ServerOptions() []grpc.ServerOption {
	return append(inbound.ServerOptions(),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.MaxConcurrentStreams(maxConcurrent),
		grpc.ConnectionTimeout(maxHandshake),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: 15 * time.Minute, MaxConnectionAge: time.Hour, MaxConnectionAgeGrace: maxCall,
			Time: time.Minute, Timeout: 20 * time.Second,
		}),
		grpc.WaitForHandlers(true),
		grpc.InTapHandle(s.hurry),
		grpc.ChainUnaryInterceptor(s.unary),
		grpc.ChainStreamInterceptor(s.stream),
	)
}

// hurry gives a deadline to calls that have none. It begins before the message is read:
// who sends half of one and waits is not waited for. Streams may last.
func (s *Server) hurry(ctx context.Context, info *tap.Info) (context.Context, error) {
	method := info.FullMethodName
	if method == healthpb.Health_Watch_FullMethodName || strings.HasPrefix(method, "/grpc.reflection.") {
		return ctx, nil
	}
	// The end of the call ends the context above, and so stops the timer.
	var cancel context.CancelFunc
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= s.longest {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithTimeout(ctx, s.longest)
	}
	return inbound.Endable(ctx, cancel), nil
}

// unary watches over a call.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (answer any, err error) {
	defer s.end(ctx, info.FullMethod, s.start(), &err)
	return next(ctx, req)
}

// stream watches over a stream, and that there are not too many.
func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer s.end(stream.Context(), info.FullMethod, s.start(), &err)
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return failed(fault.TooManyStreams.Of("%d streams are already open, the maximum; try again, or call without a stream.", maxStreams).After(time.Second), "")
	}
	return next(srv, stream)
}

// start is when a call begins, if anybody wants to know how long it takes.
func (s *Server) start() (now time.Time) {
	if s.options.Observe != nil {
		now = time.Now()
	}
	return now
}

// end is deferred for every call.
func (s *Server) end(ctx context.Context, method string, start time.Time, err *error) {
	if cause := recover(); cause != nil {
		*err = s.crash(method, cause)
	}
	if s.options.Observe != nil {
		s.options.Observe(ctx, method, codeOf(*err), time.Since(start))
	}
}

// crash is the answer to a call that has panicked.
func (s *Server) crash(method string, cause any) error {
	id := manage.NewRequestID()
	s.options.Logger.Error("a call failed unexpectedly; please report this",
		"method", method, "request_id", id, "cause", cause, "stack", string(debug.Stack()))
	return failed(fault.Internal(""), id)
}

// Bounds on messages. Other messages contain a few names and have the usual bound. The
// bounds are twice what is accepted, so that a message slightly above gets a clear
// error.
var (
	oneQuestion   = inbound.Bound{Bytes: 2 * manage.MaxQuestion, Parts: 2 * 4 * manage.MaxEntries}
	manyQuestions = inbound.Bound{Bytes: 1 << 20, Parts: 2 * MaxChecks}
	oneUsage      = inbound.Bound{Bytes: 4 << 10, Parts: 2 * manage.MaxCosts}
	oneDocument   = inbound.Bound{Bytes: maxMessage}
	manyCounters  = inbound.Bound{Bytes: 256 << 10, Parts: 2 * counter.MaxBatch, All: 6 * counter.MaxBatch} // a counter has a key, and all have so many members
	manyMembers   = inbound.Bound{Parts: 2 * counter.MaxBatch}
)

// guard makes the guards. Services that may need a token look for it before a message is read,
// because documents are long.
func (s *Server) guard() {
	type bounds = map[protoreflect.FullName]inbound.Bound
	s.open = inbound.New(inbound.Options{Large: 1 << 20, Decoded: 1 << 20})
	s.checking = inbound.New(inbound.Options{
		Large: 16 << 20, Decoded: 8 << 20, Reads: s.knowsChecker,
		Bounds: bounds{
			nameOf(&pb.CheckRequest{}): oneQuestion, nameOf(&pb.CheckManyRequest{}): manyQuestions,
			nameOf(&pb.ReserveRequest{}): {Bytes: 2*manage.MaxQuestion + 64, Parts: 2}, nameOf(&pb.SettleRequest{}): oneUsage,
		},
	})
	s.managed = inbound.New(inbound.Options{
		Large: 4 * maxMessage, Decoded: 4 * maxMessage, Wait: maxCall / 2, Reads: s.knows,
		Bounds: bounds{
			nameOf(&pb.PutRulesRequest{}): oneDocument, nameOf(&pb.CreateRuleRequest{}): oneDocument,
			nameOf(&pb.PutRuleRequest{}): oneDocument, nameOf(&pb.ValidateRulesRequest{}): oneDocument,
		},
	})
	s.counting = inbound.New(inbound.Options{
		Large: 8 << 20, Decoded: 8 << 20, Reads: s.knows,
		Bounds: bounds{
			nameOf(&pb.AddCountersRequest{}): manyCounters, nameOf(&pb.SetCountersRequest{}): manyCounters,
			nameOf(&pb.ResetCountersRequest{}): manyCounters, nameOf(&pb.GetCountersRequest{}): manyCounters,
			nameOf(&pb.GetCounterHistoryRequest{}): manyCounters, nameOf(&pb.ObserveRequest{}): manyCounters,
			nameOf(&pb.GetDistributionsRequest{}): manyCounters, nameOf(&pb.CounterDelta{}): manyMembers,
		},
	})
}

func nameOf(m proto.Message) protoreflect.FullName { return m.ProtoReflect().Descriptor().FullName() }

// knows is whether a call has a known token, if one is required.
func (s *Server) knows(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	_, err := manage.Identify(s.options.Tokens(), credentialsOf(md), time.Time{})
	return err == nil
}

// knowsChecker is the same for checks.
func (s *Server) knowsChecker(ctx context.Context) bool {
	if s.options.Checks.Open() {
		return true
	}
	md, _ := metadata.FromIncomingContext(ctx)
	return s.options.Checks.Knows(credentialsOf(md))
}

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
	options Options
	clients *clientip.Resolver

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
	warned   fault.Seldom           // of the store of counters
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
	s.guard()
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
	if s.options.Clients != nil {
		pb.RegisterClientsServer(managed, directory{s: s})
	}
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
