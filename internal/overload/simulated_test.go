package overload_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testoverload"
)

var (
	mix      = [overload.Priorities]float64{overload.Low: 0.4, overload.Normal: 0.4, overload.High: 0.15, overload.Critical: 0.05}
	fewLow   = [overload.Priorities]float64{overload.Low: 0.05, overload.Normal: 0.85, overload.Critical: 0.1}
	twoKinds = [overload.Priorities]float64{overload.Low: 0.9, overload.Critical: 0.1}
)

// simulated is a limiter in a simulation.
type simulated struct{ *overload.Limiter }

func (s simulated) Acquire(now time.Duration, p overload.Priority) (release func(now, took time.Duration, ok bool), allowed bool) {
	return func(now, _ time.Duration, ok bool) {
		o := overload.Success
		if !ok {
			o = overload.Failure
		}
		s.Release(now, o)
	}, s.Limiter.Acquire(now, p)
}

// The aims: at every overload, goodput is at least 0.9 of the capacity and p99 at most 3 × that
// of an idle service; at 0.8 of the capacity, nothing is denied. test/bench has more services and
// loads, and other limiters.
func TestAims(t *testing.T) {
	for _, kind := range []testoverload.Kind{testoverload.Even, testoverload.Varied} {
		for _, c := range testoverload.Cases(kind, 8, 0.8, 4) {
			if c.Load > 1 && testkit.Race { // TestPriorities has such loads
				continue
			}
			f := c.Play(simulated{overload.New(5, 1000)}, 3)
			if c.Load > 1 && (f.Goodput < 0.9 || f.P99 > 3) || c.Load < 1 && f.Denied > 0 {
				t.Errorf("%v: %+v", c, f)
			}
		}
	}
}

// Without a limiter the same aims are missed, so the simulation would show it.
func TestWithoutALimiter(t *testing.T) {
	c := testoverload.Cases(testoverload.Even, 8, 4)[0]
	if f := c.Play(nil, 3); f.Goodput > 0.1 || f.P99 < 100 {
		t.Errorf("%+v", f)
	}
}

// The aims of TestAims hold. Priorities that need at most half of what can be answered, with those
// above, lose at most 0.1 %; and none loses more than one below it.
func TestPriorities(t *testing.T) {
	for _, kind := range []testoverload.Kind{testoverload.Even, testoverload.Varied} {
		for i, m := range [][overload.Priorities]float64{mix, fewLow, twoKinds} {
			if i > 0 && testkit.Race {
				break
			}
			loads := []float64{0.8, 2, 4}
			if i > 0 || testkit.Race {
				loads = []float64{4}
			}
			for _, c := range testoverload.Cases(kind, 8, loads...) {
				c.Mix = m
				f := c.Play(simulated{overload.New(5, 1000)}, 3)
				by := f.By
				if c.Load > 1 && (f.Goodput < 0.9 || f.P99 > 3) || c.Load < 1 && f.Denied > 0 {
					t.Errorf("%v, %v: %+v", c, m, f)
				}
				need := 0.0 // of this priority and of those above, of what can be answered
				for p := overload.Critical; p >= overload.Low; p-- {
					need += m[p] * c.Load
					lost := by[p].Lost()
					if need <= 0.5 && lost > 0.001 {
						t.Errorf("%v, %v: %v requests lose %.2f %%", c, m, p, 100*lost)
					}
					if below := by[p-1]; below.Offered > 0 && lost > below.Lost()+0.01 {
						t.Errorf("%v, %v: %v requests lose %.2f %%, those below %.2f %%", c, m, p, 100*lost, 100*below.Lost())
					}
				}
			}
		}
	}
}

// A priority that comes alone is not limited in another way than any other.
func TestOnePriority(t *testing.T) {
	c := testoverload.Cases(testoverload.Varied, 8, 4)[0]
	normal := c.Play(simulated{overload.New(5, 1000)}, 3)
	for p := overload.Low; p <= overload.Critical; p++ {
		if p > overload.Low && testkit.Race {
			break
		}
		c.Mix = [overload.Priorities]float64{}
		c.Mix[p] = 1
		f := c.Play(simulated{overload.New(5, 1000)}, 3)
		if f.Goodput < 0.9 || f.P99 > 3 || f.Goodput < normal.Goodput-0.05 {
			t.Errorf("%v: %+v", p, f)
		}
	}
}
