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
	"runtime"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	rules  []int         // numbers of rules, ascending
	rounds int           // of each set
	round  time.Duration // what a round should last on average
	trial  int           // matches by which to find out how many that takes
}

var (
	full  = options{rules: []int{10, 1_000, 10_000}, rounds: 15, round: 60 * time.Millisecond, trial: 20_000}
	quick = options{rules: []int{10, 1_000, 10_000}, rounds: 5, round: 20 * time.Millisecond, trial: 20_000}
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
	out := r.File("rules.txt")
	fmt.Fprintf(out, "%v\n%s\n## Time to find the rules, by the number of rules\n\n", bench.Describe(), heading)
	table.Write(out)
	fmt.Fprint(out, "\n## Aims, for the worst shape\n\n")
	bench.WriteAims(out, "shape", aims)
}

func newAims(rules []int) []bench.Aim {
	return []bench.Aim{
		{What: "µs a match", Bound: 1},
		{What: fmt.Sprintf("time with %s rules × with %s", bench.Count(rules[len(rules)-1]), bench.Count(rules[0])), Bound: 1.5},
		{What: "allocations a match", Bound: 0.005}, // the harness has some
	}
}

// worsen lets a shape replace the worst so far.
func worsen(aims []bench.Aim, shape string, figures []round) {
	worst := func(a *bench.Aim, measured float64) {
		if a.Where == "" || measured > a.Measured {
			a.Measured, a.Where = measured, shape
		}
	}
	for _, f := range figures {
		worst(&aims[0], f.ns/1000)
		worst(&aims[2], f.allocs)
	}
	worst(&aims[1], figures[len(figures)-1].ns/figures[0].ns)
}

// measure lets sets of all sizes take turns. It returns the median of each, and how long the last
// took to compile.
func (s shape) measure(r *bench.Run, o options) (figures []round, compile time.Duration) {
	subjects, matches := make([]*subject, len(o.rules)), make([]int, len(o.rules))
	turns := bench.Turns{What: s.name, Rounds: o.rounds}
	for i, n := range o.rules {
		compiled, took, err := s.compile(n)
		testkit.OK(r, err)
		turns.Names = append(turns.Names, bench.Things(n, "rule"))
		subjects[i], compile = newSubject(compiled, s), took
		trial := testkit.Must(subjects[i].round(o.trial))(r)
		matches[i] = max(o.trial, int(float64(o.round.Nanoseconds())/max(1, trial.ns+trial.loop)))
	}
	measured := bench.Take(r, turns, func(_, i int) (round, error) {
		runtime.GC()
		return subjects[i].round(matches[i])
	})
	for _, m := range measured.Rounds {
		figures = append(figures, bench.Median(m, func(r round) float64 { return r.ns }))
	}
	return figures, compile
}

// walkLen is a power of two, long enough for no branch predictor to learn it.
const walkLen = 1 << 16

// subject is one set of rules and who asks about it.
type subject struct {
	table *rule.Table
	ask   func(i int) (*letter, int)
	walk  []uint32 // the order in which requests come, each by the rule that is its own
}

func newSubject(table *rule.Table, shape shape) *subject {
	return &subject{table, shape.ask, bench.Walk(0, len(table.Rules())-common, walkLen)}
}

// round is what so many matches took.
type round struct {
	ns     float64 // each, without the loop itself
	loop   float64 // the loop itself
	allocs float64 // each
}

func (s *subject) round(matches int) (round, error) {
	loop := bench.AtOnce(1, func(int) { s.loop(matches) })
	wrong := 0
	cost := bench.AtOnce(1, func(int) { wrong = s.match(matches) })
	if wrong > 0 {
		return round{}, fmt.Errorf("rules: %d of %d requests did not meet their own rule and the %d that are everybody's", wrong, matches, common)
	}
	per := func(x int64) float64 { return float64(x) / float64(matches) }
	return round{
		ns:     per(cost.Wall.Nanoseconds() - loop.Wall.Nanoseconds()),
		loop:   per(loop.Wall.Nanoseconds()),
		allocs: per(int64(cost.Mallocs)),
	}, nil
}

// match is the measured loop. It returns how many answers were wrong.
func (s *subject) match(matches int) (wrong int) {
	var room [8]rule.Hit
	req := rule.Request{Attributes: map[string]string{}}
	rules := s.table.Rules()
	for i := range matches {
		at := s.walk[i&(walkLen-1)]
		l, number := s.ask(int(at))
		l.arrive(&req, number)
		hits := s.table.Match(room[:0], &req)
		if len(hits) != 1+common || hits[0].Entry != rules[at] {
			wrong++
		}
	}
	return wrong
}

// loop is the same without matching.
func (s *subject) loop(matches int) {
	req := rule.Request{Attributes: map[string]string{}}
	for i := range matches {
		l, number := s.ask(int(s.walk[i&(walkLen-1)]))
		l.arrive(&req, number)
	}
}
