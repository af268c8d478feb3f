package queue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/queue"
)

// testVisibility: the item of a dead worker goes to another at the instant its lease ends.
func testVisibility(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{Visibility: 5 * time.Second}))
	o.push("a")
	first := o.leaseOf("a")
	is(t, "expires", first.Expires, o.now+5*second)
	is(t, "tries", first.Tries, 1)
	o.pass(5*second - 1)
	is(t, "wait", o.none().Wait, time.Microsecond)
	o.pass(1)
	second := o.leaseOf("a")
	is(t, "tries", second.Tries, 2)
	is(t, "pushed", second.Pushed, start)
	is(t, "number", second.Number, first.Number)
	o.lost(first.Token)
	o.ack(second)
	o.lost(second.Token)
	is(t, "length", o.stats().Length(), 0)
}

// testLateAck: a late Ack is accepted if no other worker has the item.
func testLateAck(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{Visibility: 5 * time.Second, MaxTries: 1}))
	o.push("a")
	l := o.lease()
	o.pass(5 * second)
	is(t, "dead", o.stats().Dead, 1)
	if _, err := o.Store.Extend(t.Context(), "q", l.Token); !errors.Is(err, queue.ErrLost) {
		t.Errorf("extending what is dead: %v", err)
	}
	o.ack(l)
	is(t, "stats", o.stats(), queue.Stats{Capacity: queue.DefaultCapacity})

	o = openOne(t, open, fast(queue.Settings{Visibility: 5 * time.Second}))
	o.push("a")
	l = o.lease()
	o.pass(5 * second)
	is(t, "ready", o.stats().Ready, 1)
	o.ack(l)
	is(t, "ready", o.stats().Ready, 0)

	o.push("b")
	l = o.lease()
	o.pass(5 * second)
	is(t, "ready", o.stats().Ready, 1)
	is(t, "retry", o.nack(l, "late"), queue.Outcome{RetryAfter: time.Second})
	is(t, "delayed", o.stats().Delayed, 1)
}

func testExtend(t *testing.T, open opener) {
	o := openOne(t, open, queue.Settings{N: 1, Period: time.Second, Visibility: 5 * time.Second})
	o.push("a")
	l := o.lease()
	extend := func(want time.Duration) {
		t.Helper()
		left := testkit.Must(o.Store.Extend(t.Context(), "q", l.Token))(o.t)
		is(t, "left", left, want)
	}
	for range 4 {
		o.pass(4 * second)
		extend(5 * time.Second)
	}
	o.pass(5*second - 1)
	o.none()
	// The lease has expired, but no other worker has the item.
	o.pass(1)
	is(t, "ready", o.stats().Ready, 1)
	extend(5 * time.Second)
	is(t, "leased", o.stats().Leased, 1)
	o.ack(l)

	// One that is leased ahead lasts from its release on.
	o.push("b")
	o.push("c")
	l = o.ask(queue.Ask{Max: 2, Ahead: time.Second}).Leases[1]
	extend(6 * time.Second)
}

// testTokens: nothing but the token of a lease that lasts is worth anything.
func testTokens(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{}))
	o.push("a")
	l := o.lease()
	number, secret, _ := strings.Cut(l.Token, "-")
	for _, token := range []string{
		"", "-", "x", number, number + "-", number + "--", number + "-" + strings.Repeat("0", 32),
		"-" + secret, "0-" + secret, "-1-" + secret, "+" + number + "-" + secret, "1-" + secret, number + "0-" + secret,
		number + "-" + secret + "0", number + "-" + secret[:31], number + "-" + secret[:31] + " ", number + "-" + secret[:31] + "\n",
		"99999999999999999999-" + secret, "1e3-" + secret, strings.Repeat("9", 1<<16) + "-" + secret,
	} {
		o.lost(token)
	}
	is(t, "leased", o.stats().Leased, 1)
	o.ack(l)

	// One of an item that went back is worth nothing, either.
	o.push("b")
	o.pass(1)
	l = o.lease()
	testkit.OK(o.t, o.Store.Return(t.Context(), "q", l.Token))
	o.lost(l.Token)
	l = o.lease()
	o.nack(l, "")
	o.lost(l.Token)
	is(t, "delayed", o.stats().Delayed, 1)
}

