package stats

import (
	"context"

	"github.com/weirhq/weir/stats/frame"
)

// Denials are the latest denials that are known, newest first. They are a sample: see
// [frame.MaxDenials].
type Denials struct {
	Denials []frame.Denial
	Local   bool // the archive is unavailable, and the data is of this instance alone
}

// Denials returns the latest denials. The answer is at most two seconds old. For each
// client and rule, up to four denials are kept: in every ten seconds of the last ten
// minutes, in every five minutes of the last two hours, and in every hour of the last day.
func (r *Recorder) Denials(ctx context.Context, q LatestQuery) (*Denials, error) {
	all, local, err := latest(ctx, r, events[frame.Denial]{
		"denials", func(f *frame.Frame) []frame.Denial { return f.Denials },
		func(d frame.Denial) (rule, key string) { return d.Rule, d.Key }, frame.SortDenials,
	}, q)
	if err != nil {
		return nil, err
	}
	return &Denials{all, local}, nil
}
