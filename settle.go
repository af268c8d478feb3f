package weir

// MaxOps is the largest number of ops in one Take.
const MaxOps = 64

// Charge is one op on its way through a store.
type Charge struct {
	Op   *Op
	Prev State   // the key's state, as the store has it
	Tail []int64 // its tail, as the store has it
	Next State   // what Settle makes of it: to be committed and kept
}

// Settle decides an op that is a request by itself.
func (c *Charge) Settle(d *Decision, now Micros) {
	c.Next = c.Op.decide(c.Prev, c.Tail, now, d)
}

// Settle decides the ops of one request together, all or none, and appends
// their decisions to dst. Afterwards the store commits and keeps every Next
// that differs from its Prev, in order. This is the one place that knows what
// happens to the other limits when one refuses.
func Settle(dst []Decision, now Micros, charges []Charge) []Decision {
	first, admitted := len(dst), true
	for i := range charges {
		c := &charges[i]
		op := together(charges, i)
		dst = append(dst, Decision{})
		c.Next = op.decide(c.Prev, c.Tail, now, &dst[first+i])
		admitted = admitted && dst[first+i].Allowed
	}
	if admitted {
		return dst
	}
	for i := range charges {
		c := &charges[i]
		if dst[first+i].Allowed && !c.Op.Limit.limit.CountDenied {
			op := together(charges, i)
			c.Next = c.Prev
			dst[first+i] = op.Peek(c.Prev, c.Tail, now)
		}
	}
	return dst
}

// Survey answers the ops of one request as Settle would, and charges nothing.
func Survey(dst []Decision, now Micros, charges []Charge) []Decision {
	for i := range charges {
		op := together(charges, i)
		dst = append(dst, op.Peek(charges[i].Prev, charges[i].Tail, now))
	}
	return dst
}

// together is the i-th op with the cost of those before it that share its
// state: their charges have to fit at once.
func together(charges []Charge, i int) Op {
	op := *charges[i].Op
	for _, c := range charges[:i] {
		if c.Op.Key == op.Key && c.Op.Limit.kind == op.Limit.kind {
			op.Cost = min(op.Cost, MaxUnits) + min(c.Op.Cost, MaxUnits)
		}
	}
	return op
}

// ValidateTake checks the ops of one Take, for stores.
func ValidateTake(ops []Op) error {
	for i := range ops {
		if err := ops[i].ValidateTake(); err != nil {
			return err
		}
	}
	return validateCount(ops)
}

// ValidatePeek checks the ops of one Peek or Reset, for stores.
func ValidatePeek(ops []Op) error {
	for i := range ops {
		if err := ops[i].validate(); err != nil {
			return err
		}
	}
	return validateCount(ops)
}

func validateCount(ops []Op) error {
	if len(ops) > MaxOps {
		return invalid("ops", "%d limits in one request are too many; ask for at most %d", len(ops), MaxOps)
	}
	return nil
}
