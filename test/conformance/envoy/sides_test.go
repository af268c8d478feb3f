package envoy

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/server/envoyrls"
	"github.com/weirhq/weir/internal/testkit/testredis"
	_ "github.com/weirhq/weir/rule/rulefile" // the configuration is YAML
	"github.com/weirhq/weir/store/redis"
	"github.com/weirhq/weir/test/conformance/envoy/peer"
)

// sides are the two services, each with a Redis of its own.
type sides struct {
	config               string // the directory with the files that both have
	theirs, ours         pb.RateLimitServiceClient
	theirRedis, ourRedis *testredis.Server
	peer                 *peer.Service
	service              *envoyrls.Service
	address              string // of ours
}

// settings are what both sides are told, in the words of each.
type settings struct {
	theirs []string
	ours   envoyrls.Options
}

func begin(t *testing.T, files map[string]string, set settings) *sides {
	t.Helper()
	root := t.TempDir()
	config, err := peer.Layout(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(config, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := &sides{config: config, theirRedis: testredis.Start(t), ourRedis: testredis.Start(t)}
	if s.peer, err = peer.Start(t.Context(), programs, root, s.theirRedis.Addr, set.theirs...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.peer.Stop)
	s.theirs = dial(t, s.peer.GRPC)
	s.serve(t, set.ours)
	s.ours = dial(t, s.address)
	return s
}

// serve starts weir's side.
func (s *sides) serve(t *testing.T, o envoyrls.Options) {
	t.Helper()
	dir, err := envoyconfig.Open(s.config, envoyconfig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := redis.Open("redis://" + s.ourRedis.Addr + "?timeout=5s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	if o.Engine, err = engine.New(engine.Options{Store: store}); err != nil {
		t.Fatal(err)
	}
	o.Config, o.CountDenied = dir.Config, true
	if s.service, err = envoyrls.New(o); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterRateLimitServiceServer(server, s.service)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	s.address = listener.Addr().String()
}

func dial(t *testing.T, address string) pb.RateLimitServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewRateLimitServiceClient(conn)
}

// forget makes both sides begin again.
func (s *sides) forget() {
	s.theirRedis.Do("FLUSHALL", "SYNC")
	s.ourRedis.Do("FLUSHALL", "SYNC")
}
