package weir

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"
)

// A lease is a number of units of one key that a process, its holder, may spend without asking the store.
// It is not charged when it is granted: the store remembers how many units are on lease and not yet reported,
// and every decision on the key leaves these for their holders. A report charges what was spent, and in
// the same step so many units are on lease no more. So the usage and what is on lease together grow only by what fits, units
// that nobody spends do not age, and every algorithm keeps its [Compiled.Bound].
//
// Messages can be lost, late, doubled or overtaken. So numbers are totals since the lease began, and a message says
// what its holder goes by. In every order of events, what is on lease is at least what holders may still
// spend, and a unit is on lease no more only when it is charged, or when its holder gave it up before.

// Bounds on leases.
const (
	MinLease = 20 * time.Millisecond
	MaxLease = time.Hour

	// MaxLeases is the largest number of leases of one key and kind of limit. Beyond it, the
	// store takes what is asked for, and grants nothing.
	MaxLeases = 1000
)

// LeaseID identifies a lease. It is random: a holder takes another one for each key, and when it was told to drop a lease.
type LeaseID [8]byte

// LeaseOp is a message about one key: an op that its holder cannot decide by itself, what it has spent of its
// lease, and what it would like to have.
type LeaseOp struct {
	// Op is taken as [Store.Take] does. With Cost 0, nothing is taken. It cannot have Always, Look or Final.
	Op

	// ID is the lease. 0: the op is taken, and has no lease.
	ID LeaseID

	// Seq is greater than in all messages about the lease before. Only the answer to the last one counts.
	Seq int64

	// Totals since the lease began: units that were spent, units of which the holder knows that they are charged, and
	// units that it goes on to spend at most. What was granted beyond Keep is given up; the holder has
	// stopped spending it before it sends this.
	Spent, Charged, Keep int64

	// Want is how many more units the holder can use; 0 to only report and give up.
	Want int64

	// Term is for how long: the holder counts from sending, the store from receiving.
	Term time.Duration
}

// LeaseAnswer is the answer to a [LeaseOp].
type LeaseAnswer struct {
	// Decision is that on the op. Remaining leaves what is on lease, also to this holder, and Leased includes it.
	Decision

	// Granted is how many units the holder may spend, and Charged how many were charged: totals since
	// the lease began.
	Granted, Charged int64

	// Drop reports that the lease has expired. What was not spent of it is lost, and the next one has
	// another ID.
	Drop bool
}

// LeaseStore is a [Store] that leases units. Its other methods leave what is on lease to their holders; Reset
// clears the usage, and not what is on lease.
type LeaseStore interface {
	Store

	// Lease charges what the messages report, takes their ops, all or none, and, if they are allowed, grants what
	// they want, as far as it fits. It appends one answer for each message to dst. No two messages may share a key and a
	// kind of limit. After an error nothing is known; the next message about the lease says all again.
	Lease(ctx context.Context, dst []LeaseAnswer, ops ...LeaseOp) ([]LeaseAnswer, error)
}

// Leasable reports whether units of the limit can be leased; see [Limit.Lease].
func (c *Compiled) Leasable() bool { return c.limit.leasable() }

// Lease returns Limit.Lease.
func (c *Compiled) Lease() time.Duration { return c.limit.Lease }

// ValidateLease checks the ops of a Lease, for stores.
func ValidateLease(ops []LeaseOp) error {
	for i := range ops {
		op := &ops[i]
		if err := op.Op.validate(); err != nil {
			return err
		}
		switch {
		case op.Always || op.Look || op.Final || op.Receipt != 0:
			return invalid("op", "an op with always, look, final or a receipt cannot go with a lease; use Take")
		case op.ID == LeaseID{}:
			if op.Cost < 1 {
				return invalid("cost", "%d cannot be charged; a request costs at least 1", op.Cost)
			}
		case !op.Limit.Leasable():
			return invalid("limit", "units of %s cannot be leased, because it shapes, counts denied requests, gives back what expires, or is in_flight; use Take", op.Limit.text)
		case op.Term < MinLease || op.Term > MaxLease:
			return invalid("term", "%v is not a time for a lease; it is %v to %v", op.Term, MinLease, MaxLease)
		case op.Seq < 1 || op.Seq >= exact || op.Charged < 0 || op.Spent < op.Charged || op.Keep < 0 || op.Want < 0 || max(op.Spent, op.Keep) > MaxUnits || op.Want > MaxUnits:
			return invalid("lease", "seq %d, spent %d, charged %d, keep %d, want %d: these are no totals of a lease", op.Seq, op.Spent, op.Charged, op.Keep, op.Want)
		}
		for j := range i {
			if shareState(&ops[j].Op, &op.Op) {
				return invalid("ops", "two of them share the key %.40q and a kind of limit; use Take", op.Key)
			}
		}
	}
	return validateCount(len(ops))
}

