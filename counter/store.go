// Package counter counts for applications: page views and likes, leaderboards, what is
// hot at the moment, and what each user has done.
//
//	store := memory.New(memory.Options{})
//	visits := counter.Key{Name: "visits", Window: counter.Day, Zone: shanghai}
//	today, err := store.Add(ctx, counter.Delta{Key: visits, By: counter.One})
//
// A [Store] keeps the counts: package counter/memory in the process, package counter/redis
// in Redis, where any number of processes share them. They mean exactly the same, and a
// call does all of what it says, or nothing. [Actions] and [Watch] are built on any store.
//
// A counter only counts. Where something is to be denied from some number on, a rule
// of package rule is the better choice: reading a count and then deciding lets two
// requests at once see the last free place.
//
// # Exactness
//
// An [Amount] is a whole number of millionths, so that 0.1 added ten times is 1, in
// memory and in Redis. What would leave the range is rejected with [ErrRange], not
// rounded.
//
// # Bounds
//
// Names, members and batches have a largest size, leaderboards and hot lists a largest
// number of members, and everything is forgotten some time after it was last written:
// see [Retention]. A store in memory has a largest size as a whole.
package counter

import (
	"context"
	"errors"
	"time"
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

// Retention is how long counts are kept. The zero value stands for the defaults. It
// bounds what a name can ever cost, so all processes that share counts should say the
// same.
type Retention struct {
	// Ever is after how long without a change a counter or a leaderboard without a
	// window is forgotten. Default 366 days.
	Ever time.Duration

	// Seconds, Minutes, Hours and Days are how many windows of a counter can be read,
	// the current one included. Default 3600, 1440, 720 and 366: an hour of seconds, a
	// day of minutes, a month of hours, a year of days. At most MaxHistory.
	Seconds, Minutes, Hours, Days int
}

// WithDefaults returns it with what it leaves out, for stores.
func (r Retention) WithDefaults() Retention {
	for _, field := range []struct {
		n         *int
		otherwise int
	}{{&r.Seconds, 3600}, {&r.Minutes, 1440}, {&r.Hours, 720}, {&r.Days, 366}} {
		if *field.n <= 0 {
			*field.n = field.otherwise
		}
		*field.n = min(*field.n, MaxHistory)
	}
	if r.Ever <= 0 {
		r.Ever = 366 * 24 * time.Hour
	}
	r.Ever = max(r.Ever, time.Second)
	return r
}

// Windows is how many windows are kept.
func (r Retention) Windows(w Window) int {
	return [...]int{Ever: 1, Second: r.Seconds, Minute: r.Minutes, Hour: r.Hours, Day: r.Days}[w]
}

// After is how long after its last change a counter may be forgotten: when nothing of
// it can be read any more. One window more is for days that are longer.
func (r Retention) After(w Window) time.Duration {
	if w == Ever {
		return r.Ever
	}
	return time.Duration(r.Windows(w)+1) * w.Width()
}

// BoardAfter is the same for a leaderboard.
func (r Retention) BoardAfter(w Window) time.Duration {
	if w == Ever {
		return r.Ever
	}
	return (BoardWindows + 1) * w.Width()
}
