// Package overrun measures by how much concurrent requests exceed a limit if their costs are
// known only afterwards: when the limit is checked before and charged after a request, and
// when an estimate is reserved before and settled after it.
//
// Concurrent means that all have asked before the first is done. Those that are denied ask
// again when the others are done, until nobody is allowed any more. All of this is in one
// period: the clock stands still.
package overrun

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

const (
	limit = 100
	step  = 20 // upper bounds are multiples of it
)

// load are concurrent requests, by what each will have cost.
type load struct {
	name  string
	costs []int64
}

// loads are the requests of BerriAI/litellm#18730, and more of them that cost less.
func loads() []load {
	all := []load{{"5, of 58 to 175 units", []int64{58, 80, 175, 175, 175}}}
	for _, n := range []int{100, 1000} {
		r := rand.New(rand.NewPCG(18730, uint64(n)))
		l := load{name: fmt.Sprintf("%d, of 1 to %d units", n, step)}
		for range n {
			l.costs = append(l.costs, 1+r.Int64N(step))
		}
		all = append(all, l)
	}
	return all
}

// method is a way to limit what is known only afterwards.
type method struct {
	name     string
	estimate func(cost int64) int64 // to reserve; nil to check before and charge after
}

// methods are those that are compared.
var methods = []method{
	{name: "check before, charge after"},
	{"reserve an upper bound, settle", upperBound},
	{"reserve the exact cost, settle", func(cost int64) int64 { return cost }},
	{"reserve half of the cost, settle", func(cost int64) int64 { return (cost + 1) / 2 }},
}

// upperBound is an estimate that no cost exceeds.
func upperBound(cost int64) int64 { return (cost + step - 1) / step * step }

// figure is what came of a load.
type figure struct {
	allowed int   // requests
	used    int64 // units, by these
}

// overrun is how much was used beyond the limit.
func (f *figure) overrun() int64 { return max(0, f.used-limit) }

func now() weir.Micros { return weir.MicrosOf(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)) }

// play lets the requests of a load ask and finish, wave after wave: one after the other, or all at
// the same time.
func play(t testing.TB, store weir.Store, a weir.Algorithm, load load, m method, atOnce bool) figure {
	l := testkit.Must(weir.NewLimiter(store, weir.Limit{Algorithm: a, N: limit, Period: time.Minute}))(t)
	var f figure
	waiting := load.costs
	for {
		end := make([]func() error, len(waiting)) // of those that are allowed
		callers := 1
		if atOnce {
			callers = len(waiting)
		}
		testkit.OK(t, bench.All(callers, len(waiting), func(i int) (err error) {
			end[i], err = m.begin(l, waiting[i])
			return err
		}))
		var denied []int64
		for i, cost := range waiting {
			if end[i] == nil {
				denied = append(denied, cost)
				continue
			}
			f.allowed++
			f.used += cost
		}
		testkit.OK(t, bench.All(callers, len(waiting), func(i int) error {
			if end[i] == nil {
				return nil
			}
			return end[i]()
		}))
		if len(denied) == len(waiting) || len(denied) == 0 {
			return f
		}
		waiting = denied
	}
}

const client = "team"

// begin asks for a request. It returns how to end it, or nil if it is denied.
func (m *method) begin(l *weir.Limiter, cost int64) (end func() error, err error) {
	ctx := context.Background()
	if m.estimate == nil {
		d, err := l.Peek(ctx, client, 1)
		if err != nil || !d.Allowed {
			return nil, err
		}
		return func() error { return testkit.Err(l.Charge(ctx, client, cost)) }, nil
	}
	hold, _, err := l.Reserve(ctx, client, m.estimate(cost), 0)
	if err != nil || hold == nil {
		return nil, err
	}
	return func() error { return testkit.Err(hold.Settle(ctx, cost)) }, nil
}

const heading = `Concurrent requests of one client whose limit is %d units a minute. All of them ask before the first
is done. Denied requests ask again when the others are done, until no more are allowed.
The first five are those of https://github.com/BerriAI/litellm/issues/18730.
used: units that the allowed requests really cost. overrun: the part of it beyond the limit.`

// Run writes the table.
func Run(r *bench.Run) {
	table := bench.NewTable("<requests", "<method", "allowed", "used", "overrun", "used ÷ limit")
	for _, load := range loads() {
		for _, m := range methods {
			// In memory and in order, so that two runs do not differ.
			f := play(r, memory.New(memory.Options{Clock: now}), weir.FixedWindow, load, m, false)
			table.Row("%s|%s|%d|%s|%s|%.1f", load.name, m.name, f.allowed, bench.Count(f.used), bench.Count(f.overrun()), float64(f.used)/limit)
		}
	}
	r.Write("overrun.txt", fmt.Sprintf(heading, limit), table)
}
