package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
)

// check is ops on one slot on their way: what one script call decides together.
type check struct {
	verb verb
	slot uint16
	asks bool // of a refund: whether its decisions are looked at

	prefix int       // of the keys, its length
	ops    []weir.Op // whose own keys are not looked at again: they are the caller's
	keys   []string  // theirs in Redis

	weight int // what deciding it takes of Redis, in ops on one small state

	next *check // for the same key, of a call of singles

	way    atomic.Int32  // waiting, left or sent
	sentAt time.Time     // if it was
	done   chan struct{} // gets one word when decisions and err are there

	hold   holdCall    // what is sent besides, if it is about a hold
	leases []leaseCall // what is sent and answered besides for each op, if it is about leases

	decisions []weir.Decision
	at        weir.Micros // when it was decided
	err       error
	known     bool // the caller knows that it is done
}

// A check is sent unless its caller has left before.
const (
	waiting = iota
	left
	sent
)

// checks are used again, with their memory, if all went well.
var checks = sync.Pool{New: func() any { return &check{done: make(chan struct{}, 1)} }}

func newCheck(verb verb, slot uint16) *check {
	c := checks.Get().(*check)
	c.verb, c.slot, c.asks = verb, slot, false
	return c
}

// addOp copies an op: the caller's may change once its context has ended, and so may
// the bytes of its key.
func (c *check) addOp(op weir.Op, key string) {
	op.Key = ""
	c.ops, c.keys = append(c.ops, op), append(c.keys, key)
	c.weight += weightOf(c.verb, op.Limit)
}

// weightOf is for the worst: of sub-windows that all are read, and a log that is full. What is
// given back to a log changes a page and the directory, which has a length.
func weightOf(verb verb, limit *weir.Compiled) int {
	switch {
	case limit.Algorithm() == weir.SlidingBuckets:
		return 1 + int(limit.Numbers().Buckets/64)
	case arithmeticOf(limit) != weir.SlidingLog:
		return 1
	case verb == refund || verb == renew || verb == settle || verb == extend:
		return 4 + int(min(60, limit.Capacity()/2000))
	}
	return 4
}

// recycle returns the check to the pool. The caller calls it when nothing else refers
// to the check.
func (c *check) recycle() {
	if !c.known {
		return
	}
	clear(c.ops)
	clear(c.keys)
	c.way.Store(waiting)
	c.ops, c.keys, c.weight, c.next, c.decisions, c.err, c.known = c.ops[:0], c.keys[:0], 0, nil, c.decisions[:0], nil, false
	clear(c.leases)
	c.leases = c.leases[:0]
	c.hold = holdCall{used: c.hold.used[:0], outcomes: c.hold.outcomes[:0]}
	checks.Put(c)
}

// finish wakes the caller.
func (c *check) finish(err error) {
	if c.err == nil {
		c.err = err
	}
	c.done <- struct{}{}
}

// allowed reports whether the check is known to have been charged.
func (c *check) allowed() bool {
	return c.known && c.err == nil && weir.Allowed(c.decisions)
}

// owes reports whether what the check charges is charged even if it does not fit.
func (c *check) owes() bool {
	return c.verb.takes() && slices.ContainsFunc(c.ops, func(op weir.Op) bool { return op.Always })
}

// send records that the check is sent now, and reports whether somebody waits for it.
func (c *check) send(now time.Time) bool {
	c.sentAt = now
	return c.way.CompareAndSwap(waiting, sent)
}

// leave records that the caller no longer waits, and reports whether the check was not sent until
// then. Refunds and settlements still are.
func (c *check) leave() (unsent bool) {
	if c.verb == refund || c.verb == settle {
		return c.way.Load() == waiting
	}
	return c.way.CompareAndSwap(waiting, left)
}

// timer is when a check must have been answered.
type timer struct {
	*time.Timer
	due time.Time
}

var timers = sync.Pool{New: func() any { return &timer{Timer: time.NewTimer(time.Hour)} }}

// startTimer is given back with stop.
func startTimer(begun time.Time, d time.Duration) *timer {
	t := timers.Get().(*timer)
	t.due = begun.Add(d)
	t.Reset(max(0, time.Until(t.due)))
	return t
}

func (t *timer) stop() {
	t.Stop()
	timers.Put(t)
}

// await returns when the check is done, or has taken too long, or the caller has
// lost interest. In the latter two cases it may or may not have been charged, unless it was not
// sent.
func (s *Store) await(ctx context.Context, c *check, timeout *timer) error {
	late := false
	select {
	case <-c.done:
		return c.answered()
	case <-ctx.Done():
		late = errors.Is(context.Cause(ctx), errLate)
	case <-timeout.C:
		timeout.Reset(0) // other checks of the same caller are late, too
		late = true
	}
	select {
	case <-c.done: // while the caller did not run
		return c.answered()
	default:
	}
	unsent := c.leave()
	if !late {
		return context.Cause(ctx)
	}
	// A call that was sent late has not had its time.
	now := time.Now()
	if unsent || now.Sub(c.sentAt) < s.timeout*9/10 || overslept(s.timeout, timeout.due, now) {
		return s.busy()
	}
	return s.late()
}

// answered is for the caller of a check that is done.
func (c *check) answered() error {
	c.known = true
	return c.err
}

// overslept reports whether this process did not run when it should have noticed that an answer was
// due. Then it is not known whether the store is to blame. A process that does run may be late by a
// millisecond or two, however short the timeout is.
func overslept(timeout time.Duration, due, now time.Time) bool {
	return now.Sub(due) > max(timeout/10, 5*time.Millisecond)
}

func (s *Store) busy() error {
	return fmt.Errorf("redis: there was no answer within %v: %w", s.timeout, weir.ErrBusy)
}

// errLate is that there was no answer, although this process has waited for one.
var errLate = fmt.Errorf("the store is too slow: %w", context.DeadlineExceeded)

func (s *Store) late() error {
	return fmt.Errorf("redis: there was no answer within %v: %w", s.timeout, errLate)
}

// within returns a context for what takes several calls: all of them together may take as
// long as one.
func (s *Store) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.timeout, s.late())
}
