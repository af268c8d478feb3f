package weir

import (
	"context"
	"math"
	"time"
)

// Micros is an instant in microseconds since the Unix epoch.
type Micros int64

// MicrosOf returns t as Micros, rounded down to a microsecond.
func MicrosOf(t time.Time) Micros { return Micros(t.UnixMicro()) }

// Time returns the instant as a time in UTC.
func (m Micros) Time() time.Time { return time.UnixMicro(int64(m)).UTC() }

// Add returns the instant d later; it ignores fractions of a microsecond.
func (m Micros) Add(d time.Duration) Micros { return m + Micros(d.Microseconds()) }

// Sub returns the duration from other to m.
func (m Micros) Sub(other Micros) time.Duration { return time.Duration(m-other) * time.Microsecond }

// Never is the RetryAfter of a cost that exceeds the limit's capacity.
const Never time.Duration = math.MaxInt64

// MaxKeyLen is the maximum length of a key in bytes.
const MaxKeyLen = 1024

// Receipt identifies a charge, so that it can be given back, or a place, so that it can be kept.
// Other charges of the key at the same instant may have the same one. It is the Receipt of a
// [Decision], 0 if nothing was charged, or Latest; nothing else can be done with it than to hand
// it back.
type Receipt int64

// Latest is a receipt for the newest units of a key, no matter which request took them.
// Use it to refund a client by hand.
const Latest Receipt = math.MaxInt64

// Decision is the answer to one [Op].
type Decision struct {
	Allowed    bool
	Limit      int64         // the most units that can be taken at once
	Remaining  int64         // units that the op could take now; see Op.Leave
	RetryAfter time.Duration // 0 if allowed; Never if the cost, with what is left for others, exceeds the capacity
	ResetAfter time.Duration // time until the key is fully reset
	ResetAt    Micros        // the same as an instant of the store's clock; now if the key is already reset
	Delay      time.Duration // shaping: delay the request by this long
	Receipt    Receipt       // identifies the charge for Refund; 0 if nothing was charged
	Excess     int64         // Op.Always: units of the cost that were not charged, because the key is too deep in debt
	Reserved   int64         // denied: units that the op lacks, if as many are only reserved by open holds; see Pending.TellReserved
	Leased     int64         // units that would remain if processes did not have them on lease: neither used nor remaining; see LeaseStore
	AtShare    bool          // denied: not by the limit, but because the client has its share of the key's open holds; see HoldShare
}

// Op requests Cost units of a key's limit.
type Op struct {
	// Key identifies the client: 1 to MaxKeyLen arbitrary bytes.
	Key string

	// Limit is the limit that applies to the key.
	Limit *Compiled

	// Cost is the number of units to take, at least 1; for Peek, at least 0.
	Cost int64

	// Leave is the number of units that the op leaves for others: it is allowed only if the
	// cost and these fit. So a key can keep a share of its capacity for what is more
	// important. Remaining and RetryAfter are those of this op. It charges only the cost.
	// Default 0; at most MaxUnits.
	Leave int64

	// MaxDelay makes a shaping limit deny a request instead of delaying it longer.
	// Default 0: any delay for which the queue has room.
	MaxDelay time.Duration

	// Always charges the cost even if it does not fit, because the work is done already:
	// the key is then in debt, and denied until enough of its usage has expired. Allowed
	// reports whether the cost fitted, with Leave. RetryAfter is the time until one unit is
	// free again. The delay is 0.
	// Set it on all ops of a request that are charged, or on none.
	//
	// A key can owe up to 10 times the capacity; [Compiled.MaxUsage] lists limits with
	// less. Decision.Excess is the part of the cost beyond that.
	Always bool

	// Look makes Take require that the cost fits, without charging it: the decision is that
	// of Peek, and it neither adds to other ops on the same key nor includes them.
	Look bool

	// Final makes Reserve charge the op as Take does, without a hold on it, because its cost
	// is known. It stays charged, whatever becomes of the hold; Refund gives it back.
	Final bool

	// Receipt identifies the charge that Refund gives back: the Receipt of a Decision,
	// or Latest. With 0, the Receipt of a denial, nothing is given back.
	//
	// Take with Always renews the place of an InFlight limit that has this receipt: it gives
	// the place back and takes one from now on, in one step. Set it on all ops of the
	// request, or on none.
	Receipt Receipt
}

