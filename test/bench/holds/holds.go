// Package holds measures what it takes to reserve and settle, to take and give back a place in
// flight, to take of a calendar quota, and to leave units for others, beside a take.
package holds

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	keys   int
	round  time.Duration
	rounds int
}

var (
	full  = options{keys: 10_000, round: 500 * time.Millisecond, rounds: 15}
	quick = options{keys: 10_000, round: 100 * time.Millisecond, rounds: 5}
)

const inMemory, inRedis = "memory", "Redis"

// more is how many times as many rounds a calendar and shares have, for a difference of some percent.
const more = 8

// setting is where contestants are beside a take.
type setting struct {
	store       string
	callers     int
	algorithm   weir.Algorithm
	contestants []contestant // the first is the take
	fine        bool         // the difference is some percent
}

// contestant is what one caller does for a client.
type contestant struct {
	name   string
	do     func(s subject, key string) error
	change func(*weir.Limit) // nil if it has the limit of the others
	aim    *aim              // nil if it has none
}

// subject is a limit in a store.
type subject struct {
	store   weir.Store
	limit   *weir.Compiled
	limiter *weir.Limiter
}

// aim is how many times as long as a take it may take in a store.
type aim struct {
	what   string
	bounds map[string]float64
}

const cost = 10

// places are more than callers at the same time.
const places = 200

var (
	holdAim  = &aim{"reserve and settle in %s ÷ a take", map[string]float64{inMemory: 4, inRedis: 3}}
	placeAim = &aim{"take and release a place in %s ÷ a take of a token bucket", map[string]float64{inMemory: 4, inRedis: 3}}
	monthAim = &aim{"a take of a calendar month in %s ÷ one of a fixed window", map[string]float64{inMemory: 1.05, inRedis: 1.05}}
	shareAim = &aim{"a take of a token bucket that leaves units for others in %s ÷ one that leaves none", map[string]float64{inMemory: 1.03, inRedis: 1.03}}

	holds = []contestant{
		{name: "take", do: take},
		{name: "reserve, settle with half", do: reserve(cost / 2), aim: holdAim},
		{name: "reserve, settle with double", do: reserve(2 * cost), aim: holdAim},
	}
	inFlight = contestant{name: "in flight: take and release", do: takeAndRelease, aim: placeAim, change: func(l *weir.Limit) {
		l.Algorithm, l.N, l.Period = weir.InFlight, places, time.Minute
	}}
	withPlaces = append(slices.Clip(holds), inFlight)
	calendar   = []contestant{{name: "take", do: take}, {name: "take, per calendar month", do: take, aim: monthAim, change: func(l *weir.Limit) {
		l.Period, l.Starts = weir.Month, "15"
	}}}
	shares = []contestant{{name: "take of an op", do: takeOp(0)}, {name: "take of an op that leaves 20 %", do: takeOp(20), aim: shareAim}}

	settings = []setting{
		{inMemory, 1, weir.TokenBucket, withPlaces, false}, {inMemory, 2, weir.TokenBucket, withPlaces, false},
		{inMemory, 2, weir.SlidingWindow, holds, false},
		{inRedis, 128, weir.TokenBucket, withPlaces, false}, {inRedis, 128, weir.SlidingWindow, holds, false},
		{inRedis, 1, weir.TokenBucket, withPlaces, false},
		{inMemory, 1, weir.FixedWindow, calendar, true}, {inRedis, 128, weir.FixedWindow, calendar, true},
		{inMemory, 1, weir.TokenBucket, shares, true}, {inRedis, 128, weir.TokenBucket, shares, true},
	}
)

