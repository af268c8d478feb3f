// Package envoyrls answers Envoy as envoyproxy/ratelimit does: the service
// envoy.service.ratelimit.v3.RateLimitService over gRPC, and the same question as JSON
// over HTTP.
//
// It finds the limits in an [envoyconfig.Config] and lets the engine decide. Unlike its model
// it charges all limits of a request or none, and answers while the store is unavailable; with
// Options.CountDenied it counts exactly as its model does. docs/guides/envoy.md lists every
// difference.
package envoyrls

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/inbound"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
)

// Bounds on a request. A request has at most weir.MaxOps limits besides.
const (
	MaxDescriptors = 256
	MaxEntries     = 64       // of a descriptor
	MaxText        = 64 << 10 // bytes of a key or a value
)

// Options of a service.
type Options struct {
	// Engine decides. It is needed. The rules that are installed in it do not matter.
	Engine *engine.Engine

	// Config is the configuration in force, as of envoyconfig.Dir.Config. It is required. As
	// long as it returns nil, every request gets the error UNKNOWN, as
	// envoyproxy/ratelimit answers then.
	Config func() *envoyconfig.Config

	// CountDenied counts as envoyproxy/ratelimit does: each descriptor by itself, and
	// what is denied, too. Default false: all limits of a request are charged or none.
	CountDenied bool

	// GlobalShadow makes every request pass. Descriptors say what they would have said
	// all the same. Default false.
	GlobalShadow bool

	// GlobalQuota treats every descriptor as if it had quota_mode. Default false.
	GlobalQuota bool

	// ResponseHeaders tells Envoy to add headers about the limit with the fewest units
	// left to the response to its client. Default false.
	ResponseHeaders bool

	// HeaderNames are the names of those. Default RateLimit-Limit, RateLimit-Remaining
	// and RateLimit-Reset.
	HeaderNames HeaderNames

	// DynamicMetadata tells Envoy what was asked, and which quotas are used up, for
	// its logs and other filters. Default false.
	DynamicMetadata bool

	// Clock tells the time, for when the window ends of a client who has used nothing
	// of it. Default the system's.
	Clock func() weir.Micros

	// Checks decides who may ask. Default everybody.
	Checks *manage.Checks

	// Logger is told when the store is unavailable, and when it is back. Default
	// slog.Default().
	Logger *slog.Logger
}

// HeaderNames are names of response headers.
type HeaderNames struct{ Limit, Remaining, Reset string }

// Service answers Envoy. It is safe for concurrent use.
type Service struct {
	options Options
	work    sync.Pool
	bodies  *budget.BodyReader
}

var _ pb.RateLimitServiceServer = (*Service)(nil)

// New returns a service.
func New(o Options) (*Service, error) {
	switch {
	case o.Engine == nil:
		return nil, errors.New("envoyrls: Options.Engine is required; create one with engine.New")
	case o.Config == nil:
		return nil, errors.New("envoyrls: Options.Config is required; use the Config of an envoyconfig.Dir")
	}
	names := &o.HeaderNames
	names.Limit = cmp.Or(names.Limit, "RateLimit-Limit")
	names.Remaining = cmp.Or(names.Remaining, "RateLimit-Remaining")
	names.Reset = cmp.Or(names.Reset, "RateLimit-Reset")
	if o.Clock == nil {
		o.Clock = func() weir.Micros { return weir.MicrosOf(time.Now()) }
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Checks == nil {
		o.Checks = manage.NewChecks(nil, nil, o.Logger)
	}
	return &Service{options: o, work: sync.Pool{New: func() any { return new(work) }}, bodies: budget.NewBodyReader(maxBodies)}, nil
}

// Rules are those under which the engine's observers are told of what a configuration
// limits, one for each descriptor. Their ids are such as "envoy:edge.path_/login".
func (s *Service) Rules(c *envoyconfig.Config) []*rule.Entry {
	var rules []*rule.Entry
	for n := range c.Nodes() {
		if !n.Unlimited && !n.Denies() {
			rules = append(rules, s.terms(n).Rule)
		}
	}
	return rules
}

// terms are how this service charges a node.
func (s *Service) terms(n *envoyconfig.Node) *envoyconfig.Terms {
	return n.Terms(s.options.CountDenied, s.options.GlobalShadow || s.options.GlobalQuota)
}

// ShouldRateLimit implements pb.RateLimitServiceServer.
func (s *Service) ShouldRateLimit(ctx context.Context, req *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	k, err := s.identify(ctx, peerOf(ctx), func() manage.Credentials { return credentialsOf(ctx) })
	if err != nil {
		return nil, err
	}
	return s.limit(ctx, &k, req)
}

// peerOf is the address at the other end of a call's connection, which is Envoy's.
func peerOf(ctx context.Context) netip.Addr {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(*net.TCPAddr); ok {
			return a.AddrPort().Addr().Unmap()
		}
	}
	return netip.Addr{}
}

