package main

import (
	"fmt"
	"sync/atomic"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weirhq/weir/internal/loadgen"
	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/unary"
)

// round is what one contestant did in one turn.
type round struct {
	requests int64
	rate     float64 // requests a second
	p50, p99 time.Duration
	busy     time.Duration // all processors together, for the service and its Redis
}

// figure is what was measured of one contestant.
type figure struct {
	name     string
	rate     float64
	p50, p99 time.Duration
	cpu      time.Duration // per request; 0 if unknown
}

// walkLen is a power of two.
const walkLen = 1 << 14

// caller asks one request after the other.
type caller struct {
	requests [][]byte // one for each value
	walk     []uint32
	at       int
	took     *loadgen.Histogram
	response pb.RateLimitResponse
}

// measure lets the contestants take turns.
func (h *field) measure(o options, progress func(done, total int, what string)) ([]figure, error) {
	lines := make([][]*line, len(h.contestants))
	for i, c := range h.contestants {
		var hangUp func()
		var err error
		if lines[i], hangUp, err = call(c.address, o); err != nil {
			return nil, err
		}
		defer hangUp()
		if _, err := ask(lines[i], o.warmUp); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	total := len(h.contestants) * o.rounds
	done := 0
	measured, err := rounds.Take(rounds.Turns{Contestants: len(h.contestants), Rounds: o.rounds, Seed: [2]uint64{6, 1}},
		func(_, contestant int) (round, error) {
			progress(done, total, h.contestants[contestant].name)
			done++
			c := &h.contestants[contestant]
			before := c.busy()
			r, err := ask(lines[contestant], o.round)
			if err != nil {
				err = fmt.Errorf("%s: %w", c.name, err)
			}
			r.busy = c.busy() - before
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
		f.cpu = cpuOf(measured[i])
		out = append(out, f)
	}
	return out, nil
}

// busy returns the CPU time of its processes; 0 if unknown.
func (c *contestant) busy() (sum time.Duration) {
	for _, p := range c.processes {
		used, err := machine.CPU(p)
		if err != nil {
			return 0
		}
		sum += used
	}
	return sum
}

// cpuOf is of all rounds together: one is too short for the unit in which it is told.
func cpuOf(all []round) time.Duration {
	busy, requests := time.Duration(0), int64(0)
	for _, r := range all {
		busy, requests = busy+r.busy, requests+r.requests
	}
	return busy / time.Duration(max(requests, 1))
}

// line is a connection, and who asks over it.
type line struct {
	conn    *unary.Conn
	callers []unary.Caller
	took    loadgen.Histogram
}

// call connects the callers, and returns how to end that.
func call(address string, o options) (lines []*line, hangUp func(), err error) {
	hangUp = func() {
		for _, l := range lines {
			_ = l.conn.Close()
		}
	}
	requests := make([][]byte, o.values)
	for i, key := range clients.Keys(o.values) {
		requests[i], err = proto.Marshal(&pb.RateLimitRequest{Domain: "bench", Descriptors: []*common.RateLimitDescriptor{
			{Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: key}}},
		}})
		if err != nil {
			return nil, nil, err
		}
	}
	for range o.connections {
		conn, err := unary.Dial(address, pb.RateLimitService_ShouldRateLimit_FullMethodName)
		if err != nil {
			hangUp()
			return nil, nil, err
		}
		lines = append(lines, &line{conn: conn})
	}
	for i := range o.callers {
		l := lines[i%len(lines)]
		l.callers = append(l.callers, &caller{requests: requests, walk: clients.Walk(i, o.values, walkLen), took: &l.took})
	}
	return lines, hangUp, nil
}

// ask has all callers ask for a while.
func ask(lines []*line, length time.Duration) (round, error) {
	errs := make([]error, len(lines))
	var over atomic.Bool
	timer := time.AfterFunc(length, func() { over.Store(true) })
	defer timer.Stop()
	cost := rounds.AtOnce(len(lines), func(i int) {
		lines[i].took = loadgen.Histogram{}
		errs[i] = lines[i].conn.Run(lines[i].callers, over.Load)
	})
	var all loadgen.Histogram
	for i, err := range errs {
		if err != nil {
			return round{}, err
		}
		all.Merge(&lines[i].took)
	}
	return round{
		requests: all.Count(), rate: float64(all.Count()) / cost.Wall.Seconds(),
		p50: all.Quantile(0.5), p99: all.Quantile(0.99),
	}, nil
}

// Ask implements [unary.Caller].
func (c *caller) Ask() []byte {
	c.at++
	return c.requests[c.walk[c.at&(walkLen-1)]]
}

// Answered requires the answer of a limit that allows.
func (c *caller) Answered(message []byte, took time.Duration) error {
	c.took.Record(took)
	r := &c.response
	if err := proto.Unmarshal(message, r); err != nil {
		return err
	}
	if r.OverallCode != pb.RateLimitResponse_OK || len(r.Statuses) != 1 || r.Statuses[0].LimitRemaining == 0 || r.Statuses[0].CurrentLimit.GetRequestsPerUnit() != 1_000_000_000 {
		return fmt.Errorf("this is not the answer that was expected: %v", r)
	}
	return nil
}
