package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirhq/weir/bench/internal/clients"
	"github.com/weirhq/weir/bench/internal/rounds"
	"github.com/weirhq/weir/internal/load"
)

// round is what one contestant did in one turn.
type round struct {
	rate     float64 // requests a second
	p50, p99 time.Duration
}

// figure is what was measured of one contestant.
type figure struct {
	name string
	round
}

// walkLen is a power of two.
const walkLen = 1 << 14

// caller asks one request after the other.
type caller struct {
	client   pb.RateLimitServiceClient
	requests []*pb.RateLimitRequest // one for each value
	walk     []uint32
	at       int
}

// measure lets the contestants take turns.
func (h *house) measure(ctx context.Context, o options, progress func(done, total int, what string)) ([]figure, error) {
	callers := make([][]caller, len(h.contestants))
	for i, c := range h.contestants {
		var hangUp func()
		var err error
		if callers[i], hangUp, err = call(c.address, o); err != nil {
			return nil, err
		}
		defer hangUp()
		if _, err := ask(ctx, callers[i], o.warmUp); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	total := len(h.contestants) * o.rounds
	done := 0
	measured, err := rounds.Take(rounds.Turns{Contestants: len(h.contestants), Rounds: o.rounds, Seed: [2]uint64{6, 1}},
		func(_, contestant int) (round, error) {
			progress(done, total, h.contestants[contestant].name)
			done++
			r, err := ask(ctx, callers[contestant], o.round)
			if err != nil {
				err = fmt.Errorf("%s: %w", h.contestants[contestant].name, err)
			}
			return r, err
		})
	if err != nil {
		return nil, err
	}
	var out []figure
	for i, c := range h.contestants {
		f := figure{name: c.name}
		f.rate = rounds.Median(measured[i], func(r round) float64 { return r.rate }).rate
		f.p50 = rounds.Median(measured[i], func(r round) float64 { return float64(r.p50) }).p50
		f.p99 = rounds.Median(measured[i], func(r round) float64 { return float64(r.p99) }).p99
		out = append(out, f)
	}
	return out, nil
}

// call connects the callers, and returns how to end that.
func call(address string, o options) (callers []caller, hangUp func(), err error) {
	var conns []*grpc.ClientConn
	hangUp = func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
	requests := make([]*pb.RateLimitRequest, o.values)
	for i, key := range clients.Keys(o.values) {
		requests[i] = &pb.RateLimitRequest{Domain: "bench", Descriptors: []*common.RateLimitDescriptor{
			{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: key}}},
		}}
	}
	for range o.connections {
		conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			hangUp()
			return nil, nil, err
		}
		conns = append(conns, conn)
	}
	for i := range o.callers {
		callers = append(callers, caller{
			client:   pb.NewRateLimitServiceClient(conns[i%len(conns)]),
			requests: requests, walk: clients.Walk(i, o.values, walkLen),
		})
	}
	return callers, hangUp, nil
}

// ask has all callers ask for a while.
func ask(ctx context.Context, callers []caller, length time.Duration) (round, error) {
	histograms, errs := make([]load.Histogram, len(callers)), make([]error, len(callers))
	var over atomic.Bool
	timer := time.AfterFunc(length, func() { over.Store(true) })
	defer timer.Stop()
	cost := rounds.AtOnce(len(callers), func(i int) {
		for !over.Load() && errs[i] == nil {
			begin := time.Now()
			errs[i] = callers[i].once(ctx)
			histograms[i].Record(time.Since(begin))
		}
	})
	for i, err := range errs {
		if err != nil {
			return round{}, err
		}
		if i > 0 {
			histograms[0].Merge(&histograms[i])
		}
	}
	all := &histograms[0]
	return round{rate: float64(all.Count()) / cost.Wall.Seconds(), p50: all.Quantile(0.5), p99: all.Quantile(0.99)}, nil
}

// once asks, and requires the answer of a limit that admits.
func (c *caller) once(ctx context.Context) error {
	req := c.requests[c.walk[c.at&(walkLen-1)]]
	c.at++
	r, err := c.client.ShouldRateLimit(ctx, req)
	if err != nil {
		return err
	}
	if r.OverallCode != pb.RateLimitResponse_OK || len(r.Statuses) != 1 || r.Statuses[0].LimitRemaining == 0 || r.Statuses[0].CurrentLimit.GetRequestsPerUnit() != 1_000_000_000 {
		return fmt.Errorf("this is not the answer that was expected: %v", r)
	}
	return nil
}
