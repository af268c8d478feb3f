package redis

import (
	"github.com/weirhq/weir"
)

// verb is what the script is to do with the ops of a check.
type verb int64

const (
	peek verb = iota
	take
	refund // and then peek
	renew  // refund, and then take

	// What is about holds, and therefore sent with more.
	holdPeek
	holdTake
	reserve
	settle
	extend
	reset
	_ // jointTake
	_ // again
	lease
)

func (v verb) holds() bool { return v >= holdPeek }

// takes reports whether a check charges all of its ops or none.
func (v verb) takes() bool {
	return v == take || v == renew || v == holdTake || v == reserve || v == lease
}

// request is one call. Keys and limits are sent once each.
type request struct {
	batch []*check
	keys  []string
	entry entry
	needs needs // of its algorithms

	limits []*weir.Compiled
	ops    []opAt // of each op, where what it needs is

	chains []chain // of singles; nil if it is none of these
	held   bool    // some are about holds

	states int   // how many keys are of states and lists of holds
	many   int64 // what is known of keys with many holds: the sum of mayHaveMany and one of the others

	// Of calls with periods of the calendar: Redis's time, as far as is known, and from
	// when to when their bounds are right.
	at          weir.Micros
	from, until weir.Micros
}

// A key may have many holds if every instance knows that format. Calls for keys that have many, or are about to,
// or have units on lease, have keys more. Singles for such keys only have those of the states.
const (
	mayHaveMany = 1
	hasMany     = 2
	isMoved     = 4 // not sent
)

func newRequest(batch []*check, many int64) *request {
	r := &request{batch: batch, many: many}
	if many&hasMany != 0 || !r.sortSingles() {
		if many&isMoved != 0 {
			many += hasMany - isMoved
		}
		r = &request{batch: batch, many: many}
		r.listOps()
	}
	return r
}

// listOps is for requests of whatever kind.
func (r *request) listOps() {
	keys, limits := map[string]int{}, map[*weir.Compiled]int{}
	if r.many >= hasMany {
		r.entry = anyHolds
	}
	for _, c := range r.batch {
		if c.verb.holds() {
			r.entry = anyHolds
		}
		for i := range c.ops {
			r.needs |= algorithms[c.ops[i].Limit.Algorithm()].needs
			r.ops = append(r.ops, opAt{key: position(keys, &r.keys, c.keys[i]), limit: position(limits, &r.limits, c.ops[i].Limit)})
		}
	}
	states, at := r.keys, r.ops
	for _, c := range r.batch {
		for i := range c.ops {
			if c.verb.holds() {
				at[i].list = c.listAt(i, keys, &r.keys)
			}
		}
		at = at[len(c.ops):]
	}
	r.states = len(r.keys)
	if r.many >= hasMany {
		for _, key := range states {
			prefix := r.batch[0].prefix
			r.keys = append(r.keys, beside(key, prefix, movedName), beside(key, prefix, manyName), beside(key, prefix, leasesName))
		}
	}
	for _, c := range r.batch {
		if c.hold.record != "" {
			c.hold.at = position(keys, &r.keys, c.hold.record)
		}
	}
}

// opAt is where in a request what an op needs is, from 1 as in Lua.
type opAt struct{ key, limit, list int }

// position finds x in a list, from 1, and adds it if it is not there.
func position[T comparable](known map[T]int, list *[]T, x T) int {
	if i, ok := known[x]; ok {
		return i
	}
	*list = append(*list, x)
	known[x] = len(*list)
	return len(*list)
}

// encode packs the request as the script's only argument: numbers in MessagePack, which the
// script unpacks in C.
func (r *request) encode(now int64) string {
	if r.chains != nil {
		return r.encodeSingles(now)
	}
	b := make(packer, 3, 64+60*len(r.limits)+24*len(r.ops))
	length := b.clock(r, now) + r.length()
	if r.entry == anyHolds {
		b.number(int64(r.states))
		b.number(r.many)
		length += 2
	}
	b.number(int64(len(r.limits)))
	for _, c := range r.limits {
		b.number(int64(arithmeticOf(c)))
		b.limit(c, r)
	}
	at := r.ops
	for j, c := range r.batch {
		if j > 0 && r.entry == anyRequests && c.isLike(r.batch[j-1], at, r.ops[len(r.ops)-len(at)-len(r.batch[j-1].ops):]) {
			b.number(again)
			length -= 1 + 5*len(c.ops)
			at = at[len(c.ops):]
			continue
		}
		b.number(c.word())
		b.number(int64(len(c.ops)))
		for i := range c.ops {
			b.op(c, i, at[i])
		}
		switch {
		case c.verb == lease:
			b.leases(c)
		case c.verb.holds():
			b.hold(c)
		}
		at = at[len(c.ops):]
	}
	return b.argument(length)
}