// testReturn: what was not begun was not tried, and the last turn is free again.
func testReturn(t *testing.T, open opener) {
	o := openOne(t, open, queue.Settings{N: 3, Period: time.Second, MaxTries: 1})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		o.push(name)
	}
	all := o.ask(queue.Ask{Max: 4, Ahead: queue.MaxAhead}).Leases
	back := func(i int) {
		t.Helper()
		testkit.OK(o.t, o.Store.Return(t.Context(), "q", all[i].Token))
	}
	back(3)
	back(2)
	b := o.ask(queue.Ask{Max: 1, Ahead: queue.MaxAhead})
	is(t, "the first to leave", string(b.Leases[0].Payload), "c")
	is(t, "its turn", b.Leases[0].Release, all[2].Release)
	is(t, "its tries", b.Leases[0].Tries, 1)
	// a was released before others: its turn passes unused.
	back(0)
	b = o.ask(queue.Ask{Max: 1, Ahead: queue.MaxAhead})
	is(t, "the first to leave", string(b.Leases[0].Payload), "a")
	is(t, "its turn", b.Leases[0].Release, start+second)
	// Returned for ever it is never dead.
	for range 3 {
		testkit.OK(o.t, o.Store.Return(t.Context(), "q", b.Leases[0].Token))
		b = o.ask(queue.Ask{Max: 1, Ahead: queue.MaxAhead})
		is(t, "its turn", b.Leases[0].Release, start+second)
	}
	is(t, "dead", o.stats().Dead, 0)
}

// testWaiting: how long to wait is exact, whatever there is to wait for.
func testWaiting(t *testing.T, open opener) {
	o := openOne(t, open, queue.Settings{N: 1, Period: 3 * time.Second, Visibility: 5 * time.Second, Backoff: 2 * time.Second})
	is(t, "of an empty queue", o.none().Wait, weir.Never)
	o.push("a")
	b := o.ask(queue.Ask{Max: 9})
	is(t, "for the lease to end", b.Wait, 5*time.Second)
	o.pass(second)
	o.nack(b.Leases[0], "")
	is(t, "for the backoff, at 3 s as the pace", o.none().Wait, 2*time.Second)
	o.push("b")
	is(t, "for the pace", o.none().Wait, 2*time.Second)
	o.pass(2 * second)
	b = o.ask(queue.Ask{})
	is(t, "for the pace, with something ready", b.Wait, 3*time.Second)
	o.ack(b.Leases[0])
	o.pass(3 * second)
	b = o.ask(queue.Ask{})
	o.ack(b.Leases[0])
	is(t, "of an empty queue", o.none().Wait, weir.Never)
}

// testSweeping: many that are due at once come back over several calls, and none is lost.
func testSweeping(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{Visibility: time.Second, MaxTries: 2, Backoff: time.Second}))
	const many = queue.MaxSweep*2 + 50
	for i := range many {
		o.push(fmt.Sprint(i))
	}
	o.pass(second)
	leased := 0
	for range 3 {
		leased += len(o.ask(queue.Ask{Max: queue.MaxBatch, Ahead: time.Millisecond}).Leases)
	}
	is(t, "leased", leased, many)
	o.pass(2 * second)
	for _, ready := range []int64{100, 200, 250, 250} {
		s := o.stats()
		is(t, "ready", s.Ready, ready)
		is(t, "length", s.Length(), many)
	}
	for range 3 {
		o.ask(queue.Ask{Max: queue.MaxBatch, Ahead: time.Millisecond})
	}
	o.pass(2 * second)
	for _, dead := range []int64{100, 200, 250} {
		s := o.stats()
		is(t, "dead", s.Dead, dead)
		is(t, "length", s.Length(), many-dead)
	}

	// IDs whose time is over are forgotten even before they are cleared away.
	o = openOne(t, open, fast(queue.Settings{Remember: time.Second}))
	for i := range many {
		o.pushID(fmt.Sprintf("%03d", i))
	}
	o.pass(second)
	for range 3 {
		for _, l := range o.ask(queue.Ask{Max: queue.MaxBatch, Ahead: time.Millisecond}).Leases {
			o.ack(l)
		}
	}
	o.pass(second)
	is(t, "the last ID", o.pushID(fmt.Sprintf("%03d", many-1)).Duplicate, false)
}
