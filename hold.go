package weir

import (
	"context"
	"encoding/hex"
	"slices"
	"time"
)

// Bounds on holds.
const (
	DefaultHoldTTL = time.Minute
	MaxHoldTTL     = 24 * time.Hour

	// MaxHolds is the largest number of open holds of one key and kind of limit. A store may
	// have room for fewer. A reservation beyond is denied until one of them ends.
	MaxHolds = 100_000

	MaxTagLen = 200

	// HoldMemory is how long a hold is remembered at least after it has ended, so that a
	// repeated call gets the same answer.
	HoldMemory = time.Minute
)

// HoldID identifies a hold. It must be random, because who knows it can end the hold.
type HoldID [16]byte

// String returns the id as 32 hexadecimal digits.
func (id HoldID) String() string { return hex.EncodeToString(id[:]) }

// ParseHoldID parses the result of String.
func ParseHoldID(s string) (id HoldID, err error) {
	if n, err := hex.Decode(id[:], []byte(s)[:min(len(s), 2*len(id))]); err != nil || n != len(id) || len(s) != 2*len(id) {
		return HoldID{}, invalid("hold", "%.40q is not the id of a hold; send the one that the reservation returned", s)
	}
	return id, nil
}

// Reservation is a hold that is to be opened.
type Reservation struct {
	ID HoldID

	// TTL is the time after which the hold expires. Default DefaultHoldTTL.
	TTL time.Duration

	// Tags has one entry for each op, for the caller; see Settlement.Used. Default none.
	Tags []string

	// Client is a hash of who reserves, the same in every process. It keeps one client from
	// taking all open holds that a shared key may have; see [HoldShare]. Default 0: it is unknown.
	Client uint32

	// InProcess is that the caller settles the hold by the same Store, whatever happens, or ends with it. A store that
	// decides in memory can then keep the hold there, where others do not see it. Such a hold does not expire, and is forgotten
	// when it is settled, so a repeated settlement finds none.
	// Default false.
	InProcess bool
}

// clientNumbers is how many clients are told apart on one key.
const clientNumbers = 1<<15 - 1

// ClientNumber returns what a store keeps of the client: 1 to 32,767, or 0 if it is unknown.
func (r *Reservation) ClientNumber() uint16 {
	if r.Client == 0 {
		return 0
	}
	return uint16(1 + r.Client%clientNumbers)
}

// HoldShare returns how many of the later half of a key's open holds one client may have, for one more
// to be opened, if the key has so many open and may have most: as many as there is room for still. So
// however many a client keeps open, others find room. Who has those of the first half is not counted.
func HoldShare(open, most int) (share int, counts bool) { return most - open, open >= most/2 }

// Tag returns the tag of an op.
func (r *Reservation) Tag(op int) string { return tagOf(r.Tags, op) }

// Tag returns the tag of one of the Ops.
func (s *Settlement) Tag(op int) string { return tagOf(s.Tags, op) }

func tagOf(tags []string, op int) string {
	if tags == nil {
		return ""
	}
	return tags[op]
}

// ValidateTTL reports why a hold cannot last so long. It fills in the TTL.
func (r *Reservation) ValidateTTL() error { return validateTTL(&r.TTL) }

// ValidateReserve checks a reservation and its ops, for stores. It fills in the TTL.
func ValidateReserve(r *Reservation, ops []Op) error {
	if err := r.ValidateTTL(); err != nil {
		return err
	}
	if len(ops) > 0 && !slices.ContainsFunc(ops, func(op Op) bool { return op.IsHeld() }) {
		return invalid("ops", "all of them are final or only looked at, so there is nothing to hold; use Take or Peek")
	}
	if r.Tags != nil && len(r.Tags) != len(ops) {
		return invalid("tags", "there are %d for %d ops; give one for each, or none", len(r.Tags), len(ops))
	}
	for i := range ops {
		if tag := r.Tag(i); len(tag) > MaxTagLen {
			return invalid("tag", "it has %d bytes, at most %d are allowed", len(tag), MaxTagLen)
		}
		if ops[i].Always {
			return invalid("always", "a reservation that does not fit is denied; use Take for what is done already")
		}
		for j := range i {
			if ops[j].Limit != nil && ops[i].Limit != nil && !ops[j].Look && !ops[i].Look && shareState(&ops[j], &ops[i]) {
				return invalid("ops", "two of them share the key %.40q and a kind of limit; add up their costs", ops[i].Key)
			}
		}
	}
	return ValidateTake(ops)
}

// IsHeld reports whether a reservation holds what it charges for the op.
func (op *Op) IsHeld() bool { return !op.Look && !op.Final }

// Units returns what Used says of an op, within what can be charged.
func (s *Settlement) Units(tag string, cost int64) int64 {
	return max(0, min(s.Used(tag, cost), MaxUnits))
}

// Renews reports whether what was charged on a limit is a place that is to be renewed.
func (s *Settlement) Renews(c *Compiled) bool {
	return s.Used == nil && s.Renew && c.limit.Algorithm == InFlight
}

// Limit shortens the TTL to what a hold on a limit can last.
func (s *Settlement) Limit(c *Compiled) {
	if s.Renews(c) {
		s.TTL = min(s.TTL, c.limit.Period)
	}
}

// Validate reports why a settlement is invalid. It fills in the TTL.
func (s *Settlement) Validate() error {
	if s.Used == nil {
		return validateTTL(&s.TTL)
	}
	if s.Ops == nil {
		return nil
	}
	return ValidateReserve(&Reservation{Tags: s.Tags}, s.Ops)
}

