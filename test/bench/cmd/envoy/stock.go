package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirhq/weir/internal/loadgen"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/rounds"
)

// giveUp is when a caller has no use for an answer any more.
const giveUp = 10 * time.Second

// stock is the generated client of grpc-go over one connection, as each worker thread of
// Envoy has one.
type stock struct {
	client   pb.RateLimitServiceClient
	requests []*pb.RateLimitRequest // one for each value
}

func dialStock(t testing.TB, address string, requests []*pb.RateLimitRequest) *stock {
	conn := testcall.Must(grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return &stock{client: pb.NewRateLimitServiceClient(conn), requests: requests}
}

// ask asks once.
func (s *stock) ask(ctx context.Context, request uint32) error {
	answer, err := s.client.ShouldRateLimit(ctx, s.requests[request])
	if err != nil {
		return err
	}
	return expect(answer)
}

// closed keeps so many requests in flight for a while.
func (s *stock) closed(ctx context.Context, inFlight int, length time.Duration) (round, error) {
	// One deadline for all: Envoy names one, too, and a timer for each call is not what is measured.
	ctx, cancel := context.WithTimeout(ctx, length+giveUp)
	defer cancel()
	errs, took, walks := make([]error, inFlight), make([]loadgen.Histogram, inFlight), make([]walk, inFlight)
	for i := range walks {
		walks[i] = newWalk(i, len(s.requests))
	}
	var over atomic.Bool
	timer := time.AfterFunc(length, func() { over.Store(true) })
	defer timer.Stop()
	cost := rounds.AtOnce(inFlight, func(i int) {
		for first := true; first || !over.Load() && errs[i] == nil; first = false { // once, however late it is
			begin := time.Now()
			errs[i] = s.ask(ctx, walks[i].next())
			took[i].Record(time.Since(begin))
		}
	})
	var all loadgen.Histogram
	for i := range took {
		all.Merge(&took[i])
	}
	return sumUp(&all, 0, cost.Wall, errs)
}