// Lease is what a store keeps of one lease. After its end it is remembered for one term, so that late
// and doubled messages charge nothing twice. Its end is final, even if the store's clock steps back.
type Lease struct {
	ID             LeaseID
	Seq            int64
	Granted, Spent int64  // totals; Spent as far as it was charged
	Expires        Micros // when it ends; after its end, when it is forgotten
	Term           Micros // for how long it is remembered after its end; 0 after its end
}

// out is how many units its holder may have spent without having said so.
func (l *Lease) out() int64 { return max(0, l.Granted-l.Spent) }

// Account is the usage of one key and kind of limit, with its leases, for stores without a layout of
// their own.
type Account struct {
	Record
	Leases []Lease
	Out    int64  // units on lease that were not reported
	First  Micros // no lease ends or is forgotten before
}

// Expire charges what was on lease and not reported in time, because it may have been spent, as of
// the end of each lease. It comes before anything else at an instant.
func (a *Account) Expire(limit *Compiled, now Micros) {
	if len(a.Leases) == 0 || now < a.First {
		return
	}
	slices.SortFunc(a.Leases, func(l, m Lease) int { return cmp.Compare(l.Expires, m.Expires) })
	for i := range a.Leases {
		if l := &a.Leases[i]; l.Term > 0 && l.Expires <= now {
			units := l.out()
			l.Spent += units
			a.Out -= units
			a.charge(limit, l.Expires, units)
			l.Expires, l.Term = l.Expires+l.Term, 0
		}
	}
	a.Leases = slices.DeleteFunc(a.Leases, func(l Lease) bool { return l.Term == 0 && l.Expires <= now })
	a.First = math.MaxInt64
	for i := range a.Leases {
		a.First = min(a.First, a.Leases[i].Expires)
	}
}

// charge charges what was spent, however much the key owes already: as far as numbers are exact, and
// what is still on lease can be charged, too.
func (a *Account) charge(limit *Compiled, at Micros, units int64) {
	v := view{c: limit, old: a.State, tail: a.Tail, now: max(0, at)}
	v.look()
	if units = min(units, v.room(limit.mostCounted())-a.Out); units > 0 {
		a.Keep(limit, v.charge(units, true))
	}
}

// LeaseAll carries out the messages of one request on their accounts, as stores do. The
// accounts must have expired what was due.
func LeaseAll(dst []LeaseAnswer, now Micros, accounts []*Account, ops []LeaseOp) []LeaseAnswer {
	first := len(dst)
	charges, taken := make([]Pending, len(ops)), make([]Op, len(ops))
	leases := make([]*Lease, len(ops))
	for i := range ops {
		a, answer := accounts[i], LeaseAnswer{}
		if ops[i].ID != (LeaseID{}) {
			leases[i] = a.report(&ops[i], now, &answer)
		}
		taken[i] = ops[i].Op
		taken[i].Look = ops[i].Cost == 0
		charges[i] = Pending{Op: &taken[i], Prev: a.State, Tail: a.Tail, Leased: a.Out}
		dst = append(dst, answer)
	}
	decisions := DecideAll(nil, now, charges)
	allowed := Allowed(decisions)
	for i := range ops {
		a, answer := accounts[i], &dst[first+i]
		answer.Decision = decisions[i]
		a.Keep(ops[i].Limit, charges[i].Next)
		if l := leases[i]; l != nil && allowed {
			grant := min(ops[i].Want, divUp(answer.Remaining, 2*int64(len(a.Leases))))
			l.Granted += grant
			a.Out += grant
			answer.Granted += grant
			answer.Remaining -= grant
			answer.Leased += grant
		}
	}
	return dst
}

// report charges what a message says was spent, and returns the lease if it can go on.
func (a *Account) report(m *LeaseOp, now Micros, answer *LeaseAnswer) *Lease {
	end := now.Add(m.Term)
	i := slices.IndexFunc(a.Leases, func(l Lease) bool { return l.ID == m.ID })
	if i < 0 {
		// A new one, or one that the store has lost. Of that, only what was spent counts.
		a.charge(m.Limit, now, m.Spent-m.Charged)
		answer.Granted, answer.Charged = m.Spent, m.Spent
		if len(a.Leases) >= MaxLeases {
			return nil
		}
		a.Leases = append(a.Leases, Lease{ID: m.ID, Seq: m.Seq, Granted: m.Spent, Spent: m.Spent, Expires: end, Term: end - now})
		a.First = min(a.First, end)
		return &a.Leases[len(a.Leases)-1]
	}
	l := &a.Leases[i]
	newer := m.Seq > l.Seq // or else it was overtaken, or doubled
	if newer {
		units := m.Spent - max(l.Spent, m.Charged)
		a.Out -= l.out()
		l.Seq, l.Spent = m.Seq, max(l.Spent, m.Spent)
		l.Granted = max(l.Spent, min(l.Granted, m.Keep)) // less than Keep if the store has lost a grant
		l.Expires = max(l.Expires, end)
		a.Out += l.out()
		a.charge(m.Limit, now, units)
	}
	answer.Granted, answer.Charged, answer.Drop = l.Granted, l.Spent, l.Term == 0
	if !newer || answer.Drop {
		return nil
	}
	l.Term = max(l.Term, end-now)
	return l
}
