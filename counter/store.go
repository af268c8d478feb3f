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
// [Retention]. A store in memory has a maximum size as a whole, and rejects new names with
// [ErrFull] when it is reached.
package counter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/notation"
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
	Standing(ctx context.Context, board Board, members ...string) ([]Standing, error)

	// Hit counts a hit on each item and returns their states.
	Hit(ctx context.Context, list HotList, items ...string) ([]Heat, error)

	// Hot returns up to n hot items, those with the most hits first.
	Hot(ctx context.Context, list HotList, n int) ([]Heat, error)

	// Names lists up to n of the names that the store keeps, without sequences. Do not call it
	// often: it may have to look at everything.
	Names(ctx context.Context, n int) (Names, error)

	// Events returns the events after the one with the ID after; after 0, all that are
	// kept.
	Events(ctx context.Context, list HotList, after int64) (Events, error)
}

// ErrRange is returned if an amount would leave the range of counters or scores. Nothing
// was changed; on a Redis cluster, nothing in the group of this counter.
var ErrRange = errors.New("counter: the amount would exceed the range; count in larger units, or reset the counter earlier")

// ErrFull is returned by a store in memory if a call needs room for a new name, and there is none.
// Nothing was changed. Names that exist go on counting; when the room that is kept for them is used up,
// too, it is also returned for their new windows, members and items.
var ErrFull = errors.New("counter: the store is full, so new names are rejected; raise its capacity, keep counts for a shorter time, or use fewer names")

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

// level is the retention of counters with one window.
type level struct {
	window          Window
	n               *int
	otherwise, most int
}

func (r *Retention) levels() []level {
	return []level{
		{Second, &r.Seconds, 3600, MaxHistory}, {Minute, &r.Minutes, 1440, MaxHistory}, {Hour, &r.Hours, 720, MaxHistory},
		{Day, &r.Days, 366, MaxHistory}, {Month, &r.Months, 60, 12 * maxYears}, {Year, &r.Years, 10, maxYears},
	}
}

// ParseRetention parses a text such as "seconds=1h,minutes=1d,hours=30d,days=366d,months=60,years=10,ever=366d".
// Months and years are numbers. What the text does not set has its default.
func ParseRetention(text string) (Retention, error) {
	var r Retention
	all, err := notation.ParseSettings(text)
	if err != nil || len(all) > 1 {
		return r, invalid("retention", "%.100q cannot be read; write it as days=2d,ever=366d", text)
	}
	for _, s := range all {
		for _, o := range append(s.Options, notation.Option{Name: s.Name, Value: s.Value}) {
			if err := r.set(o.Name, o.Value); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// set sets the field with a name such as "days".
func (r *Retention) set(name, value string) error {
	kept, err := notation.ParseDuration(value)
	if name == "ever" {
		if err != nil || kept < time.Second || kept > MaxHistory*24*time.Hour || r.Ever != 0 {
			return invalid(name, "%.40q is not valid; write a duration from 1s to %dd, once", value, MaxHistory)
		}
		r.Ever = kept
		return nil
	}
	all := r.levels()
	i := slices.IndexFunc(all, func(l level) bool { return l.window.String()+"s" == name })
	if i < 0 {
		return invalid("retention", "%.40q is unknown; use seconds, minutes, hours, days, months, years or ever", name)
	}
	l := all[i]
	n, what := kept/l.window.Width(), fmt.Sprintf("a duration of 1 to %d whole %s, such as %s", l.most, name, notation.FormatDuration(2*l.window.Width()))
	wrong := err != nil || kept%l.window.Width() != 0
	if l.window > Day { // they differ in length
		count, err := strconv.Atoi(value)
		n, what, wrong = time.Duration(count), fmt.Sprintf("a number from 1 to %d", l.most), err != nil
	}
	if wrong || n < 1 || n > time.Duration(l.most) || *l.n != 0 {
		return invalid(name, "%.40q is not valid; write %s, once", value, what)
	}
	*l.n = int(n)
	return nil
}

// WithDefaults returns the retention with its defaults filled in, for stores.
func (r Retention) WithDefaults() Retention {
	for _, l := range r.levels() {
		if *l.n <= 0 {
			*l.n = l.otherwise
		}
		*l.n = min(*l.n, l.most)
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
func (r Retention) After(w Window) time.Duration { return r.after(r.Windows(w), w) }

// BoardAfter returns the same for a leaderboard.
func (r Retention) BoardAfter(w Window) time.Duration { return r.after(BoardWindows, w) }

func (r Retention) after(kept int, w Window) time.Duration {
	if w == Ever {
		return r.Ever
	}
	return time.Duration(kept+1) * w.Width()
}