func validateTTL(ttl *time.Duration) error {
	if *ttl == 0 {
		*ttl = DefaultHoldTTL
	}
	if *ttl < time.Millisecond || *ttl > MaxHoldTTL {
		return invalid("ttl", "%v is not a time that a hold can last; it lasts 1ms to %v", *ttl, MaxHoldTTL)
	}
	return nil
}

// HoldState is what has become of a hold.
type HoldState uint8

const (
	HoldUnknown HoldState = iota // there was none, or it ended too long ago
	HoldOpen
	HoldSettled // it ended with a cost; 0 if it was cancelled
	HoldExpired // it was not settled in time
	HoldPending // the settlement waits until the store is available again; stores do not return it
)

// String returns the name of the state.
func (s HoldState) String() string {
	return [...]string{"unknown", "open", "settled", "expired", "pending"}[s]
}

// HoldStore is a [Store] that can reserve units and settle them later.
type HoldStore interface {
	Store

	// Reserve charges the ops as Take does. If they are allowed, it opens a hold on what
	// it charged, but for ops with Final. If they are denied, there is no hold. No two ops
	// that are charged may share a key and a kind of limit. If the store has no place for the
	// hold, the error is ErrHoldsFull.
	//
	// A hold ends once: it is settled, or it expires. When it expires, limits with Release
	// get their units back, as of the reservation; for others they stay charged.
	Reserve(ctx context.Context, dst []Decision, r Reservation, ops ...Op) ([]Decision, error)

	// Settle ends a hold, or extends it. A hold acts on the limits that it was charged
	// on, whatever other limits apply to the key by now. If the hold had ended already, the
	// answer is that of the first time.
	Settle(ctx context.Context, s Settlement) (Settled, error)
}

// PartialStore is a HoldStore on several servers, of which some may be unavailable while others answer.
//
// Its methods do what Take, Peek and Reserve do for the ops whose servers answer: all of these are charged,
// or none, whatever becomes of the other ops. If a server did not answer, failed has an error for each op,
// which is nil if the op was decided; otherwise it is nil. Only the decisions of ops that were decided are
// valid, and a hold is only on those. ReservePartial has one more error, for the hold: it is not nil if
// others may not find the hold, so that only this store can settle it. If no op was decided, there is an
// error, as of the other methods.
type PartialStore interface {
	HoldStore

	TakePartial(ctx context.Context, dst []Decision, ops ...Op) (decisions []Decision, failed []error, err error)
	PeekPartial(ctx context.Context, dst []Decision, ops ...Op) (decisions []Decision, failed []error, err error)
	ReservePartial(ctx context.Context, dst []Decision, r Reservation, ops ...Op) (decisions []Decision, failed []error, err error)

	// PartOf returns a number for the part of the store that decides an op. Ops of one part are available or
	// unavailable together.
	PartOf(op Op) uint16
}

// Settlement is how a hold ends, or is extended.
type Settlement struct {
	ID HoldID

	// Used returns the units that each op has really used, by the op's Tag and cost. Less
	// than the cost is refunded as of the reservation; more is charged now, as with
	// [Op.Always]. If it is nil, the hold stays open and gets a new TTL.
	Used func(tag string, cost int64) int64

	// TTL is the time after which the hold expires, from now on, if Used is nil.
	TTL time.Duration

	// Renew makes an extension renew the places of InFlight limits in the same step, as
	// [Limiter.Renew] does. The hold then expires with the first of them at the latest.
	// Default false: they are free when they would have been.
	Renew bool

	// Ops are charged if the store knows no such hold: all that was used, as with
	// [Op.Always]. The hold then is settled. So a caller that got no answer to its
	// reservation, or that reserved nothing, is charged once, even if it repeats the call.
	// A reservation that arrives later is denied. Tags has one entry for each op. Default
	// none: such a hold is unknown.
	Ops  []Op
	Tags []string

	// Rest settles nothing but Ops: those that a [PartialStore] did not decide when it reserved the
	// others. Default false.
	Rest bool
}

// Settled is the answer to a Settlement.
type Settled struct {
	State   HoldState
	Expires Micros        // when it expires, if it is open
	Parts   []SettledPart // if it is open or settled

	// Until is when the hold would have expired without this call, if it was open. 0 if the
	// store does not know.
	Until Micros

	// Repeated reports that the hold was settled before this call, and that this is the
	// answer of the first time.
	Repeated bool
}

// SettledPart is what became of one op of a hold.
type SettledPart struct {
	Tag    string
	Cost   int64 // reserved
	Used   int64 // 0 as long as the hold is open
	Excess int64 // of Used, what was not charged; see Decision.Excess
}

// Held is the part of a hold in the usage of one key: what was charged when it was
// reserved, and what is needed to give some of it back. A store keeps it until the hold
// ends.
type Held struct {
	Cost    int64 // units that were charged
	Receipt Receipt

	// Of a bucket: the parts in it right after the charge, without what was given back since
	// of holds that were reserved earlier, and when that was. What was in the bucket first
	// drains first, so these tell how much of the charge has drained.
	Level int64
	At    Micros
}

// Held returns what to keep of an op that was charged, with the state that it left. No
// other op of its request may share that state.
func (op *Op) Held(next State) Held {
	h := Held{Cost: op.Cost, Receipt: Receipt(next.Fresh)}
	if c := op.Limit; c.limit.Algorithm.leaks() {
		h.Level, h.At = next.A, next.Fresh-Micros(divUp(next.A, c.n))
	}
	return h
}
