// Package rules measures what it costs to find the rules that apply to a request,
// with few rules and with many.
//
// Sets have the shapes that people give them, and every request meets three rules:
// one that is its own and two that are everybody's. Requests come in random order
// and ask for all rules alike, which is worse than any real traffic: with ten
// thousand rules, what a match takes longer is waiting for memory. Sets of one shape
// take turns, in another order each time; a figure is the median of the rounds,
// without what the loop takes by itself. Each answer is looked at, and one that is
// wrong fails the run.
package rules

import (
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// Options say how much to measure.
type Options struct {
	Rules  []int         // numbers of rules, ascending
	Rounds int           // of each set
	Round  time.Duration // what a round should last on average
	Trial  int           // matches by which to find out how many that takes
}

// Full takes about half a minute; Quick takes some seconds and is good for a first look only.
var (
	Full  = Options{Rules: []int{10, 1_000, 10_000}, Rounds: 15, Round: 60 * time.Millisecond, Trial: 20_000}
	Quick = Options{Rules: []int{10, 1_000, 10_000}, Rounds: 5, Round: 20 * time.Millisecond, Trial: 20_000}
)

// Figure is what was measured of one set.
type Figure struct {
	Shape   Shape
	Rules   int
	Median  float64 // ns a match
	Loop    float64 // ns that the loop takes besides
	Allocs  float64 // a match
	Compile time.Duration
}

// Run measures all shapes with all numbers of rules. The numbers of one shape take
// turns, so that whatever else the machine does hits them alike.
func Run(t testing.TB, o Options, progress command.Progress) (figures []Figure) {
	shapes := Shapes()
	for i, shape := range shapes {
		progress(i, len(shapes), shape.Name)
		figures = append(figures, measure(t, o, shape)...)
	}
	return figures
}

func measure(t testing.TB, o Options, shape Shape) []Figure {
	figures := make([]Figure, len(o.Rules))
	subjects := make([]*subject, len(o.Rules))
	matches := make([]int, len(o.Rules))
	for i, n := range o.Rules {
		compiled, took, err := shape.compile(n)
		testcall.OK(t, err)
		subjects[i] = newSubject(compiled, shape)
		figures[i] = Figure{Shape: shape, Rules: n, Compile: took}
		trial, err := subjects[i].round(o.Trial)
		if err != nil {
			t.Fatalf("%s, %s rules: %v", shape.Name, table.Count(int64(n)), err)
		}
		matches[i] = max(o.Trial, int(float64(o.Round.Nanoseconds())/max(1, trial.ns+trial.loop)))
	}
	measured, err := rounds.Take(rounds.Turns{Contestants: len(subjects), Rounds: o.Rounds}, func(_, i int) (round, error) {
		runtime.GC()
		return subjects[i].round(matches[i])
	})
	if err != nil {
		t.Fatalf("%s: %v", shape.Name, err)
	}
	for i := range figures {
		middle := rounds.Median(measured[i], func(r round) float64 { return r.ns })
		figures[i].Median, figures[i].Loop, figures[i].Allocs = middle.ns, middle.loop, middle.allocs
	}
	return figures
}
