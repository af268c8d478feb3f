package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/loadgen"
	"github.com/weirhq/weir/test/bench/internal/rounds"
)

// round is what one contestant did in one turn.
type round struct {
	requests int64         // answered
	unsent   int64         // besides, because too many were in flight
	rate     float64       // requests a second
	p50, p99 time.Duration // of all, sent or not
	busy     time.Duration // all processors together, for the service and its Redis
}

func sumUp(took *loadgen.Histogram, unsent int64, wall time.Duration, errs []error) (round, error) {
	answered := took.Count() - unsent
	return round{
		requests: answered, unsent: unsent, rate: float64(answered) / wall.Seconds(),
		p50: took.Quantile(0.5), p99: took.Quantile(0.99),
	}, errors.Join(errs...)
}

// What contestants are compared by.
func rate(r round) float64 { return r.rate }
func p50(r round) float64  { return float64(r.p50) }
func p99(r round) float64  { return float64(r.p99) }

// result is what contestants did in the rounds that they took turns in.
type result struct {
	name   string
	bound  float64  // that weir is to reach
	names  []string // of the contestants
	rounds [][]round
}

// of returns the rounds of a contestant.
func (r *result) of(name string) []round { return r.rounds[slices.Index(r.names, name)] }

// median is that of the rounds of a contestant.
func (r *result) median(name string, by func(round) float64) float64 {
	return by(rounds.Median(r.of(name), by))
}

// ratio is that of two contestants in the same round; the median of the rounds.
func (r *result) ratio(a, b string, by func(round) float64) float64 {
	return rounds.Ratio(r.of(a), r.of(b), by)
}

// cpu is the time that a request costs a contestant and its Redis: of all rounds together,
// because one is too short for the unit in which Linux counts.
func (r *result) cpu(name string) time.Duration {
	busy, requests := time.Duration(0), int64(0)
	for _, one := range r.of(name) {
		busy, requests = busy+one.busy, requests+one.requests
	}
	return busy / time.Duration(max(requests, 1))
}

// unsent is the share of requests that were not sent.
func (r *result) unsent(name string) float64 {
	unsent, requests := int64(0), int64(0)
	for _, one := range r.of(name) {
		unsent, requests = unsent+one.unsent, requests+one.requests+one.unsent
	}
	return float64(unsent) / float64(max(requests, 1))
}

// fastest and promptest are the better of the other service's two settings.
func (r *result) fastest() string {
	return slices.MaxFunc([]string{theirs, theirsTuned}, func(a, b string) int { return cmp.Compare(r.median(a, rate), r.median(b, rate)) })
}

func (r *result) promptest() string {
	return slices.MinFunc([]string{theirs, theirsTuned}, func(a, b string) int { return cmp.Compare(r.median(a, p99), r.median(b, p99)) })
}

// results are of all tables.
type results struct {
	lean     *result
	stock    []*result // by how many are in flight
	capacity float64   // of the other service with the stock client, in requests a second
	open     []*result // by the load
}

// few requests in flight have a lower bound: most of their time goes into the client, whose
// answers are waited for by nobody else.
const few = 4

// withRedis are the contestants whose limits are in Redis, and what is the least for all of them.
var withRedis = []string{theirs, theirsTuned, doesNothing, weirRedis}

// measure fills all tables.
func (h *field) measure(ctx context.Context) (*results, error) {
	if err := h.warm(ctx); err != nil {
		return nil, err
	}
	steps, done := 1+len(h.inFlight)+len(h.loads), 0
	stage := func(r *result, play func(c *contestant, n int) (round, error)) (*result, error) {
		h.progress(done, steps, r.name)
		done++
		return r, h.take(r, uint64(done), play)
	}
	out := &results{}
	var err error
	out.lean, err = stage(&result{name: "lean callers", names: []string{theirs, theirsTuned, doesNothing, weirMemory, weirRedis}},
		func(c *contestant, _ int) (round, error) { return c.lean.ask(h.round) })
	if err != nil {
		return nil, err
	}
	for _, n := range h.inFlight {
		bound := 2.0
		if n <= few {
			bound = 1.5
		}
		r, err := stage(&result{name: fmt.Sprintf("%d in flight", n), names: withRedis, bound: bound},
			func(c *contestant, _ int) (round, error) { return c.stock.closed(ctx, n, h.round) })
		if err != nil {
			return nil, err
		}
		out.stock = append(out.stock, r)
		out.capacity = max(out.capacity, r.median(r.fastest(), rate))
	}
	for _, load := range h.loads {
		offers := load * out.capacity
		r, err := stage(&result{name: fmt.Sprintf("%.0f %%", 100*load), names: withRedis, bound: 0.5},
			func(c *contestant, n int) (round, error) {
				return c.stock.open(ctx, schedule(offers, h.round, uint64(n)))
			})
		if err != nil {
			return nil, err
		}
		out.open = append(out.open, r)
	}
	return out, nil
}

// warm lets every service answer for a while.
func (h *field) warm(ctx context.Context) error {
	for _, c := range h.contestants {
		if _, err := c.lean.ask(h.warmUp); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if _, err := c.stock.closed(ctx, slices.Max(h.inFlight), h.warmUp); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// take lets contestants take turns. Each plays with the number of its round.
func (h *field) take(r *result, seed uint64, play func(c *contestant, n int) (round, error)) (err error) {
	among := make([]*contestant, len(r.names))
	for i, name := range r.names {
		among[i] = h.contestants[slices.IndexFunc(h.contestants, func(c *contestant) bool { return c.name == name })]
	}
	played := make([]int, len(among))
	r.rounds, err = rounds.Take(rounds.Turns{Contestants: len(among), Rounds: h.rounds, Seed: [2]uint64{6, seed}},
		func(_, i int) (round, error) {
			before := among[i].busy()
			one, err := play(among[i], played[i])
			if err != nil {
				err = fmt.Errorf("%s: %w", among[i].name, err)
			}
			played[i]++
			one.busy = among[i].busy() - before
			return one, err
		})
	return err
}
