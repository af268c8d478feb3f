package overload

import (
	"testing"
	"time"
)

// The maximum is one for all priorities, and the least that a priority has is a place.
func TestPlacesWithinBounds(t *testing.T) {
	for _, b := range [][2]int{{1, 1}, {2, 2}, {5, 1000}, {20, 50}, {40, 40}} {
		l := New(b[0], b[1])
		now := time.Duration(0)
		n := 0
		for i := range 50_000 {
			now += time.Millisecond
			for c := Low; c <= Critical; c++ {
				if c == Critical && i%20 > 0 {
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
	l.demand.above[High], l.demand.upTo[High] = 0.1, little
	if p := l.places(High); p != 40 {
		t.Errorf("%d places", p)
	}
	l.demand.above[Low], l.demand.upTo[Low] = 1.3, 2
	if p := l.places(Low); p != 15 { // half of what is not left for others
		t.Errorf("%d places", p)
	}
}
