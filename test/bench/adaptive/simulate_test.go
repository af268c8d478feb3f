package adaptive

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/testkit/testoverload"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

type options struct {
	kinds []testoverload.Kind
	loads []float64
	first int  // so many cases; 0 for all
	whole bool // also a real handler, and what a request costs
}

var (
	full  = options{kinds: []testoverload.Kind{testoverload.Even, testoverload.Varied, testoverload.Mixed}, loads: testoverload.Loads, whole: true}
	quick = options{kinds: []testoverload.Kind{testoverload.Varied}, loads: []float64{0.8, 2}}
)

// row is one thing that happens under one load, with the worst figures of all kinds of services,
// by contestant.
type row struct {
	what  string
	load  float64
	worst []testoverload.Figure
}

// simulate takes a test, because a bubble does.
func simulate(t *testing.T, o options) (rows []row) {
	for k, kind := range o.kinds {
		cases := testoverload.Cases(kind, servers, o.loads...)
		if o.first > 0 {
			cases = cases[:o.first]
		}
		for i, c := range cases {
			if k == 0 {
				rows = append(rows, row{what: c.What, load: c.Load, worst: make([]testoverload.Figure, len(contestants))})
			}
			for n, who := range contestants {
				var figure testoverload.Figure
				synctest.Test(t, func(*testing.T) { figure = play(c, who) })
				worst := &rows[i].worst[n]
				if k == 0 {
					*worst = figure
				}
				worst.Goodput = min(worst.Goodput, figure.Goodput)
				worst.P99 = max(worst.P99, figure.P99)
				worst.Denied = max(worst.Denied, figure.Denied)
			}
		}
	}
	return rows
}

func play(c testoverload.Case, who contestant) testoverload.Figure {
	const seed = 3
	if who.new == nil {
		return c.Play(nil, seed)
	}
	if !who.reads {
		return c.Play(who.new(), seed)
	}
	start := time.Now()
	c.Advance = func(t time.Duration) {
		if wait := t - time.Since(start); wait > 0 {
			time.Sleep(wait) // in the bubble: no time at all
		}
	}
	return c.Play(who.new(), seed)
}

const heading = `A simulated service with %d servers and one queue; a request takes a server 10 ms on average. Its load
is a multiple of its capacity. 15 s after the start something happens; 10 s later begins the
measurement, of 20 s. The clients wait for a second.
goodput: responses within a second, by what the service or its load makes possible.
p99: by that of the same service with a tenth of the load.
Each figure is the worst of these kinds of services: %v.
even: times differ by a tenth. varied: exponentially distributed. mixed: one of twenty is 20 × as long.`

// write writes everything.
func write(r *bench.Run, o options, rows []row) {
	writeSummary(r, rows)
	header := []string{"<what happens", "load ×"}
	for _, who := range contestants {
		header = append(header, who.name)
	}
	table := bench.NewTable(header...)
	for _, r := range rows {
		cells := []string{r.what, fmt.Sprint(r.load)}
		for _, x := range r.worst {
			cells = append(cells, fmt.Sprintf("%.2f %s", x.Goodput, times(x.P99)))
		}
		table.Cells(cells)
	}
	r.Write(Files[0], fmt.Sprintf(heading, servers, o.kinds), r.File(Files[1]), "goodput, and p99 ×:", table)
	if o.whole {
		writeHandler(r)
	}
}

func times(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

// writeSummary writes the worst figures of each contestant.
func writeSummary(r *bench.Run, rows []row) {
	table := bench.NewTable("limiter", "least goodput in overload", "highest p99 × in overload", "most denied at 0.8 × or less", "aims missed")
	aims := 0 // at exactly its capacity, a service is neither overloaded nor not
	for _, r := range rows {
		if r.load != 1 {
			aims++
		}
	}
	for i, who := range contestants {
		goodput, p99, denied, missed := worst(rows, i)
		table.Row("%s|%.2f|%s|%.3f %%|%d of %d", who.name, goodput, times(p99), 100*denied, missed, aims)
	}
	table.Row("aim|at least 0.90|at most 3.0|0 %%|0")
	r.Write(Files[1], table)
}

// worst returns the worst figures of a contestant, and in how many rows it missed an aim.
func worst(rows []row, contestant int) (goodput, p99, denied float64, missed int) {
	goodput = 1
	for _, r := range rows {
		x := r.worst[contestant]
		switch {
		case r.load > 1:
			goodput, p99 = min(goodput, x.Goodput), max(p99, x.P99)
		case r.load < 1:
			denied = max(denied, x.Denied)
		}
		if !meets(r.load, x) {
			missed++
		}
	}
	return goodput, p99, denied, missed
}

func meets(load float64, x testoverload.Figure) bool {
	return load == 1 || load > 1 && x.Goodput >= 0.9 && x.P99 <= 3 || load < 1 && x.Denied == 0
}

// ours is the place of weir among the contestants.
var ours = slices.IndexFunc(contestants, func(c contestant) bool { return c.name == "weir" })
