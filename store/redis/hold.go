package redis

import (
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// holdCall is what a check about a hold sends besides its ops.
type holdCall struct {
	id string

	// The record of a hold says when it expires, what it was charged on, for whoever settles
	// it, and at last what has become of it. In a cluster each slot has one that says the
	// last only; what the hold was charged on is elsewhere, and written by a call of its own.
	record  string // its key
	content string // "" in a cluster
	stored  bool   // it is there before the end
	at      int    // of the key

	client  uint16        // of reserve: the number of the client
	life    time.Duration // of reserve and extend
	expires weir.Micros   // of settle and extend: when it was last known to
	used    []int64       // of settle, for each op; of extend, whether it is a place to be renewed

	outcomes []outcome
}

// outcome is what has become of one op of a hold.
type outcome struct {
	state, used, excess int64
	repeated            bool // it was settled before
}

// What the script says of a hold.
const (
	holdUnknown = iota
	holdSettled
	holdExpired
	holdForeign
	holdOpen
	holdRepeated
	holdAsAsked // settled, with what was asked for and no more; this is said by singles only

	holdsForeign = 7

	moreDue = 11 // nothing was done: more holds have expired than can end in a call
)

// holdExtras is how many numbers and texts are sent for a hold.
const holdExtras = 4

// hold packs what is sent for a hold.
func (p *packer) hold(c *check) {
	h := &c.hold
	p.text(h.id)
	p.number(int64(h.at))
	switch c.verb {
	case reserve:
		p.number(h.life.Microseconds())
		p.text(h.content)
	case settle:
		p.number(truth(h.stored))
		p.number(int64(h.expires))
	default:
		p.number(h.life.Microseconds())
		p.number(int64(h.expires))
	}
}

func (p *packer) text(s string) {
	*p = append(*p, 0xdb, byte(len(s)>>24), byte(len(s)>>16), byte(len(s)>>8), byte(len(s)))
	*p = append(*p, s...)
}

// outcomes reads those of a hold.
func (u *unpacker) outcomes(c *check) error {
	c.hold.outcomes = c.hold.outcomes[:0]
	for i := range c.ops {
		state, err := u.number()
		if err != nil {
			return err
		}
		if state == holdForeign || state == holdsForeign || state == moreDue {
			c.err = c.undecided(i, state/4)
			continue
		}
		if state == holdAsAsked {
			c.hold.outcomes = append(c.hold.outcomes, outcome{state: holdSettled, used: c.hold.used[i]})
			continue
		}
		used, excess, err := u.two()
		if err != nil {
			return err
		}
		repeated := state == holdRepeated
		if repeated {
			state = holdSettled
		}
		c.hold.outcomes = append(c.hold.outcomes, outcome{state, used, excess, repeated})
	}
	return nil
}

func isCharged(op weir.Op) bool { return !op.Look }
func isHeld(op weir.Op) bool    { return op.IsHeld() }

// verbFor is the verb for ops, of which some may have holds that give back their units
// when they expire. A reservation without anything to hold takes, and if all are only looked
// at, that is a peek.
func verbFor(verb verb, ops []weir.Op) verb {
	if verb == lease {
		return verb
	}
	if verb == reserve && !slices.ContainsFunc(ops, isHeld) {
		verb = take
	}
	if verb.takes() && !slices.ContainsFunc(ops, isCharged) {
		verb = peek
	}
	for i := range ops {
		if ops[i].Limit.ReturnsExpired() {
			switch verb {
			case peek:
				return holdPeek
			case take:
				return holdTake
			}
		}
	}
	return verb
}

// Names of keys. An escaped name of a limit has no % before another sign than a digit or
// a letter, so these are no states.
const (
	heldName   = "%holds:"  // the open holds of a state, if they are not behind it
	movedName  = "%moved:"  // a state that has many open holds
	manyName   = "%many:"   // these
	leasesName = "%leases:" // of a state
	recordName = "%hold:"   // one hold
)

// listKey is the key of the open holds of the i-th op. They are behind the state, unless that
// has a tail or is a log.
func (c *check) listKey(i int) string {
	if algorithms[c.ops[i].Limit.Algorithm()].needs&(needBucket|needFixedWindow|needSlidingWindow) != 0 {
		return c.keys[i]
	}
	return beside(c.keys[i], c.prefix, heldName)
}

// beside is the name of what belongs to the state of a key, whose prefix has that length.
func beside(key string, prefix int, what string) string { return key[:prefix] + what + key[prefix:] }

// listAt is where in a request the key of the i-th op's open holds is: below 0 if holds that
// expire give back their units, and 0 if no holds are looked for.
func (c *check) listAt(i int, known map[string]int, list *[]string) int {
	releases := c.ops[i].Limit.ReturnsExpired()
	if !releases && (c.verb == holdTake || c.verb == lease || c.verb == reserve && !c.ops[i].IsHeld()) {
		return 0
	}
	at := position(known, list, c.listKey(i))
	if releases {
		return -at
	}
	return at
}

// holds makes a check one about a hold.
func (s *Store) holds(c *check, id weir.HoldID) *holdCall {
	c.hold.id = string(id[:])
	if !s.link.cluster {
		c.hold.record, c.hold.stored = s.directoryOf(id), true
		return &c.hold
	}
	first := ""
	for i, key := range c.keys {
		if c.ops[i].IsHeld() && (first == "" || key < first) {
			first = key
		}
	}
	c.hold.record = s.prefix + recordName + first[len(s.prefix):] + c.hold.id // which may have braces, so it is behind those of the state
	return &c.hold
}

// Reserve implements weir.HoldStore. In a cluster, what a hold was charged on is written to a slot of
// its own. If that does not answer, only this store can settle the hold.
func (s *Store) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	dst, _, err := s.reserve(ctx, dst, &r, ops, false)
	return dst, err
}

