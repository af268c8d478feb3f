package envoyrls

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit/testredis"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/redis"
)

// dial serves a service over gRPC, and returns a client of it.
func dial(t testing.TB, s *Service) pb.RateLimitServiceClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(ServerOptions()...)
	s.Register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return pb.NewRateLimitServiceClient(conn)
}

// A real Redis is killed under load and comes back. Only descriptors that fail closed
// get errors, and the limits apply again without a restart.
func TestRedisDies(t *testing.T) {
	server := testredis.Start(t)
	store, err := redis.Open("redis://" + server.Addr + "?timeout=5s") // a busy machine is slow, and that is no trouble here
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	e, err := engine.New(engine.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	// Redis has a clock of its own, at which a day may end at any time.
	b := newBench(t, strings.ReplaceAll(failing, "requests_per_unit: 2}", "requests_per_unit: 2, algorithm: sliding_log}"), Options{})
	b.options.Engine = e
	client := dial(t, b.Service)
	passed := func(key string) (n int) {
		t.Helper()
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				r, err := client.ShouldRateLimit(t.Context(), request(key))
				if err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if r.OverallCode == pb.RateLimitResponse_OK {
					n++
				}
			})
		}
		wg.Wait()
		return n
	}
	check := func(when, who string, open, closed, local int) {
		t.Helper()
		got := fmt.Sprint(passed("open="+who), passed("closed="+who), passed("local="+who))
		if want := fmt.Sprint(open, closed, local); got != want {
			t.Errorf("%s: %s passed, want %s", when, got, want)
		}
	}
	check("at the start", "a", 2, 2, 2)
	server.Kill()
	check("while Redis is unavailable", "b", 20, 0, 2)
	server.Restart()
	for { // until the store has found out
		if r, err := client.ShouldRateLimit(t.Context(), request("closed=probe x0")); err == nil && r.OverallCode == pb.RateLimitResponse_OK {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("Redis is not found again")
		}
	}
	check("when Redis is back", "c", 2, 2, 2)
}
