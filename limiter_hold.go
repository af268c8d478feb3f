package weir

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"
)

// Hold is a charge of a [Limiter] that ends later, when the real cost is known.
type Hold struct {
	ID      HoldID
	limiter *Limiter
}

var errNoHolds = errors.New("weir: this store cannot hold units; use one that implements HoldStore, such as memory or redis")

// oneHolder is to [HoldStore] what oneTaker is to [Store].
type oneHolder interface {
	ReserveOne(ctx context.Context, id HoldID, ttl time.Duration, key string, limit *Compiled, cost int64) (Decision, error)
	SettleOne(ctx context.Context, id HoldID, used int64) (Settled, error)
}

// slowHolder makes a oneHolder of any HoldStore.
type slowHolder struct{ store HoldStore }

func (s slowHolder) ReserveOne(ctx context.Context, id HoldID, ttl time.Duration, key string, limit *Compiled, cost int64) (Decision, error) {
	return first(s.store.Reserve(ctx, nil, Reservation{ID: id, TTL: ttl}, Op{Key: key, Limit: limit, Cost: cost}))
}

func (s slowHolder) SettleOne(ctx context.Context, id HoldID, used int64) (Settled, error) {
	return s.store.Settle(ctx, Settlement{ID: id, Used: func(string, int64) int64 { return used }})
}

// ids are random bytes for the ids of holds. To ask the system for each id would take
// longer than the reservation.
var ids = sync.Pool{New: func() any { return new(randomBytes) }}

type randomBytes struct {
	bytes [32 * len(HoldID{})]byte
	left  int
}

// NewHoldID returns a random id.
func NewHoldID() (id HoldID) {
	r := ids.Get().(*randomBytes)
	if r.left == 0 {
		rand.Read(r.bytes[:])
		r.left = len(r.bytes)
	}
	next := r.bytes[r.left-len(id) : r.left]
	copy(id[:], next)
	clear(next) // who can read the memory must not find old ids
	r.left -= len(id)
	ids.Put(r)
	return id
}

// Reserve takes cost units as Take does and, if they are allowed, returns a hold on them.
// If they are denied, the hold is nil. Settle, Cancel or Extend the hold before ttl has
// passed; else it expires: the units stay charged, or come back if the limit has Release.
// A ttl of 0 is DefaultHoldTTL.
func (l *Limiter) Reserve(ctx context.Context, key string, cost int64, ttl time.Duration) (*Hold, Decision, error) {
	if l.holds == nil {
		return nil, Decision{}, errNoHolds
	}
	h := &Hold{ID: NewHoldID(), limiter: l}
	d, err := l.holds.ReserveOne(ctx, h.ID, ttl, key, l.limit, cost)
	if err != nil || !d.Allowed {
		return nil, d, err
	}
	return h, d, nil
}

// Settle ends the hold with the units that were really used. Less than was reserved is
// refunded as of the reservation; more is charged now, as [Limiter.Charge] does.
func (h *Hold) Settle(ctx context.Context, used int64) (Settled, error) {
	return h.limiter.holds.SettleOne(ctx, h.ID, used)
}

// Cancel ends the hold as if nothing was used.
func (h *Hold) Cancel(ctx context.Context) (Settled, error) { return h.Settle(ctx, 0) }

// Extend lets the hold expire after ttl from now on.
func (h *Hold) Extend(ctx context.Context, ttl time.Duration) (Settled, error) {
	return h.limiter.store.(HoldStore).Settle(ctx, Settlement{ID: h.ID, TTL: ttl})
}
