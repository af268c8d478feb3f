package weir

import (
	"context"
	"math"
	"time"
)

// Micros is an instant: microseconds since the Unix epoch.
type Micros int64

// MicrosOf is the instant of t, without what is finer than a microsecond.
func MicrosOf(t time.Time) Micros { return Micros(t.UnixMicro()) }

// Time is the instant as a time in UTC.
func (m Micros) Time() time.Time { return time.UnixMicro(int64(m)).UTC() }

// Add is the instant d later, without what is finer than a microsecond.
func (m Micros) Add(d time.Duration) Micros { return m + Micros(d.Microseconds()) }

// Sub is how long after other the instant is.
func (m Micros) Sub(other Micros) time.Duration { return time.Duration(m-other) * time.Microsecond }

// Never is the RetryAfter of a cost that can never fit into its limit.
const Never time.Duration = math.MaxInt64

// MaxKeyLen is the longest key, in bytes, that a store accepts.
const MaxKeyLen = 1024

// Decision is the answer to one [Op].
type Decision struct {
	Allowed    bool
	Limit      int64         // the most units that can ever be taken at once
	Remaining  int64         // units that could be taken right now
	RetryAfter time.Duration // 0 if allowed; Never if this cost can never fit
	ResetAfter time.Duration // until the key is fully reset
	ResetAt    Micros        // the same as an instant of the store's clock; now if it is already
	Delay      time.Duration // shaping: hold the request this long, then let it go
	Receipt    Micros        // what Refund needs to give the charge back; 0 if there was none
}

// Op asks for Cost units of a key's limit.
type Op struct {
	// Key is who is limited: any bytes, 1 to MaxKeyLen of them.
	Key string

	// Limit is what applies to the key.
	Limit *Compiled

	// Cost is the number of units to take, at least 1. A peek may ask for 0.
	Cost int64

	// MaxDelay makes a shaping limit deny rather than hold the request for
	// longer. Default 0: any delay that the queue has room for.
	MaxDelay time.Duration

	// Receipt tells Refund which charge to give back: a Decision's, or Latest.
	// With 0, which is the Receipt of a denial, nothing is given back.
	Receipt Micros
}

// Store remembers the state of keys, each key apart for each [Compiled.Kind] of
// limit. Implementations are safe for concurrent use, and keep no op, nor the bytes
// of its Key, after they have returned.
type Store interface {
	// Take charges every op or none, and appends one decision for each op, in
	// order, to dst. The request passes if every decision is Allowed; see
	// [Allowed].
	//
	// When one op denies, nothing is charged: the others answer as Peek would.
	// The exception is a limit with CountDenied, which counts every request
	// that it is asked about. Ops on the same key and kind add up.
	//
	// An error means that nothing was judged; if the context ended while the
	// store was unavailable, it may have been charged.
	Take(ctx context.Context, dst []Decision, ops ...Op) ([]Decision, error)

	// Peek answers what Take would, and charges nothing. Its Remaining and
	// ResetAfter are what stands now, before any charge; so is the RetryAfter of
	// a limit that would count the denial.
	Peek(ctx context.Context, dst []Decision, ops ...Op) ([]Decision, error)

	// Refund gives back what Take charged for each op, as if it had never been
	// asked; see [Compiled.Refund] for how exactly that holds. Who dies in
	// between leaves a charge that fades like any other.
	Refund(ctx context.Context, ops ...Op) error

	// Reset forgets the state of each op's key under its kind of limit.
	Reset(ctx context.Context, ops ...Op) error
}

// Validate reports what makes the op impossible to take.
func (op *Op) Validate() error {
	if op.Cost < 1 {
		return invalid("cost", "%d cannot be charged; a request costs at least 1", op.Cost)
	}
	return op.validate()
}

// validate is for an op that is only looked at or reset, which may cost nothing.
func (op *Op) validate() error {
	switch {
	case op.Key == "":
		return invalid("key", "it is empty; name who is limited, or use one constant key for everybody")
	case len(op.Key) > MaxKeyLen:
		return invalid("key", "it has %d bytes, at most %d are allowed; hash long identities first", len(op.Key), MaxKeyLen)
	case op.Limit == nil:
		return invalid("limit", "it is missing; compile one with Limit.Compile")
	case op.Cost < 0:
		return invalid("cost", "%d is negative; nothing can be given back this way", op.Cost)
	case op.MaxDelay < 0:
		return invalid("max_delay", "%v is negative; leave it 0 for any delay", op.MaxDelay)
	case op.Receipt < 0:
		return invalid("receipt", "%d is no instant; use a decision's, or Latest", op.Receipt)
	}
	return nil
}
