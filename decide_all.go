package weir

import "slices"

// MaxOps is the largest number of ops in one Take.
const MaxOps = 64

// Pending is one op while a store processes it.
type Pending struct {
	Op   *Op
	Prev State   // the stored state of the key
	Tail []int64 // the stored tail of the key
	Next State   // the state after the decision, to be committed and stored

	Leased int64 // units of the key that are on lease; see [Account]
}

// Decide decides an op that is the only one of its request.
func (c *Pending) Decide(d *Decision, now Micros) {
	c.Next = c.decide(c.Op, now, d)
}

func (c *Pending) decide(op *Op, now Micros, d *Decision) State {
	if c.Leased == 0 {
		return op.decide(c.Prev, c.Tail, now, d)
	}
	return op.decideAny(c.Prev, c.Tail, now, c.Leased, d)
}

// DecideAll decides the ops of one request together, all or none, and appends their
// decisions to dst. The store then commits and stores every Next that differs from its
// Prev; if ops share a state, only one of them differs. All stores use it, so that they
// agree on what one denial means for the other limits.
func DecideAll(dst []Decision, now Micros, charges []Pending) []Decision {
	first := len(dst)
	dst = slices.Grow(dst, len(charges))[:first+len(charges)] // decide fills them in
	decisions := dst[first:]
	allowed, shared := true, shareAny(charges)
	var sum Op
	for i := range decisions {
		c, d := &charges[i], &decisions[i]
		op := c.Op
		if shared {
			op = together(charges, i, anyLimit, &sum)
		}
		c.Next = c.decide(op, now, d)
		if d.Excess >= c.Op.Cost { // the charge is that of others on the same state
			d.Excess, d.Receipt = c.Op.Cost, 0
		}
		allowed = allowed && d.Allowed
	}
	if !allowed && !owes(charges) {
		for i := range charges {
			charges[i].giveUp(&decisions[i], now, charges, i)
		}
	}
	if shared {
		for i := range charges {
			if isIncluded(charges, i) {
				charges[i].Next = charges[i].Prev
			}
		}
	}
	return dst
}

// isIncluded reports whether a later op charges the state of the i-th one: what it
// charges includes the costs of those before it.
func isIncluded(charges []Pending, i int) bool {
	for j := i + 1; j < len(charges); j++ {
		if c := &charges[j]; c.Next != c.Prev && shareState(charges[i].Op, c.Op) {
			return true
		}
	}
	return false
}

// owes reports whether what is charged is charged even if it does not fit.
func owes(charges []Pending) bool {
	for i := range charges {
		if op := charges[i].Op; !op.Look {
			return op.Always
		}
	}
	return false
}

func shareState(a, b *Op) bool { return a.Limit.kind == b.Limit.kind && a.Key == b.Key }

// shareAny reports whether any two ops share a state, which is rare.
func shareAny(charges []Pending) bool {
	for i := range charges {
		op := charges[i].Op
		for j := range charges[:i] {
			if shareState(charges[j].Op, op) {
				return true
			}
		}
	}
	return false
}

// giveUp takes back the charge of a request that another op denied, unless the
// limit counts those too.
func (c *Pending) giveUp(d *Decision, now Micros, charges []Pending, i int) {
	if !c.Op.Limit.limit.CountDenied {
		c.Next = c.Prev
		if d.Allowed {
			var sum Op
			*d = together(charges, i, anyLimit, &sum).peek(c.Prev, c.Tail, now, c.Leased)
		}
		return
	}
	// Only what is really charged counts: not the cost of an op on the same key
	// whose limit does not count denials.
	var sum Op
	var counted Decision
	c.Next = c.decide(together(charges, i, countsDenied, &sum), now, &counted)
	d.Remaining, d.ResetAfter, d.ResetAt, d.Receipt = counted.Remaining, counted.ResetAfter, counted.ResetAt, 0
}

// Allowed reports whether every limit of the request allows it.
func Allowed(decisions []Decision) bool {
	for i := range decisions {
		if !decisions[i].Allowed {
			return false
		}
	}
	return true
}

// PeekAll answers the ops of one request as DecideAll does, but charges nothing.
func PeekAll(dst []Decision, now Micros, charges []Pending) []Decision {
	var sum Op
	for i := range charges {
		c := &charges[i]
		dst = append(dst, together(charges, i, anyLimit, &sum).peek(c.Prev, c.Tail, now, c.Leased))
	}
	return dst
}

// together is the i-th op with the cost of those before it that share its
// state, if they are to be counted: their charges have to fit at once. What is only looked
// at is by itself. It is the sum only if there are others.
func together(charges []Pending, i int, counts func(*Compiled) bool, sum *Op) *Op {
	op := charges[i].Op
	if op.Look {
		return op
	}
	for j := range charges[:i] {
		c := charges[j].Op
		if !shareState(c, op) || c.Look || !counts(c.Limit) {
			continue
		}
		if op != sum {
			*sum, op = *op, sum
		}
		sum.Cost = min(sum.Cost, MaxUnits) + min(c.Cost, MaxUnits)
	}
	return op
}

func anyLimit(*Compiled) bool       { return true }
func countsDenied(c *Compiled) bool { return c.limit.CountDenied }

// ValidateTake checks the ops of a Take, for stores.
func ValidateTake(ops []Op) error {
	for i := range ops {
		if !ops[i].isPlain() {
			return validateTake(ops)
		}
	}
	return validateCount(len(ops))
}

func validateTake(ops []Op) error {
	charged := -1
	for i := range ops {
		switch op := &ops[i]; {
		case op.Look && op.Always:
			return invalid("look", "an op that is only looked at cannot be charged always; set one of the two")
		case op.Look:
		case charged < 0:
			charged = i
		case op.Always != ops[charged].Always:
			return invalid("always", "some ops of the request have it and some do not; set it on all of them, or make two requests")
		}
		if err := ops[i].validateRenewal(&ops[0]); err != nil {
			return err
		}
	}
	return ValidateRefund(ops)
}

// validateRenewal checks an op of a Take, of which the first one is given.
func (op *Op) validateRenewal(first *Op) error {
	switch {
	case op.Renews() != first.Renews():
		return invalid("receipt", "some ops of the request renew a place and some do not; make two requests")
	case op.Renews() && op.Limit != nil && op.Limit.limit.Algorithm != InFlight:
		return invalid("receipt", "only a place of an in_flight limit can be renewed; use Refund for what was charged on others")
	}
	return nil
}

// ValidateRefund checks the ops of a Refund, for stores.
func ValidateRefund(ops []Op) error {
	for i := range ops {
		if err := ops[i].Validate(); err != nil {
			return err
		}
	}
	return validateCount(len(ops))
}

// ValidatePeek checks the ops of a Peek or a Reset, for stores.
func ValidatePeek(ops []Op) error {
	for i := range ops {
		if err := ops[i].validate(); err != nil {
			return err
		}
	}
	return validateCount(len(ops))
}

func validateCount(ops int) error {
	if ops > MaxOps {
		return invalid("ops", "%d limits in one request are too many; ask for at most %d", ops, MaxOps)
	}
	return nil
}
