// Package queue is the other half of the leaky bucket: work that is accepted now and
// done at a constant pace.
//
// Where a limit denies what comes too fast, a queue keeps it. [Store.Push] accepts
// work until the queue is full, and [Run] does it, on any number of workers in any
// number of processes, which together begin no more than N in a Period, one by one.
//
//	store, err := memory.New(map[string]queue.Settings{
//		"mail": {N: 10, Period: time.Second, Capacity: 5000},
//	}, memory.Options{})
//	place, err := store.Push(ctx, "mail", queue.Work{Payload: letter})
//	err = queue.Run(ctx, store, "mail", send, queue.RunOptions{Workers: 4})
//
// Package queue/memory keeps queues in the process, queue/redis where many processes
// share them. They mean the same, to the microsecond.
//
// # Promises
//
//   - Pace: releases are at least Period/N apart, exactly, by the clock of the store.
//     The k-th of a full queue leaves k × Period/N after the first, rounded up to a
//     microsecond, as from a leaky_bucket with shape.
//   - Order: what is ready leaves in the order in which it was pushed.
//   - At least once: work that was accepted is tried until it is acknowledged, or has
//     failed MaxTries times. It may be done twice: by a worker that was too slow to
//     say so, or was taken for dead.
//   - What has failed for good is kept in a list of dead letters for somebody to look at.
//
// # Words
//
// An item is released when a worker gets a lease of it. The lease ends with Ack (done),
// Nack (failed), Return (not begun), or by itself when its visibility time is over;
// then the item is ready again. A lease that is ended is lost to whoever held it.
package queue

import (
	"context"
	"time"

	"github.com/weirhq/weir"
)

// Store keeps queues. It is safe for concurrent use. All times are by the clock of the
// store. Any method may fail with ErrNoQueue, ErrUnavailable, or a *weir.InvalidError for
// an argument that makes no sense.
type Store interface {
	// Push accepts work, or returns ErrFull.
	Push(ctx context.Context, queue string, w Work) (Place, error)

	// Lease releases items that are ready, in the order in which they were pushed, as
	// far as the pace allows. That there is none is an answer, not an error.
	Lease(ctx context.Context, queue string, ask Ask) (Batch, error)

	// Ack ends a lease: the item is done. It may come too late as long as nobody else
	// has got the item; then it is ErrLost, as it is the second time.
	Ack(ctx context.Context, queue, token string) error

	// Nack ends a lease: the item has failed. It is tried again after its backoff, or
	// is a dead letter now.
	Nack(ctx context.Context, queue, token string, f Failure) (Outcome, error)

	// Extend makes a lease last for another visibility time from now, and returns how
	// long that is.
	Extend(ctx context.Context, queue, token string) (time.Duration, error)

	// Return ends a lease of an item that was not begun: it is ready again, and has
	// not been tried. If it was the last to be released, its turn is free again;
	// otherwise that passes unused, for those behind it were told theirs.
	Return(ctx context.Context, queue, token string) error

	// Stats tells what is in the queue.
	Stats(ctx context.Context, queue string) (Stats, error)

	// DeadLetters lists dead letters with numbers above after, the oldest first. It
	// returns up to limit of them, or fewer when they are large; none means that
	// there are no more.
	DeadLetters(ctx context.Context, queue string, after int64, limit int) ([]DeadLetter, error)

	// Requeue pushes dead letters again, as new items at the end of the queue, and
	// returns how many. Numbers that are no dead letters are passed over. When the
	// queue is full, the rest stay where they are, and it is ErrFull.
	Requeue(ctx context.Context, queue string, numbers ...int64) (int, error)

	// Delete forgets dead letters, and returns how many.
	Delete(ctx context.Context, queue string, numbers ...int64) (int, error)

	// Watch calls wake when there may be something to lease that there was not
	// before, until the context ends. It may call in vain, and a message can get
	// lost: whoever waits should also ask now and then.
	Watch(ctx context.Context, queue string, wake func()) error

	// Terms are those of a declared queue.
	Terms(queue string) (*Terms, error)
}

// Work is what is pushed.
type Work struct {
	Payload []byte // any bytes, up to Settings.MaxPayload

	// ID makes pushing idempotent: while an item with the same ID is in the queue or
	// among its dead letters, or is remembered, a push adds nothing. Default none.
	ID string
}

// State is where an item is.
type State string

// An item is in one of these. Done is known of IDs that are remembered only.
const (
	Ready   State = "ready"   // waits for its turn
	Delayed State = "delayed" // is delayed after a failure
	Leased  State = "leased"  // is at a worker
	Dead    State = "dead"    // is a dead letter
	Done    State = "done"
)

// Place is what whoever pushed is told.
type Place struct {
	// Number is the item's own. Later items have higher ones; it is never used again.
	// It is 0 for a duplicate of an item that was done.
	Number int64

	// Duplicate says that the ID was there before, and nothing was added.
	Duplicate bool

	// State is Ready for what is new.
	State State

	// Position among those that are ready, from 1 for the next to leave; 0 for those
	// that are not.
	Position int64

	// Wait is how long until its turn, if workers keep up and nothing that has failed
	// comes back before it.
	Wait time.Duration
}

// Ask is what a worker would like.
type Ask struct {
	// Max is how many items to lease at most, up to MaxBatch. Default 1.
	Max int

	// Ahead is how long before its release an item may be leased already, up to
	// MaxAhead. Default 0. The worker holds it for Lease.Delay; so the pace does not
	// suffer from the time that a question takes.
	Ahead time.Duration
}

// Lease is an item at a worker.
type Lease struct {
	Number  int64
	ID      string
	Payload []byte
	Tries   int         // with this one
	Pushed  weir.Micros // when

	// Token proves the lease to Ack, Nack, Extend and Return. It is a secret.
	Token string

	// Release is when the item may be begun, and Delay how long that is from now.
	Release weir.Micros
	Delay   time.Duration

	// Expires is when the item goes to another.
	Expires weir.Micros
}

// Batch is the answer to an Ask.
type Batch struct {
	Leases []Lease

	// Wait is how long until it makes sense to ask again, unless something is pushed
	// before: weir.Never if the queue is empty.
	Wait time.Duration
}

// Failure is why an item was not done.
type Failure struct {
	Reason string // for people; at most MaxReasonLen of it are kept
	Bury   bool   // make it a dead letter at once
}

// Outcome is what becomes of an item that has failed.
type Outcome struct {
	Dead       bool
	RetryAfter time.Duration // if it is not dead
}

// Stats are what is in a queue.
type Stats struct {
	Ready, Delayed, Leased int64
	Capacity               int64
	Dead                   int64
	Dropped                int64         // dead letters that were too many, since the queue was last empty
	Age                    time.Duration // of the oldest that is ready
	Wait                   time.Duration // until the next release, if something is ready
}

// Length is how much of the capacity is used.
func (s Stats) Length() int64 { return s.Ready + s.Delayed + s.Leased }

// DeadLetter is an item that has failed for good.
type DeadLetter struct {
	Number  int64
	ID      string
	Payload []byte
	Tries   int
	Pushed  weir.Micros
	Died    weir.Micros
	Reason  string
}

// Expired is the reason of a dead letter whose last worker did not come back.
const Expired = "the worker did not finish within its time"
