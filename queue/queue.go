// Package queue is the leaky bucket as a queue: it accepts work now and hands it out at
// a constant rate.
//
// A limit denies requests that come too fast; a queue keeps them. [Store.Push] accepts
// items until the queue is full. [Run] processes them, with any number of workers in
// any number of processes. Together they start at most N items per Period, evenly
// spaced.
//
//	store, err := memory.New(map[string]queue.Settings{
//		"mail": {N: 10, Period: time.Second, Capacity: 5000},
//	}, memory.Options{})
//	place, err := store.Push(ctx, "mail", queue.Work{Payload: letter})
//	err = queue.Run(ctx, store, "mail", send, queue.RunOptions{Workers: 4})
//
// Package queue/memory keeps queues in the process, queue/redis where many processes
// share them. Both behave the same, to the microsecond.
//
// # Guarantees
//
//   - Pace: releases are at least Period/N apart, exactly, by the clock of the store.
//     The k-th of a full queue leaves k × Period/N after the first, rounded up to a
//     microsecond, as from a leaky_bucket with shape.
//   - Order: ready items leave in the order in which they were pushed.
//   - At least once: an accepted item is tried until it is acknowledged or has failed
//     MaxTries times. An item may be processed twice, if its worker acknowledged it too
//     late or was taken for dead.
//   - Dead letters: items that have failed MaxTries times are kept for inspection.
//
// # Leases
//
// An item is released when a worker gets a lease for it. The lease ends with Ack
// (done), Nack (failed) or Return (not started), or it expires after its visibility
// time; then the item is ready again. After that the worker no longer holds the lease.
package queue

import (
	"context"
	"time"

	"github.com/weirhq/weir"
)

// Store keeps queues. It is safe for concurrent use. All times are by the clock of the
// store. Any method may fail with ErrNoQueue, ErrUnavailable, or a *weir.InvalidError
// for an invalid argument.
type Store interface {
	// Push accepts work, or returns ErrFull.
	Push(ctx context.Context, queue string, w Work) (Pushed, error)

	// Lease releases ready items, in the order in which they were pushed, as far as the
	// pace allows. If there are none, the Batch is empty; that is not an error.
	Lease(ctx context.Context, queue string, ask Ask) (Batch, error)

	// Ack ends a lease: the item is done. A late Ack is accepted as long as no other
	// worker has got the item; after that, and if it is repeated, it returns ErrLost.
	Ack(ctx context.Context, queue, token string) error

	// Nack ends a lease: the item has failed. It is retried after its backoff, or
	// becomes a dead letter.
	Nack(ctx context.Context, queue, token string, f Failure) (Outcome, error)

	// Extend renews a lease for another visibility time from now, and returns that
	// time.
	Extend(ctx context.Context, queue, token string) (time.Duration, error)

	// Return ends the lease of an item that was not started. The item is ready again,
	// and the try does not count. If it was the last item to be released, its slot is
	// free again; otherwise the slot passes unused, because later items already have
	// theirs.
	Return(ctx context.Context, queue, token string) error

	// Stats returns the numbers of items in the queue.
	Stats(ctx context.Context, queue string) (Stats, error)

	// DeadLetters returns dead letters with numbers above after, oldest first. It
	// returns up to limit of them, or fewer if they are large; an empty result means
	// that there are no more.
	DeadLetters(ctx context.Context, queue string, after int64, limit int) ([]DeadLetter, error)

	// Requeue pushes dead letters again, as new items at the end of the queue, and
	// returns how many. It ignores numbers that are not dead letters. If the queue
	// becomes full, the rest remain dead letters, and the error is ErrFull.
	Requeue(ctx context.Context, queue string, numbers ...int64) (int, error)

	// Delete deletes dead letters, and returns how many.
	Delete(ctx context.Context, queue string, numbers ...int64) (int, error)

	// Watch calls wake when there may be new items to lease, until the context ends. It
	// may call without need, and a notification can get lost, so also poll now and
	// then.
	Watch(ctx context.Context, queue string, wake func()) error

	// Terms returns the terms of a declared queue.
	Terms(queue string) (*Terms, error)
}

// Work is an item to push.
type Work struct {
	Payload []byte // any bytes, up to Settings.MaxPayload

	// ID makes Push idempotent. A push adds nothing while an item with the same ID is
	// in the queue, among its dead letters, or remembered. Default none.
	ID string
}

// State is the state of an item.
type State string

// The states of an item. Done is known only for remembered IDs.
const (
	Ready   State = "ready"   // waits for its turn
	Delayed State = "delayed" // waits after a failure
	Leased  State = "leased"  // leased by a worker
	Dead    State = "dead"    // dead letter
	Done    State = "done"
)

// Pushed is the result of a push.
type Pushed struct {
	// Number identifies the item. Later items have higher numbers, and numbers are
	// never reused. It is 0 for a duplicate of an item that is done.
	Number int64

	// Duplicate reports that the ID already existed, so that nothing was added.
	Duplicate bool

	// State is the state of the item; Ready if it is new.
	State State

	// Position is the position among the ready items, from 1 for the next to leave; 0
	// if the item is not ready.
	Position int64

	// Wait is the time until the item's turn, if workers keep up and no failed item
	// comes back before it.
	Wait time.Duration
}

// Ask is a worker's request for items.
type Ask struct {
	// Max is the maximum number of items to lease, up to MaxBatch. Default 1.
	Max int

	// Ahead is how long before its release an item may be leased, up to MaxAhead.
	// Default 0. The worker waits for Lease.Delay, so that round trips do not slow down
	// the queue.
	Ahead time.Duration
}

// Lease is an item that a worker has leased.
type Lease struct {
	Number  int64
	ID      string
	Payload []byte
	Tries   int         // number of tries, including this one
	Pushed  weir.Micros // time of the push

	// Token authorizes Ack, Nack, Extend and Return. It is a secret.
	Token string

	// Release is when the item may be started, and Delay the time until then.
	Release weir.Micros
	Delay   time.Duration

	// Expires is when the lease expires and the item goes to another worker.
	Expires weir.Micros
}

// Batch is the answer to an Ask.
type Batch struct {
	Leases []Lease

	// Wait is the time until the next call is useful, unless something is pushed
	// before: weir.Never if the queue is empty.
	Wait time.Duration
}

// Failure describes why an item failed.
type Failure struct {
	Reason string // for people; cut to MaxReasonLen
	Bury   bool   // make the item a dead letter immediately
}

// Outcome is what happens to a failed item.
type Outcome struct {
	Dead       bool
	RetryAfter time.Duration // time until the next try, if not dead
}

// Stats are the numbers of items in a queue.
type Stats struct {
	Ready, Delayed, Leased int64
	Capacity               int64
	Dead                   int64
	Dropped                int64         // dead letters dropped for lack of room, since the queue was last empty
	Age                    time.Duration // age of the oldest ready item
	Wait                   time.Duration // time until the next release, if an item is ready
}

// Length returns how much of the capacity is used.
func (s Stats) Length() int64 { return s.Ready + s.Delayed + s.Leased }

// DeadLetter is an item that has failed permanently.
type DeadLetter struct {
	Number  int64
	ID      string
	Payload []byte
	Tries   int
	Pushed  weir.Micros
	Died    weir.Micros
	Reason  string
}

// Expired is the reason of a dead letter whose last lease expired.
const Expired = "the worker did not finish within its time"
