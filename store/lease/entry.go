package lease

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// entry is what this process knows of a key under one limit, for ops that leave the same. Its units serve those, and ops that leave less. It is
// guarded by the mutex of its shard.
type entry struct {
	// First what every check needs, so that it is in a few lines of the processor's cache.
	key   string
	limit *weir.Compiled
	leave int64
	next  *entry // of the same hash

	// The lease. Totals since it began, as in weir.LeaseOp.
	keep, spent int64
	reserved    int64         // units of keep that holds have
	young, old  *batch        // of these
	aged        time.Duration // when the young ones were the old ones last
	serial      int64         // units spent, also those that were refunded since
	until       time.Duration // units may be spent until one of the clocks is there
	untilWall   int64
	id          weir.LeaseID

	flight bool // the newest message has no answer yet
	unsure bool // it has failed
	refill bool // more units are wanted before a request has to wait for them

	term, ahead time.Duration

	// Units that were asked for, also in vain, by intervals of the horizon.
	horizon       time.Duration
	since, used   time.Duration
	count, before int64
	low           int64 // with so many left, it is time for a refill

	counts        *counts
	local, denied int64 // requests that were decided here

	// What the store has said last.
	free, others     int64 // others is on lease, but not of this lease
	resetAt, storeAt weir.Micros
	at               time.Duration

	// A denial that is remembered.
	deniedCost           int64
	deniedUntil, retryAt time.Duration
	answers              uint32 // changes with every denial, and when one is forgotten

	// What messages need.
	hash, kind   uint64
	seq, charged int64
	told, toldAt int64         // what the newest one said was spent, and serial as of then
	renew, retry time.Duration // when one is due, so that the lease goes on, or because the newest has failed
	tries        uint
	reports      []report // the latest, for refunds
	due          time.Duration
	place        int32 // in the agenda, or out
}

// report is what one message charged: units of the lease by their serial numbers.
type report struct {
	from, to int64
	receipt  weir.Receipt
}

const (
	maxReports = 8
	out        = -1

	// A lease whose totals are beyond is replaced, so that they fit into a receipt.
	maxTotal = 1 << 44

	localReceipt = 1 << 62 // the lowest receipt of this package, beyond any of a store
	tagAt        = 46
)

// ahead is for how long units of a limit are leased ahead.
func (s *Store) ahead(c *weir.Compiled) time.Duration { return min(s.termOf(c), c.Limit().Period/20) }

// horizon is for how long a key is watched to know how much it uses, and that it is idle.
func (s *Store) horizon(c *weir.Compiled) time.Duration {
	return max(s.ahead(c), min(s.termOf(c), 2*s.roundTrip()))
}

// termOf is how long units of a limit are leased; 0 if they are not.
func (s *Store) termOf(c *weir.Compiled) time.Duration {
	if !c.Leasable() {
		return 0
	}
	return cmp.Or(c.Lease(), s.term)
}

func (s *Store) newEntry(hash uint64, op *weir.Op, seen, now time.Duration) *entry {
	e := &entry{
		hash: hash, key: strings.Clone(op.Key), kind: op.Limit.Kind(), limit: op.Limit, leave: op.Leave, counts: s.names.of(op.Limit),
		term: s.termOf(op.Limit), ahead: s.ahead(op.Limit), horizon: s.horizon(op.Limit), since: seen, used: now, count: seldom, place: out,
	}
	e.begin(0)
	return e
}

// begin begins a lease that has units to report already.
func (e *entry) begin(spent int64) {
	rand.Read(e.id[:])
	e.spent, e.charged, e.keep, e.told = spent, 0, spent, 0
	e.endHolds()
	e.until, e.untilWall, e.reports = 0, 0, nil
	e.serial, e.toldAt = 0, 0
}

// held is how many units can be spent.
func (e *entry) held(now instant) int64 {
	if now.elapsed >= e.until || now.wall >= e.untilWall {
		return 0
	}
	return max(0, e.rest())
}

