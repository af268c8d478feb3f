package redis

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/peers"
)

// walkLen is a power of two; the walks of all callers stay in the cache.
const walkLen = 1 << 14

// round is what one contestant did in one turn. All but the checks are
// microseconds.
type round struct {
	checks   int
	us       float64 // wall time by checks
	server   float64 // the server's processor, a check
	allocs   float64 // a check, in this process
	p50, p99 float64 // what one check took; 0 unless there is one caller
}

// tally is what one caller got.
type tally struct {
	asked, allowed int
	took           []time.Duration // each check; nil if not needed
}

// runRound has each walk done by a goroutine of its own for as long as a round
// lasts, and requires that all checks are allowed or that all are denied.
func runRound(s server, l peers.Limiter, keys []string, walks [][]uint32, length time.Duration, want peers.Outcome) (round, error) {
	tallies := make([]tally, len(walks))
	if len(walks) == 1 {
		// Room for a check every ten microseconds, so that it need not grow.
		tallies[0].took = make([]time.Duration, 0, length/(10*time.Microsecond)+1)
	}
	before, err := s.processor()
	if err != nil {
		return round{}, err
	}
	var over atomic.Bool
	timer := time.AfterFunc(length, func() { over.Store(true) })
	defer timer.Stop()
	cost := rounds.AtOnce(len(walks), func(g int) { ask(l, keys, walks[g], &over, &tallies[g]) })
	after, err := s.processor()
	if err != nil {
		return round{}, err
	}

	var sum tally
	for _, t := range tallies {
		sum.asked += t.asked
		sum.allowed += t.allowed
	}
	if err := want.Of(sum.allowed, sum.asked); err != nil {
		return round{}, fmt.Errorf("redis: %w", err)
	}
	n := float64(sum.asked)
	r := round{
		checks: sum.asked,
		us:     micros(cost.Wall) / n,
		server: (after - before) / n,
		allocs: float64(cost.Mallocs) / n,
	}
	if took := tallies[0].took; took != nil {
		slices.Sort(took)
		r.p50, r.p99 = micros(took[len(took)/2]), micros(took[len(took)*99/100])
	}
	return r, nil
}

// ask is the measured loop. It asks at least once.
func ask(l peers.Limiter, keys []string, walk []uint32, over *atomic.Bool, t *tally) {
	var asked, allowed int
	last := time.Now()
	for {
		if l.Take(keys[walk[asked&(walkLen-1)]]) {
			allowed++
		}
		asked++
		if t.took != nil {
			now := time.Now()
			t.took = append(t.took, now.Sub(last))
			last = now
		}
		if over.Load() {
			t.asked, t.allowed = asked, allowed
			return
		}
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// figures sums up the rounds of one scenario.
func figures(contestants []peers.Contestant, sc Scenario, measured [][]round) []Figure {
	out := make([]Figure, len(contestants))
	var incr, redisRate float64
	for i, c := range contestants {
		f := Figure{Contestant: c, Scenario: sc}
		for _, r := range measured[i] {
			f.Checks = append(f.Checks, r.checks)
			f.Rounds = append(f.Rounds, r.us)
		}
		// Each by itself: a round may be in the middle by one figure and have
		// an outlier of another.
		of := func(figure func(round) float64) float64 { return figure(rounds.Median(measured[i], figure)) }
		f.Median = of(func(r round) float64 { return r.us })
		f.Server = of(func(r round) float64 { return r.server })
		f.Allocs = of(func(r round) float64 { return r.allocs })
		f.P50 = of(func(r round) float64 { return r.p50 })
		f.P99 = of(func(r round) float64 { return r.p99 })
		switch c.Name {
		case peers.RawIncr:
			incr = f.Median
		case peers.RedisRate:
			redisRate = f.Median
		}
		out[i] = f
	}
	for i := range out {
		out[i].ToIncr = out[i].Median / incr
		out[i].ToRedisRate = out[i].Median / redisRate
	}
	return out
}