// identify finds out who asks, by their credentials.
func (s *Service) identify(ctx context.Context, client netip.Addr, own func() manage.Credentials) (k manage.Checker, err error) {
	if s.options.Checks.Open() {
		k = s.options.Checks.Anybody()
		k.Client = client
		return k, nil
	}
	if k, err = s.options.Checks.Identify(ctx, client, own()); err == nil {
		err = k.Need(trust.Check)
	}
	if err != nil {
		return k, statusOf(ctx, err)
	}
	return k, nil
}

// credentialsOf finds the credentials in metadata, which Envoy's initial_metadata set.
func credentialsOf(ctx context.Context) manage.Credentials {
	return manage.Credentials{
		Token: grpcmetadata.ValueFromIncomingContext(ctx, manage.TokenHeader), Authorization: grpcmetadata.ValueFromIncomingContext(ctx, "authorization"),
	}
}

// limit answers who may ask. A descriptor with charge: always needs no more than the right
// check: it is there for Envoy to charge so, and the configuration says of which limits.
func (s *Service) limit(ctx context.Context, k *manage.Checker, req *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	w := s.work.Get().(*work)
	defer func() {
		w.clear()
		s.work.Put(w)
	}()
	if err := s.gather(w, req); err != nil {
		return nil, err
	}
	if len(w.demands) > 0 {
		if err := k.PermitDemands(trust.Check, w.demands); err != nil {
			return nil, statusOf(ctx, err)
		}
		if err := s.options.Engine.Demand(ctx, w.demands, &w.verdict); err != nil {
			return nil, statusOf(ctx, err)
		}
		k.Charged(&w.verdict, w.demands)
		w.fold()
		if w.hasError() {
			return nil, status.Error(codes.Unavailable, "envoyrls: the store of the limits is unavailable, and the descriptor says on_failure: error")
		}
	}
	w.conclude(s.options.GlobalQuota)
	s.giveBack(ctx, w)
	return s.answer(w, req), nil
}

// giveBack refunds a request that is denied only because all of its quotas are used up,
// which is known only after the charge.
func (s *Service) giveBack(ctx context.Context, w *work) {
	if !w.quotaOver || w.over || s.options.CountDenied || s.options.GlobalShadow {
		return
	}
	if err := s.options.Engine.Refund(ctx, &w.verdict); err != nil {
		s.options.Logger.Warn("envoy: could not refund a denied request", "error", err)
	}
}

// calls is how Envoy's configuration names what a remedy needs.
var calls = fault.Calls{Token: "the metadata authorization: Bearer or weir-token"}

// statusOf returns the error of a request that could not be checked.
func statusOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if invalid, ok := errors.AsType[*weir.InvalidError](err); ok {
		return status.Error(codes.InvalidArgument, invalid.Error())
	}
	if f := calls.Of(err); f != nil {
		return status.Error(f.Kind.Code, f.Detail)
	}
	return status.Error(codes.Unavailable, err.Error())
}

