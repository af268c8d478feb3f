package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/queue"
)

// testBackoff: an item is held back twice as long each time, up to a bound, and comes back
// at the very microsecond.
func testBackoff(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{Backoff: 2 * time.Second, MaxBackoff: 10 * time.Second, MaxTries: 7}))
	o.push("a")
	for try, want := range []time.Duration{2, 4, 8, 10, 10, 10} {
		l := o.lease()
		is(t, "tries", l.Tries, try+1)
		is(t, "outcome", o.nack(l, "no"), queue.Outcome{RetryAfter: want * time.Second})
		o.pass(weir.Micros(want)*second - 1)
		is(t, "wait", o.none().Wait, time.Microsecond)
		o.pass(1)
	}
	is(t, "the last outcome", o.nack(o.lease(), "no"), queue.Outcome{Dead: true})
}

// testDeadAfterTries: exactly k tries, whether the worker says that it failed or dies.
func testDeadAfterTries(t *testing.T, open opener) {
	for _, dies := range []bool{false, true} {
		o := openOne(t, open, fast(queue.Settings{MaxTries: 3, Visibility: time.Second, Backoff: time.Second, MaxBackoff: time.Second}))
		o.push("a")
		for range 3 {
			l := o.lease()
			if !dies {
				o.nack(l, "broken")
			}
			o.pass(second)
		}
		is(t, "wait", o.none().Wait, weir.Never)
		letters := o.letters(0, 10)
		is(t, "letters", len(letters), 1)
		l := letters[0]
		is(t, "payload", string(l.Payload), "a")
		is(t, "tries", l.Tries, 3)
		is(t, "pushed", l.Pushed, start)
		want, died := "broken", start+2*second
		if dies {
			want, died = queue.Expired, start+3*second
		}
		is(t, "reason", l.Reason, want)
		is(t, "died", l.Died, died)
	}
}

func testBury(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{}))
	o.push("a")
	l := o.lease()
	reason := strings.Repeat("é", queue.MaxReasonLen) + "\xff"
	out := testkit.Must(o.Store.Nack(t.Context(), "q", l.Token, queue.Failure{Reason: reason, Bury: true}))(o.t)
	is(t, "outcome", out, queue.Outcome{Dead: true})
	o.lost(l.Token)
	letters := o.letters(0, 1)
	is(t, "letters", len(letters), 1)
	is(t, "reason", letters[0].Reason, queue.Cut(reason))
	is(t, "its length", len(letters[0].Reason), queue.MaxReasonLen)
}

// kill pushes items and makes dead letters of them.
func (o *one) kill(names ...string) (numbers []int64) {
	o.t.Helper()
	for _, name := range names {
		numbers = append(numbers, o.pushID(name).Number)
		o.pass(1)
		testkit.Must(o.Store.Nack(o.t.Context(), "q", o.leaseOf("of "+name).Token, queue.Failure{Reason: "why " + name, Bury: true}))(o.t)
	}
	return numbers
}

func ids(letters []queue.DeadLetter) string {
	var all []string
	for _, l := range letters {
		all = append(all, l.ID)
	}
	return strings.Join(all, " ")
}

// testDeadLetters lists them page by page, and deletes some.
func testDeadLetters(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{}))
	is(t, "none", len(o.letters(0, 10)), 0)
	numbers := o.kill("a", "b", "c", "d", "e")
	is(t, "the first", ids(o.letters(0, 2)), "a b")
	is(t, "the next", ids(o.letters(numbers[1], 2)), "c d")
	is(t, "the last", ids(o.letters(numbers[3], 2)), "e")
	is(t, "no more", ids(o.letters(numbers[4], 2)), "")
	l := o.letters(numbers[1], 1)[0]
	is(t, "a letter", fmt.Sprintf("%d %s %s %d %s", l.Number, l.ID, l.Payload, l.Tries, l.Reason), fmt.Sprintf("%d c of c 1 why c", numbers[2]))

	live := o.push("live").Number
	n := testkit.Must(o.Store.Delete(t.Context(), "q", numbers[1], numbers[1], numbers[3], live, 12345))(o.t)
	is(t, "deleted", n, 2)
	is(t, "left", ids(o.letters(0, 10)), "a c e")
	is(t, "still there", o.stats().Ready, 1)
}

// testDeadBounded: the oldest are dropped and counted.
func testDeadBounded(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{MaxDead: 3}))
	numbers := o.kill("a", "b", "c", "d", "e")
	is(t, "kept", ids(o.letters(0, 10)), "c d e")
	s := o.stats()
	is(t, "dead", s.Dead, 3)
	is(t, "dropped", s.Dropped, 2)
	is(t, "one that was dropped", o.pushID("a").Duplicate, false)
	o.pass(1)
	o.ack(o.lease())
	testkit.Must(o.Store.Delete(t.Context(), "q", numbers...))(o.t)
	is(t, "when it is empty", o.stats(), queue.Stats{Capacity: queue.DefaultCapacity})
}

// testRequeue: dead letters go to the end of the queue, and begin again.
func testRequeue(t *testing.T, open opener) {
	o := openOne(t, open, fast(queue.Settings{Capacity: 3, MaxTries: 2}))
	numbers := o.kill("a", "b", "c")
	o.push("live")
	o.pass(second)
	n, err := o.Store.Requeue(t.Context(), "q", numbers[2], numbers[2], 999, numbers[0], numbers[1])
	if n != 2 || !errors.Is(err, queue.ErrFull) {
		t.Fatalf("Requeue = %d, %v, want 2 and ErrFull", n, err)
	}
	is(t, "left", ids(o.letters(0, 10)), "b")
	is(t, "the ID", o.pushID("c").State, queue.Ready)
	var order []string
	for range 3 {
		l := o.after(1)
		order = append(order, string(l.Payload))
		if l.ID != "" {
			is(t, "tries", l.Tries, 1)
			is(t, "pushed", l.Pushed, start+second+3)
			if slices.Contains(numbers, l.Number) {
				t.Errorf("%s has its old number", l.ID)
			}
		}
		o.ack(l)
	}
	is(t, "order", strings.Join(order, ", "), "live, of c, of a")
	n = testkit.Must(o.Store.Requeue(t.Context(), "q", numbers[1]))(o.t)
	is(t, "moved", n, 1)
	o.pass(1)
	o.ack(o.leaseOf("of b"))
	is(t, "stats", o.stats(), queue.Stats{Capacity: 3})
}
