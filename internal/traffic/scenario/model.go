package scenario

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/weirhq/weir"
)

// Model is the arithmetic and a map, and nothing else: the simplest store there
// can be, against which others are compared. It serves one goroutine.
type Model struct {
	Now weir.Micros

	// MaxHolds is how many open holds a key can have. Default weir.MaxHolds.
	MaxHolds int

	keys  map[modelKey]*weir.Record
	holds map[weir.HoldID]*modelHold
	open  map[modelKey][]*modelPart // of open holds that were not reset, in the order of reservation
	next  weir.Micros               // no hold expires or is forgotten before
}

var _ weir.HoldStore = (*Model)(nil)

type modelKey struct {
	key  string
	kind uint64
}

// NewModel returns an empty model at the epoch.
func NewModel() *Model {
	return &Model{keys: map[modelKey]*weir.Record{}, holds: map[weir.HoldID]*modelHold{}, open: map[modelKey][]*modelPart{}}
}

func keyOf(op *weir.Op) modelKey { return modelKey{op.Key, op.Limit.Kind()} }

// Subject lets a scenario run on the model.
func (m *Model) Subject() Subject {
	return Subject{Store: m, Set: func(now weir.Micros) { m.Now = now }}
}

// Record returns what the model remembers of a key.
func (m *Model) Record(key string, limit *weir.Compiled) weir.Record {
	if r := m.keys[modelKey{key, limit.Kind()}]; r != nil {
		return *r
	}
	return weir.Record{}
}

// Take implements weir.Store.
func (m *Model) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidateTake(ops)); err != nil {
		return dst, err
	}
	m.expire()
	if len(ops) > 0 && ops[0].Renews() {
		if err := m.Refund(ctx, ops...); err != nil {
			return dst, err
		}
	}
	charges := m.charges(ops)
	first := len(dst)
	dst = weir.DecideAll(dst, m.Now, charges)
	m.tellReserved(dst[first:], charges)
	for _, c := range charges {
		m.commit(c)
	}
	return dst, nil
}

func (m *Model) charges(ops []weir.Op) []weir.Pending {
	charges := make([]weir.Pending, len(ops))
	for i := range ops {
		r := m.Record(ops[i].Key, ops[i].Limit)
		charges[i] = weir.Pending{Op: &ops[i], Prev: r.State, Tail: r.Tail}
	}
	return charges
}

func (m *Model) commit(c weir.Pending) {
	if c.Next == c.Prev {
		return
	}
	k := keyOf(c.Op)
	if m.keys[k] == nil {
		m.keys[k] = new(weir.Record)
	}
	m.keys[k].Keep(c.Op.Limit, c.Next)
}

// Peek implements weir.Store.
func (m *Model) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidatePeek(ops)); err != nil {
		return dst, err
	}
	m.expire()
	first, charges := len(dst), m.charges(ops)
	dst = weir.PeekAll(dst, m.Now, charges)
	m.tellReserved(dst[first:], charges)
	return dst, nil
}

// Refund implements weir.Store. The last op goes first, so that what was charged
// on top of another charge of the same request is off it before that is given back.
func (m *Model) Refund(ctx context.Context, ops ...weir.Op) error {
	if err := cmp.Or(ctx.Err(), weir.ValidateRefund(ops)); err != nil {
		return err
	}
	for i := len(ops) - 1; i >= 0; i-- {
		if r := m.keys[keyOf(&ops[i])]; r != nil {
			r.Refund(&ops[i])
		}
	}
	return nil
}

// Reset implements weir.Store.
func (m *Model) Reset(ctx context.Context, ops ...weir.Op) error {
	if err := cmp.Or(ctx.Err(), weir.ValidatePeek(ops)); err != nil {
		return err
	}
	for i := range ops {
		delete(m.keys, keyOf(&ops[i]))
		delete(m.open, keyOf(&ops[i]))
	}
	return nil
}

// modelHold is a hold that is open, or was.
type modelHold struct {
	id      weir.HoldID
	parts   []*modelPart
	state   weir.HoldState
	expires weir.Micros // or, when it has ended, is forgotten
	settled []weir.SettledPart
}

