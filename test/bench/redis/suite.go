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
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/command"
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
}

// few are the numbers of callers between one and many. There, the question is only whether
// callers wait for each other's call.
var few = []int{2, 4, 8, 32}

// Full takes about four minutes, on any machine: it is time that is given out.
var Full = Options{
	Keys: 10_000, Callers: peers.Callers,
	Rounds: 5, Round: 500 * time.Millisecond, WarmUp: 100 * time.Millisecond,
}

// Quick takes half a minute and is good for a first look only.
var Quick = Options{
	Keys: 1_000, Callers: peers.Callers,
	Rounds: 3, Round: 120 * time.Millisecond, WarmUp: 50 * time.Millisecond,
}

// Figure is what was measured of one contestant in one scenario. Times are in
// microseconds.
type Figure struct {
	Contestant peers.Contestant `json:"contestant"`
	Scenario
	Checks      []int     `json:"rounds_checks"`
	Rounds      []float64 `json:"rounds_us"` // wall time by checks
	Median      float64   `json:"median_us"`
	ToIncr      float64   `json:"ratio_to_incr"`       // of Median to that of the yardstick
	ToRedisRate float64   `json:"ratio_to_redis_rate"` // on a pool of connections, as people run it
	Server      float64   `json:"server_us_per_check"` // of the server's processor
	Allocs      float64   `json:"allocs_per_check"`    // in this process
	P50         float64   `json:"p50_us,omitzero"`     // what one check took; 0 unless there is one caller
	P99         float64   `json:"p99_us,omitzero"`
}

// Results are all that a run has found out.
type Results struct {
	Redis   string // the server's version
	Figures []Figure
	Few     []Figure // of few callers, and not of all contestants
	Sizes   []Size
}

type suite struct {
	Options
	testing.TB
	progress    command.Progress
	server      server
	contestants []peers.Contestant
	figures     []Figure
	few         []Figure
	done, total int
}

// stage is a number of scenarios for which the contestants are set up once.
type stage struct {
	keys    int
	allowed peers.Outcome
	callers []int
	few     []int // of the yardstick, redis_rate and the headline
}

func (o Options) stages() []stage {
	return []stage{
		{o.Keys, peers.Allowed, []int{o.Callers, 1}, few},
		{1, peers.Allowed, []int{o.Callers}, nil},
		{1, peers.Denied, []int{o.Callers}, nil},
	}
}

// Run measures all contestants on a Redis, which it empties time and again.
func Run(t testing.TB, on *testredis.Server, o Options, progress command.Progress) Results {
	s := &suite{Options: o, TB: t, progress: progress, server: server{on}, contestants: peers.OnRedis(on.Addr)}
	s.total = len(s.contestants)
	for _, st := range o.stages() {
		s.total += o.Rounds * (len(s.contestants)*len(st.callers) + len(measuredAmongFew)*len(st.few))
	}
	sizes := s.sizes()
	for _, st := range o.stages() {
		s.run(st)
	}
	s.server.empty()
	return Results{testcall.Must(on.Info("server", "redis_version"))(t), s.figures, s.few, sizes}
}

var measuredAmongFew = []string{peers.RawIncr, peers.RedisRate, peers.WeirHeadline}

// run sets everybody up on an empty server, and measures each scenario.
func (s *suite) run(st stage) {
	s.report("filling " + table.Things(st.keys, "key"))
	s.server.empty()
	keys := clients.Keys(st.keys)
	limiters := make([]peers.Limiter, len(s.contestants))
	for i, c := range s.contestants {
		limiters[i] = c.New(c.Limit(st.keys, st.allowed), st.keys)
		defer limiters[i].Close()
		s.fill(limiters[i], keys, st.allowed)
	}
	for _, callers := range st.callers {
		s.figures = append(s.figures, s.measure(Scenario{st.keys, st.allowed, callers}, s.contestants, limiters, keys)...)
	}
	var contestants []peers.Contestant
	var some []peers.Limiter
	for i, c := range s.contestants {
		if slices.Contains(measuredAmongFew, c.Name) {
			contestants, some = append(contestants, c), append(some, limiters[i])
		}
	}
	for _, callers := range st.few {
		s.few = append(s.few, s.measure(Scenario{st.keys, st.allowed, callers}, contestants, some, keys)...)
	}
}

// visits is how often a client was there before it is measured: what is asked about
// is somebody who comes again and again.
const visits = 20

// fill makes all keys those of busy clients, or exhausts them. All callers share the
// work, which opens their connections too.
func (s *suite) fill(l peers.Limiter, keys []string, allowed peers.Outcome) {
	rounds.AtOnce(s.Callers, func(g int) {
		for i := g; i < len(keys); i += s.Callers {
			if !allowed {
				l.Drain(keys[i])
				continue
			}
			for range visits {
				l.Take(keys[i])
			}
		}
	})
}

func (s *suite) measure(sc Scenario, contestants []peers.Contestant, limiters []peers.Limiter, keys []string) []Figure {
	walks := clients.Walks(sc.Callers, sc.Keys, walkLen)
	s.report(sc.String())
	one := func(i int, length time.Duration) (round, error) {
		runtime.GC()
		r, err := runRound(s.server, limiters[i], keys, walks, length, sc.Allowed)
		if err != nil {
			return round{}, fmt.Errorf("%s, %s: %w", contestants[i].Name, sc, err)
		}
		return r, nil
	}
	for i := range limiters {
		testcall.Must(one(i, s.WarmUp))(s)
	}
	turns := rounds.Turns{Contestants: len(limiters), Rounds: s.Rounds, Seed: [2]uint64{uint64(sc.Keys), uint64(sc.Callers)}}
	measured := testcall.Must(rounds.Take(turns, func(_, i int) (round, error) {
		s.report(sc.String())
		s.done++
		return one(i, s.Round)
	}))(s)
	return figures(contestants, sc, measured)
}

func (s *suite) report(what string) { s.progress(s.done, s.total, what) }

// Scenario is one question to all contestants.
type Scenario struct {
	Keys    int           `json:"keys"`
	Allowed peers.Outcome `json:"outcome"` // everything is, or everything is denied
	Callers int           `json:"callers"` // goroutines that ask all the time
}

func (s Scenario) String() string {
	return fmt.Sprintf("%s, %s, %s", table.Things(s.Callers, "caller"), table.Things(s.Keys, "key"), s.Allowed)
}

// short is the title of a column: what is special about the scenario.
func (s Scenario) short() string {
	switch {
	case s.Callers == 1:
		return "one caller"
	case s.Allowed == peers.Allowed:
		return table.Things(s.Keys, "key")
	}
	return table.Things(s.Keys, "key") + ", denied"
}
