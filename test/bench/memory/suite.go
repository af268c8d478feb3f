// Package memory measures what one check costs in memory, for weir and its
// peers side by side.
//
// All contestants get the same keys, the same limit, the same goroutines and the same
// walk over the keys. Their rounds take turns, in another order each time, so that
// whatever else the machine does hits all of them alike; a figure is the median of the
// rounds. In every round the answers are counted: if a contestant denies requests that
// should be allowed, or the other way round, the run fails.
package memory

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/peers"
)

// Options say how much to measure.
type Options struct {
	Keys   []int         // numbers of keys, ascending; the last one is also for bytes a key
	Procs  []int         // values of GOMAXPROCS
	Rounds int           // of each contestant in each scenario
	Round  time.Duration // what a round should last on average
	Trial  int           // checks by which to find out how many that takes
	Limit  time.Duration // after which scenarios make do with three rounds
}

// Full takes about five minutes, six at most on a machine that is idle otherwise.
var Full = Options{
	Keys: []int{1, 1_000, 1_000_000}, Procs: []int{1, 2},
	Rounds: 5, Round: 220 * time.Millisecond, Trial: 20_000, Limit: 270 * time.Second,
}

// Quick takes half a minute and is good for a first look only.
var Quick = Options{
	Keys: []int{1, 1_000, 100_000}, Procs: []int{1, 2},
	Rounds: 3, Round: 40 * time.Millisecond, Trial: 10_000, Limit: 30 * time.Second,
}

// Figure is what was measured of one contestant in one scenario.
type Figure struct {
	Contestant peers.Contestant `json:"contestant"`
	Scenario
	Checks int       `json:"checks_per_goroutine"` // in each round
	Rounds []float64 `json:"rounds_ns"`            // a check
	Median float64   `json:"median_ns"`
	Ratio  float64   `json:"ratio_to_fastest_peer"` // of Median
	Allocs float64   `json:"allocs_per_check"`      // in the median round
}

// Results are all that a run has found out.
type Results struct {
	Figures []Figure
	Sizes   []Size
}

type suite struct {
	Options
	testing.TB
	progress    command.Progress
	contestants []peers.Contestant
	begin       time.Time
	figures     []Figure
	done, total int
}

// Run measures all contestants in all scenarios.
func Run(t testing.TB, o Options, progress command.Progress) Results {
	kept := sizes(o, progress)
	s := &suite{Options: o, TB: t, progress: progress, contestants: append(peers.InMemory(), idle()), begin: time.Now()}
	s.total = len(o.Keys) * 2 * len(o.Procs)
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, n := range o.Keys {
		filled, asked := clients.Keys(n), clients.Keys(n)
		for _, outcome := range []peers.Outcome{peers.Allowed, peers.Denied} {
			s.run(Scenario{Keys: n, Allowed: outcome}, filled, asked)
		}
	}
	return Results{s.figures, kept}
}

// run builds every contestant once and measures them with each GOMAXPROCS.
func (s *suite) run(sc Scenario, filled, asked []string) {
	s.report(sc.Allowed.String() + ": filling")
	limiters := make([]peers.Limiter, len(s.contestants))
	for i, c := range s.contestants {
		limiters[i] = sc.build(c, filled)
		defer limiters[i].Close()
	}
	for _, procs := range s.Procs {
		sc.Procs = procs
		s.report(sc.String())
		runtime.GOMAXPROCS(procs)
		s.measure(sc, limiters, asked)
		s.done++
	}
}

func (s *suite) measure(sc Scenario, limiters []peers.Limiter, keys []string) {
	walks := clients.Walks(sc.Procs, sc.Keys, walkLen)
	checks := s.calibrate(sc, limiters, keys, walks)
	turns := rounds.Turns{
		Contestants: len(limiters), Rounds: s.Rounds, Seed: [2]uint64{uint64(sc.Keys), uint64(sc.Procs)},
		Deadline: s.begin.Add(s.Limit * time.Duration(s.done+1) / time.Duration(s.total)),
	}
	measured := testcall.Must(rounds.Take(turns, func(turn, i int) (round, error) {
		// With large stores a collection takes longer than a round, and nothing
		// allocates enough to start another within a turn of all.
		if turn == 0 || sc.Keys < 100_000 {
			runtime.GC()
		}
		return s.round(sc, i, limiters[i], keys, walks, checks)
	}))(s)
	s.figures = append(s.figures, figures(s.contestants, sc, checks, measured)...)
}

func (s *suite) round(sc Scenario, i int, l peers.Limiter, keys []string, walks [][]uint32, checks int) (round, error) {
	one, err := runRound(l, keys, walks, checks, sc.Allowed)
	if err != nil {
		return round{}, fmt.Errorf("%s, %s: %w", s.contestants[i].Name, sc, err)
	}
	return one, nil
}

// calibrate returns how many checks make a round of the wanted length, averaged
// over the contestants: all get the same number.
func (s *suite) calibrate(sc Scenario, limiters []peers.Limiter, keys []string, walks [][]uint32) int {
	var sum float64
	for i, l := range limiters {
		sum += testcall.Must(s.round(sc, i, l, keys, walks, s.Trial))(s).ns
	}
	mean := sum / float64(len(limiters))
	return max(s.Trial, int(float64(s.Round.Nanoseconds())/mean))
}

// figures sums up the rounds of one scenario.
func figures(contestants []peers.Contestant, sc Scenario, checks int, measured [][]round) []Figure {
	out := make([]Figure, len(contestants))
	fastest := 0.0
	for i, c := range contestants {
		f := Figure{Contestant: c, Scenario: sc, Checks: checks}
		for _, r := range measured[i] {
			f.Rounds = append(f.Rounds, r.ns)
		}
		middle := rounds.Median(measured[i], func(r round) float64 { return r.ns })
		f.Median, f.Allocs = middle.ns, middle.allocs
		if isPeer(c) && (fastest == 0 || f.Median < fastest) {
			fastest = f.Median
		}
		out[i] = f
	}
	for i := range out {
		out[i].Ratio = out[i].Median / fastest
	}
	return out
}

func isPeer(c peers.Contestant) bool { return !c.Weir && c.Name != idle().Name }

func (s *suite) report(what string) { s.progress(s.done, s.total, what) }