type modelPart struct {
	weir.Held
	hold   *modelHold
	tag    string
	op     weir.Op
	client uint16 // for whose share of the key's holds it counts; 0 for nobody's
}

// Reserve implements weir.HoldStore.
func (m *Model) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidateReserve(&r, ops)); err != nil {
		return dst, err
	}
	m.expire()
	charges := m.charges(ops)
	decisions := weir.DecideAll(nil, m.Now, charges)
	m.tellReserved(decisions, charges)
	clients, full := m.tooMany(decisions, r.ClientNumber(), ops)
	if full {
		return append(dst, decisions...), nil
	}
	for _, c := range charges {
		m.commit(c)
	}
	if weir.Allowed(decisions) {
		h := &modelHold{id: r.ID, state: weir.HoldOpen, expires: m.Now.Add(r.TTL)}
		for i := range ops {
			if !ops[i].IsHeld() {
				continue
			}
			p := &modelPart{hold: h, tag: r.Tag(i), Held: ops[i].Held(charges[i].Next), op: ops[i], client: clients[i]}
			h.parts, m.open[keyOf(&ops[i])] = append(h.parts, p), append(m.open[keyOf(&ops[i])], p)
		}
		m.holds[r.ID], m.next = h, min(m.next, h.expires)
	}
	return append(dst, decisions...), nil
}

// tooMany denies an op whose key, or the client of that, has as many open holds as there may be, and so all. It
// returns for whose share each op counts.
func (m *Model) tooMany(decisions []weir.Decision, client uint16, ops []weir.Op) (clients []uint16, full bool) {
	clients = make([]uint16, len(ops))
	if !weir.Allowed(decisions) {
		return clients, false
	}
	for i := range ops {
		if !ops[i].IsHeld() {
			continue
		}
		open, own := m.open[keyOf(&ops[i])], 0
		share, counts := weir.HoldShare(len(open), cmp.Or(m.MaxHolds, weir.MaxHolds))
		if counts {
			clients[i] = client
			for _, p := range open {
				if client != 0 && p.client == client {
					own++
				}
			}
		}
		if share > 0 && own < share {
			continue
		}
		full = true
		decisions[i].Allowed, decisions[i].AtShare = false, share > 0
		first := weir.Micros(weir.Latest)
		for _, p := range open {
			first = min(first, p.hold.expires)
		}
		decisions[i].RetryAfter = first.Sub(m.Now)
	}
	if full {
		peeked := weir.PeekAll(nil, m.Now, m.charges(ops))
		for i := range peeked {
			if !decisions[i].Allowed {
				peeked[i].Allowed, peeked[i].RetryAfter, peeked[i].Delay, peeked[i].AtShare = false, decisions[i].RetryAfter, 0, decisions[i].AtShare
			}
			decisions[i] = peeked[i]
		}
	}
	return clients, full
}

// tellReserved says of what was denied whether it is only reserved.
func (m *Model) tellReserved(decisions []weir.Decision, charges []weir.Pending) {
	weir.TellAllReserved(decisions, charges, m.Now, func(op int) weir.OpenHolds {
		open := m.open[keyOf(charges[op].Op)]
		return func(i int) (*weir.Compiled, weir.Held) {
			if i == len(open) {
				return nil, weir.Held{}
			}
			return open[i].op.Limit, open[i].Held
		}
	})
}

// Settle implements weir.HoldStore.
func (m *Model) Settle(ctx context.Context, s weir.Settlement) (weir.Settled, error) {
	if err := cmp.Or(ctx.Err(), s.Validate()); err != nil {
		return weir.Settled{}, err
	}
	m.expire()
	h := m.holds[s.ID]
	repeated, until := h != nil && h.state == weir.HoldSettled, weir.Micros(0)
	if h == nil && s.Ops != nil && s.Used != nil {
		return m.settleLate(&s), nil
	}
	if h != nil && h.state == weir.HoldOpen {
		until = h.expires
	}
	switch {
	case h == nil:
		return weir.Settled{}, nil
	case h.state == weir.HoldOpen && s.Used == nil:
		m.extend(h, &s)
	case h.state == weir.HoldOpen:
		for _, p := range h.parts {
			h.settled = append(h.settled, m.settle(p, s.Units(p.tag, p.Cost)))
		}
		m.end(h, weir.HoldSettled, m.Now)
	}
	if h.state == weir.HoldOpen {
		s := weir.Settled{State: h.state, Expires: h.expires, Until: until}
		for _, p := range h.parts {
			s.Parts = append(s.Parts, weir.SettledPart{Tag: p.tag, Cost: p.Cost})
		}
		return s, nil
	}
	return weir.Settled{State: h.state, Parts: h.settled, Repeated: repeated, Until: until}, nil
}

