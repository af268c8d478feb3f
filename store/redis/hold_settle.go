package redis

import (
	"context"

	"github.com/weirhq/weir"
)

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
	if settlement.Rest {
		d = &directory{ops: settlement.Ops, tags: settlement.Tags, late: true}
	}
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
	switch {
	case err != nil || settlement.Rest:
	case settled.State == weir.HoldOpen:
		s.known.extend(settlement.ID, settled.Expires)
	default:
		s.known.forget(settlement.ID)
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
		s.prolong(ctx, verb, settlement, c.hold.outcomes)
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
	err := firstOf(s.askAll(ctx, checks, false))
	var outcomes []outcome
	if err == nil {
		clear(next)
		for _, p := range part {
			outcomes = append(outcomes, checks[p].hold.outcomes[next[p]])
			next[p]++
		}
		s.prolong(ctx, verb, settlement, outcomes)
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

// prolong keeps the directory of a hold that was extended, where it is on a slot of its own. If that
// does not answer, only a store that knows the hold can settle it when the directory has expired.
func (s *Store) prolong(ctx context.Context, verb verb, settlement *weir.Settlement, outcomes []outcome) {
	if verb == extend && s.link.cluster && outcomes[0].state == holdOpen {
		_, _ = s.small(ctx, prolongDirectory, s.directoryOf(settlement.ID), s.directoryArg(settlement.TTL, ""))
	}
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
