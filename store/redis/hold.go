package redis

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// holdCall is what a check about a hold sends besides its ops.
type holdCall struct {
	id   string
	life time.Duration // of reserve and extend

	// The directory says what a hold was charged on, for whoever settles it. In a cluster it
	// is on another slot, and written by a call of its own.
	directory string // its key; "" if it is
	content   string
	at        int // of the key

	expires weir.Micros // of settle and extend: when it was last known to
	used    []int64     // of settle, for each op

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
	if !c.verb.holds() {
		return
	}
	h := c.hold
	if h == nil {
		h = new(holdCall)
	}
	p.text(h.id)
	p.number(h.life.Microseconds())
	p.number(int64(h.at))
	if c.verb == reserve {
		p.text(h.content)
	} else {
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
	heldName      = "%holds:" // the open holds of a state
	endedName     = "%ended:" // a hold on a state that has ended
	directoryName = "%hold:"  // what a hold was charged on
)

// holdKeysAt are where in a request the keys of the i-th op's holds are. The first is
// below 0 if holds that expire give back their units, and 0 if no holds are looked for.
func (c *check) holdKeysAt(i int, known map[string]int, list *[]string) (held, ended int) {
	releases := c.ops[i].Limit.Limit().Release
	if !releases && (c.verb == holdTake || c.verb == holdPeek || c.verb == reserve && c.ops[i].Look) {
		return 0, 0
	}
	prefix, state := c.keys[i][:c.prefix], c.keys[i][c.prefix:]
	held = position(known, list, prefix+heldName+state)
	if c.hold != nil {
		ended = position(known, list, prefix+endedName+state+c.hold.id) // which may have braces, so it is behind those of the state
	}
	if releases {
		held = -held
	}
	return held, ended
}

// directory is what a hold was charged on.
type directory struct {
	Ops []directoryOp `json:"ops"`

	expires weir.Micros
}

type directoryOp struct {
	Key   string     `json:"k"` // of the state, without the prefix, as bytes
	Limit weir.Limit `json:"l"`
	Cost  int64      `json:"c"`
	Tag   string     `json:"t,omitempty"`
}

// Reserve implements weir.HoldStore.
func (s *Store) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	if err := weir.ValidateReserve(&r, ops); err != nil {
		return dst, err
	}
	if err := ctx.Err(); err != nil || len(ops) == 0 {
		return dst, err
	}
	d := describe(&r, ops)
	content, err := d.text()
	if err != nil {
		return dst, err
	}
	call := holdCall{id: string(r.ID[:]), life: r.TTL, content: content, directory: s.directoryOf(r.ID)}
	if s.link.cluster {
		call.directory, call.content = "", ""
	}
	checks, part := s.split(reserve, ops)
	for _, c := range checks {
		if c.verb == reserve {
			one := call
			c.hold = &one
		}
	}
	first := len(dst)
	dst, err = s.doChecks(ctx, dst, checks, part)
	if err != nil || !weir.Allowed(dst[first:]) {
		return dst, err
	}
	if s.link.cluster {
		if _, err := s.small(ctx, writeDirectory, s.directoryOf(r.ID), s.directoryArg(r.TTL, content)); err != nil {
			s.cancel(ctx, r, ops)
			return dst[:first], err
		}
	}
	d.expires = dst[first].ResetAt.Add(-dst[first].ResetAfter).Add(r.TTL)
	s.known.add(r.ID, d, ops)
	return dst, nil
}

// cancel gives back what a hold was charged that could not be finished: without its
// directory, it could not be settled.
func (s *Store) cancel(ctx context.Context, r weir.Reservation, ops []weir.Op) {
	ops = slices.DeleteFunc(slices.Clone(ops), func(op weir.Op) bool { return op.Look })
	d := &directory{expires: weir.Latest >> 10}
	_, _ = s.settleAll(context.WithoutCancel(ctx), settle, &weir.Settlement{ID: r.ID}, d, ops, make([]int64, len(ops)))
}

// describe makes a directory. Keys are any bytes, which JSON has no texts for.
func describe(r *weir.Reservation, ops []weir.Op) *directory {
	d := new(directory)
	for i := range ops {
		if ops[i].Look {
			continue
		}
		d.Ops = append(d.Ops, directoryOp{Key: quoteBytes(ops[i].Key), Limit: ops[i].Limit.Limit(), Cost: ops[i].Cost, Tag: r.Tag(i)})
	}
	return d
}

