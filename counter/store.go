package counter

import (
	"context"
	"errors"
)

// Store keeps counts. It is safe for concurrent use. Each call does all that it says, or
// nothing, as if all calls came one after the other; on a Redis cluster that is so for
// counters of one group.
//
// Bad input is a *weir.InvalidError, and then nothing was done.
type Store interface {
	// Add changes counters, and returns what each has afterwards.
	Add(ctx context.Context, deltas ...Delta) ([]Amount, error)

	// Get returns what counters have. One that nobody has added to has 0.
	Get(ctx context.Context, keys ...Key) ([]Amount, error)

	// Reset sets counters to 0, and returns what each had. Whatever is added
	// meanwhile is either in what it returns or in what remains.
	Reset(ctx context.Context, keys ...Key) ([]Amount, error)

	// History returns the last n windows of each counter, the earliest first and the
	// current one last.
	History(ctx context.Context, n int, keys ...Key) ([][]Point, error)

	// NextID returns a number that is larger than all that were returned before for
	// the same sequence, to anybody. It is not the next one: it is the time in
	// microseconds, or one more than the last. So it does not repeat even when all
	// else is lost, as long as the clock has not gone back meanwhile, and stays below
	// 2^53 until the year 2255.
	NextID(ctx context.Context, sequence string) (int64, error)

	// Score adds to members of a leaderboard, and returns what each has afterwards.
	Score(ctx context.Context, board Board, marks ...Mark) ([]Amount, error)

	// Top lists the first n members.
	Top(ctx context.Context, board Board, n int) (Ranking, error)

	// Standing tells where members stand.
	Standing(ctx context.Context, board Board, members ...string) ([]Place, error)

	// Hit counts a hit on each item, and tells how they stand.
	Hit(ctx context.Context, list HotList, items ...string) ([]Heat, error)

	// Hot lists the items that are hot, those with the most hits first: at most n.
	Hot(ctx context.Context, list HotList, n int) ([]Heat, error)

	// Events lists what happened after the event of that ID; after 0, all that is
	// kept.
	Events(ctx context.Context, list HotList, after int64) (Events, error)
}

// ErrRange is an amount that would leave the range of counters or scores. Nothing was
// done.
var ErrRange = errors.New("counter: the amount would leave the range; count in larger units, or reset it earlier")

// ErrUnavailable is a store that did not answer, or not in time. Whether a change was
// made is not known, unless the error says so.
var ErrUnavailable = errors.New("counter: the store is not available")