// again is sent for a request that is as the one before it, with the keys that come after those.
const again = 11

// isLike reports whether a check is as the one before it, but for its keys, which nobody had before. They are where
// what their ops need is.
func (c *check) isLike(before *check, at, atBefore []opAt) bool {
	if c.word() != before.word() || len(c.ops) != len(before.ops) {
		return false
	}
	first := atBefore[0].key
	for i := range c.ops {
		a, b := &c.ops[i], &before.ops[i]
		if at[i].limit != atBefore[i].limit || atBefore[i].key != first+i || at[i].key != first+len(c.ops)+i ||
			a.Cost != b.Cost || a.Look != b.Look || a.Leave != b.Leave || c.last(i) != before.last(i) {
			return false
		}
	}
	return true
}

// arithmeticOf is the algorithm by which the script counts: places are entries of a log.
func arithmeticOf(c *weir.Compiled) weir.Algorithm {
	if a := c.Algorithm(); a != weir.InFlight {
		return a
	}
	return weir.SlidingLog
}

// limit packs a limit as a text of eleven numbers, by which a function remembers it. Of periods of the calendar
// they are where three of them end, the one at a time and its neighbors.
func (p *packer) limit(c *weir.Compiled, r *request) {
	p.text("")
	begin, l, n := len(*p), c.Limit(), c.Numbers()
	if arithmeticOf(c) == weir.SlidingLog {
		n.Drain, n.Unit, n.Full = entryNumbers(n.Period)
	}
	if b, ok := c.Periods(r.at); ok {
		n.Period, n.Unit, n.Full, n.Width = 0, int64(b[1]), int64(b[2]), int64(b[3])
	}
	for _, x := range [...]int64{
		int64(arithmeticOf(c)), l.N, n.Period, n.Capacity, truth(l.Shape), truth(l.CountDenied), n.Drain, n.Unit, n.Full, n.Width, n.Buckets,
	} {
		p.number(x)
	}
	(*p)[begin-1] = byte(len(*p) - begin)
}

// op packs the cost, below 0 if it is only looked at, and last what the verb needs besides:
// -1 is no bound on the delay, and the newest receipt; -2 is what is charged whether or not
// it fits.
func (p *packer) op(c *check, i int, at opAt) {
	op, verb := &c.ops[i], c.verb
	p.number(int64(at.key))
	p.number(int64(at.limit))
	cost := min(op.Cost, weir.MaxUnits+1) // whatever is more never fits either
	if op.Look {
		cost = -1 - cost
	}
	p.number(cost)
	p.number(c.last(i))
	p.number(op.Leave)
	if verb.holds() {
		p.number(int64(at.list))
		p.number(truth(op.IsHeld()) * (1 + int64(c.hold.client)))
	}
}

// last is the number of an op whose meaning depends on the verb.
func (c *check) last(i int) int64 {
	op := &c.ops[i]
	switch {
	case c.verb == settle || c.verb == extend:
		return c.hold.used[i]
	case c.verb != refund && c.verb != renew:
		return longestDelay(op)
	case op.Receipt == weir.Latest:
		return -1
	}
	return min(int64(op.Receipt), 1<<53-1)
}

func longestDelay(op *weir.Op) int64 {
	switch {
	case op.Always:
		return -2
	case op.MaxDelay > 0:
		return op.MaxDelay.Microseconds()
	default:
		return -1
	}
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// length is of how many numbers a request is, without the time.
func (r *request) length() int {
	n := 1 + 2*len(r.limits) + 2*len(r.batch) + 5*len(r.ops)
	for _, c := range r.batch {
		switch {
		case c.verb == lease:
			n += (2 + leaseNumbers) * len(c.ops)
		case c.verb.holds():
			n += 2*len(c.ops) + holdExtras
		}
	}
	return n
}
