package stats

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/stats/frame"
)

// MaxDenials is the maximum number of denials in an answer.
const MaxDenials = 100

// DenialsQuery selects denials.
type DenialsQuery struct {
	Rule string // default all rules, and the block list
	Key  string // default all clients
	N    int    // default 20, at most MaxDenials
}

// Denials are the latest denials that are known, newest first. They are a sample: see
// [frame.MaxDenials].
type Denials struct {
	Denials []frame.Denial
	Local   bool // the archive is unavailable, and the data is of this instance alone
}

// Denials returns the latest denials. The answer is at most two seconds old. For each
// client and rule, up to four denials are kept: in every ten seconds of the last ten
// minutes, in every five minutes of the last two hours, and in every hour of the last day.
func (r *Recorder) Denials(ctx context.Context, q DenialsQuery) (d *Denials, err error) {
	q.N = cmp.Or(q.N, 20)
	if q.N < 1 || q.N > MaxDenials {
		return nil, wrongQuery("%d denials cannot be listed; ask for 1 to %d", q.N, MaxDenials)
	}
	own, err := r.ask(ctx, func(a archive.Store) (err error) { d, err = r.denials(ctx, a, q); return err })
	if err != nil {
		return nil, err
	}
	d.Local = own
	return d, nil
}

// lastMinute, in seconds, is read first, because it usually has enough denials.
const lastMinute = 60

func (r *Recorder) denials(ctx context.Context, a archive.Store, q DenialsQuery) (*Denials, error) {
	now := r.options.Clock().Unix()
	// Levels overlap; a denial that is in both counts once.
	found := map[frame.Denial]bool{}
	read := func(level int, from, to int64) error {
		return each(ctx, a, archive.Top, level, from, to, func(s archive.Slot) {
			for _, d := range s.Frame.Denials {
				if (q.Rule == "" || d.Rule == q.Rule) && (q.Key == "" || d.Key == q.Key) {
					found[d] = true
				}
			}
		})
	}
	levels := a.Levels(archive.Top)
	to := now + levels[0].Step
	for level := -1; level < len(levels) && len(found) < q.N; level++ {
		l, from := levels[max(level, 0)], now-lastMinute
		if level >= 0 {
			from = now - l.Keep
		}
		if err := read(max(level, 0), l.Start(from), to); err != nil {
			return nil, err
		}
		to = l.Start(from)
	}
	all := slices.Collect(maps.Keys(found))
	frame.SortDenials(all)
	return &Denials{Denials: all[:min(len(all), q.N)]}, nil
}
