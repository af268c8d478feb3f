package lease

import (
	"cmp"
	"context"
	"sync"

	"github.com/weirhq/weir"
)

// reference is the simplest store that leases units: the arithmetic, a mutex and a map. It forgets nothing.
type reference struct {
	mu       sync.Mutex
	now      func() weir.Micros
	accounts map[accountKey]*weir.Account
}

var _ weir.LeaseStore = (*reference)(nil)

type accountKey struct {
	key  string
	kind uint64
}

// newReference returns an empty store with a clock.
func newReference(now func() weir.Micros) *reference {
	return &reference{now: now, accounts: make(map[accountKey]*weir.Account)}
}

// accountLocked returns the account of an op as it is now.
func (s *reference) accountLocked(op *weir.Op, now weir.Micros) *weir.Account {
	k := accountKey{op.Key, op.Limit.Kind()}
	a := s.accounts[k]
	if a == nil {
		a = new(weir.Account)
		s.accounts[k] = a
	}
	a.Expire(op.Limit, now)
	return a
}

// Account returns a copy of what is remembered of a key.
func (s *reference) Account(key string, limit *weir.Compiled) weir.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := *s.accountLocked(&weir.Op{Key: key, Limit: limit}, s.now())
	a.Leases = append([]weir.Lease(nil), a.Leases...)
	return a
}

// Lose makes the store what it would be after a failover that lost all leases of a key.
func (s *reference) Lose(key string, limit *weir.Compiled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accountLocked(&weir.Op{Key: key, Limit: limit}, s.now())
	a.Leases, a.Out, a.First = nil, 0, 0
}

func (s *reference) chargesLocked(ops []weir.Op, now weir.Micros) []weir.Pending {
	charges := make([]weir.Pending, len(ops))
	for i := range ops {
		a := s.accountLocked(&ops[i], now)
		charges[i] = weir.Pending{Op: &ops[i], Prev: a.State, Tail: a.Tail, Leased: a.Out}
	}
	return charges
}

// Take implements weir.Store.
func (s *reference) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidateTake(ops)); err != nil {
		return dst, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if len(ops) > 0 && ops[0].Renews() {
		s.refundLocked(ops, now)
	}
	charges := s.chargesLocked(ops, now)
	dst = weir.DecideAll(dst, now, charges)
	for _, c := range charges {
		s.accountLocked(c.Op, now).Keep(c.Op.Limit, c.Next)
	}
	return dst, nil
}

// Peek implements weir.Store.
func (s *reference) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidatePeek(ops)); err != nil {
		return dst, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	return weir.PeekAll(dst, now, s.chargesLocked(ops, now)), nil
}

// Refund implements weir.Store.
func (s *reference) Refund(ctx context.Context, ops ...weir.Op) error {
	if err := cmp.Or(ctx.Err(), weir.ValidateRefund(ops)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refundLocked(ops, s.now())
	return nil
}

func (s *reference) refundLocked(ops []weir.Op, now weir.Micros) {
	for i := len(ops) - 1; i >= 0; i-- {
		s.accountLocked(&ops[i], now).Refund(&ops[i])
	}
}

// Reset implements weir.Store.
func (s *reference) Reset(ctx context.Context, ops ...weir.Op) error {
	if err := cmp.Or(ctx.Err(), weir.ValidatePeek(ops)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for i := range ops {
		s.accountLocked(&ops[i], now).Record = weir.Record{}
	}
	return nil
}

// Lease implements weir.LeaseStore.
func (s *reference) Lease(ctx context.Context, dst []weir.LeaseAnswer, ops ...weir.LeaseOp) ([]weir.LeaseAnswer, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidateLease(ops)); err != nil {
		return dst, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	accounts := make([]*weir.Account, len(ops))
	for i := range ops {
		accounts[i] = s.accountLocked(&ops[i].Op, now)
	}
	return weir.LeaseAll(dst, now, accounts, ops), nil
}
