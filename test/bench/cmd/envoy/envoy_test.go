package main

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

	"github.com/weirhq/weir/test/bench/internal/machine"
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

func tiny() options {
	return options{callers: 4, connections: 2, values: 10, rounds: 3, round: 20 * time.Millisecond, warmUp: time.Millisecond}
}

// An answer that is not as expected is noticed, whatever is wrong with it.
func TestWrongAnswersAreNoticed(t *testing.T) {
	good, err := nothing{}.ShouldRateLimit(t.Context(), &pb.RateLimitRequest{})
	if err == nil || good != nil {
		t.Fatal("a request without descriptors is answered")
	}
	for name, service := range map[string]answers{
		"denied":   {response: &pb.RateLimitResponse{OverallCode: pb.RateLimitResponse_OVER_LIMIT}},
		"no limit": {response: &pb.RateLimitResponse{OverallCode: pb.RateLimitResponse_OK, Statuses: []*pb.RateLimitResponse_DescriptorStatus{{Code: pb.RateLimitResponse_OK}}}},
		"an error": {err: errors.New("no")},
	} {
		h := &field{contestants: []contestant{{name: name, address: listen(t, service)}}}
		if _, err := h.measure(tiny(), func(int, int, string) {}); err == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
}

func TestMeasureAndReport(t *testing.T) {
	h := &field{contestants: []contestant{
		{name: doesNothing, address: listen(t, nothing{}), processes: []int{os.Getpid()}}, {name: weirMemory, address: listen(t, nothing{})},
	}}
	figures, err := h.measure(tiny(), func(int, int, string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if f.rate <= 0 || f.p50 <= 0 || f.p99 < f.p50 {
			t.Errorf("%+v", f)
		}
	}
	figures = []figure{
		{theirs, 100, 1e6, 9e6, 80_000}, {theirs + ", tuned", 200, 1e6, 8e6, 70_400},
		{doesNothing, 500, 1e6, 2e6, 0}, {weirMemory, 450, 1e6, 2e6, 20_000}, {weirRedis, 370, 2e6, 3e6, 30_000},
	}
	var b strings.Builder
	if err := writeTable(&b, machine.Describe(), full, figures); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| weir, Redis: requests × envoyproxy/ratelimit |     2.00 |     1.85 | missed  |",
		"| weir, Redis: requests × nothing              |     0.75 |     0.74 | missed  |",
		"| weir, memory: requests × nothing             |     0.90 |     0.90 | met     |",
		"| envoyproxy/ratelimit, tuned     |        200 |      0.40 |   1.00 |   8.00 |     70 |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no\n%s\nin\n%s", want, b.String())
		}
	}
}
