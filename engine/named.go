package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// NamedHold lets a demand begin a hold, or end one that another call has begun, maybe of another process on the
// same store: both only know a name, which the client of a protocol may have chosen.
//
// Several holds can have one name. Their ids follow from it and a number, so that nothing has to remember which
// there are. A hold gets the lowest number that no hold of the name has which is open, or was for less than
// its TTL, and the open hold with the lowest number ends first: the oldest, unless a name is used for longer
// than the TTL.
type NamedHold struct {
	Name weir.HoldID   // a hash, with what keeps those apart who may not end each other's holds
	TTL  time.Duration // after which it expires; 0 is weir.DefaultHoldTTL
	Ends bool          // the oldest hold of the name ends, and Cost is what was used
}

// maxNamed is how many holds one name can have. A demand that would begin another one is charged without a
// hold.
const maxNamed = 32

// numbered is the id of a hold of a name.
func numbered(name weir.HoldID, n byte) weir.HoldID {
	name[0] ^= n
	return name
}

// numbers are those of a name that need not be tried, as far as this process knows: all below are in use, or
// have ended.
type numbers struct {
	used, ended byte
	until       weir.Micros // when the first of them may be forgotten
}

// skipped returns what is known of a name.
func (e *Engine) skipped(name weir.HoldID) numbers {
	if n, known := e.names.get(issuedKey(name)); known && e.clock() < n.until {
		return n
	}
	return numbers{}
}

// skip notes that the numbers below some are in use, or that they have ended.
func (e *Engine) skip(h *NamedHold, used, ended byte) {
	now := e.clock()
	e.names.update(issuedKey(h.Name), func(was numbers, known bool) (numbers, bool) {
		if !known || was.until <= now {
			was = numbers{until: now.Add(h.TTL)}
		}
		next := numbers{max(was.used, used, ended), max(was.ended, ended), was.until}
		return next, next != was || !known
	})
}

// nextNumber lets a reservation try another number. It returns false if the name has no more.
func (e *Engine) nextNumber(h *charging) bool {
	if h.number++; h.number == 1 {
		h.number = max(1, e.skipped(h.named.Name).used)
	}
	if h.number >= maxNamed {
		return false
	}
	h.id = numbered(h.named.Name, h.number)
	return true
}

// isTaken reports whether a reservation failed because there is a hold with its id already, or was one.
func isTaken(ops []weir.Op, decisions []weir.Decision, err error) bool {
	if err != nil {
		return errors.Is(err, weir.ErrHoldExists)
	}
	for i := range decisions {
		if d := &decisions[i]; ops[i].IsHeld() && !d.Allowed && d.RetryAfter == 0 && d.Remaining >= ops[i].Cost {
			return true
		}
	}
	return false
}

// reserveAttempts is how often the demands of a request with several holds are looked at before one of them, because other requests
// came and left between two calls, is charged without a hold.
const reserveAttempts = 3

// reserveDemands charges those demands that are owed by nobody, of which some begin holds. One call of the store makes one hold,
// and charges everything else. If there are several, they are looked at together, and then made one after the other; if one
// is denied nevertheless, because others came between, those before are cancelled.
func (e *Engine) reserveDemands(ctx context.Context, in *installed, demands []Demand, v *Verdict) error {
	last, begins := -1, 0
	for i := range demands {
		if demands[i].part() == begun {
			last, begins = i, begins+1
		}
	}
	if begins == 1 {
		return e.reserveDemand(ctx, in, demands, last, isUnowed, v)
	}
	for attempt := 1; ; attempt++ {
		v.listDemands(demands, isUnowed)
		if err := e.peek(ctx, in, v); err != nil {
			return err
		}
		if v.Allowed {
			if done, err := e.reserveEach(ctx, in, demands, last, v); done || err != nil {
				return err
			}
		}
		v.reset(in)
		if err := e.chargeDemands(ctx, in, demands, isUnowed, v); err != nil || !v.Allowed {
			return err
		}
		// There is room meanwhile.
		if attempt == reserveAttempts || e.Refund(ctx, v) != nil {
			v.Unheld = true
			return nil
		}
		v.reset(in)
	}
}

func isUnowed(d *Demand) bool { return d.part() <= begun }

// reserveEach makes several holds, and charges everything else with the last one. If one is denied, those before are cancelled. It
// returns false if that was before the last one, so that the others have not been asked.
func (e *Engine) reserveEach(ctx context.Context, in *installed, demands []Demand, last int, v *Verdict) (done bool, err error) {
	var made []*Verdict
	defer func() {
		if done && v.Allowed {
			return
		}
		for _, m := range made {
			e.giveBack(ctx, e.deadline(), m)
		}
	}()
	for i := range last {
		if demands[i].part() != begun {
			continue
		}
		m := &Verdict{timing: v.timing}
		if err := e.reserveDemand(ctx, in, demands, i, func(d *Demand) bool { return d == &demands[i] }, m); err != nil || !m.Allowed {
			return false, err
		}
		made = append(made, m)
	}
	v.reset(in)
	err = e.reserveDemand(ctx, in, demands, last, func(d *Demand) bool { return d.part() == charged || d == &demands[last] }, v)
	if err != nil || !v.Allowed {
		return err == nil, err
	}
	for _, m := range made {
		v.appendVerdict(m)
		if v.Unheld = v.Unheld || m.Unheld; m.Hold != (weir.HoldID{}) {
			v.others = append(v.others, m.Hold)
		}
	}
	return true, nil
}