// extend lets a hold expire later, and renews its places if that is wanted.
func (m *Model) extend(h *modelHold, s *weir.Settlement) {
	for _, p := range h.parts {
		s.Limit(p.op.Limit)
		if !s.Renews(p.op.Limit) || !slices.Contains(m.open[keyOf(&p.op)], p) {
			continue
		}
		m.release(p, p.Cost)
		op := p.op
		op.Cost, op.Always = p.Cost, true
		charge := m.charges([]weir.Op{op})
		p.Receipt = weir.DecideAll(nil, m.Now, charge)[0].Receipt
		m.commit(charge[0])
	}
	h.expires = m.Now.Add(s.TTL)
	m.next = min(m.next, h.expires)
}

// settleLate charges what was used of a hold on which nothing was charged yet.
func (m *Model) settleLate(s *weir.Settlement) weir.Settled {
	h := &modelHold{id: s.ID, expires: m.Now}
	for i, op := range s.Ops {
		done := m.settle(&modelPart{tag: s.Tag(i), op: op}, s.Units(s.Tag(i), op.Cost))
		done.Cost = op.Cost
		h.settled = append(h.settled, done)
	}
	m.end(h, weir.HoldSettled, m.Now)
	m.holds[s.ID] = h
	return weir.Settled{State: h.state, Parts: h.settled}
}

// end remembers an outcome until the hold would have expired, and for a while at least.
func (m *Model) end(h *modelHold, state weir.HoldState, now weir.Micros) {
	h.state, h.expires = state, max(h.expires, now.Add(weir.HoldMemory))
	m.next = min(m.next, h.expires)
	for _, p := range h.parts {
		k := keyOf(&p.op)
		m.open[k] = slices.DeleteFunc(m.open[k], func(open *modelPart) bool { return open == p })
	}
}

// settle makes the cost of one part what was used.
func (m *Model) settle(p *modelPart, used int64) weir.SettledPart {
	done := weir.SettledPart{Tag: p.tag, Cost: p.Cost, Used: used}
	if used < p.Cost {
		m.release(p, p.Cost-used)
	} else if used > p.Cost {
		op := p.op
		op.Cost, op.Always = used-p.Cost, true
		charge := m.charges([]weir.Op{op})
		done.Excess = weir.DecideAll(nil, m.Now, charge)[0].Excess
		m.commit(charge[0])
	}
	return done
}

func (m *Model) release(p *modelPart, units int64) {
	r, open := m.keys[keyOf(&p.op)], m.open[keyOf(&p.op)]
	if i := slices.Index(open, p); r != nil && i >= 0 {
		var back int64
		r.State, back = p.op.Limit.Release(r.State, r.Tail, p.Held, units)
		for _, later := range open[i+1:] {
			later.Level -= back
		}
	}
}

// expire ends holds whose time has come, in the order of their times, and forgets those
// that ended long ago.
func (m *Model) expire() {
	if m.Now < m.next {
		return
	}
	var due []*modelHold
	m.next = weir.Micros(weir.Latest)
	for id, h := range m.holds {
		switch {
		case h.expires > m.Now:
			m.next = min(m.next, h.expires)
		case h.state == weir.HoldOpen:
			due = append(due, h)
		default:
			delete(m.holds, id)
		}
	}
	slices.SortFunc(due, func(a, b *modelHold) int {
		return cmp.Or(cmp.Compare(a.expires, b.expires), bytes.Compare(a.id[:], b.id[:]))
	})
	for _, h := range due {
		for _, p := range h.parts {
			if p.op.Limit.ReturnsExpired() {
				m.release(p, p.Cost)
			}
		}
		m.end(h, weir.HoldExpired, h.expires)
	}
}