// Store keeps the usage of keys, separately for each key and [Compiled.Kind] of limit.
// Implementations are safe for concurrent use. After a call returns they keep neither
// its ops nor the bytes of their keys.
type Store interface {
	// Take charges every op or none, and appends one decision for each op, in order, to
	// dst. The request is allowed if every decision is Allowed; see [Allowed].
	//
	// If one op is denied, nothing is charged, and the other decisions are those of
	// Peek. The exceptions are a limit with CountDenied, which counts every request, and
	// ops with Always, which are all charged. Ops with Look are never charged. Ops on the
	// same key and kind add up.
	//
	// After an error there is no decision; if the context ended while the store was
	// unavailable, the ops may have been charged.
	Take(ctx context.Context, dst []Decision, ops ...Op) ([]Decision, error)

	// Peek returns the decisions that Take would return, and charges nothing. Remaining
	// and ResetAfter describe the current usage, before any charge; so does the
	// RetryAfter of a limit with CountDenied.
	Peek(ctx context.Context, dst []Decision, ops ...Op) ([]Decision, error)

	// Refund gives back what Take charged for each op, as if the request had never been
	// made; [Compiled.Refund] lists the exceptions, and what several refunds of one bucket may
	// give back too much. If a process dies before its
	// refund, the charge expires like any other.
	Refund(ctx context.Context, ops ...Op) error

	// Reset clears the usage of each op's key under its kind of limit.
	Reset(ctx context.Context, ops ...Op) error
}

// Renews reports whether Take gives back a place before it takes one; see [Op.Receipt].
func (op *Op) Renews() bool { return op.Always && op.Receipt != 0 }

// Validate reports why the op cannot be taken.
func (op *Op) Validate() error {
	if op.isPlain() {
		return nil
	}
	return op.validateCharge()
}

// isPlain reports whether an op is valid and has no options but Leave, as nearly all are.
func (op *Op) isPlain() bool {
	return op.Cost >= 1 && uint(len(op.Key)-1) < MaxKeyLen && op.Limit != nil && uint64(op.Leave) <= MaxUnits &&
		int64(op.MaxDelay)|int64(op.Receipt) == 0 && !op.Always && !op.Look
}

func (op *Op) validateCharge() error {
	if op.Cost < 1 {
		return invalid("cost", "%d cannot be charged; a request costs at least 1", op.Cost)
	}
	if op.Always && op.Cost > MaxUnits {
		return invalid("cost", "%d is more than can be counted exactly; charge at most %d at once", op.Cost, int64(MaxUnits))
	}
	return op.validate()
}

// validate is for an op that is only looked at or reset, which may cost nothing.
func (op *Op) validate() error {
	switch {
	case op.Key == "":
		return invalid("key", "it is empty; identify the client, or use one constant key for all clients")
	case len(op.Key) > MaxKeyLen:
		return invalid("key", "it has %d bytes, at most %d are allowed; hash long identities first", len(op.Key), MaxKeyLen)
	case op.Limit == nil:
		return invalid("limit", "it is required; compile one with Limit.Compile")
	case op.Cost < 0:
		return invalid("cost", "%d is negative; use Refund to give units back", op.Cost)
	case op.Leave < 0 || op.Leave > MaxUnits:
		return invalid("leave", "%d is not a number of units that can be left; leave 0 to %d", op.Leave, int64(MaxUnits))
	case op.MaxDelay < 0:
		return invalid("max_delay", "%v is negative; leave it 0 for any delay", op.MaxDelay)
	case op.Receipt < 0:
		return invalid("receipt", "%d is not a valid receipt; use that of a decision, or Latest", op.Receipt)
	}
	return nil
}
