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

	holdsForeign = 7
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
		if state == holdForeign || state == holdsForeign {
			c.err = c.foreign(i, state == holdsForeign)
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

func onlyLooks(ops []weir.Op) bool {
	return !slices.ContainsFunc(ops, func(op weir.Op) bool { return !op.Look })
}

// verbFor is the verb for ops, of which some may have holds that give back their units
// when they expire. If all are only looked at, that is a peek.
func verbFor(verb verb, ops []weir.Op) verb {
	if verb.takes() && onlyLooks(ops) {
		verb = peek
	}
	for i := range ops {
		if ops[i].Limit.Limit().Release {
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
	heldName   = "%holds:" // the open holds of a state, if they are not behind it
	recordName = "%hold:"  // one hold
)

// listKey is the key of the open holds of the i-th op. They are behind the state, unless that
// has a tail or is a log.
func (c *check) listKey(i int) string {
	if needOf[c.ops[i].Limit.Algorithm()]&needCounters != 0 {
		return c.keys[i]
	}
	return c.keys[i][:c.prefix] + heldName + c.keys[i][c.prefix:]
}

// listAt is where in a request the key of the i-th op's open holds is: below 0 if holds that
// expire give back their units, and 0 if no holds are looked for.
func (c *check) listAt(i int, known map[string]int, list *[]string) int {
	releases := c.ops[i].Limit.Limit().Release
	if !releases && (c.verb == holdTake || c.verb == holdPeek || c.verb == reserve && c.ops[i].Look) {
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
		if !c.ops[i].Look && (first == "" || key < first) {
			first = key
		}
	}
	c.hold.record = s.prefix + recordName + first[len(s.prefix):] + c.hold.id // which may have braces, so it is behind those of the state
	return &c.hold
}

// Reserve implements weir.HoldStore.
func (s *Store) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	if err := weir.ValidateReserve(&r, ops); err != nil {
		return dst, err
	}
	if err := ctx.Err(); err != nil || len(ops) == 0 {
		return dst, err
	}
	if s.link.cluster {
		var cancel context.CancelFunc
		ctx, cancel = s.within(ctx)
		defer cancel()
	}
	d, first := describe(&r, ops), len(dst)
	dst, err := s.reserve(ctx, dst, &r, d, ops)
	if err != nil || !weir.Allowed(dst[first:]) {
		return dst, err
	}
	if s.link.cluster {
		if _, err := s.small(ctx, writeDirectory, s.directoryOf(r.ID), s.directoryArg(r.TTL, string(s.texts.append(nil, d)))); err != nil {
			s.aside(func() { s.cancel(r.ID, d) })
			return dst[:first], err
		}
	}
	d.expires = dst[first].ResetAt.Add(-dst[first].ResetAfter).Add(r.TTL)
	s.known.add(r.ID, d)
	return dst, nil
}

// reserve charges all slots.
func (s *Store) reserve(ctx context.Context, dst []weir.Decision, r *weir.Reservation, d *directory, ops []weir.Op) ([]weir.Decision, error) {
	if s.isApart(ops) {
		checks, part := s.split(reserve, ops)
		for _, c := range checks {
			if c.verb == reserve {
				s.holds(c, r.ID).life = r.TTL
			}
		}
		return s.doChecks(ctx, dst, checks, part)
	}
	c := s.checkOf(reserve, ops)
	defer c.recycle()
	h := s.holds(c, r.ID)
	h.life = r.TTL
	if !s.link.cluster {
		h.content = string(s.texts.append(make([]byte, outcomeSize*len(d.ops), 256), d))
	}
	if err := s.run(ctx, c); err != nil {
		return dst, err
	}
	return append(dst, c.decisions...), nil
}

// cancel gives back what a hold was charged that could not be finished: without its
// directory, it could not be settled. No caller waits for it.
func (s *Store) cancel(id weir.HoldID, d *directory) {
	ctx, cancel := s.within(context.Background())
	defer cancel()
	d.expires = weir.Latest >> 10
	_, _ = s.settleAll(ctx, settle, &weir.Settlement{ID: id, Used: func(string, int64) int64 { return 0 }}, d)
}

// cancel makes a check that gives back what a reservation has charged.
func (c *check) cancel() *check {
	r := newCheck(settle, c.slot)
	r.prefix = c.prefix
	for i, op := range c.ops {
		if !op.Look {
			r.add(op, c.keys[i])
		}
	}
	r.hold.id, r.hold.record, r.hold.expires = c.hold.id, c.hold.record, c.at.Add(c.hold.life)
	r.hold.used = append(r.hold.used, make([]int64, len(r.ops))...)
	return r
}

// Settle implements weir.HoldStore. In a cluster, a hold on several slots may be settled on
// some of them when there is an error; to settle it again completes it.
func (s *Store) Settle(ctx context.Context, settlement weir.Settlement) (weir.Settled, error) {
	if err := settlement.Validate(); err != nil {
		return weir.Settled{}, err
	}
	verb := settle
	if settlement.Used == nil {
		verb = extend
	}
	d := s.known.find(settlement.ID)
	if d == nil || verb == extend && s.link.cluster { // there are several calls
		var cancel context.CancelFunc
		ctx, cancel = s.within(ctx)
		defer cancel()
	}
	if d == nil {
		var err error
		if d, err = s.lookUp(ctx, &settlement); err != nil || d == nil {
			return weir.Settled{}, err
		}
	}
	for i := range d.ops {
		settlement.Limit(d.ops[i].Limit)
	}
	settled, err := s.settleAll(ctx, verb, &settlement, d)
	if err == nil {
		s.known.forget(settlement.ID) // it has ended, or expires at another time
	}
	return settled, err
}

// lookUp finds what a hold was charged on; nil if that is unknown.
func (s *Store) lookUp(ctx context.Context, settlement *weir.Settlement) (*directory, error) {
	d, err := s.find(ctx, settlement.ID)
	if err != nil || d != nil || settlement.Ops == nil || settlement.Used == nil {
		return d, err
	}
	// If its charges are not there either, nothing of it was charged yet.
	return &directory{ops: settlement.Ops, tags: settlement.Tags, late: true}, nil
}

// settleAll asks all slots.
func (s *Store) settleAll(ctx context.Context, verb verb, settlement *weir.Settlement, d *directory) (weir.Settled, error) {
	if ctx.Err() != nil {
		return weir.Settled{}, context.Cause(ctx)
	}
	if !s.isApart(d.ops) {
		c := s.checkOf(verb, d.ops)
		defer c.recycle()
		s.toSettle(c, settlement, d)
		for i := range d.ops {
			c.settles(i, settlement, d, i)
		}
		if err := s.run(ctx, c); err != nil {
			return weir.Settled{}, err
		}
		if err := s.prolong(ctx, verb, settlement, c.hold.outcomes); err != nil {
			return weir.Settled{}, err
		}
		return d.settled(c.hold.outcomes), nil
	}
	checks, part := s.split(verb, d.ops)
	for _, c := range checks {
		s.toSettle(c, settlement, d)
	}
	next := make([]int, len(checks))
	for op, p := range part {
		checks[p].settles(next[p], settlement, d, op)
		next[p]++
	}
	err := s.askAll(ctx, checks)
	var outcomes []outcome
	if err == nil {
		clear(next)
		for _, p := range part {
			outcomes = append(outcomes, checks[p].hold.outcomes[next[p]])
			next[p]++
		}
		err = s.prolong(ctx, verb, settlement, outcomes)
	}
	for _, c := range checks {
		c.recycle()
	}
	if err != nil {
		return weir.Settled{}, err
	}
	return d.settled(outcomes), nil
}

// toSettle makes a check one that settles or extends.
func (s *Store) toSettle(c *check, settlement *weir.Settlement, d *directory) {
	h := s.holds(c, settlement.ID)
	h.life, h.expires = settlement.TTL, d.expires
}

// settles tells the i-th op of a check what was used of an op of the hold.
func (c *check) settles(i int, settlement *weir.Settlement, d *directory, op int) {
	used := truth(settlement.Renews(d.ops[op].Limit))
	if settlement.Used != nil {
		used = settlement.Units(d.tag(op), d.ops[op].Cost)
	}
	c.hold.used = append(c.hold.used, used)
	if d.late {
		c.ops[i].Cost = 0
	}
}

// prolong keeps the directory of a hold that was extended, where it is on a slot of its own.
func (s *Store) prolong(ctx context.Context, verb verb, settlement *weir.Settlement, outcomes []outcome) error {
	if verb != extend || !s.link.cluster || outcomes[0].state != holdOpen {
		return nil
	}
	_, err := s.small(ctx, prolongDirectory, s.directoryOf(settlement.ID), s.directoryArg(settlement.TTL, ""))
	return err
}

// settled is the answer of what has become of each op.
func (d *directory) settled(outcomes []outcome) weir.Settled {
	worst, repeated := outcomes[0], true
	for _, o := range outcomes {
		if o.state != worst.state && o.state != holdSettled {
			worst = o
		}
		repeated = repeated && o.repeated
	}
	var s weir.Settled
	switch worst.state {
	case holdOpen:
		s = weir.Settled{State: weir.HoldOpen, Expires: weir.Micros(worst.used), Until: d.expires}
	case holdSettled:
		if s.State, s.Repeated = weir.HoldSettled, repeated; !repeated {
			s.Until = d.expires
		}
	case holdExpired:
		return weir.Settled{State: weir.HoldExpired}
	default:
		return weir.Settled{}
	}
	s.Parts = make([]weir.SettledPart, len(outcomes))
	for i, o := range outcomes {
		if worst.state == holdOpen {
			o = outcome{}
		}
		s.Parts[i] = weir.SettledPart{Tag: d.tag(i), Cost: d.ops[i].Cost, Used: o.used, Excess: o.excess}
	}
	return s
}
