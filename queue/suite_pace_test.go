package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/queue"
)

// testPace has items leave at the very instants at which a leaky_bucket with shape lets
// requests go.
func testPace(t *testing.T, open opener) {
	for _, rate := range []string{"7/1s", "10/1s", "3/1m", "1/1h", "999983/1s", "2/3us", "1000/7ms"} {
		t.Run(rate, func(t *testing.T) {
			limit := weir.MustParseLimit("leaky_bucket " + rate + " burst 40 shape")
			compiled := testkit.Must(limit.Compile())(t)
			o := openOne(t, open, queue.Settings{N: limit.N, Period: limit.Period, Visibility: 12 * time.Hour})
			var bucket weir.Record
			for i := range 20 {
				o.push(fmt.Sprint(i))
				op := weir.Op{Key: "k", Limit: compiled, Cost: 1}
				next, d := op.Decide(bucket.State, nil, start)
				if !d.Allowed {
					t.Fatalf("the bucket denies number %d", i)
				}
				bucket.Keep(compiled, next)
				release := start + weir.Micros(d.Delay.Microseconds())
				if release > o.now {
					o.at(release - 1)
					is(t, "the wait", o.none().Wait, time.Microsecond)
					o.at(release)
				}
				l := o.leaseOf(fmt.Sprint(i))
				is(t, fmt.Sprintf("release %d", i), l.Release-start, release-start)
				o.ack(l)
			}
		})
	}
}

// testAhead leases before the release, and tells how long to hold.
func testAhead(t *testing.T, open opener) {
	o := openOne(t, open, queue.Settings{N: 3, Period: time.Second, Visibility: time.Minute})
	for i := range 10 {
		o.push(fmt.Sprint(i))
	}
	b := o.ask(queue.Ask{Max: 10, Ahead: time.Second})
	is(t, "leases", len(b.Leases), 4)
	for i, want := range []weir.Micros{0, 333_334, 666_667, 1_000_000} {
		l := b.Leases[i]
		is(t, "payload", string(l.Payload), fmt.Sprint(i))
		is(t, "release", l.Release, start+want)
		is(t, "delay", l.Delay, time.Duration(want)*time.Microsecond)
		is(t, "expires", l.Expires, start+want+60*second)
	}
	// The next leaves at 1 333 334, which can be leased a second before.
	is(t, "wait", b.Wait, 333_334*time.Microsecond)
	b = o.ask(queue.Ask{Max: 10, Ahead: 1_333_333 * time.Microsecond})
	is(t, "leases a microsecond too early", len(b.Leases), 0)
	is(t, "wait", b.Wait, time.Microsecond)
	b = o.ask(queue.Ask{Max: 1, Ahead: 1_333_334 * time.Microsecond})
	is(t, "leases", len(b.Leases), 1)
	is(t, "at most", len(o.ask(queue.Ask{Max: 2, Ahead: queue.MaxAhead}).Leases), 2)
}

// testLate: a worker that comes late has others wait from then on. Nothing is made up for.
func testLate(t *testing.T, open opener) {
	o := openOne(t, open, queue.Settings{N: 3, Period: time.Second})
	for i := range 10 {
		o.push(fmt.Sprint(i))
	}
	o.pass(10*second + 1)
	is(t, "release", o.lease().Release, o.now)
	o.pass(333_333)
	is(t, "wait", o.none().Wait, time.Microsecond)
	o.pass(1)
	o.lease()
	o.pass(100 * second)
	o.lease()
	o.none()
}

// testClockStepsBack: the pace is kept, and the queue does not stand still for longer than
// it could have been ahead.
func testClockStepsBack(t *testing.T, open opener) {
	o := openOne(t, open, queue.Settings{N: 1, Period: time.Second, Visibility: 12 * time.Hour})
	for i := range 10 {
		o.push(fmt.Sprint(i))
	}
	o.leaseOf("0")
	o.pass(-3600 * second)
	is(t, "wait after the step", o.none().Wait, queue.MaxAhead+time.Second)
	o.push("late") // is the last all the same
	o.pass(11*second - 1)
	is(t, "wait", o.none().Wait, time.Microsecond)
	o.pass(1)
	o.leaseOf("1")
	o.none()
	o.pass(second)
	o.leaseOf("2")
}

// testRates: several in one microsecond, and one in ten years.
func testRates(t *testing.T, open opener) {
	o := openOne(t, open, queue.Settings{N: 5_000_000, Period: time.Second})
	for i := range 30 {
		o.push(fmt.Sprint(i))
	}
	is(t, "leases at once", len(o.ask(queue.Ask{Max: 100}).Leases), 1)
	o.pass(1)
	// At 0.2 µs after the first the next may leave: the first whole one is 1.
	is(t, "leases after a microsecond", len(o.ask(queue.Ask{Max: 100}).Leases), 5)
	o.pass(1)
	is(t, "leases after another", len(o.ask(queue.Ask{Max: 100}).Leases), 5)

	o = openOne(t, open, queue.Settings{N: 1, Period: weir.MaxPeriod})
	o.push("a")
	o.push("b")
	o.ack(o.leaseOf("a"))
	is(t, "wait", o.none().Wait, weir.MaxPeriod)
	o.pass(weir.Micros(weir.MaxPeriod.Microseconds()))
	o.leaseOf("b")
}