// rest is what was neither spent nor reserved of a lease, also if that has ended.
func (e *entry) rest() int64 { return e.keep - e.spent - e.reserved }

// unknown is how many units the store knows as on lease here, if it has answered what was reported last.
func (e *entry) unknown() int64 { return max(0, e.keep-e.charged) }

// add counts units that are asked for.
func (e *entry) add(units int64, now, trip time.Duration) {
	e.used = max(e.used, now)
	if now-e.since >= e.horizon {
		e.turn(now, trip)
	}
	e.count += units
}

// miss counts units that are denied, unless they always would be.
func (e *entry) miss(units int64, now, trip time.Duration) {
	if units > e.limit.Capacity()-e.leave {
		units = 0
	}
	e.add(units, now, trip)
}

// turn begins another interval.
func (e *entry) turn(now, trip time.Duration) {
	n := (now - e.since) / e.horizon
	if n > 1 {
		e.count = 0
	}
	e.before, e.count = e.count, 0
	e.since += n * e.horizon
	e.horizon = max(e.ahead, min(e.term, 2*trip))
	e.watch(now, trip)
}

// rate is how many units are asked for within a horizon.
func (e *entry) rate(now time.Duration) int64 {
	switch past := now - e.since; {
	case past >= 2*e.horizon:
		return 0
	case past >= e.horizon:
		return share(e.count, 2*e.horizon-past, e.horizon)
	default:
		return e.count + share(e.before, e.horizon-past, e.horizon)
	}
}

// watch finds out when to ask for more, so that it comes before the last unit is spent.
func (e *entry) watch(now, trip time.Duration) {
	e.low = share(e.rate(now), trip+trip/2+time.Millisecond, e.horizon)
}

func share(units int64, part, of time.Duration) int64 {
	return int64(math.Ceil(float64(units) * float64(part) / float64(of)))
}

// target is how many units the key can use.
func (e *entry) target(now, trip time.Duration) int64 {
	return share(e.rate(now), e.ahead+trip, e.horizon) + e.low
}

// surplus is how many units are more than the key can use.
func (e *entry) surplus(now instant, trip time.Duration) int64 {
	return max(0, e.held(now)-2*e.target(now.elapsed, trip))
}

// open reports whether the lease has to go on, or there is something to tell the store.
func (e *entry) open() bool { return e.hasNews() || e.reserved > 0 }

// hasNews reports whether there is something to tell the store of a key that is idle.
func (e *entry) hasNews() bool { return e.rest() > 0 || e.spent > e.charged }

// learn takes in a decision of the store, to which it adds what is held here. That there is nothing is remembered until asking
// again is worth a call: a denial, or that the store could not grant what is used, while little more comes back.
func (e *entry) learn(d *weir.Decision, cost int64, a *asked, trip time.Duration, now instant) {
	if !e.flight { // otherwise it is not known how much is of this lease
		e.others = max(0, d.Leased-e.unknown())
	}
	d.Leased = e.others
	e.free, e.resetAt, e.at = d.Remaining, d.ResetAt, now.elapsed
	e.storeAt = d.ResetAt - weir.Micros(d.ResetAfter/time.Microsecond)
	wait := e.pace()
	far := trip > e.ahead && !e.leaks()
	if far { // what is on its way would be too much of the limit, so requests rather wait
		wait, trip = e.ahead/4, 0
	}
	scarce := d.Allowed && a.short && !far && d.Remaining <= e.trickle(trip)
	switch {
	case a.answers != e.answers: // asked before what is remembered
	case scarce || !d.Allowed:
		e.deniedCost, e.retryAt = cost, math.MaxInt64
		if scarce {
			if e.deniedCost, e.retryAt = 1, now.elapsed; e.free == 0 && e.limit.Algorithm() == weir.FixedWindow {
				e.retryAt += d.ResetAfter
			}
			e.free = 0
		} else {
			wait = max(wait, min(d.RetryAfter, e.ahead))
			if d.RetryAfter < math.MaxInt64-now.elapsed {
				e.retryAt = now.elapsed + d.RetryAfter
			}
		}
		// What is known is half a round trip old, and the next message is there half of one after it is sent.
		e.deniedUntil = now.elapsed + max(0, min(wait, d.ResetAfter)-trip*3/4)
		e.answers++
	case max(cost, e.free) >= e.deniedCost:
		e.deniedUntil = 0
	}
	d.Remaining += e.held(now)
}

