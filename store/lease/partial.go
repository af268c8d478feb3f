package lease

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

var _ weir.PartialStore = (*Store)(nil)

var errNoHolds = errors.New("lease: the store that this one wraps cannot hold units; wrap one that implements weir.HoldStore, such as redis")

// Peek implements weir.Store. What is leased here remains.
func (s *Store) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	first := len(dst)
	dst, err := s.store.Peek(ctx, dst, ops...)
	if err == nil {
		s.addHeld(dst[first:], nil, ops)
	}
	return dst, err
}

// addHeld adds what is held to what remains in the store.
func (s *Store) addHeld(decisions []weir.Decision, failed []error, ops []weir.Op) {
	if s.keys.Load() == 0 {
		return
	}
	now := s.now()
	for i := range ops {
		if failed != nil && failed[i] != nil {
			continue
		}
		hash := maphash.String(s.seed, ops[i].Key)
		sh, d := s.shardOf(hash), &decisions[i]
		free := d.Remaining
		sh.mu.Lock()
		for e := sh.keys[hash]; e != nil; e = e.next {
			if e.leave < ops[i].Leave || e.key != ops[i].Key || !e.isUnder(ops[i].Limit) {
				continue
			}
			fits := e.held(now)
			d.Remaining += fits
			d.Leased = max(0, d.Leased-e.unknown())
			if e.leave == ops[i].Leave {
				fits += free // of which a request gives back its own units first
			}
			if !d.Allowed && ops[i].Cost <= fits {
				d.Allowed, d.RetryAfter = true, 0
			}
		}
		sh.mu.Unlock()
	}
}

// Refund implements weir.Store. It gives back to the lease what the store does not know yet.
func (s *Store) Refund(ctx context.Context, ops ...weir.Op) error {
	if err := cmp.Or(ctx.Err(), weir.ValidateRefund(ops)); err != nil {
		return err
	}
	var rest []weir.Op
	for i := len(ops) - 1; i >= 0; i-- {
		if op := ops[i]; s.refundHere(&op) {
			rest = append(rest, op)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	slices.Reverse(rest)
	return s.store.Refund(ctx, rest...)
}

// refundHere gives back what it can, and reports whether the store is to give back the rest.
func (s *Store) refundHere(op *weir.Op) bool {
	local := op.Receipt >= localReceipt && op.Receipt != weir.Latest
	found := weir.Receipt(0)
	s.each(op, func(e *entry) {
		switch {
		case op.Receipt == weir.Latest:
			n := e.unreported(op.Cost)
			e.spent -= n
			op.Cost -= n
		case local && e.tag() == uint16(op.Receipt>>tagAt):
			found = max(found, e.refund(op.Cost, op.Receipt))
		}
		e.forget()
	})
	if local {
		op.Receipt = found
	}
	return op.Cost > 0 && op.Receipt != 0
}

// each does something with all entries for the state of an op.
func (s *Store) each(op *weir.Op, do func(*entry)) {
	hash := maphash.String(s.seed, op.Key)
	sh := s.shardOf(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for e := sh.keys[hash]; e != nil; e = e.next {
		if e.key == op.Key && e.kind == op.Limit.Kind() {
			do(e)
		}
	}
}

// Reset implements weir.Store. Units on lease stay on lease, here and elsewhere.
func (s *Store) Reset(ctx context.Context, ops ...weir.Op) error {
	err := s.store.Reset(ctx, ops...)
	if err == nil {
		for i := range ops {
			s.each(&ops[i], (*entry).forget)
		}
	}
	return err
}

// TakePartial implements weir.PartialStore. If the ops are of several parts, what is to be said about leases is said in the
// background.
func (s *Store) TakePartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	return s.takePartial(ctx, unread, dst, ops)
}

func (s *Store) takePartial(ctx context.Context, read time.Duration, dst []weir.Decision, ops []weir.Op) ([]weir.Decision, []error, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidateTake(ops)); err != nil {
		return dst, nil, err
	}
	if decisions, ok := s.decide(read, dst, ops); ok {
		return decisions, nil, nil
	}
	if !s.isApart(ops) {
		decisions, err := s.ask(ctx, dst, ops)
		return decisions, nil, err
	}
	return s.askApart(dst, ops, false, func() ([]weir.Decision, []error, error) { return s.partial.TakePartial(ctx, dst, ops...) })
}

// isApart reports whether ops are of several parts.
func (s *Store) isApart(ops []weir.Op) bool {
	return s.partial != nil && slices.ContainsFunc(ops, func(op weir.Op) bool { return s.PartOf(op) != s.PartOf(ops[0]) })
}

// askApart makes a call with which messages about leases cannot go. What is held here does not count for a reservation.
func (s *Store) askApart(dst []weir.Decision, ops []weir.Op, reserves bool, call func() ([]weir.Decision, []error, error)) ([]weir.Decision, []error, error) {
	s.countAsked(ops)
	all, first := make([]asked, len(ops)), len(dst)
	if canLease(ops) {
		s.prepare(all, ops, s.now(), false)
	}
	dst, failed, err := call()
	if err == nil {
		var said []weir.Decision
		if reserves {
			said = slices.Clone(dst[first:])
		}
		s.learn(all, dst[first:], failed, ops)
		for i := range said {
			if !said[i].Allowed {
				dst[first+i].Remaining = said[i].Remaining
			}
		}
	}
	return dst, failed, err
}

// PeekPartial implements weir.PartialStore.
func (s *Store) PeekPartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	if s.partial == nil {
		decisions, err := s.Peek(ctx, dst, ops...)
		return decisions, nil, err
	}
	first := len(dst)
	dst, failed, err := s.partial.PeekPartial(ctx, dst, ops...)
	if err == nil {
		s.addHeld(dst[first:], failed, ops)
	}
	return dst, failed, err
}

// PartOf implements weir.PartialStore.
func (s *Store) PartOf(op weir.Op) uint16 {
	if s.partial == nil {
		return 0
	}
	return s.partial.PartOf(op)
}
