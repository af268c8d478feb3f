// Package counter counts for applications: page views and likes, users of a month,
// response times, leaderboards, hot items, and the actions of each user.
//
//	store := memory.New(memory.Options{})
//	visits := counter.Key{Name: "visits", Window: counter.Day, Zone: shanghai}
//	today, err := store.Add(ctx, counter.Delta{Key: visits, By: counter.One})
//
// A [Store] keeps the counts: package counter/memory in the process, package
// counter/redis in Redis, where any number of processes share them. Both return exactly
// the same results, except for estimates, and a call makes all its changes or none of them. On a Redis cluster,
// this holds for the counters of one [Key.Group]. [Actions] and [Watch] work with any
// store.
//
// A counter only counts. To deny requests above a number, use a rule of package rule
// instead: if you read a count and then decide, two concurrent requests can both see
// the last free place.
//
// # Exactness
//
// An [Amount] is a whole number of millionths, so 0.1 added ten times is 1, in memory
// and in Redis. A change that would leave the range is rejected with [ErrRange], not
// rounded. A distinct counter is exact up to [ExactMembers], and an estimate above.
//
// # Bounds
//
// Names, members and batches have a maximum size. Leaderboards and hot lists have a
// maximum number of members. All counts expire some time after their last change: see
// [Retention]. A store in memory has a maximum size as a whole.
package counter

import (
	"context"
	"errors"
	"time"
)

// Store keeps counts. It is safe for concurrent use. Each call makes all its changes or
// none of them, and calls are serialized. On a Redis cluster, this holds for the counters
// of one group: a call for several groups can succeed for one and fail for another.
//
// Invalid input is a *weir.InvalidError; nothing is changed then.
type Store interface {
	// Add changes counters and returns their new values.
	Add(ctx context.Context, deltas ...Delta) ([]Amount, error)

	// Get returns the values of counters. A new counter has 0.
	Get(ctx context.Context, keys ...Key) ([]Amount, error)

	// Set gives counters new values and returns their previous ones. A concurrent
	// addition is either in the previous value, or is added to the new one. A repeated
	// call changes nothing more, so a call without an answer can be repeated.
	Set(ctx context.Context, settings ...Setting) ([]Amount, error)

	// Reset is Set to 0, also for distinct counters.
	Reset(ctx context.Context, keys ...Key) ([]Amount, error)

	// History returns the last n windows of each counter, earliest first, current
	// window last.
	History(ctx context.Context, n int, keys ...Key) ([][]Point, error)

	// Observe adds values to distributions.
	Observe(ctx context.Context, samples ...Sample) error

	// Distributions returns the last n windows of each distribution, earliest first,
	// current window last.
	Distributions(ctx context.Context, n int, keys ...Key) ([][]DistributionPoint, error)

	// NextID returns a number that is larger than all previous ones of the same
	// sequence, in all processes. Numbers are not consecutive: each is the time in
	// microseconds, or the previous number plus one. So a number does not repeat even
	// if the store loses its data, as long as the clock has not stepped back. Numbers
	// stay below 2^53 until the year 2255.
	NextID(ctx context.Context, sequence string) (int64, error)

	// Score changes the scores of members of a leaderboard and returns the new scores.
	Score(ctx context.Context, board Board, marks ...Mark) ([]Amount, error)

	// Top returns the first n members.
	Top(ctx context.Context, board Board, n int) (Ranking, error)

	// Standing returns the positions of members.
	Standing(ctx context.Context, board Board, members ...string) ([]Place, error)

	// Hit counts a hit on each item and returns their states.
	Hit(ctx context.Context, list HotList, items ...string) ([]Heat, error)

	// Hot returns up to n hot items, those with the most hits first.
	Hot(ctx context.Context, list HotList, n int) ([]Heat, error)

	// Events returns the events after the one with the ID after; after 0, all that are
	// kept.
	Events(ctx context.Context, list HotList, after int64) (Events, error)
}

// ErrRange is returned if an amount would leave the range of counters or scores. Nothing
// was changed; on a Redis cluster, nothing in the group of this counter.
var ErrRange = errors.New("counter: the amount would exceed the range; count in larger units, or reset the counter earlier")

// ErrUnavailable is returned if the store did not answer in time. A change may have
// been made, unless the error says otherwise.
var ErrUnavailable = errors.New("counter: the store is unavailable")

// Retention configures how long counts are kept. The zero value selects the defaults.
// It bounds the memory of a counter. All processes that share counts should use the
// same values.
type Retention struct {
	// Ever is how long a counter or leaderboard without a window is kept after its last
	// change. Default 366 days.
	Ever time.Duration

	// Seconds, Minutes, Hours, Days, Months and Years are the numbers of windows of a
	// counter that can be read, including the current one. Default 3600, 1440, 720, 366,
	// 60 and 10: an hour of seconds, a day of minutes, a month of hours, a year of days,
	// five years of months and ten years. At most MaxHistory, and 200 years.
	Seconds, Minutes, Hours, Days, Months, Years int
}

// maxYears is what fits into a time.Duration, and more than anybody counts.
const maxYears = 200

// WithDefaults returns the retention with its defaults filled in, for stores.
func (r Retention) WithDefaults() Retention {
	for _, field := range []struct {
		n               *int
		otherwise, most int
	}{
		{&r.Seconds, 3600, MaxHistory}, {&r.Minutes, 1440, MaxHistory}, {&r.Hours, 720, MaxHistory}, {&r.Days, 366, MaxHistory},
		{&r.Months, 60, 12 * maxYears}, {&r.Years, 10, maxYears},
	} {
		if *field.n <= 0 {
			*field.n = field.otherwise
		}
		*field.n = min(*field.n, field.most)
	}
	if r.Ever <= 0 {
		r.Ever = 366 * 24 * time.Hour
	}
	r.Ever = max(r.Ever, time.Second)
	return r
}

// Windows returns how many windows are kept.
func (r Retention) Windows(w Window) int {
	return [...]int{Ever: 1, Second: r.Seconds, Minute: r.Minutes, Hour: r.Hours, Day: r.Days, Month: r.Months, Year: r.Years}[w]
}

// After returns how long after its last change a counter may be dropped, when none of
// its windows can be read any more. It includes one extra window, because some days are
// longer.
func (r Retention) After(w Window) time.Duration {
	if w == Ever {
		return r.Ever
	}
	return time.Duration(r.Windows(w)+1) * w.Width()
}

// BoardAfter returns the same for a leaderboard.
func (r Retention) BoardAfter(w Window) time.Duration {
	if w == Ever {
		return r.Ever
	}
	return (BoardWindows + 1) * w.Width()
}
