package adaptive

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/priority"
	"github.com/weirhq/weir/internal/testoverload"
)

// simulated is a limiter in a simulation.
type simulated struct{ *Limiter }

func (s simulated) Acquire(now time.Duration, c priority.Class) (release func(now, took time.Duration, ok bool), allowed bool) {
	return func(now, _ time.Duration, ok bool) {
		o := Success
		if !ok {
			o = Failure
		}
		s.Release(now, o)
	}, s.Limiter.Acquire(now, c)
}

// The aims: at every overload, goodput is at least 0.9 of the capacity and p99 at most 3 × that
// of an idle service; at 0.8 of the capacity, nothing is denied. test/bench has more services and
// loads, and other limiters.
func TestAims(t *testing.T) {
	for _, kind := range []testoverload.Kind{testoverload.Even, testoverload.Varied} {
		for _, c := range testoverload.Cases(kind, 8, 0.8, 4) {
			f := c.Play(simulated{New(5, 1000)}, 3)
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

// loop keeps as many in flight as the limiter allows, and more want to be, for a service that
// takes a millisecond for each, whatever is in flight. It ends the oldest one in each round.
func loop(l *Limiter, rounds int, outcome func(inFlight int) Outcome) {
	var began []time.Duration
	now := time.Duration(0)
	for range rounds {
		now += time.Millisecond
		for len(began) < 2000 && l.Acquire(now, priority.Normal) {
			began = append(began, now)
		}
		if len(began) > 0 {
			l.Release(now, outcome(len(began)))
			began = began[1:]
		}
	}
}

func TestBounds(t *testing.T) {
	for _, b := range [][2]int{{1, 1}, {5, 1000}, {200, 300}, {20, 50}} {
		l := New(b[0], b[1])
		loop(l, 20_000, func(n int) Outcome {
			if n > b[1] {
				t.Fatalf("%v: %d in flight", b, n)
			}
			if s := l.Stats(); s.Limit < b[0] || s.Limit > b[1] || s.InFlight != n {
				t.Fatalf("%v: %+v, %d in flight", b, s, n)
			}
			return Success
		})
	}
}

// A service answers each request after 10 ms, but fails while more than 20 are in flight.
func TestFailuresOfLoadLowerTheLimit(t *testing.T) {
	l := New(5, 1000)
	var began []time.Duration
	good := 0
	for now := time.Duration(0); now < 30*time.Second; now += time.Millisecond {
		for len(began) > 0 && now-began[0] >= 10*time.Millisecond {
			o := Failure
			if len(began) <= 20 {
				o = Success
				good++
			}
			l.Release(now, o)
			began = began[1:]
		}
		for range 10 { // of which it could answer two
			if l.Acquire(now, priority.Normal) {
				began = append(began, now)
			}
		}
	}
	if s := l.Stats(); s.Limit > 50 || good < 10_000 {
		t.Errorf("%+v, %d succeeded", s, good)
	}
}

// An idle service whose requests all fail, or whose clients all leave, is hardly limited for that.
func TestOtherFailuresDoNot(t *testing.T) {
	for _, o := range []Outcome{Failure, Ignored} {
		l := New(5, 1000)
		now := time.Duration(0)
		denied := 0
		for range 20_000 {
			allowed := 0
			for range 10 { // at the same time
				now += time.Microsecond
				if l.Acquire(now, priority.Normal) {
					allowed++
				} else {
					denied++
				}
			}
			for range allowed {
				now += time.Millisecond
				l.Release(now, o)
			}
		}
		if denied > 4000 || o == Ignored && denied > 0 { // of 200 000
			t.Errorf("outcome %d: %d denied", o, denied)
		}
	}
}

// Long streams do not leave because of a probe. The limiter gives up on it.
func TestProbeGivesUp(t *testing.T) {
	l := New(5, 1000)
	loop(l, 1000, func(int) Outcome { return Success }) // it probes by now
	before := l.Stats()
	now := time.Second
	for range 100 { // nothing ends any more
		now += time.Second
		l.Acquire(now, priority.Normal)
	}
	if s := l.Stats(); before.Limit >= 100 || s.Limit <= before.Limit {
		t.Errorf("%+v before, %+v after", before, s)
	}
}

func BenchmarkRequest(b *testing.B) {
	l := New(5, 1000)
	began := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if l.Acquire(time.Since(began), priority.Normal) {
				l.Release(time.Since(began), Success)
			}
		}
	})
}
