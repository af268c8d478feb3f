package stats

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/stats/frame"
)

// MaxLatest is the maximum number of denials or warnings in an answer.
const MaxLatest = 100

// LatestQuery selects denials or warnings.
type LatestQuery struct {
	Rule string // default all rules and, for denials, the block list
	Key  string // default all clients
	N    int    // default 20, at most MaxLatest
}

// lastMinute, in seconds, is read first, because it usually has enough.
const lastMinute = 60

// events are one list of a frame, newest first.
type events[T comparable] struct {
	name string
	list func(*frame.Frame) []T
	of   func(T) (rule, key string)
	sort func([]T)
}

// latest returns the newest events. If the archive is unavailable, local is true, and they are
// those of this instance alone.
func latest[T comparable](ctx context.Context, r *Recorder, e events[T], q LatestQuery) (all []T, local bool, err error) {
	q.N = cmp.Or(q.N, 20)
	if q.N < 1 || q.N > MaxLatest {
		return nil, false, wrongQuery("%d %s cannot be listed; ask for 1 to %d", q.N, e.name, MaxLatest)
	}
	now := r.options.Clock().Unix()
	local, err = r.ask(ctx, func(a archive.Store) (err error) { all, err = e.read(ctx, a, q, now); return err })
	return all, local, err
}

// read goes back in time until it has enough.
func (e *events[T]) read(ctx context.Context, a archive.Store, q LatestQuery, now int64) ([]T, error) {
	found := map[T]bool{} // levels overlap; what is in both counts once
	levels := a.Levels(archive.Top)
	to := now + levels[0].Step
	for level := -1; level < len(levels) && len(found) < q.N; level++ {
		l, from := levels[max(level, 0)], now-lastMinute
		if level >= 0 {
			from = now - l.Keep
		}
		err := each(ctx, a, archive.Top, max(level, 0), l.Start(from), to, func(s archive.Slot) {
			for _, one := range e.list(s.Frame) {
				if rule, key := e.of(one); (q.Rule == "" || rule == q.Rule) && (q.Key == "" || key == q.Key) {
					found[one] = true
				}
			}
		})
		if err != nil {
			return nil, err
		}
		to = l.Start(from)
	}
	all := slices.Collect(maps.Keys(found))
	e.sort(all)
	return all[:min(len(all), q.N)], nil
}
