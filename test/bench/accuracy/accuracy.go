// Package accuracy measures how often an algorithm decides a request wrongly, and how
// far a client can exceed its limit.
//
// A decision is wrong if it differs from the exact one, given what the same algorithm
// has allowed to the same source in the last period: it should be allowed if those
// units and its own are no more than N. So an early mistake does not make every later
// answer a mistake, as it would if two limiters each went their own way.
//
// The sources of the generated traffic do not know of each other, so each is
// driven from its first request to its last before the next one begins. For
// arrivals at random this is the same as taking them in the order of time, and
// one state in one cache line is enough.
package accuracy

import (
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// kinds are all kinds of traffic. The limit of the first is such that only the
// heaviest sources meet it.
func kinds(quick bool) []traffic {
	if quick {
		return []traffic{zipf(2_000, 200_000, 60), bursts(20, 40, 60), sawtooth(20, 20, 60), attack(64, 60)}
	}
	return []traffic{zipf(270_000, 40e6, 1000), bursts(500, 100, 100), sawtooth(1000, 20, 100), attack(1000, 100)}
}

const file = "accuracy.txt"

const heading = `# How often is an answer false?

The exact answer comes from a log of what the same algorithm has allowed to the
same source in the last period. An answer is false if it differs from the exact
one. Shares are of all requests. For a source at its limit, an error of one unit
makes an answer false. The column "off by > 1 % of N" counts only false answers
with an error of more than a hundredth of N.`

// published is the figure that others have measured, to read ours by.
const published = `Published: 0.003 % false answers of the sliding window counter on real traffic
(Cloudflare, 2017: 400 million requests of 270 000 sources). There, denied
requests count, too.`

// Run measures every algorithm with every kind of traffic, and writes a table for
// each. The output depends only on the flag.
func Run(r *bench.Run) { run(r, kinds(r.Quick)) }

func run(r *bench.Run, kinds []traffic) {
	r.Write(file, heading)
	for i, t := range kinds {
		t.report(r, t.name, t.limits())
		if i == 0 {
			t.report(r, t.name+", denied requests counted too", t.countingLimits())
			r.Write(file, published)
		}
	}
}

// report measures limits with one kind of traffic, and writes a table.
func (t traffic) report(r *bench.Run, title string, limits []weir.Limit) {
	results := t.run(r, title, limits)
	table := bench.NewTable(
		"algorithm", "requests", "allowed", "falsely allowed", "falsely denied",
		"off by > 1 % of N", "most in a period", "bound",
	)
	over := "" // who is over the limit at all, by the exact log
	for _, res := range results {
		v := res.verdict
		table.Row("%s|%s|%s|%s|%s|%s|%d = %.2f N|%d", res.limit.Algorithm, bench.Count(v.requests), v.share(v.allowed, 2),
			v.share(v.falselyAllowed, 4), v.share(v.falselyDenied, 4), v.share(v.gross, 4), v.most, float64(v.most)/float64(res.limit.N), res.bound)
		if res.limit.Algorithm == weir.SlidingLog {
			over = fmt.Sprintf(" %s of %s sources are over it at some time; they send %s of the requests.",
				bench.Count(v.over), bench.Count(v.sources), v.share(v.overRequests, 1))
		}
	}
	r.Write(file, "## "+title, fmt.Sprintf("%s.\nLimit %d in %v.%s", t.about, t.n, period, over), table)
}

// limits are the limits on trial in a kind of traffic: every algorithm.
func (t traffic) limits() (out []weir.Limit) {
	for _, a := range weir.Algorithms() {
		out = append(out, weir.Limit{Algorithm: a, N: t.n, Period: period})
	}
	return out
}

// countingLimits are those that can count denied requests too, which is how
// the published figure was come by.
func (t traffic) countingLimits() (out []weir.Limit) {
	for _, l := range t.limits() {
		l.CountDenied = true
		if l.Validate() == nil {
			out = append(out, l)
		}
	}
	return out
}

// result is one row of a table.
type result struct {
	limit   weir.Limit
	verdict verdict
	bound   int64 // what the documentation says is the most in any period
}

// run measures the limits with one kind of traffic, as many concurrently as there are
// processors.
func (t traffic) run(r *bench.Run, title string, limits []weir.Limit) []result {
	results := make([]result, len(limits))
	testkit.OK(r, bench.All(runtime.GOMAXPROCS(0), len(limits), func(i int) error {
		r.Step(i, len(limits), title)
		compiled, err := limits[i].Compile()
		if err == nil {
			results[i] = result{limits[i], t.judge(newArithmetic(compiled), limits[i].CountDenied), compiled.Bound(1)}
		}
		return err
	}))
	return results
}

// judge measures a subject. countDenied tells that its limit counts denied requests,
// too; then so does the exact answer.
func (t traffic) judge(subject subject, countDenied bool) verdict {
	j := &judge{subject: subject, n: t.n, period: micros(period), countDenied: countDenied}
	source := rand.NewPCG(0, 0)
	random := rand.New(source)
	for i := range t.sources {
		source.Seed(seed, uint64(i))
		t.source(i, random, j.take)
		j.next()
	}
	return j.verdict
}

const seed = 2017

// subject is a limiter on trial, for one source at a time.
type subject interface {
	// Take asks for one unit at an instant; instants do not go back.
	Take(now weir.Micros) weir.Decision

	// Forget makes it as new, for the next source.
	Forget()
}

// arithmetic is weir's own: the state of one key and nothing around it.
type arithmetic struct {
	op     weir.Op
	record weir.Record
}

func newArithmetic(limit *weir.Compiled) *arithmetic {
	return &arithmetic{op: weir.Op{Limit: limit, Cost: 1}}
}

func (a *arithmetic) Take(now weir.Micros) weir.Decision {
	next, d := a.op.Decide(a.record.State, a.record.Tail, now)
	a.record.Keep(a.op.Limit, next)
	return d
}

func (a *arithmetic) Forget() { a.record.State = weir.State{} }

func (v verdict) share(n int64, digits int) string {
	return fmt.Sprintf("%.*f %%", digits, 100*float64(n)/float64(v.requests))
}