func (s *Store) reserve(ctx context.Context, dst []weir.Decision, r *weir.Reservation, ops []weir.Op, partial bool) ([]weir.Decision, []error, error) {
	if err := weir.ValidateReserve(r, ops); err != nil {
		return dst, nil, err
	}
	if err := ctx.Err(); err != nil || len(ops) == 0 {
		return dst, nil, err
	}
	if s.link.cluster {
		var cancel context.CancelFunc
		ctx, cancel = s.within(ctx)
		defer cancel()
	}
	d, first := describe(r, ops), len(dst)
	dst, failed, err := s.reserveSlots(ctx, dst, r, d, ops, partial)
	if err != nil {
		return dst, nil, err
	}
	if !weir.Allowed(dst[first:]) {
		weir.ShortenRetries(dst[first:], ops)
	}
	decided := 0
	for i := range ops {
		switch {
		case failed != nil && failed[i] != nil:
		case !dst[first+i].Allowed:
			return dst, failed, nil
		default:
			decided = first + i
		}
	}
	if failed != nil {
		if d = describe(r, ops, failed...); len(d.ops) == 0 {
			return dst, failed, nil
		}
	}
	if s.link.cluster {
		key, arg := s.directoryOf(r.ID), s.directoryArg(r.TTL, string(s.texts.append(nil, d)))
		if _, err := s.small(ctx, writeDirectory, key, arg); err != nil {
			s.writeLater(key, arg)
			if failed == nil {
				failed = make([]error, len(ops))
			}
			failed = append(failed, err)
		}
	}
	d.expires = dst[decided].ResetAt.Add(-dst[decided].ResetAfter).Add(r.TTL)
	s.known.add(r.ID, d)
	return dst, failed, nil
}

// writeLater tries again to write a directory, for no caller waits any more.
func (s *Store) writeLater(key, arg string) {
	s.aside(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.link.patient)
		defer cancel()
		_, _ = writeDirectory.run(ctx, s.link.client, []string{key}, arg)
	})
}

// reserveSlots charges all slots.
func (s *Store) reserveSlots(ctx context.Context, dst []weir.Decision, r *weir.Reservation, d *directory, ops []weir.Op, partial bool) ([]weir.Decision, []error, error) {
	if s.isApart(ops) {
		checks, part := s.split(reserve, ops)
		for _, c := range checks {
			if c.verb == reserve {
				h := s.holds(c, r.ID)
				h.life, h.client = r.TTL, r.ClientNumber()
			}
		}
		return s.doChecks(ctx, dst, checks, part, partial)
	}
	c := s.checkOf(reserve, ops)
	defer c.recycle()
	h := s.holds(c, r.ID)
	h.life, h.client = r.TTL, r.ClientNumber()
	if !s.link.cluster {
		h.content = string(s.texts.append(make([]byte, outcomeSize*len(d.ops), 256), d))
	}
	if err := s.run(ctx, c); err != nil {
		return dst, nil, err
	}
	return append(dst, c.decisions...), nil, nil
}

// cancel makes a check that gives back what a reservation has charged.
func (c *check) cancel() *check {
	r := newCheck(settle, c.slot)
	r.prefix = c.prefix
	for i, op := range c.ops {
		if op.IsHeld() {
			r.addOp(op, c.keys[i])
		}
	}
	r.hold.id, r.hold.record, r.hold.expires = c.hold.id, c.hold.record, c.at.Add(c.hold.life)
	r.hold.used = append(r.hold.used, make([]int64, len(r.ops))...)
	return r
}
