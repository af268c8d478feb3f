package envoy

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
)

const node = "init-test-node"

// plane is a control plane of go-control-plane, at an address that stays when it is
// restarted.
type plane struct {
	t        *testing.T
	address  string
	requests chan *discovery.DiscoveryRequest
	options  []grpc.ServerOption

	mu      sync.Mutex
	backend string // "" while it is down
	cache   cache.SnapshotCache
	stop    func()
}

// newPlane returns one that is down.
func newPlane(t *testing.T, o ...grpc.ServerOption) *plane {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{t: t, address: front.Addr().String(), requests: make(chan *discovery.DiscoveryRequest, 1000), options: o, stop: func() {}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := front.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.forward(conn) })
		}
	})
	t.Cleanup(func() {
		p.down()
		front.Close()
		running.Wait()
	})
	return p
}

// forward joins a connection with the server, if there is one.
func (p *plane) forward(conn net.Conn) {
	defer conn.Close()
	p.mu.Lock()
	backend := p.backend
	p.mu.Unlock()
	if backend == "" {
		return
	}
	server, err := net.Dial("tcp", backend)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(server, conn)
		server.Close()
	})
	_, _ = io.Copy(conn, server)
	conn.Close()
	both.Wait()
}

// up starts a server that knows nothing of those before it.
func (p *plane) up() {
	p.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	snapshots := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	g := grpc.NewServer(p.options...)
	discovery.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, snapshots, server.CallbackFuncs{
		StreamRequestFunc: func(_ int64, r *discovery.DiscoveryRequest) error {
			p.requests <- r
			return nil
		},
	}))
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backend, p.cache = listener.Addr().String(), snapshots
	p.stop = func() {
		cancel()
		g.Stop()
		if err := <-served; err != nil {
			p.t.Error(err)
		}
	}
}

func (p *plane) down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backend = ""
	p.stop()
	p.stop = func() {}
}

// set changes the configuration.
func (p *plane) set(version string, domains ...*config.RateLimitConfig) {
	p.t.Helper()
	resources := make([]types.Resource, len(domains))
	for i, d := range domains {
		resources[i] = d
	}
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: resources})
	if err == nil {
		err = snapshot.Consistent()
	}
	if err == nil {
		err = p.cache.SetSnapshot(p.t.Context(), node, snapshot)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// answer waits for the first request that is right.
func (p *plane) answer(what string, right func(*discovery.DiscoveryRequest) bool) *discovery.DiscoveryRequest {
	p.t.Helper()
	var seen []string
	for {
		select {
		case r := <-p.requests:
			if right(r) {
				return r
			}
			seen = append(seen, fmt.Sprint(r))
		case <-time.After(2 * time.Minute):
			p.t.Fatalf("there is no %s among\n%v", what, seen)
		}
	}
}

// accepted waits until a version is in force.
func (p *plane) accepted(version string) {
	p.t.Helper()
	p.answer("acceptance of "+version, func(r *discovery.DiscoveryRequest) bool {
		return r.VersionInfo == version && r.ErrorDetail == nil
	})
}

// limit is a descriptor with a limit.
func limit(key string, unit config.RateLimitUnit, n uint32) *config.RateLimitDescriptor {
	return &config.RateLimitDescriptor{Key: key, RateLimit: &config.RateLimitPolicy{Unit: unit, RequestsPerUnit: n}}
}
