package scenario

import (
	"cmp"
	"context"

	"github.com/weirhq/weir"
)

// Model is the arithmetic and a map, and nothing else: the simplest store there
// can be, against which others are compared. It serves one goroutine.
type Model struct {
	Now   weir.Micros
	keys  map[modelKey]*weir.Record
	holds map[weir.HoldID]*modelHold
}

var _ weir.HoldStore = (*Model)(nil)

type modelKey struct {
	key  string
	kind uint64
}

// NewModel returns an empty model at the epoch.
func NewModel() *Model {
	return &Model{keys: make(map[modelKey]*weir.Record), holds: make(map[weir.HoldID]*modelHold)}
}

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
	dst = weir.DecideAll(dst, m.Now, charges)
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
	k := modelKey{c.Op.Key, c.Op.Limit.Kind()}
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
	return weir.PeekAll(dst, m.Now, m.charges(ops)), nil
}

// Refund implements weir.Store. The last op goes first, so that what was charged
// on top of another charge of the same request is off it before that is given back.
func (m *Model) Refund(ctx context.Context, ops ...weir.Op) error {
	if err := cmp.Or(ctx.Err(), weir.ValidateRefund(ops)); err != nil {
		return err
	}
	for i := len(ops) - 1; i >= 0; i-- {
		if r := m.keys[modelKey{ops[i].Key, ops[i].Limit.Kind()}]; r != nil {
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
		delete(m.keys, modelKey{ops[i].Key, ops[i].Limit.Kind()})
		for _, h := range m.holds {
			for j := range h.parts {
				h.parts[j].gone = h.parts[j].gone || sameState(&h.parts[j].op, &ops[i])
			}
		}
	}
	return nil
}
