// Package redis measures what one check costs when the limits are in Redis, for
// weir and its peers side by side, on one server of this machine.
//
// Callers are a closed loop: each asks again as soon as it was answered. All
// contestants get the same keys, limits, goroutines and walks, and as much time;
// their rounds take turns, in another order each time, and a figure is the median
// of the rounds. Every answer is counted, and one that is not as expected fails
// the run.
package redis

import (
	"fmt"
	"runtime"
	"time"

	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/table"
	"github.com/weirhq/weir/test/bench/peers"
)

// Options say how much to measure.
type Options struct {
	Keys    int           // where there are many
	Callers int           // where there are many
	Rounds  int           // of each contestant in each scenario
	Round   time.Duration // how long each of them lasts
	WarmUp  time.Duration // how long each asks before the first one

	// Progress, if set, hears what comes next.
	Progress func(done, total int, what string)
}

// Full takes about three minutes, on any machine: it is time that is given out.
func Full() Options {
	return Options{
		Keys: 10_000, Callers: peers.Callers,
		Rounds: 5, Round: 500 * time.Millisecond, WarmUp: 100 * time.Millisecond,
	}
}

// Quick takes half a minute and is good for a first look only.
func Quick() Options {
	return Options{
		Keys: 1_000, Callers: peers.Callers,
		Rounds: 3, Round: 120 * time.Millisecond, WarmUp: 50 * time.Millisecond,
	}
}

// Figure is what was measured of one contestant in one scenario. Times are in
// microseconds.
type Figure struct {
	Contestant peers.Contestant
	Scenario   Scenario
	Checks     []int     // of each round
	Rounds     []float64 // wall time by checks
	Median     float64
	Server     float64 // the server's processor, a check
	Allocs     float64 // a check, in this process
	P50, P99   float64 // what one check took; 0 unless there is one caller

	ToIncr      float64 // ratio of Median to that of the yardstick
	ToRedisRate float64 // and to redis_rate on a pool of connections, as people run it
}

// Results are all that a run has found out.
type Results struct {
	Redis   string // the server's version
	Figures []Figure
	Sizes   []Size
}

type suite struct {
	Options
	server      server
	contestants []peers.Contestant
	figures     []Figure
	done, total int
}

// stage is a number of scenarios for which the contestants are set up once.
type stage struct {
	keys     int
	admitted bool
	callers  []int
}

func (o Options) stages() []stage {
	return []stage{
		{o.Keys, true, []int{o.Callers, 1}},
		{1, true, []int{o.Callers}},
		{1, false, []int{o.Callers}},
	}
}

// Run measures all contestants on the Redis at addr, which it empties time and
// again.
func Run(addr string, o Options) (Results, error) {
	server, err := connect(addr)
	if err != nil {
		return Results{}, err
	}
	defer server.client.Close()
	version, err := server.info("server", "redis_version")
	if err != nil {
		return Results{}, err
	}
	s := &suite{Options: o, server: server, contestants: peers.OnRedis(addr)}
	scenarios := 0
	for _, st := range o.stages() {
		scenarios += len(st.callers)
	}
	s.total = len(s.contestants) * (1 + scenarios*o.Rounds)
	sizes, err := s.sizes()
	if err != nil {
		return Results{}, err
	}
	for _, st := range o.stages() {
		if err := s.run(st); err != nil {
			return Results{}, err
		}
	}
	return Results{version, s.figures, sizes}, server.empty()
}

// run sets everybody up on an empty server, and measures each scenario.
func (s *suite) run(st stage) error {
	s.report("filling " + count(st.keys, "key"))
	if err := s.server.empty(); err != nil {
		return err
	}
	keys := clients.Keys(st.keys)
	limiters := make([]peers.Limiter, len(s.contestants))
	for i, c := range s.contestants {
		limiters[i] = c.New(c.Limit(st.keys, st.admitted), st.keys)
		defer limiters[i].Close()
		s.fill(limiters[i], keys, st.admitted)
	}
	for _, callers := range st.callers {
		if err := s.measure(Scenario{st.keys, st.admitted, callers}, limiters, keys); err != nil {
			return err
		}
	}
	return nil
}

// visits is how often a client was there before it is measured: what is asked about
// is somebody who comes again and again.
const visits = 20

// fill makes all keys those of busy clients, or exhausts them. All callers share the
// work, which opens their connections too.
func (s *suite) fill(l peers.Limiter, keys []string, admitted bool) {
	rounds.AtOnce(s.Callers, func(g int) {
		for i := g; i < len(keys); i += s.Callers {
			if !admitted {
				l.Drain(keys[i])
				continue
			}
			for range visits {
				l.Take(keys[i])
			}
		}
	})
}

func (s *suite) measure(sc Scenario, limiters []peers.Limiter, keys []string) error {
	walks := make([][]uint32, sc.Callers)
	for g := range walks {
		walks[g] = clients.Walk(g, sc.Keys, walkLen)
	}
	s.report(sc.String())
	one := func(i int, length time.Duration) (round, error) {
		runtime.GC()
		r, err := runRound(s.server, limiters[i], keys, walks, length, sc.Admitted)
		if err != nil {
			return round{}, fmt.Errorf("%s, %s: %w", s.contestants[i].Name, sc, err)
		}
		return r, nil
	}
	for i := range limiters {
		if _, err := one(i, s.WarmUp); err != nil {
			return err
		}
	}
	turns := rounds.Turns{Contestants: len(limiters), Rounds: s.Rounds, Seed: [2]uint64{uint64(sc.Keys), uint64(sc.Callers)}}
	measured, err := rounds.Take(turns, func(_, i int) (round, error) {
		s.report(sc.String())
		s.done++
		return one(i, s.Round)
	})
	if err != nil {
		return err
	}
	s.figures = append(s.figures, figures(s.contestants, sc, measured)...)
	return nil
}

func (s *suite) report(what string) {
	if s.Progress != nil {
		s.Progress(s.done, s.total, what)
	}
}

// Scenario is one question to all contestants.
type Scenario struct {
	Keys     int
	Admitted bool // everything is, or everything is refused
	Callers  int  // goroutines that ask all the time
}

func (s Scenario) String() string {
	return fmt.Sprintf("%s, %s, %s", count(s.Callers, "caller"), count(s.Keys, "key"), s.outcome())
}

func (s Scenario) outcome() string {
	if s.Admitted {
		return "admitted"
	}
	return "refused"
}

// short is the title of a column: what is special about the scenario.
func (s Scenario) short() string {
	switch {
	case s.Callers == 1:
		return "one caller"
	case s.Admitted:
		return count(s.Keys, "key")
	}
	return count(s.Keys, "key") + ", refused"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return table.Count(int64(n)) + " " + what + "s"
}
