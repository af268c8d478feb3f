package envoy

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// answers is a server that says always the same.
type answers struct {
	response *pb.RateLimitResponse
	err      error
}

func (a answers) ShouldRateLimit(context.Context, *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	return a.response, a.err
}

func listen(t *testing.T, service pb.RateLimitServiceServer) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterRateLimitServiceServer(server, service)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return l.Addr().String()
}

// tiny is a field of servers of these tests.
func tiny(t *testing.T, service pb.RateLimitServiceServer, names ...string) *field {
	h := &field{
		Run: bench.Test(t),
		options: options{
			values: 10, callers: 4, connections: 2, inFlight: []int{1, 3}, loads: []float64{0.1, 0.2},
			rounds: 2, round: 10 * time.Millisecond, warmUp: time.Millisecond,
		},
	}
	for _, name := range names {
		h.add(name, listen(t, service), os.Getpid())
	}
	return h
}

// An answer that is not as expected is noticed, whatever is wrong with it and whoever asked.
func TestWrongAnswersAreNoticed(t *testing.T) {
	for name, service := range map[string]answers{
		"denied":   {response: &pb.RateLimitResponse{OverallCode: pb.RateLimitResponse_OVER_LIMIT}},
		"no limit": {response: &pb.RateLimitResponse{OverallCode: pb.RateLimitResponse_OK, Statuses: []*pb.RateLimitResponse_DescriptorStatus{{Code: pb.RateLimitResponse_OK}}}},
		"an error": {err: errors.New("no")},
	} {
		h := tiny(t, service, weirRedis)
		c := h.contestants[weirRedis]
		if _, err := c.lean.ask(h.round); err == nil {
			t.Errorf("%s: the lean callers do not notice", name)
		}
		if _, err := c.stock.closed(t.Context(), 2, h.round); err == nil {
			t.Errorf("%s: the stock client does not notice", name)
		}
		if _, err := c.stock.open(t.Context(), []time.Duration{0}); err == nil {
			t.Errorf("%s: the open loop does not notice", name)
		}
		scope := testkit.Must(testkit.NewScope("envoy"))(t)
		h.Run = bench.Test(scope)
		if err := scope.Try(func() { h.measure(t.Context()) }); err == nil || !strings.HasPrefix(err.Error(), "envoy: "+weirRedis) {
			t.Errorf("%s: the error is %v", name, err)
		}
		scope.Close()
	}
	if _, err := (nothing{}).ShouldRateLimit(t.Context(), &pb.RateLimitRequest{}); err == nil {
		t.Error("a request without descriptors is answered")
	}
}

func TestMeasure(t *testing.T) {
	h := tiny(t, nothing{}, doesNothing, theirs, theirsTuned, weirMemory, weirRedis)
	r := h.measure(t.Context())
	all := append(append([]*result{r.lean}, r.stock...), r.open...)
	if len(all) != 1+len(h.inFlight)+len(h.loads) || r.capacity <= 0 {
		t.Errorf("%d tables, a capacity of %v", len(all), r.capacity)
	}
	for _, one := range all {
		for i, name := range one.Names {
			if len(one.Rounds[i]) != h.rounds {
				t.Errorf("%s, %s: %d rounds", one.What, name, len(one.Rounds[i]))
			}
			for _, f := range one.Rounds[i] {
				if f.Done <= 0 || f.Rate() <= 0 || f.P50 <= 0 || f.P99 < f.P50 {
					t.Errorf("%s, %s: %+v", one.What, name, f)
				}
			}
		}
	}
	r.write(h.Run, h.options)
}

// steady is three equal rounds of each contestant.
func steady(what string, bound float64, names []string, all ...bench.Round) *result {
	r := &result{bench.Scores{What: what, Names: names}, bound}
	for _, one := range all {
		r.Rounds = append(r.Rounds, []bench.Round{one, one, one})
	}
	return r
}

func TestReport(t *testing.T) {
	made := func(rate float64, p99 time.Duration) bench.Round {
		wall := time.Duration(1000 / rate * 1e9)
		return bench.Round{Done: 1000, Wall: wall, P50: time.Millisecond, P99: p99, CPU: 70 * time.Millisecond}
	}
	cut := made(700, 8*time.Millisecond)
	cut.Unsent = 250
	r := &results{
		capacity: 1234,
		lean: steady("lean callers", 0, []string{theirs, theirsTuned, doesNothing, weirMemory, weirRedis},
			made(100, 9e6), made(200, 8e6), made(500, 2e6), made(450, 2e6), made(370, 3e6)),
		stock: []*result{
			steady("1 in flight", 1.5, withRedis, made(100, 9e6), made(90, 9e6), made(300, 1e6), made(160, 3e6)),
			steady("16 in flight", 2, withRedis, made(100, 9e6), made(110, 9e6), made(300, 1e6), made(198, 3e6)),
		},
		open: []*result{
			steady("50 %", 0.5, withRedis, made(600, 4e6), cut, made(600, 1e6), made(600, 2e6)),
			steady("80 %", 0.5, withRedis, made(900, 9e6), made(900, 6e6), made(900, 1e6), made(900, 4e6)),
		},
	}
	// Rounds in which all are slow change no ratio.
	for i := range r.stock[0].Rounds {
		r.stock[0].Rounds[i][0].Wall *= 10
		r.stock[0].Rounds[i][1].Wall *= 2
	}
	run := bench.Test(t)
	r.write(run, full)
	b := run.File("envoy.txt")
	for _, want := range []string{
		"| weir, Redis: requests × envoyproxy/ratelimit                             |     2.00 |     1.85 | missed  |",
		"| weir, Redis: requests × nothing                                          |     0.75 |     0.74 | missed  |",
		"| weir, memory: requests × nothing                                         |     0.90 |     0.90 | met     |",
		"| weir, Redis: requests × envoyproxy/ratelimit, stock client, 1 in flight  |     1.50 |     1.60 | met     |",
		"| weir, Redis: requests × envoyproxy/ratelimit, stock client, 16 in flight |     2.00 |     1.80 | missed  |",
		"| weir, Redis: p99 × envoyproxy/ratelimit, at 50 % of its capacity |    0.50 |     0.50 | met     |",
		"| weir, Redis: p99 × envoyproxy/ratelimit, at 80 % of its capacity |    0.50 |     0.67 | missed  |",
		"| envoyproxy/ratelimit, tuned     |        200 |      0.40 |   1.00 |   8.00 |     70 |",
		"| 1 in flight  | weir, Redis                     |         80 |     1.60 |   1.00 |   3.00 |     70 |",
		"| 50 % | envoyproxy/ratelimit, tuned     |        700 |   1.00 |   8.00 |         2.00 |     70 |      20.00 |",
		"1 234 requests a second",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no\n%s\nin\n%s", want, b.String())
		}
	}
}