// leaks reports whether what waits for being asked for is not lost. In a window it is, because what is asked for later is missing
// later.
func (e *entry) leaks() bool {
	a := e.limit.Algorithm()
	return a == weir.TokenBucket || a == weir.LeakyBucket
}

// pace is how often to ask for a key whose units are used up.
func (e *entry) pace() time.Duration {
	l := e.limit.Limit()
	if e.leaks() {
		return min(e.ahead, time.Duration(float64(l.Period)*float64(e.limit.Capacity())/float64(l.N)/20))
	}
	return min(e.ahead, l.Period/120)
}

// trickle is twice what comes back in that time.
func (e *entry) trickle(trip time.Duration) int64 {
	l := e.limit.Limit()
	return int64(2 * float64(l.N) * float64(max(e.pace(), trip)) / float64(l.Period))
}

// probe has the denial that a request finds ended be remembered until its answer is there, so that others do not wait for
// the same one.
func (e *entry) probe(cost int64, now, trip time.Duration) {
	if e.deniedUntil > 0 && cost >= e.deniedCost {
		e.deniedUntil = max(e.deniedUntil, now+2*trip)
	}
}

// forget lets the next request ask, although one before was denied.
func (e *entry) forget() { e.deniedUntil, e.answers = 0, e.answers+1 }

// denies reports whether a request is known to be denied.
func (e *entry) denies(cost int64, now instant) bool {
	return now.elapsed < e.deniedUntil && cost >= e.deniedCost && cost > e.free+e.held(now)
}

// describe fills in what is the same for every decision.
func (e *entry) describe(d *weir.Decision, now instant) {
	at := e.storeAt + weir.Micros((now.elapsed-e.at)/time.Microsecond)
	d.Limit, d.Remaining, d.Leased = e.limit.Capacity(), e.free+e.held(now), e.others
	d.ResetAt = max(e.resetAt, at)
	d.ResetAfter = d.ResetAt.Sub(at)
}

// deny fills in a denial that is remembered.
func (e *entry) deny(d *weir.Decision, cost int64, now instant) {
	e.describe(d, now)
	if e.retryAt == math.MaxInt64 || cost > e.limit.Capacity()-e.leave {
		d.RetryAfter = weir.Never
		return
	}
	rest := max(e.retryAt, e.deniedUntil) - now.elapsed
	d.RetryAfter = (rest + time.Microsecond - 1).Truncate(time.Microsecond)
}

// spend spends units that are held.
func (e *entry) spend(units int64) { e.spent, e.serial = e.spent+units, e.serial+units }

// receipt identifies the next units that are spent.
func (e *entry) receipt() weir.Receipt {
	return localReceipt | weir.Receipt(e.tag())<<tagAt | weir.Receipt(e.serial)
}

func (e *entry) tag() uint16 { return binary.BigEndian.Uint16(e.id[:]) }

// refund gives units back that the receipt identifies. If they were reported, it returns the receipt of the store
// instead, or 0 if that is forgotten.
func (e *entry) refund(cost int64, r weir.Receipt) weir.Receipt {
	at := int64(r) & (1<<tagAt - 1)
	if at >= e.toldAt {
		e.spent -= e.unreported(cost)
		return 0
	}
	for _, p := range e.reports {
		if p.from <= at && at+cost <= p.to {
			return p.receipt
		}
	}
	return 0
}

// unreported is how many of so many units are in no message yet.
func (e *entry) unreported(cost int64) int64 { return max(0, min(cost, e.spent-e.told)) }
