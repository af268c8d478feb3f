// Package curves measures how the cost of a check grows: with the number of keys, rules, callers
// and limits, and with the cost of a request.
//
// All points of a curve take turns, in another order each time; a point is the median of its
// rounds. Every answer is looked at, and a denial fails the run.
package curves

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/rounds"
)

// Options say what to measure.
type Options struct {
	Keys, RedisKeys, Rules, Callers, Limits, Costs []int // ascending

	Round  time.Duration
	Rounds int
}

// Full is what results/ holds, Quick a first look.
var (
	Full = Options{
		Keys: powers(10, 100, 10_000_000), RedisKeys: powers(10, 100, 10_000_000), Rules: powers(10, 1, 100_000),
		Callers: powers(2, 1, 1024), Limits: powers(2, 1, 16), Costs: powers(10, 1, 10_000),
		Round: 100 * time.Millisecond, Rounds: 11,
	}
	Quick = Options{
		Keys: powers(10, 100, 1_000_000), RedisKeys: powers(10, 100, 100_000), Rules: powers(10, 1, 10_000),
		Callers: powers(4, 1, 1024), Limits: powers(2, 1, 16), Costs: powers(10, 1, 10_000),
		Round: 20 * time.Millisecond, Rounds: 3,
	}
)

// powers are the numbers from one to another, each so many times the one before.
func powers(factor, from, to int) (out []int) {
	for n := from; n <= to; n *= factor {
		out = append(out, n)
	}
	return out
}

// Figure is what was measured for one curve.
type Figure struct {
	Chart  *Chart
	Line   string
	X      []int
	Micros []float64 // wall time divided by checks
}

// subject is what is measured for one point.
type subject struct {
	callers int

	// ask makes what one caller does again and again, for the n-th time from 0.
	ask func(caller int) func(n int) error
}

// line is one curve: its name, and what is measured at each x.
type line struct {
	name string
	at   []int
	open func(t testing.TB, x int) subject
}

// Run measures all curves, those of one chart after the other.
func Run(t testing.TB, o Options, progress command.Progress) (out []Figure) {
	addr := testredis.Start(t).Addr
	charts := Charts()
	for i := range charts {
		for _, l := range charts[i].lines(addr, o) {
			progress(i, len(charts), charts[i].Title+": "+l.name)
			out = append(out, Figure{Chart: &charts[i], Line: l.name, X: l.at, Micros: l.measure(t, o)})
		}
	}
	return out
}

// measure opens all points of a curve, and lets them take turns.
func (l *line) measure(t testing.TB, o Options) []float64 {
	scope := testcall.Must(testcall.NewScope("curve"))(t)
	defer scope.Close()
	subjects := make([]subject, len(l.at))
	testcall.OK(t, scope.Try(func() {
		for i, x := range l.at {
			subjects[i] = l.open(scope, x)
		}
	}))
	runtime.GC()
	turns := rounds.Turns{Contestants: len(subjects), Rounds: o.Rounds, Seed: [2]uint64{11, 13}}
	measured := testcall.Must(rounds.Take(turns, func(_, i int) (float64, error) {
		micros, err := subjects[i].round(o.Round)
		if err != nil {
			err = fmt.Errorf("curves: %s at %d: %w", l.name, l.at[i], err)
		}
		return micros, err
	}))(t)
	out := make([]float64, len(measured))
	for i, m := range measured {
		out[i] = rounds.Median(m, func(f float64) float64 { return f })
	}
	return out
}

// round lets all callers ask for as long as it lasts.
func (s *subject) round(lasts time.Duration) (micros float64, err error) {
	errs, done := make([]error, s.callers), make([]int, s.callers)
	asks := make([]func(int) error, s.callers)
	for g := range asks {
		asks[g] = s.ask(g)
	}
	var over atomic.Bool
	timer := time.AfterFunc(lasts, func() { over.Store(true) })
	defer timer.Stop()
	took := rounds.AtOnce(s.callers, func(g int) {
		for n := 0; n == 0 || errs[g] == nil && !over.Load(); n++ {
			errs[g] = asks[g](n)
			done[g]++
		}
	})
	all := 0
	for g, n := range done {
		if errs[g] != nil {
			return 0, errs[g]
		}
		all += n
	}
	return float64(took.Wall.Nanoseconds()) / 1e3 / float64(all), nil
}
