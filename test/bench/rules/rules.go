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
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	rules  []int         // numbers of rules, ascending
	rounds int           // of each set
	round  time.Duration // what a round should last on average
}

var (
	full  = options{rules: []int{10, 1_000, 10_000}, rounds: 15, round: 60 * time.Millisecond}
	quick = options{rules: []int{10, 1_000, 10_000}, rounds: 5, round: 20 * time.Millisecond}
)

const heading = `µs: time to find the three rules that match a request; median of the rounds, without
the loop of the benchmark.
×: time with the most rules divided by the time with the fewest.
`

// Run measures all shapes with all numbers of rules, and writes a line for each shape, and whether
// the aims are met.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) {
	header := []string{"shape"}
	for _, n := range o.rules {
		header = append(header, "µs, rules: "+bench.Count(n))
	}
	table := bench.NewTable(append(header, "×", "allocs", "loop µs", "ms to compile", "<a rule of it")...)
	aims := newAims(o.rules)
	for _, shape := range allShapes() {
		figures, took := shape.measure(r, o)
		cells, allocs := []string{shape.name}, 0.0
		for _, f := range figures {
			cells, allocs = append(cells, fmt.Sprintf("%.2f", f.ns/1000)), max(allocs, f.allocs)
		}
		last := figures[len(figures)-1]
		table.Cells(append(cells, fmt.Sprintf("%.2f", last.ns/figures[0].ns), fmt.Sprintf("%.2f", allocs),
			fmt.Sprintf("%.2f", last.loop/1000), fmt.Sprint(took.Milliseconds()), shape.what))
		worsen(aims, shape.name, figures)
	}
	r.Write("rules.txt", fmt.Sprintf("%v\n%s", bench.Describe(), heading), "## Time to find the rules, by the number of rules", table,
		"## Aims, for the worst shape", bench.Aims("shape", aims))
}

func newAims(rules []int) []bench.Aim {
	return []bench.Aim{
		{What: "µs a match", Bound: 1},
		{What: fmt.Sprintf("time with %s rules × with %s", bench.Count(rules[len(rules)-1]), bench.Count(rules[0])), Bound: 1.5},
		{What: "allocations a match", Bound: 0.005}, // the harness has some
	}
}

// worsen lets a shape replace the worst so far.
func worsen(aims []bench.Aim, shape string, figures []figure) {
	for _, f := range figures {
		aims[0].Worst(f.ns/1000, shape)
		aims[2].Worst(f.allocs, shape)
	}
	aims[1].Worst(figures[len(figures)-1].ns/figures[0].ns, shape)
}

// figure is what a match takes.
type figure struct {
	ns     float64 // without the loop itself
	loop   float64 // the loop itself
	allocs float64
}

// measure lets sets of all sizes take turns, and the loop without matching. It returns the figures
// of each, and how long the last took to compile.
func (s shape) measure(r *bench.Run, o options) (figures []figure, compile time.Duration) {
	contest := bench.Contest{What: s.name, Rounds: o.rounds, Load: bench.Load{Callers: 1, Length: o.round, Counted: true}}
	for _, n := range o.rules {
		table, took, err := s.compile(n)
		testkit.OK(r, err)
		compile = took
		for _, match := range []bool{false, true} {
			contest.Contestants = append(contest.Contestants, bench.Contestant{Name: bench.Things(n, "rule"), Ask: s.asks(table, match)})
		}
	}
	res := contest.Run(r)
	for i := range o.rules {
		loop := res.Median(2*i, bench.Round.CallerNanos)
		figures = append(figures, figure{res.Median(2*i+1, bench.Round.CallerNanos) - loop, loop, res.Median(2*i+1, bench.Round.Allocs)})
	}
	return figures, compile
}

// asks makes a caller whose requests come in random order, each by the rule that is its own.
func (s shape) asks(table *rule.Table, match bool) func(int) func(int) error {
	rules := table.Rules()
	order := bench.NewOrder(0, len(rules)-common, bench.Long)
	return func(int) func(int) error {
		var room [8]rule.Hit
		req := rule.Request{Attributes: map[string]string{}}
		return func(n int) error {
			at := order.At(n)
			l, number := s.ask(at)
			l.arrive(&req, number)
			if !match {
				return nil
			}
			hits := table.Match(room[:0], &req)
			if len(hits) != 1+common || hits[0].Entry != rules[at] {
				return fmt.Errorf("request %d did not meet its own rule and the %d that are everybody's", n, common)
			}
			return nil
		}
	}
}
