package redis

import (
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/peers"
)

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
		switch {
		case c.Name == peers.RawIncr:
			incr = f.Median
		case isRedisRate(c):
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

func isRedisRate(c peers.Contestant) bool { return c.Name == peers.RedisRate }