func (d *directory) text() (string, error) {
	text, err := json.Marshal(d)
	return string(text), err
}

func (s *Store) directoryOf(id weir.HoldID) string {
	return s.prefix + directoryName + "{" + id.String() + "}"
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
	r.hold = &holdCall{id: c.hold.id, expires: c.at.Add(c.hold.life), used: make([]int64, len(r.ops))}
	return r
}

// Settle implements weir.HoldStore. In a cluster, a hold on several slots may be settled on
// some of them when there is an error; to settle it again completes it.
func (s *Store) Settle(ctx context.Context, settlement weir.Settlement) (weir.Settled, error) {
	if err := settlement.Validate(); err != nil {
		return weir.Settled{}, err
	}
	d, ops, err := s.lookUp(ctx, &settlement)
	if err != nil || d == nil {
		return weir.Settled{}, err
	}
	verb, used := extend, make([]int64, len(ops))
	if settlement.Used != nil {
		verb = settle
		for i, op := range d.Ops {
			used[i] = settlement.Units(op.Tag, op.Cost)
		}
	}
	outcomes, err := s.settleAll(ctx, verb, &settlement, d, ops, used)
	if err != nil {
		return weir.Settled{}, err
	}
	s.known.forget(settlement.ID) // it has ended, or expires at another time
	return d.settled(outcomes), nil
}

// lookUp finds what a hold was charged on; nil if that is unknown.
func (s *Store) lookUp(ctx context.Context, settlement *weir.Settlement) (*directory, []weir.Op, error) {
	if k := s.known.find(settlement.ID); k != nil {
		return k.directory, k.ops, nil
	}
	d, err := s.find(ctx, settlement.ID)
	switch {
	case err != nil:
		return nil, nil, err
	case d != nil:
		ops, err := d.ops()
		return d, ops, err
	case settlement.Ops == nil || settlement.Used == nil:
		return nil, nil, nil
	}
	d, ops := late(settlement)
	return d, ops, nil
}

// late is what to settle of a hold that has no directory. If its charges are not there
// either, nothing of it was charged yet.
func late(settlement *weir.Settlement) (*directory, []weir.Op) {
	d, ops := &directory{}, slices.Clone(settlement.Ops)
	for i := range ops {
		d.Ops = append(d.Ops, directoryOp{Cost: ops[i].Cost, Tag: settlement.Tag(i)})
		ops[i].Cost = 0
	}
	return d, ops
}

// settleAll asks all slots.
func (s *Store) settleAll(ctx context.Context, verb verb, settlement *weir.Settlement, d *directory, ops []weir.Op, used []int64) ([]outcome, error) {
	checks, part := s.split(verb, ops)
	for i, c := range checks {
		c.hold = &holdCall{id: string(settlement.ID[:]), life: settlement.TTL, expires: d.expires}
		if verb == settle {
			c.hold.life = 0
		} else if !s.link.cluster {
			c.hold.directory = s.directoryOf(settlement.ID)
		}
		for op, p := range part {
			if p == i {
				c.hold.used = append(c.hold.used, used[op])
			}
		}
	}
	calls := make([]*holdCall, len(checks))
	for i, c := range checks {
		calls[i] = c.hold
	}
	if _, err := s.doChecks(ctx, nil, checks, nil); err != nil {
		return nil, err
	}
	outcomes, next := make([]outcome, len(ops)), make([]int, len(calls))
	for i, p := range part {
		outcomes[i] = calls[p].outcomes[next[p]]
		next[p]++
	}
	if verb == extend && s.link.cluster && outcomes[0].state == holdOpen {
		if _, err := s.small(ctx, prolongDirectory, s.directoryOf(settlement.ID), s.directoryArg(settlement.TTL, "")); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
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
		s = weir.Settled{State: weir.HoldOpen, Expires: weir.Micros(worst.used)}
	case holdSettled:
		s.State, s.Repeated = weir.HoldSettled, repeated
	case holdExpired:
		return weir.Settled{State: weir.HoldExpired}
	default:
		return weir.Settled{}
	}
	for i, o := range outcomes {
		if worst.state == holdOpen {
			o = outcome{}
		}
		s.Parts = append(s.Parts, weir.SettledPart{Tag: d.Ops[i].Tag, Cost: d.Ops[i].Cost, Used: o.used, Excess: o.excess})
	}
	return s
}
