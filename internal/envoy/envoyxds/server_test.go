package envoyxds

import (
	"context"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/testkit"
	_ "github.com/weirhq/weir/rule/rulefile"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// controlPlane is a server that says what a test tells it to.
type controlPlane struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	t        *testing.T
	address  string
	requests chan *discoveryv3.DiscoveryRequest
	sends    chan *discoveryv3.DiscoveryResponse // nil ends the stream
	headers  chan metadata.MD
}

func newControlPlane(t *testing.T, o ...grpc.ServerOption) *controlPlane {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &controlPlane{
		t: t, address: listener.Addr().String(), requests: make(chan *discoveryv3.DiscoveryRequest, 100),
		sends: make(chan *discoveryv3.DiscoveryResponse), headers: make(chan metadata.MD, 100),
	}
	server := grpc.NewServer(o...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *controlPlane) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	s.headers <- md
	go func() {
		for {
			req, err := stream.Recv()
			if err != nil {
				return
			}
			s.requests <- req
		}
	}()
	for {
		select {
		case r := <-s.sends:
			if r == nil {
				return status.Error(codes.Unavailable, "the control plane restarts")
			}
			if err := stream.Send(r); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return nil
		}
	}
}

// next is the next request of the client.
func (s *controlPlane) next() *discoveryv3.DiscoveryRequest {
	s.t.Helper()
	select {
	case r := <-s.requests:
		return r
	case <-time.After(2 * time.Minute):
		s.t.Fatal("the client asks nothing")
		return nil
	}
}

// ask sends a response and returns the answer.
func (s *controlPlane) ask(version string, resources ...proto.Message) *discoveryv3.DiscoveryRequest {
	s.t.Helper()
	s.send(responseOf(s.t, version, resources...))
	r := s.next()
	if r.ResponseNonce != "nonce of "+version || r.TypeUrl != TypeURL {
		s.t.Errorf("the answer is %v", r)
	}
	return r
}

func (s *controlPlane) send(r *discoveryv3.DiscoveryResponse) {
	s.t.Helper()
	select {
	case s.sends <- r:
	case <-time.After(2 * time.Minute):
		s.t.Fatal("there is no stream")
	}
}

func responseOf(t *testing.T, version string, resources ...proto.Message) *discoveryv3.DiscoveryResponse {
	t.Helper()
	r := &discoveryv3.DiscoveryResponse{VersionInfo: version, TypeUrl: TypeURL, Nonce: "nonce of " + version}
	for _, one := range resources {
		value, err := anypb.New(one)
		if err != nil {
			t.Fatal(err)
		}
		r.Resources = append(r.Resources, value)
	}
	return r
}

// domain is a resource with one limit.
func domain(name string, limit uint32) *configv3.RateLimitConfig {
	return &configv3.RateLimitConfig{Name: "resource of " + name, Domain: name, Descriptors: []*configv3.RateLimitDescriptor{
		{Key: "user", RateLimit: &configv3.RateLimitPolicy{Unit: configv3.RateLimitUnit_MINUTE, RequestsPerUnit: limit}},
	}}
}

// subject is a client, and what it has told.
type subject struct {
	*Client
	mu      sync.Mutex
	updates []Update
	pauses  []time.Duration
	breaths int // pauses between responses
	log     strings.Builder
}

// begin starts a client that does not wait between attempts.
func begin(t *testing.T, o Options) *subject {
	t.Helper()
	s := &subject{}
	o.Changed = func(u Update) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.updates = append(s.updates, u)
	}
	o.Pause = func(ctx context.Context, d time.Duration) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d == breath {
			s.breaths++
			return ctx.Err()
		}
		s.pauses = append(s.pauses, d)
		return ctx.Err()
	}
	o.Logger = newLogger(s)
	var err error
	if s.Client, err = New(o); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return s
}

type writer struct{ s *subject }

func (w writer) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.log.Write(p)
}

func (s *subject) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *subject) told() []Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.updates)
}

func (s *subject) paused() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pauses)
}

// dump is a configuration as people see it.
func dump(c *envoyconfig.Config) string {
	if c == nil {
		return "none"
	}
	var b strings.Builder
	if err := c.Dump(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

func newLogger(s *subject) *slog.Logger { return slog.New(slog.NewTextHandler(writer{s}, nil)) }
