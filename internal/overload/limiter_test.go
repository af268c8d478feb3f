package overload

import (
	"testing"
	"time"
)

// loop keeps as many in flight as the limiter allows, and more want to be, for a service that
// takes a millisecond for each, whatever is in flight. It ends the oldest one in each round.
func loop(l *Limiter, rounds int, outcome func(inFlight int) Outcome) {
	var began []time.Duration
	now := time.Duration(0)
	for range rounds {
		now += time.Millisecond
		for len(began) < 2000 && l.Acquire(now, Normal) {
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
			if l.Acquire(now, Normal) {
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
				if l.Acquire(now, Normal) {
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
		l.Acquire(now, Normal)
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
			if l.Acquire(time.Since(began), Normal) {
				l.Release(time.Since(began), Success)
			}
		}
	})
}
