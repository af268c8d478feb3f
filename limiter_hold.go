package weir

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// Hold is a charge of a [Limiter] that ends later, when the real cost is known.
type Hold struct {
	ID    HoldID
	store HoldStore
}

var errNoHolds = errors.New("weir: this store cannot hold units; use one that implements HoldStore, such as memory or redis")

// NewHoldID returns a random id.
func NewHoldID() (id HoldID) {
	rand.Read(id[:])
	return id
}

// Reserve takes cost units as Take does and, if they are allowed, returns a hold on them.
// If they are denied, the hold is nil. Settle, Cancel or Extend the hold before ttl has
// passed; else it expires: the units stay charged, or come back if the limit has Release.
// A ttl of 0 is DefaultHoldTTL.
func (l *Limiter) Reserve(ctx context.Context, key string, cost int64, ttl time.Duration) (*Hold, Decision, error) {
	store, ok := l.store.(HoldStore)
	if !ok {
		return nil, Decision{}, errNoHolds
	}
	h := &Hold{ID: NewHoldID(), store: store}
	d, err := first(store.Reserve(ctx, nil, Reservation{ID: h.ID, TTL: ttl}, Op{Key: key, Limit: l.limit, Cost: cost}))
	if err != nil || !d.Allowed {
		return nil, d, err
	}
	return h, d, nil
}

// Settle ends the hold with the units that were really used. Less than was reserved is
// refunded as of the reservation; more is charged now, as [Limiter.Charge] does.
func (h *Hold) Settle(ctx context.Context, used int64) (Settled, error) {
	return h.store.Settle(ctx, Settlement{ID: h.ID, Used: func(string, int64) int64 { return used }})
}

// Cancel ends the hold as if nothing was used.
func (h *Hold) Cancel(ctx context.Context) (Settled, error) { return h.Settle(ctx, 0) }

// Extend lets the hold expire after ttl from now on.
func (h *Hold) Extend(ctx context.Context, ttl time.Duration) (Settled, error) {
	return h.store.Settle(ctx, Settlement{ID: h.ID, TTL: ttl})
}
