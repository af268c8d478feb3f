package memory

import (
	"fmt"

	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/table"
	"github.com/weirhq/weir/test/bench/peers"
)

// Scenario is one question to all contestants.
type Scenario struct {
	Keys    int           `json:"keys"`
	Allowed peers.Outcome `json:"outcome"`    // everything is, or everything is denied
	Procs   int           `json:"gomaxprocs"` // and as many goroutines
}

func (s Scenario) String() string {
	return fmt.Sprintf("%s, GOMAXPROCS %d, %s", s.Allowed, s.Procs, table.Things(s.Keys, "key"))
}

// build makes a contestant that knows all keys, and is exhausted for each of
// them if the scenario is about denials.
func (s Scenario) build(c peers.Contestant, keys []string) peers.Limiter {
	l := c.New(c.Limit(s.Keys, s.Allowed), len(keys))
	for _, key := range keys {
		if s.Allowed {
			l.Take(key)
		} else {
			l.Drain(key)
		}
	}
	return l
}

// idle is no limiter but the harness itself: what the loop, the interface call
// and fetching the key from memory cost everybody.
func idle() peers.Contestant {
	return peers.Contestant{
		Name:    "(the loop itself)",
		Promise: "nothing: reads the key and answers",
		Key:     "keeps nothing",
		New:     func(limit peers.Limit, _ int) peers.Limiter { return always(limit.N > 100) },
	}
}

func always(answer bool) peers.Limiter {
	return peers.Limiter{
		Take:  func(key string) bool { return answer == (key[0] != 0) },
		Drain: func(string) {},
	}
}

// walkLen is a power of two, long enough for no branch predictor to learn it.
const walkLen = 1 << 20

// round is what one contestant did in one turn.
type round struct {
	ns     float64 // what one check takes, for the goroutine that asks
	allocs float64 // a check
}

// runRound has each walk done by a goroutine of its own, so many checks each,
// and requires that all are allowed or that all are denied.
func runRound(l peers.Limiter, keys []string, walks [][]uint32, checks int, want peers.Outcome) (round, error) {
	allowed := make([]int, len(walks))
	cost := rounds.AtOnce(len(walks), func(g int) {
		allowed[g] = ask(l, keys, walks[g], checks)
	})
	total, got := checks*len(walks), 0
	for _, n := range allowed {
		got += n
	}
	if err := want.Of(got, total); err != nil {
		return round{}, fmt.Errorf("memory: %w", err)
	}
	return round{
		ns:     float64(cost.Wall.Nanoseconds()) / float64(checks),
		allocs: float64(cost.Mallocs) / float64(total),
	}, nil
}

// ask is the measured loop.
func ask(l peers.Limiter, keys []string, walk []uint32, checks int) (allowed int) {
	for i := range checks {
		if l.Take(keys[walk[i&(walkLen-1)]]) {
			allowed++
		}
	}
	return allowed
}
