package redis

import (
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// Most calls are for requests of one op to take, reserve or settle, under limits of one algorithm; places
// in flight are given back as often as they are taken. What they do to one key is no business of another's, so they are put in order
// by key: Redis then has one state at a time in hand, and needs no tables.

// fewSubWindows are read and written as a whole, at most a kilobyte.
const fewSubWindows = 128

// chain is the requests for one key, in their order.
type chain struct {
	limit       *weir.Compiled
	first, last *check
	count       int
	plain       bool  // each asks for one unit, leaves as many as the first, and waits for any time
	leave       int64 // what they leave, if they are plain
}

// sortSingles puts a batch in order, if it is of such requests.
func (r *request) sortSingles() bool {
	does, refunds := algorithms[r.batch[0].ops[0].Limit.Algorithm()], false
	for _, c := range r.batch {
		if len(c.ops) != 1 || algorithms[c.ops[0].Limit.Algorithm()].singles != does.singles {
			return false
		}
		switch {
		case c.isSingle():
			refunds = refunds || c.verb == refund
		case (c.verb == reserve || c.verb == settle) && c.isShort() && !c.ops[0].Limit.ReturnsExpired():
			r.held = true
		default:
			return false
		}
		c.next = nil
	}
	isMoved := r.many&isMoved != 0
	if r.held && (refunds || isMoved) {
		return false
	}
	switch r.needs = does.needs; {
	case r.held:
		r.entry = does.held
	case isMoved:
		r.entry = does.moved
	default:
		r.entry = does.singles
	}
	if len(r.batch) == 1 { // somebody who came alone should not wait for maps
		c := r.batch[0]
		r.chains, r.keys = []chain{newChain(c)}, c.keys[:1:1]
	} else {
		if !r.chainUp() {
			return false
		}
		r.keys = make([]string, len(r.chains), 2*len(r.batch))
		for i := range r.chains {
			r.keys[i] = r.chains[i].first.keys[0]
		}
	}
	if r.held {
		r.addLists()
		r.addRecords()
	}
	if isMoved {
		for _, key := range r.keys {
			r.keys = append(r.keys, beside(key, r.batch[0].prefix, movedName))
		}
	}
	return true
}

// isSingle reports whether a check is for the quickest functions.
func (c *check) isSingle() bool {
	return len(c.ops) == 1 && (c.verb == take || c.verb == refund) && c.isShort()
}

func (c *check) isShort() bool { return c.ops[0].Limit.Numbers().Buckets <= fewSubWindows }

// addLists adds those of open holds that are not behind the states.
func (r *request) addLists() {
	for i := range r.chains {
		if c := r.chains[i].first; c.listKey(0) != c.keys[0] {
			r.keys = append(r.keys, c.listKey(0))
		}
	}
}

// addRecords adds those of holds, one for each request, in their order: so none has to say where
// its record is.
func (r *request) addRecords() {
	for i := range r.chains {
		for c := r.chains[i].first; c != nil; c = c.next {
			if c.verb != take {
				r.keys = append(r.keys, c.hold.record)
			}
		}
	}
}

func newChain(c *check) chain {
	return chain{limit: c.ops[0].Limit, first: c, last: c, count: 1, plain: c.asksForOne(), leave: c.ops[0].Leave}
}

func (c *check) asksForOne() bool {
	op := &c.ops[0]
	return op.Cost == 1 && op.MaxDelay <= 0 && !op.Always && c.verb != refund
}

// group is what is sent once for several chains: the limit, and what plain ones leave.
type group struct {
	limit *weir.Compiled
	leave int64
}

func (ch *chain) group() group {
	if !ch.plain {
		return group{ch.limit, 0}
	}
	return group{ch.limit, ch.leave}
}

// chainUp finds the requests of each key, and puts those of a limit together. A key that
// has two limits at once, because they have just changed, is not for singles.
func (r *request) chainUp() bool {
	known := make(map[string]int, len(r.batch))
	for _, c := range r.batch {
		op := &c.ops[0]
		i, ok := known[c.keys[0]]
		if !ok {
			known[c.keys[0]] = len(r.chains)
			r.chains = append(r.chains, newChain(c))
			continue
		}
		ch := &r.chains[i]
		if ch.limit != op.Limit {
			return false
		}
		ch.last.next, ch.last = c, c
		ch.count++
		ch.plain = ch.plain && c.asksForOne() && op.Leave == ch.leave
	}
	groups := map[group]int{}
	for i := range r.chains {
		g := r.chains[i].group()
		if _, ok := groups[g]; !ok {
			groups[g] = len(groups)
		}
	}
	if len(groups) > 1 {
		slices.SortStableFunc(r.chains, func(a, b chain) int { return groups[a.group()] - groups[b.group()] })
	}
	return true
}

// encodeSingles packs the request as lua/singles.lua reads it or, if some are
// about holds, lua/held.lua.
func (r *request) encodeSingles(now int64) string {
	b := make(packer, 3, 96+12*len(r.chains))
	length := b.clock(r, now)
	var agreed terms
	if r.held {
		b = slices.Grow(b, 192*len(r.batch))
		b.number(int64(len(r.chains)))
		b.number(truth(r.keepsRecords()) + 2*r.many)
		length += 2
	}
	for rest := r.chains; len(rest) > 0; {
		g, n := rest[0].group(), 1
		for n < len(rest) && rest[n].group() == g {
			n++
		}
		b.limit(g.limit, r)
		if length += 2; !r.held {
			b.number(g.leave)
			length++
		}
		b.number(int64(n))
		for i := range rest[:n] {
			if r.held {
				length += b.held(&rest[i], &agreed)
			} else {
				length += b.chain(&rest[i])
			}
		}
		rest = rest[n:]
	}
	return b.argument(length)
}

// chain packs one, and returns as how many numbers.
func (p *packer) chain(ch *chain) (length int) {
	if ch.plain {
		p.number(int64(ch.count))
		return 1
	}
	p.number(-int64(ch.count))
	for c := ch.first; c != nil; c = c.next {
		cost, leave := min(c.ops[0].Cost, weir.MaxUnits+1), c.ops[0].Leave
		if c.verb == refund {
			cost = -1 - cost
			if !c.asks {
				leave = -1
			}
		}
		p.number(cost)
		p.number(c.last(0))
		p.number(leave)
	}
	return 1 + 3*ch.count
}

// terms are what most requests of a call have in common. They are sent when they change.
type terms struct {
	delay, leave int64
	life         time.Duration // of a hold; 0 before the first
}

// changeTerms is sent instead of a verb.
const changeTerms = 0

// keepsRecords reports whether reservations write records; see holdCall.
func (r *request) keepsRecords() bool {
	return slices.ContainsFunc(r.batch, func(c *check) bool { return c.hold.stored })
}

// held packs one of which some requests may be about holds.
func (p *packer) held(ch *chain, agreed *terms) (length int) {
	p.number(int64(ch.count))
	length = 1
	for c := ch.first; c != nil; c = c.next {
		op := &c.ops[0]
		if c.verb != settle {
			t := terms{longestDelay(op), op.Leave, c.hold.life}
			if c.verb == take {
				t.life = agreed.life
			}
			if t != *agreed {
				*agreed = t
				p.number(changeTerms)
				p.number(t.delay)
				p.number(t.leave)
				p.number(t.life.Microseconds())
				length += 4
			}
		}
		p.number(int64(c.verb))
		p.number(min(op.Cost, weir.MaxUnits+1))
		length += 2
		switch c.verb {
		case reserve:
			p.text(c.hold.id)
			p.text(strings.TrimPrefix(c.hold.content, roomForOutcome))
			length += 2
		case settle:
			p.text(c.hold.id)
			p.number(int64(c.hold.expires))
			p.number(c.hold.used[0])
			length += 3
		}
	}
	return length
}
