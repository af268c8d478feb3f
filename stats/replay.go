package stats

import (
	"context"
	"time"

	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/stats/frame"
)

// Replay tells of every second between two times, as a subscription would have: also of
// those in which nothing happened. It goes back as far as seconds are kept.
func (r *Recorder) Replay(ctx context.Context, from, to time.Time, tell func(Live)) error {
	keep := r.archive.Levels(archive.Series)[0].Keep
	next := max(from.Unix(), r.options.Clock().Unix()-keep)
	quiet := func(until int64) {
		for ; next < until; next++ {
			tell(Live{Time: time.Unix(next, 0).UTC(), Frame: &frame.Frame{}})
		}
	}
	err := each(ctx, r.archive, archive.Series, 0, next, to.Unix(), func(s archive.Slot) {
		quiet(s.Start)
		tell(Live{Time: time.Unix(s.Start, 0).UTC(), Frame: s.Frame})
		next = s.Start + 1
	})
	if err == nil {
		quiet(to.Unix())
	}
	return err
}

// Lead reports whether this instance is the one to do what only one of all should, for
// so long. Who leads goes on leading as long as it asks in time.
func (r *Recorder) Lead(ctx context.Context, what string, d time.Duration) (bool, error) {
	return r.archive.Lead(ctx, what, d)
}
