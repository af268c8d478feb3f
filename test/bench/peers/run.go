package peers

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	keys    []int         // numbers of keys, ascending; the last one is also for bytes a key
	callers []int         // numbers of goroutines that ask all the time
	rounds  int           // of each contestant in each scenario
	round   time.Duration // what a round lasts
}

// scenario is one question to all contestants.
type scenario struct {
	keys    int
	allowed Outcome // everything is, or everything is denied
	callers int
}

// stage is a scenario, and what was measured in it.
type stage struct {
	scenario
	contestants []Contestant
	bench.Scores
}

// size is what a contestant keeps of each of many keys, in bytes: after one check of each key, and
// after all hundred units of each key.
type size struct {
	Contestant
	keys            int
	once, exhausted kept
}

// kept is what is kept of a key.
type kept struct {
	bytes float64
	grown float64 // of the memory of a Redis, which is more
}

// harness asks contestants whose limits are all in memory, or all in a Redis.
type harness struct {
	*bench.Run
	options
	contestants []Contestant
	load        bench.Load    // of each round, but for the callers
	warmUp      time.Duration // how long each asks before its first round
	visits      int           // of each key before it is measured
	order       int           // the length of the order in which a caller asks for the keys
	empty       func()
	busy        func() time.Duration // of what keeps the limits; nil if that is this process
	bytes       func(c Contestant, keys []string, use func(Limiter, string)) kept

	// What it has found out.
	stages []stage
	sizes  []size
}

// measureSizes measures one contestant after the other, each alone.
func (h *harness) measureSizes() {
	keys := bench.Keys(h.keys[len(h.keys)-1])
	for i, c := range h.contestants {
		h.Step(i, len(h.contestants), "bytes a key")
		h.sizes = append(h.sizes, size{
			c, len(keys),
			h.bytes(c, keys, func(l Limiter, key string) { l.Take(key) }),
			h.bytes(c, keys, func(l Limiter, key string) { l.Drain(key) }),
		})
	}
	runtime.KeepAlive(keys)
}

// perform sets contestants up, who know all keys and have used them up if the scenario is about
// denials, and measures them with each number of callers. With some numbers there are only some of
// the contestants; all if there are no names.
func (h *harness) perform(keys int, allowed Outcome, callers, few []int, some ...string) {
	h.Step(0, 1, fmt.Sprintf("filling %s, %s", bench.Things(keys, "key"), allowed))
	h.empty()
	filled, asked := bench.Keys(keys), bench.Keys(keys)
	limiters := make([]Limiter, len(h.contestants))
	for i, c := range h.contestants {
		limiters[i] = c.New(c.Limit(keys, allowed), keys)
		defer limiters[i].Close()
		// All callers share the work, which opens their connections, too.
		_ = bench.All(h.callers[len(h.callers)-1], keys, func(k int) error {
			if !allowed {
				limiters[i].Drain(filled[k])
				return nil
			}
			for range h.visits {
				limiters[i].Take(filled[k])
			}
			return nil
		})
	}
	for _, n := range slices.Concat(callers, few) {
		s := stage{scenario: scenario{keys, allowed, n}}
		contest := bench.Contest{What: fmt.Sprint(s.scenario), Rounds: h.rounds, WarmUp: h.warmUp, Load: h.load}
		contest.Callers, contest.Timed = n, h.load.Timed && n == 1
		orders := bench.NewOrders(n, keys, h.order)
		for i, c := range h.contestants {
			if slices.Contains(callers, n) || slices.Contains(some, c.Name) {
				s.contestants = append(s.contestants, c)
				contest.Contestants = append(contest.Contestants, bench.Contestant{Name: c.Name, Ask: limiters[i].asks(asked, orders, allowed), Busy: h.busy})
			}
		}
		if h.busy == nil { // contestants take the processors that there are callers
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
		}
		s.Scores = contest.Run(h.Run)
		h.stages = append(h.stages, s)
	}
}

func (s scenario) String() string {
	return fmt.Sprintf("%s, %s, %s", bench.Things(s.callers, "caller"), bench.Things(s.keys, "key"), s.allowed)
}

// asks makes callers who require that all checks are allowed, or that all are denied.
func (l Limiter) asks(keys []string, orders []bench.Order, want Outcome) func(int) func(int) error {
	return func(g int) func(int) error {
		order := orders[g]
		return func(n int) error {
			if l.Take(keys[order.At(n)]) != bool(want) {
				return fmt.Errorf("check %d was not %s", n, want)
			}
			return nil
		}
	}
}

// of is the stage of a scenario.
func (h *harness) of(sc scenario) stage {
	return h.stages[slices.IndexFunc(h.stages, func(s stage) bool { return s.scenario == sc })]
}

// writeSizes writes what each contestant keeps and promises, below notes.
func (h *harness) writeSizes(file string, t *bench.Table, figures func(s size) string) {
	for _, s := range h.sizes {
		if s.Note != "" {
			h.Write(file, fmt.Sprintf("%s: %s.", s.Name, s.Note))
		}
		t.Row("%s|%s|%s|%s", s.Name, figures(s), s.Key, s.Promise)
	}
	h.Write(file, fmt.Sprintf("## bytes a key, with %s keys", bench.Count(h.sizes[0].keys)), t)
}

// rounds are the figures of a contestant in each round.
func (s stage) rounds(i int, figure func(bench.Round) float64) (out []float64) {
	for _, r := range s.Rounds[i] {
		out = append(out, figure(r))
	}
	return out
}
