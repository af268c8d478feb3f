package memory

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/bench/internal/table"
	"github.com/weirhq/weir/bench/peers"
)

// month is a period in which nothing comes back while a run lasts.
const month = 30 * 24 * time.Hour

// Scenario is one question to all contestants.
type Scenario struct {
	Keys     int
	Admitted bool // everything is, or everything is refused
	Procs    int  // GOMAXPROCS, and as many goroutines
}

func (s Scenario) String() string {
	keys := "keys"
	if s.Keys == 1 {
		keys = "key"
	}
	return fmt.Sprintf("%s, GOMAXPROCS %d, %s %s", s.outcome(), s.Procs, table.Count(int64(s.Keys)), keys)
}

func (s Scenario) outcome() string {
	if s.Admitted {
		return "admitted"
	}
	return "refused"
}

// limit is the limit for everybody: when admitted, a billion checks in all
// before one is refused, spread over the keys so that a key never recovers
// between two visits and is neither new nor used up, as that of a busy client;
// when refused, a hundred, of which none are left.
func (s Scenario) limit(c peers.Contestant) peers.Limit {
	if !s.Admitted {
		return peers.Limit{N: 100, Period: month}
	}
	if c.Admit != nil {
		return c.Admit(s.Keys)
	}
	return peers.Limit{N: max(1000, 1_000_000_000/s.Keys), Period: month}
}

// build makes a contestant that knows all keys, and is exhausted for each of
// them if the scenario is about refusals.
func (s Scenario) build(c peers.Contestant, keys []string) peers.Limiter {
	l := c.New(s.limit(c), len(keys))
	for _, key := range keys {
		if s.Admitted {
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
		New:     func(limit peers.Limit, _ int) peers.Limiter { return noLimiter{limit.N > 100} },
	}
}

type noLimiter struct{ answer bool }

func (l noLimiter) Take(key string) bool { return l.answer == (key[0] != 0) }
func (noLimiter) Drain(string)           {}
func (noLimiter) Close()                 {}
