package weir

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	chacha8 "math/rand/v2"
	"sync"
	"time"
)

// Hold is a charge of a [Limiter] that ends later, when the real cost is known.
type Hold struct {
	ID      HoldID
	limiter *Limiter
	part    [1]SettledPart // of the answer to Settle, so that it allocates nothing
}

var errNoHolds = errors.New("weir: this store cannot hold units; use one that implements HoldStore, such as memory or redis")

// supply has what new holds need, for many of them at once. To ask the system for each id
// would take longer than the reservation.
type supply struct {
	ids       [64]HoldID
	left      int // ids that were not used
	holds     []Hold
	key       [32]byte
	generator chacha8.ChaCha8
}

// familyAt is where the bytes of an id are that it shares with those made together with it. They are
// likely to be used together, too, by one processor, so a store can keep them in one place.
const familyAt = len(HoldID{}) - 2

var supplies = sync.Pool{New: func() any { return new(supply) }}

// id returns a random id: ChaCha8 makes as many bits of a key from the system. All but the last
// two bytes are of this id alone, and cannot be guessed.
func (s *supply) id() (id HoldID) {
	if s.left == 0 {
		rand.Read(s.key[:])
		s.generator.Seed(s.key)
		for i := range s.ids {
			binary.LittleEndian.PutUint64(s.ids[i][:], s.generator.Uint64())
			binary.LittleEndian.PutUint64(s.ids[i][8:], s.generator.Uint64())
			*(*[2]byte)(s.ids[i][familyAt:]) = [2]byte(s.ids[0][familyAt:])
		}
		s.left = len(s.ids)
		s.key, s.generator = [32]byte{}, chacha8.ChaCha8{} // who can read the memory must not find old ids
	}
	s.left--
	id, s.ids[s.left] = s.ids[s.left], HoldID{}
	return id
}

// hold returns a new hold.
func (s *supply) hold(l *Limiter) *Hold {
	if len(s.holds) == 0 {
		s.holds = make([]Hold, 16)
	}
	h := &s.holds[0]
	s.holds = s.holds[1:]
	h.ID, h.limiter = s.id(), l
	return h
}

// NewHoldID returns a random id. The last two bytes may be those of ids that were made shortly before.
func NewHoldID() HoldID {
	s := supplies.Get().(*supply)
	defer supplies.Put(s)
	return s.id()
}

// Reserve takes cost units as Take does and, if they are allowed, returns a hold on them.
// If they are denied, the hold is nil. Settle, Cancel or Extend the hold before ttl has
// passed; else it expires: the units stay charged, or come back if the limit has Release.
// A ttl of 0 is DefaultHoldTTL.
//
// If the store has no place for another hold, the units are taken without one: the hold is
// nil although they are allowed. They stay charged, and calls of the hold's methods do
// nothing. Use Charge if more was used.
func (l *Limiter) Reserve(ctx context.Context, key string, cost int64, ttl time.Duration) (*Hold, Decision, error) {
	if l.holds == nil {
		return nil, Decision{}, errNoHolds
	}
	s := supplies.Get().(*supply)
	h := s.hold(l)
	supplies.Put(s)
	d, err := l.reserveHold(ctx, h.ID, ttl, key, cost)
	switch {
	case err == nil && d.Allowed:
		return h, d, nil
	case errors.Is(err, ErrHoldsFull):
		d, err = l.Take(ctx, key, cost)
	}
	return nil, d, err
}

func (l *Limiter) reserveHold(ctx context.Context, id HoldID, ttl time.Duration, key string, cost int64) (Decision, error) {
	if l.quickHolds != nil {
		return l.quickHolds.ReserveOne(ctx, id, ttl, key, l.limit, cost)
	}
	return onlyDecision(l.holds.Reserve(ctx, nil, Reservation{ID: id, TTL: ttl}, Op{Key: key, Limit: l.limit, Cost: cost}))
}

// Settle ends the hold with the units that were really used. Less than was reserved is
// refunded as of the reservation; more is charged now, as [Limiter.Charge] does.
//
// A hold that is nil is unknown to the methods of Hold.
func (h *Hold) Settle(ctx context.Context, used int64) (Settled, error) {
	if h == nil {
		return Settled{}, ctx.Err()
	}
	if quickHolds := h.limiter.quickHolds; quickHolds != nil {
		return quickHolds.SettleOne(ctx, h.part[:0], h.ID, used)
	}
	return h.limiter.holds.Settle(ctx, Settlement{ID: h.ID, Used: func(string, int64) int64 { return used }})
}

// Cancel ends the hold as if nothing was used.
func (h *Hold) Cancel(ctx context.Context) (Settled, error) { return h.Settle(ctx, 0) }

// Extend lets the hold expire after ttl from now on.
func (h *Hold) Extend(ctx context.Context, ttl time.Duration) (Settled, error) {
	if h == nil {
		return Settled{}, ctx.Err()
	}
	return h.limiter.holds.Settle(ctx, Settlement{ID: h.ID, TTL: ttl})
}
