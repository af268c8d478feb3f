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

// CountingLimits are those that can count refused requests too, which is how
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

// Judge puts a subject on trial. countDenied says that its limit counts refused
// requests too; then so does the exact answer.
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

// Run judges the limits in a kind of traffic, as many at once as there are
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