// workers are as many as answer at once without a goroutine being made.
const workers = 128

// ServerOptions suit a gRPC server that answers Envoy. Requests are short and many, so
// that it pays to answer them on goroutines that are there already, whose stacks have
// grown; when all of those wait, there are new ones. Windows have a fixed size, because
// to find out which one would be best takes a ping in every round trip.
func ServerOptions() []grpc.ServerOption {
	return append(inbound.ServerOptions(), grpc.NumStreamWorkers(workers))
}

// Register makes the service known to a gRPC server, and keeps what is sent to it
// within bounds: twice what is accepted, so that a message slightly above the bound
// gets a clear error.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	pb.RegisterRateLimitServiceServer(inbound.New(inbound.Options{
		Large: 16 << 20, Decoded: 8 << 20,
		Reads: func(ctx context.Context) bool {
			return s.options.Checks.Open() || s.options.Checks.Knows(credentialsOf(ctx))
		},
		Bounds: map[protoreflect.FullName]inbound.Bound{
			"envoy.service.ratelimit.v3.RateLimitRequest":              {Bytes: MaxBody, Parts: 2 * MaxDescriptors},
			"envoy.extensions.common.ratelimit.v3.RateLimitDescriptor": {Parts: 2 * MaxEntries},
		},
	}).Registrar(r), s)
}

// MaxBody is the longest body of a request over HTTP, in bytes.
const MaxBody = 1 << 20

const (
	maxBodies  = 16 << 20                          // bytes of bodies that are there at the same time
	maxObjects = MaxDescriptors * (MaxEntries + 4) // and lists, in one body; counted before it is decoded
)

// JSON returns a handler for those who cannot speak gRPC: the request comes as JSON in
// the body of a POST /json, and so does the response go. The status is 200, 429 if the
// request is over a limit, 400 if it makes no sense, 401 or 403 if a token is missing or not good
// for it, or 503.
func (s *Service) JSON() http.Handler { return http.HandlerFunc(s.serveJSON) }

func (s *Service) serveJSON(w http.ResponseWriter, r *http.Request) {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	k, err := s.identify(r.Context(), from.Addr().Unmap(), func() manage.Credentials {
		return manage.Credentials{Token: r.Header[manage.TokenHeader], Authorization: r.Header["Authorization"]}
	})
	if err != nil {
		refuse(w, err)
		return
	}
	body, release, err := s.bodies.Read(budget.BodySource{Writer: w, Request: r}, MaxBody)
	defer release()
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large:
		http.Error(w, "The body is longer than what is read.", http.StatusRequestEntityTooLarge)
		return
	case errors.Is(err, budget.ErrBusy):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "Other calls use all the memory for large bodies; try again.", http.StatusServiceUnavailable)
		return
	case errors.Is(err, budget.ErrSlow):
		http.Error(w, "The body came too slowly.", http.StatusRequestTimeout)
		return
	case bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) > maxObjects:
		http.Error(w, fmt.Sprintf("The body has more than %d objects and lists; send fewer descriptors and entries.", maxObjects), http.StatusBadRequest)
		return
	}
	var req pb.RateLimitRequest
	if err == nil {
		err = protojson.Unmarshal(body, &req)
	}
	if err != nil {
		http.Error(w, "The body is no RateLimitRequest in JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	response, err := s.limit(r.Context(), &k, &req)
	if err != nil {
		refuse(w, err)
		return
	}
	text, err := protojson.Marshal(response)
	if err != nil {
		http.Error(w, "The response cannot be written as JSON.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if response.GetOverallCode() == pb.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text) // who has left needs no answer
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusServiceUnavailable
	switch status.Code(err) {
	case codes.InvalidArgument:
		code = http.StatusBadRequest
	case codes.Unauthenticated:
		code = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
	case codes.PermissionDenied:
		code = http.StatusForbidden
	}
	http.Error(w, status.Convert(err).Message(), code)
}