// reserveDemand charges some demands, with a hold on one of them.
func (e *Engine) reserveDemand(ctx context.Context, in *installed, demands []Demand, held int, pick func(*Demand) bool, v *Verdict) error {
	if e.holds == nil {
		return errNoHolds
	}
	h := demands[held].Hold
	s := weir.Settlement{TTL: h.TTL}
	if err := s.Validate(); err != nil {
		return err
	}
	v.listDemands(demands, pick)
	for i := range v.Results {
		v.Results[i].final = v.Results[i].Demand != held
	}
	v.charging = charging{way: reserved, named: h, id: h.Name, ttl: s.TTL, tags: v.charging.tags[:0]}
	if err := e.charge(ctx, in, v); err != nil {
		return err
	}
	v.Unheld = v.Unheld && v.Allowed
	if used := v.charging.number; used > 0 {
		if v.Hold != (weir.HoldID{}) {
			used++
		}
		e.skip(h, used, 0)
	}
	return nil
}

// holdEnd is how a demand ends a hold.
type holdEnd struct {
	hold   *NamedHold
	number byte // of the hold that is tried
	again  bool // it was tried before, without an answer
	asked  bool // the store was, for this request
	ops    []weir.Op
	charge weir.HoldID // under which the ops are charged if there is no hold
}

// endHold ends the oldest hold of a demand's name with its cost. If there is none, the cost is charged, even if it does not
// fit. If the store is unavailable, or has not answered until the deadline, that is repeated until it answers.
func (e *Engine) endHold(ctx context.Context, deadline time.Time, first bool, d *Demand) error {
	if e.holds == nil {
		return errNoHolds
	}
	if e.timeout > 0 || e.isQuick {
		ctx = context.WithoutCancel(ctx) // the work is done, whoever waits
	}
	hold, cost := *d.Hold, d.Cost // the demand is used again
	s := &settlement{
		kind: SettledHold, used: Units(cost), byTag: func(string, int64) int64 { return cost }, end: &holdEnd{hold: &hold, asked: !first},
	}
	for _, limit := range d.Limits {
		s.end.ops = append(s.end.ops, weir.Op{Key: strings.Clone(d.Key), Limit: limit, Cost: cost})
	}
	s.parts = addPart(nil, tag{rule: d.Rule.ID, shadow: !d.Rule.Mode.Denies()}, 0, cost, 0)
	done, err := e.settleEnd(ctx, deadline, s)
	if err != nil {
		if err := e.retryLater(s, err); err != nil {
			return err
		}
		done = Settled{State: weir.HoldPending, Parts: s.parts}
	}
	done.observe(e, s)
	return nil
}

// settleEnd ends a hold by its name. After an error it can be made again.
func (e *Engine) settleEnd(ctx context.Context, deadline time.Time, s *settlement) (Settled, error) {
	end := s.end
	for end.number < maxNamed {
		id := numbered(end.hold.Name, end.number)
		if other := e.pending.settlementOf(id); other == nil || other == s {
			done, err := e.settleNumber(ctx, deadline, s, id)
			if err != nil {
				if s.until == 0 {
					s.id = id
				}
				return Settled{}, err
			}
			switch {
			case done.State == weir.HoldSettled && (!done.Repeated || s.hasEnded(&done)):
				if done.Repeated = false; end.number > 0 {
					e.skip(end.hold, 0, end.number+1)
				}
				return done, nil
			case done.State == weir.HoldUnknown:
				if end.number > 1 {
					e.skip(end.hold, 0, end.number)
				}
				return e.chargeEnd(ctx, deadline, s)
			}
		}
		end.again = false
		if end.number++; end.number == 1 {
			end.number = max(1, e.skipped(end.hold.Name).ended)
		}
	}
	return e.chargeEnd(ctx, deadline, s)
}

// hasEnded reports whether an earlier call of a settlement, without an answer, has ended a hold. A call that used as much looks the same.
func (s *settlement) hasEnded(done *Settled) bool {
	return s.end.again && !slices.ContainsFunc(done.Parts, func(p SettledPart) bool { return p.Used != s.parts[0].Used })
}

// rest returns a context for a call of the store. All but the first of a request end at its deadline.
func (end *holdEnd) rest(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if !end.asked {
		end.asked = true
		return ctx, func() {}
	}
	return until(ctx, deadline)
}

// settleNumber tries one of the holds of a name.
func (e *Engine) settleNumber(ctx context.Context, deadline time.Time, s *settlement, id weir.HoldID) (Settled, error) {
	ctx, cancel := s.end.rest(ctx, deadline)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return Settled{}, err // it is not asked, so what it answers later is no repetition
	}
	done, err := e.settleOnce(ctx, deadline, &settlement{id: id, used: s.used, byTag: s.byTag}, nil)
	s.end.again = s.end.again || err != nil
	return done, err
}

// chargeEnd charges what was used without a hold.
func (e *Engine) chargeEnd(ctx context.Context, deadline time.Time, s *settlement) (Settled, error) {
	s.kind = ChargedUnits
	if s.end.number = maxNamed; s.end.charge == (weir.HoldID{}) {
		s.end.charge = weir.NewHoldID()
	}
	if s.until == 0 {
		s.id = s.end.charge
	}
	if s.end.ops[0].Cost == 0 {
		return Settled{State: weir.HoldSettled}, nil
	}
	ctx, cancel := s.end.rest(ctx, deadline)
	defer cancel()
	return Settled{State: weir.HoldSettled, Parts: s.parts}, e.chargeOnce(ctx, &settlement{id: s.end.charge, ops: s.end.ops})
}
