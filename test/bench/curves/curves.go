// Package curves measures how the cost of a check grows: with the number of keys, rules, callers
// and limits, and with the cost of a request.
//
// All points of a curve take turns, in another order each time; a point is the median of its
// rounds. Every answer is looked at, and a denial fails the run.
package curves

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/internal/traffic/chart"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	keys, redisKeys, rules, callers, limits, costs []int // ascending

	round  time.Duration
	rounds int
}

var (
	full = options{
		keys: powers(10, 100, 10_000_000), redisKeys: powers(10, 100, 10_000_000), rules: powers(10, 1, 100_000),
		callers: powers(2, 1, 1024), limits: powers(2, 1, 16), costs: powers(10, 1, 10_000),
		round: 100 * time.Millisecond, rounds: 11,
	}
	quick = options{
		keys: powers(10, 100, 1_000_000), redisKeys: powers(10, 100, 100_000), rules: powers(10, 1, 10_000),
		callers: powers(4, 1, 1024), limits: powers(2, 1, 16), costs: powers(10, 1, 10_000),
		round: 20 * time.Millisecond, rounds: 3,
	}
)

// powers are the numbers from one to another, each so many times the one before.
func powers(factor, from, to int) (out []int) {
	for n := from; n <= to; n *= factor {
		out = append(out, n)
	}
	return out
}

// line is one curve: its name, and what is measured at each x.
type line struct {
	name string
	at   []int
	open func(t testing.TB, x int) bench.Contestant
}

// Files are the table and the drawings.
func Files() []string {
	out := []string{"curves.txt"}
	for _, g := range growths {
		out = append(out, g.file)
	}
	return out
}

// Run writes a table of all curves, and draws them.
func Run(r *bench.Run) { run(r, bench.Pick(r, full, quick)) }

func run(r *bench.Run, o options) {
	addr := testredis.Start(r).Addr
	r.Write("curves.txt", bench.Describe(), fmt.Sprintf("µs: wall time divided by checks; median of %d rounds that take turns.", o.rounds))
	inks := []chart.Ink{chart.Good, chart.Accent, chart.Bad, chart.Plain}
	for _, g := range growths {
		lines, drawn := g.lines(addr, o), &chart.Curves{Title: g.title, X: g.x, Y: "µs a check"}
		var longest []int
		for _, l := range lines {
			if len(l.at) > len(longest) {
				longest = l.at
			}
		}
		header := []string{"µs"}
		for _, x := range longest {
			header = append(header, bench.Count(x))
		}
		table := bench.NewTable(header...)
		for i, l := range lines {
			micros, row := l.measure(r, g.title, o), []string{l.name}
			curve := chart.Curve{Name: l.name, Ink: inks[i%len(inks)]}
			for k := range longest {
				if k >= len(micros) {
					row = append(row, "–")
					continue
				}
				row = append(row, fmt.Sprintf("%.2f", micros[k]))
				curve.Points = append(curve.Points, chart.Point{X: float64(l.at[k]), Y: micros[k]})
			}
			table.Cells(row)
			drawn.Lines = append(drawn.Lines, curve)
		}
		r.Write("curves.txt", "## "+g.title, table)
		testkit.OK(r, chart.WriteSVG(r.File(g.file), drawn))
	}
}

// measure opens all points of a curve, and lets them take turns.
func (l *line) measure(r *bench.Run, title string, o options) (out []float64) {
	scope := testkit.Must(testkit.NewScope("curve"))(r)
	defer scope.Close()
	contest := bench.Contest{What: title + ": " + l.name, Rounds: o.rounds, Load: bench.Load{Length: o.round}}
	testkit.OK(r, scope.Try(func() {
		for _, x := range l.at {
			point := l.open(scope, x)
			point.Name = fmt.Sprint(x)
			contest.Contestants = append(contest.Contestants, point)
		}
	}))
	res := contest.Run(r)
	for i := range l.at {
		out = append(out, res.Median(i, bench.Round.Micros))
	}
	return out
}
