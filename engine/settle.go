package engine

import (
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Used tells what a hold has really used: [Units] or [ByUnit].
type Used interface {
	// Of returns the units that a rule's part of the hold has used.
	Of(rule, unit string, reserved int64) int64
}

// Units is the same number for every rule. Only 0 can settle a rule that has weights of tokens.
type Units int64

// Of implements Used.
func (n Units) Of(string, string, int64) int64 { return int64(n) }

// ByUnit is a number for each unit. Rules with other units, or without, keep what was
// reserved. A unit that neither a rule in force nor a part of the hold has is invalid.
type ByUnit map[string]int64

// Of implements Used.
func (by ByUnit) Of(_, unit string, reserved int64) int64 {
	if n, found := by[unit]; found && unit != "" {
		return n
	}
	return reserved
}

// validateUsed reports why a hold that has these parts cannot be settled so.
func (e *Engine) validateUsed(used Used, parts []SettledPart) error {
	in := e.installed.Load()
	switch used := used.(type) {
	case Units:
		for _, p := range parts {
			if c := in.table.Find(p.Rule); used > 0 && c != nil && c.Tokens.Weighted() {
				return c.Uncounted("used")
			}
		}
	case ByUnit:
		if !in.loaded {
			return nil
		}
		var units []string
		for _, p := range parts {
			if p.Unit != "" {
				units = append(units, p.Unit)
			}
		}
		return in.table.ValidateUnits("used", used, units...)
	}
	return nil
}

// validateSettlement reports why a hold cannot be settled so. If that depends on what it consists of, it asks
// the store, which extends the hold: its rules may have changed, and then have other units. It is no event
// of the hold, and does not shorten the life of one that stays open.
func (e *Engine) validateSettlement(ctx context.Context, id weir.HoldID, used Used) error {
	n, isNumber := used.(Units)
	if table, _ := e.Rules(); e.validateUsed(used, nil) == nil && !(isNumber && n > 0 && table.Weighted()) {
		return nil
	}
	if e.holds == nil || e.pending.settlementOf(id) != nil {
		return nil // which the settlement finds out, too
	}
	s, deadline := &settlement{id: id, ttl: weir.DefaultHoldTTL}, e.deadline()
	held, err := e.settleOnce(ctx, deadline, s, nil)
	if err != nil || held.State != weir.HoldOpen {
		return nil // as before
	}
	e.observePlaces(held.places)
	if err = e.validateUsed(used, held.Parts); err != nil && held.until > held.Expires {
		s.ttl += time.Duration(held.until-held.Expires) * time.Microsecond
		if held, failed := e.settleOnce(ctx, deadline, s, nil); failed == nil {
			e.observePlaces(held.places)
		}
	}
	return err
}

// Settled is what has become of a hold.
type Settled struct {
	State   weir.HoldState
	Expires weir.Micros   // if it is open
	Parts   []SettledPart // one for each rule, if it is open or settled

	Repeated bool // it was settled before, and this is the answer of the first time

	places []heldPlace // for observers
	until  weir.Micros // when it would have expired, if it is open; 0 if that is unknown
	spent  []spent     // for observers
}

// SettledPart is what has become of one rule's part of a hold.
type SettledPart struct {
	Rule     string
	Unit     string // of the rule
	Shadow   bool
	Reserved int64
	Used     int64 // 0 as long as the hold is open
	Excess   int64 // of Used, what was not charged; see weir.Decision
}

// Settle ends a hold with what was really used. Less than was reserved is refunded as of
// the reservation; more is charged, even beyond the limit. A hold ends once: if it has
// ended, the answer is that of the first time. Places of rules that limit how many requests
// are in flight are free, whatever was used.
//
// If the store is unavailable, the state is weir.HoldPending, and the engine repeats the
// call until the store answers, or [Engine.Close] is called. If too many calls are
// pending, Settle returns an error.
//
// A number that cannot be used, because no rule has its unit or a rule has weights of tokens, is a
// [weir.InvalidError]. The hold then stays open, for weir.DefaultHoldTTL at least.
func (e *Engine) Settle(ctx context.Context, id weir.HoldID, used Used) (Settled, error) {
	if err := e.validateSettlement(ctx, id, used); err != nil {
		return Settled{}, err
	}
	return e.settle(ctx, &settlement{id: id, used: used, kind: SettledHold}, nil)
}

// Cancel ends a hold as if nothing was used.
func (e *Engine) Cancel(ctx context.Context, id weir.HoldID) (Settled, error) {
	return e.settle(ctx, &settlement{id: id, used: Units(0), kind: CancelledHold}, nil)
}

// Extend lets a hold expire after ttl from now on. A ttl of 0 is weir.DefaultHoldTTL. Places of
// rules that limit how many requests are in flight are renewed, and the hold lasts no longer
// than the rule's HoldTTL. If the store is unavailable, it returns an error.
func (e *Engine) Extend(ctx context.Context, id weir.HoldID, ttl time.Duration) (Settled, error) {
	s := weir.Settlement{TTL: ttl}
	if err := s.Validate(); err != nil {
		return Settled{}, err
	}
	if e.pending.settlementOf(id) != nil {
		return Settled{State: weir.HoldPending}, nil
	}
	return e.settle(ctx, &settlement{id: id, ttl: s.TTL, kind: ExtendedHold}, nil)
}

// settlement is a call about a hold, which may have to be repeated.
type settlement struct {
	id    weir.HoldID
	used  Used                      // nil to extend
	byTag func(string, int64) int64 // used, by the tag of a part
	ttl   time.Duration
	kind  HoldKind

	tokens  rule.Usage // that the response tells
	charged Settled    // of a charge without a hold: what observers are told
	end     *holdEnd   // of a hold that is known by its name
	ops     []weir.Op  // of a charge without a hold
	parts   []SettledPart
	until   weir.Micros // to repeat it
	foreign bool        // its id may be invented
	step    bool        // it is of a hold that another one is told of, too

	// What the store has answered for the first of the request's holds, if it failed for a later one: it may not remember them.
	answers []weir.Settled
}

// settle makes a call about a hold. It appends the parts of its answer to dst.
func (e *Engine) settle(ctx context.Context, s *settlement, dst []SettledPart) (Settled, error) {
	if e.holds == nil {
		return Settled{}, errNoHolds
	}
	if s.used != nil && s.byTag == nil {
		s.byTag = s.usedByTag
	}
	first := e.pending.settlementOf(s.id)
	if first != nil {
		s = first // it will be settled so
	}
	done, err := e.settleOnce(ctx, e.deadline(), s, dst)
	if err != nil {
		if s.used == nil {
			return Settled{}, err
		}
		if err := e.retryLater(s, err); err != nil {
			return Settled{}, err
		}
		done = Settled{State: weir.HoldPending}
	} else if removed := e.pending.dequeue(s.id); removed || first != nil {
		done.Repeated = !removed // an answer that was lost was none
	}
	done.observe(e, s)
	done.places, done.until, done.spent = nil, 0, nil // which are not for the caller
	return done, nil
}

// settleOnce is settle without regard to others. After an error it can be made again.
func (e *Engine) settleOnce(ctx context.Context, deadline time.Time, s *settlement, dst []SettledPart) (Settled, error) {
	if s.end != nil {
		return e.settleEnd(ctx, deadline, s)
	}
	if s.ops != nil {
		return Settled{State: weir.HoldSettled, Parts: s.parts, spent: s.charged.spent}, e.chargeOnce(ctx, s)
	}
	if k := e.kept.holdOf(s.id, e.clock); k != nil {
		ctx, cancel := until(ctx, deadline)
		defer cancel()
		return e.settleKept(ctx, k, s)
	}
	return e.settleStored(ctx, deadline, e.holds, s, dst)
}

// chargeOnce charges what is done already. A store with holds does so once, however often the
// call is repeated.
func (e *Engine) chargeOnce(ctx context.Context, s *settlement) (err error) {
	if e.holds == nil {
		_, err = e.store.Take(ctx, nil, s.ops...)
		return err
	}
	ops := slices.Clone(s.ops)
	for i := range ops {
		ops[i].Always = false
	}
	_, err = e.holds.Settle(ctx, weir.Settlement{ID: s.id, Ops: ops, Used: func(_ string, cost int64) int64 { return cost }})
	return err
}

// usedByTag is what was used of a part.
func (s *settlement) usedByTag(text string, cost int64) int64 {
	t := parseTag(text)
	if t.place {
		return 0
	}
	return s.used.Of(t.rule, t.unit, cost)
}

// settleStored settles a hold in a store, and those of the shadow rules.
func (e *Engine) settleStored(ctx context.Context, deadline time.Time, store weir.HoldStore, s *settlement, dst []SettledPart) (Settled, error) {
	call := weir.Settlement{ID: s.id, TTL: s.ttl, Renew: true}
	if s.used != nil {
		call.Used = s.byTag
	}
	var known []weir.Settled
	if store == e.holds && s.used != nil {
		known = s.answers
	}
	var answers [3]weir.Settled // there are no more
	n := copy(answers[:], known)
	var err error
	if n == 0 {
		if answers[0], err = store.Settle(ctx, call); err != nil {
			return Settled{}, err
		}
		n = 1
	}
	first := answers[0]
	if s.used != nil {
		e.wakeHeld(first.Parts)
	}
	done := Settled{State: first.State, Expires: first.Expires, Repeated: first.Repeated, Parts: dst, until: first.Until}
	more := min(done.addParts(first.Parts), 2)
	e.notePlaces(&done, &first)
	if more > 0 {
		var cancel context.CancelFunc
		ctx, cancel = until(ctx, deadline)
		defer cancel()
	}
	for ; n <= more; n++ {
		call.ID = sibling(s.id, byte(n))
		if answers[n], err = store.Settle(ctx, call); err != nil {
			if store == e.holds && s.used != nil {
				s.answers = slices.Clone(answers[:n])
			}
			return Settled{}, err
		}
	}
	for _, next := range answers[1 : more+1] {
		done.addParts(next.Parts)
		e.notePlaces(&done, &next)
		done.Repeated = done.Repeated && (next.Repeated || next.State != weir.HoldSettled)
	}
	return done, nil
}

// addParts adds the parts of one hold, and returns how many others there may be.
func (s *Settled) addParts(parts []weir.SettledPart) (more int) {
	for _, p := range parts {
		t := parseTag(p.Tag)
		s.Parts = addPart(s.Parts, t, p.Cost, p.Used, p.Excess)
		s.addSpent(t, p.Used)
		more = t.more
	}
	return more
}

// addPart adds a limit's part of a hold to that of its rule.
func addPart(parts []SettledPart, t tag, reserved, used, excess int64) []SettledPart {
	if i := slices.IndexFunc(parts, func(p SettledPart) bool { return p.Rule == t.rule && p.Shadow == t.shadow }); i >= 0 {
		parts[i].Excess = max(parts[i].Excess, excess)
		return parts
	}
	return append(parts, SettledPart{Rule: t.rule, Unit: t.unit, Shadow: t.shadow, Reserved: reserved, Used: used, Excess: excess})
}

// observe tells what has become of a hold that was to be settled or extended.
func (s *Settled) observe(e *Engine, by *settlement) {
	meant := by.kind
	switch {
	case s.Repeated:
		meant = RepeatedHold
	case s.State == weir.HoldExpired:
		meant = ExpiredHold
	case s.State == weir.HoldUnknown:
		meant = UnknownHold
	case s.State == weir.HoldPending:
		meant = PendingHold
	default:
		e.observePlaces(s.places)
		if meant != ExtendedHold {
			e.observeSpent(s.spent, by)
		}
	}
	e.observeHold(meant, s.Parts)
}
