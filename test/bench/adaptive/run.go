package adaptive

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testoverload"
)

// Options say how much is simulated.
type Options struct {
	Kinds []testoverload.Kind
	Loads []float64
	First int  // so many cases; 0 for all
	Whole bool // also a real handler, and what a request costs
}

// Full is the published table, and Quick a first look.
var (
	Full  = Options{Kinds: []testoverload.Kind{testoverload.Even, testoverload.Varied, testoverload.Mixed}, Loads: testoverload.Loads, Whole: true}
	Quick = Options{Kinds: []testoverload.Kind{testoverload.Varied}, Loads: []float64{0.8, 2}}
)

// Row is one thing that happens under one load, with the worst figures of all kinds of services,
// by contestant.
type Row struct {
	What  string
	Load  float64
	Worst []testoverload.Figure
}

// Figures are all results.
type Figures struct {
	Rows    []Row
	Handler []HandlerFigure
	Cost    time.Duration // of a request, in the limiter
}

// Run simulates. It takes a test, because a bubble does.
func Run(t *testing.T, o Options) Figures {
	var f Figures
	for k, kind := range o.Kinds {
		cases := testoverload.Cases(kind, servers, o.Loads...)
		if o.First > 0 {
			cases = cases[:o.First]
		}
		for i, c := range cases {
			if k == 0 {
				f.Rows = append(f.Rows, Row{What: c.What, Load: c.Load, Worst: make([]testoverload.Figure, len(contestants))})
			}
			for n, who := range contestants {
				var figure testoverload.Figure
				synctest.Test(t, func(*testing.T) { figure = play(c, who) })
				worst := &f.Rows[i].Worst[n]
				if k == 0 {
					*worst = figure
				}
				worst.Goodput = min(worst.Goodput, figure.Goodput)
				worst.P99 = max(worst.P99, figure.P99)
				worst.Denied = max(worst.Denied, figure.Denied)
			}
		}
	}
	if o.Whole {
		f.Handler = measureHandler()
		f.Cost = testcall.Must(cost())(t)
	}
	return f
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
