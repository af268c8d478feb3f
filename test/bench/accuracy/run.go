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
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/weirhq/weir"
)

// Result is one row of a table.
type Result struct {
	Limit   weir.Limit
	Verdict Verdict
	Bound   int64 // what the documentation says is the most in any period
}

// Limits are the limits on trial in a kind of traffic: every algorithm.
func (t Traffic) Limits() []weir.Limit {
	var out []weir.Limit
	for _, a := range weir.Algorithms() {
		out = append(out, weir.Limit{Algorithm: a, N: t.N, Period: t.Period})
	}
	return out
}

// CountingLimits are those that can count denied requests too, which is how
// the published figure was come by.
func (t Traffic) CountingLimits() []weir.Limit {
	var out []weir.Limit
	for _, l := range t.Limits() {
		l.CountDenied = true
		if l.Validate() == nil {
			out = append(out, l)
		}
	}
	return out
}

// Judge measures a subject. countDenied tells that its limit counts denied requests,
// too; then so does the exact answer.
func (t Traffic) Judge(subject Subject, countDenied bool) Verdict {
	j := &judge{subject: subject, n: t.N, period: micros(t.Period), countDenied: countDenied}
	source := rand.NewPCG(0, 0)
	random := rand.New(source)
	for i := range t.Sources {
		source.Seed(seed, uint64(i))
		t.source(i, random, j.take)
		j.next()
	}
	return j.verdict
}

const seed = 2017

// Run measures the limits with one kind of traffic, as many concurrently as there are
// processors. done, if set, is called after each.
func (t Traffic) Run(limits []weir.Limit, done func()) ([]Result, error) {
	results := make([]Result, len(limits))
	compiled := make([]*weir.Compiled, len(limits))
	for i, l := range limits {
		c, err := l.Compile()
		if err != nil {
			return nil, err
		}
		compiled[i] = c
	}
	var wg sync.WaitGroup
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, l := range limits {
		places <- struct{}{}
		wg.Go(func() {
			verdict := t.Judge(newArithmetic(compiled[i]), l.CountDenied)
			results[i] = Result{l, verdict, compiled[i].Bound(1)}
			<-places
			if done != nil {
				done()
			}
		})
	}
	wg.Wait()
	return results, nil
}

// Subject is a limiter on trial, for one source at a time.
type Subject interface {
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
