package queue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/queue"
)

// fast is a pace that is not in the way.
func fast(s queue.Settings) queue.Settings {
	s.N, s.Period = 1, time.Microsecond
	return s
}

// testOrder: what is ready leaves in the order of its push, and what has failed comes back
// before what was pushed after it.
func testOrder(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{Backoff: time.Second}))
	last := int64(0)
	for _, name := range []string{"a", "b", "c", "d"} {
		p := o.push(name)
		if p.Number <= last {
			t.Errorf("%s has the number %d after %d", name, p.Number, last)
		}
		last = p.Number
	}
	o.pass(1)
	o.nack(o.leaseOf("a"), "")
	o.pass(1)
	b := o.leaseOf("b")
	o.pass(second)
	o.leaseOf("a")
	o.pass(1)
	testkit.OK(o.t, o.Store.Return(t.Context(), "q", b.Token))
	o.leaseOf("b")
	o.pass(1)
	o.leaseOf("c")
	o.pass(1)
	o.leaseOf("d")
}

func testPosition(t *testing.T, open opener) {
	o := openOne(t, open, queue.Settings{N: 3, Period: time.Second})
	for i, want := range []time.Duration{0, 333_334, 666_667, 1_000_000} {
		p := o.push("x")
		is(t, "place", p, queue.Pushed{Number: p.Number, State: queue.Ready, Position: int64(i + 1), Wait: want * time.Microsecond})
	}
	o.lease()
	p := o.push("x")
	is(t, "position", p.Position, 4)
	is(t, "wait", p.Wait, 1_333_334*time.Microsecond)
	o.pass(1_000_000)
	is(t, "wait when the next is due", o.push("x").Wait, 1_333_334*time.Microsecond)
}

// testFull: everything that is not done counts.
func testFull(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{Capacity: 3, MaxTries: 2}))
	full := func(what string) {
		t.Helper()
		p, err := o.Store.Push(t.Context(), "q", queue.Work{})
		if !errors.Is(err, queue.ErrFull) || p != (queue.Pushed{}) {
			t.Fatalf("%s: %+v, %v, want ErrFull", what, p, err)
		}
	}
	for range 3 {
		o.push("x")
	}
	full("three are ready")
	l := o.lease()
	full("one is leased")
	o.nack(l, "")
	full("one is delayed")
	o.pass(1)
	o.ack(o.lease())
	o.push("x")
	full("one was done, and one pushed")
	o.pass(2 * second)
	o.nack(o.lease(), "") // the second try of the first
	is(t, "dead", o.stats().Dead, 1)
	o.push("x")
	full("a dead letter does not count")
	is(t, "length", o.stats().Length(), 3)
}

// testDuplicates: an ID that is there, wherever that is, adds nothing.
func testDuplicates(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{MaxTries: 2, Capacity: 3}))
	o.push("x")
	p := o.pushID("a")
	is(t, "new", p.Duplicate, false)
	again := func(state queue.State, position int64) {
		t.Helper()
		d := o.pushID("a")
		is(t, "duplicate", d, queue.Pushed{Number: p.Number, Duplicate: true, State: state, Position: position, Wait: d.Wait})
	}
	o.push("y")
	again(queue.Ready, 2) // although it is full
	o.lease()
	again(queue.Ready, 1)
	o.pass(1)
	a := o.leaseOf("of a")
	is(t, "id", a.ID, "a")
	again(queue.Leased, 0)
	o.nack(a, "")
	again(queue.Delayed, 0)
	o.pass(second)
	a = o.leaseOf("of a")
	o.nack(a, "")
	again(queue.Dead, 0)
	letters := o.letters(0, 10)
	is(t, "letters", len(letters), 1)
	testkit.Must(o.Store.Delete(t.Context(), "q", letters[0].Number))(o.t)
	is(t, "after it was deleted", o.pushID("a").Duplicate, false)
	o.pass(1)
	o.ack(o.leaseOf("y"))
	o.pass(1)
	o.ack(o.leaseOf("of a"))
	is(t, "after it was done", o.pushID("a").Duplicate, false)
}

func testRemembered(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{Remember: time.Minute, Capacity: 3}))
	finish := func(id string) {
		t.Helper()
		is(t, id+" is new", o.pushID(id).Duplicate, false)
		o.pass(1)
		o.ack(o.leaseOf("of " + id))
	}
	finish("a")
	o.pass(60*second - 1)
	is(t, "a while it is remembered", o.pushID("a"), queue.Pushed{Duplicate: true, State: queue.Done})
	o.pass(1)
	finish("a")
	for i := range 3 { // are more than are remembered
		finish(fmt.Sprint("b", i))
	}
	is(t, "the last", o.pushID("b2").State, queue.Done)
	is(t, "the first of three", o.pushID("b0").State, queue.Done)
	is(t, "the one before", o.pushID("a").State, queue.Ready)
	// What has no ID is not remembered.
	o.pass(1)
	o.ack(o.lease())
	o.push("x")
	is(t, "without an ID", o.push("x").Duplicate, false)
}

func testStats(t *testing.T, open opener) {
	o := openOne(t, open, queue.Settings{N: 1, Period: time.Second, Capacity: 9, Backoff: time.Minute})
	is(t, "an empty queue", o.stats(), queue.Stats{Capacity: 9})
	for range 5 {
		o.push("x")
		o.pass(second)
	}
	o.nack(o.lease(), "")
	testkit.Must(o.Store.Nack(t.Context(), "q", o.after(second).Token, queue.Failure{Bury: true}))(o.t)
	o.after(second)
	o.pass(second / 4)
	// One is held back, one dead and one leased. The fourth and fifth wait.
	is(t, "stats", o.stats(), queue.Stats{
		Ready: 2, Delayed: 1, Leased: 1, Dead: 1, Capacity: 9,
		Age: 4*time.Second + 250*time.Millisecond, Wait: 750 * time.Millisecond,
	})
	o.at(start)
	is(t, "age when the clock steps back", o.stats().Age, 0)
}

// after leases an item when some time has passed.
func (o *one) after(d weir.Micros) queue.Lease {
	o.t.Helper()
	o.pass(d)
	return o.lease()
}
