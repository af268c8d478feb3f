package adaptive

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/priority"
	"github.com/weirhq/weir/internal/testoverload"
)

var (
	mix      = [priority.Classes]float64{0.4, 0.4, 0.15, 0.05}
	fewLow   = [priority.Classes]float64{0.05, 0.85, 0, 0.1}
	twoKinds = [priority.Classes]float64{0.9, 0, 0, 0.1}
)

// The aims of TestAims hold. Priorities that need at most half of what can be answered, with those
// above, lose at most 0.1 %; and none loses more than one below it.
func TestPriorities(t *testing.T) {
	for _, kind := range []testoverload.Kind{testoverload.Even, testoverload.Varied} {
		for i, m := range [][priority.Classes]float64{mix, fewLow, twoKinds} {
			loads := []float64{0.8, 2, 4}
			if i > 0 {
				loads = []float64{4}
			}
			for _, c := range testoverload.Cases(kind, 8, loads...) {
				c.Mix = m
				f, by := c.PlayBy(simulated{New(5, 1000)}, 3)
				if c.Load > 1 && (f.Goodput < 0.9 || f.P99 > 3) || c.Load < 1 && f.Denied > 0 {
					t.Errorf("%v, %v: %+v", c, m, f)
				}
				need := 0.0 // of this priority and of those above, of what can be answered
				for i := range priority.Classes {
					p := priority.Critical - i
					need += m[p] * c.Load
					lost := by[p].Lost()
					if need <= 0.5 && lost > 0.001 {
						t.Errorf("%v, %v: %v requests lose %.2f %%", c, m, p, 100*lost)
					}
					if below := by[max(p, 1)-1]; below.Offered > 0 && lost > below.Lost()+0.01 {
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
	normal := c.Play(simulated{New(5, 1000)}, 3)
	for p := range priority.Classes {
		c.Mix = [priority.Classes]float64{}
		c.Mix[p] = 1
		f := c.Play(simulated{New(5, 1000)}, 3)
		if f.Goodput < 0.9 || f.P99 > 3 || f.Goodput < normal.Goodput-0.05 {
			t.Errorf("%v: %+v", p, f)
		}
	}
}

// The maximum is one for all priorities, and the least that a priority has is a place.
func TestPlacesWithinBounds(t *testing.T) {
	for _, b := range [][2]int{{1, 1}, {2, 2}, {5, 1000}, {20, 50}, {40, 40}} {
		l := New(b[0], b[1])
		now := time.Duration(0)
		n := 0
		for i := range 50_000 {
			now += time.Millisecond
			for c := range priority.Classes {
				if c == priority.Critical && i%20 > 0 {
					continue
				}
				if p := l.places(c); p < 1 || p > b[1] {
					t.Fatalf("%v: %d places for %v", b, p, c)
				}
				if l.Acquire(now, c) {
					n++
				}
			}
			if n > 0 {
				l.Release(now, Success)
				n--
			}
		}
	}
}

// Places beyond the limit are not beyond the maximum.
func TestPlacesBeyondTheLimit(t *testing.T) {
	l := New(5, 40)
	l.limit = 40
	l.demand.several = true
	l.demand.above[priority.High], l.demand.upTo[priority.High] = 0.1, little
	if p := l.places(priority.High); p != 40 {
		t.Errorf("%d places", p)
	}
	l.demand.above[priority.Low], l.demand.upTo[priority.Low] = 1.3, 2
	if p := l.places(priority.Low); p != 15 { // half of what is not left for others
		t.Errorf("%d places", p)
	}
}