// Run writes the table.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) {
	addr := testredis.Start(r).Addr
	table := bench.NewTable("<store", "callers", "<algorithm", "<request", "µs", "×", "allocs")
	worst := map[string]map[*aim]float64{inMemory: {}, inRedis: {}}
	for _, s := range settings {
		res := s.run(r, addr, o)
		for i, c := range s.contestants {
			ratio := res.Ratio(i, 0, bench.Round.Micros)
			table.Row("%s|%d|%s|%s|%.2f|%.2f|%.1f", s.store, s.callers, s.algorithm, c.name, res.Median(i, bench.Round.Micros), ratio, res.Median(i, bench.Round.Allocs))
			if s.store == inMemory || s.callers > 1 { // in Redis, the aims are for many callers
				worst[s.store][c.aim] = max(worst[s.store][c.aim], ratio)
			}
		}
	}
	var aims []bench.Aim
	for _, store := range []string{inMemory, inRedis} {
		for _, a := range []*aim{holdAim, placeAim, monthAim, shareAim} {
			aims = append(aims, bench.Aim{What: fmt.Sprintf(a.what, store), Bound: a.bounds[store], Measured: worst[store][a]})
		}
	}
	r.Write("holds.txt", bench.Describe(), fmt.Sprintf("µs: wall time divided by requests, of a limiter with one limit and %s; median of %d rounds that take turns (of fixed windows and of ops, %d shorter ones).\n"+
		"×: ratio to a take in the same round; median of the rounds.", bench.Things(o.keys, "key"), o.rounds, o.rounds*more), table, bench.Aims("", aims))
}

// run lets the contestants of a setting take turns.
func (s setting) run(r *bench.Run, addr string, o options) bench.Scores {
	if s.fine {
		o.round, o.rounds = o.round/4, o.rounds*more
	}
	contest := bench.Contest{What: fmt.Sprint(s.store, ", ", s.callers, ", ", s.algorithm), Rounds: o.rounds, Load: bench.Load{Callers: s.callers, Length: o.round}}
	keys := bench.Keys(o.keys)
	for i, c := range s.contestants {
		limit := weir.Limit{Name: fmt.Sprint("c", i), Algorithm: s.algorithm, N: 1_000_000_000, Period: time.Hour}
		if c.change != nil {
			c.change(&limit)
		}
		var with subject
		contest.Contestants = append(contest.Contestants, bench.Contestant{
			Name: c.name,
			// A store in memory remembers the holds of a minute, so each round has a store of its own.
			Before: func() (err error) {
				switch {
				case s.store == inMemory:
					with, err = newSubject(memory.New(memory.Options{MaxKeys: 1 << 24}), limit, keys)
				case with.store == nil:
					with, err = newSubject(bench.OpenRedis(r, addr), limit, keys)
				}
				return err
			},
			Ask: func(g int) func(int) error {
				order := bench.NewOrder(g, len(keys), bench.Short)
				return func(n int) error { return c.do(with, keys[order.At(n)]) }
			},
		})
	}
	return contest.Run(r)
}

// newSubject is a limit in a store in which the keys are.
func newSubject(store weir.Store, limit weir.Limit, keys []string) (subject, error) {
	limiter, err := weir.NewLimiter(store, limit)
	if err != nil {
		return subject{}, err
	}
	for _, key := range keys {
		if _, err := limiter.Take(context.Background(), key, 1); err != nil {
			return subject{}, err
		}
	}
	compiled, err := limit.Compile()
	return subject{store, compiled, limiter}, err
}

func take(s subject, key string) error {
	return bench.Allowed(s.limiter.Take(context.Background(), key, cost))
}

// takeOp takes one unit, as rules do, and leaves so many percent.
func takeOp(percent int64) func(subject, string) error {
	return func(s subject, key string) error {
		var room [1]weir.Decision
		return bench.AllAllowed(s.store.Take(context.Background(), room[:0], weir.Op{Key: key, Limit: s.limit, Cost: 1, Leave: s.limit.Capacity() / 100 * percent}))
	}
}

func takeAndRelease(s subject, key string) error {
	d, err := s.limiter.Take(context.Background(), key, 1)
	if err := bench.Allowed(d, err); err != nil {
		return err
	}
	return s.limiter.Refund(context.Background(), key, 1, d.Receipt)
}

func reserve(used int64) func(subject, string) error {
	return func(s subject, key string) error {
		hold, d, err := s.limiter.Reserve(context.Background(), key, cost, 0)
		if err := bench.Allowed(d, err); err != nil {
			return err
		}
		settled, err := hold.Settle(context.Background(), used)
		if err == nil && (settled.State != weir.HoldSettled || settled.Parts[0].Used != used) {
			err = fmt.Errorf("not settled: %+v", settled)
		}
		return err
	}
}
