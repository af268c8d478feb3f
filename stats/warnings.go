package stats

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/stats/frame"
)

var _ engine.WarningObserver = (*Recorder)(nil)

// warned collects the warnings of a second: all are counted, and the first ones kept.
type warned struct {
	mu  sync.Mutex
	all frame.Warned
}

// ObserveWarning implements [engine.WarningObserver].
func (r *Recorder) ObserveWarning(w engine.Warning) {
	r.warned.mu.Lock()
	defer r.warned.mu.Unlock()
	all := &r.warned.all
	if all.N++; len(all.List) == frame.MaxWarnings {
		return
	}
	all.List = append(all.List, frame.Warning{
		At: r.options.Clock().UnixMicro(), Rule: w.Rule.ID, Key: strings.Clone(w.Key),
		Policy: w.Quota.Limit().Rate(), Threshold: int64(w.Threshold), Used: w.Used, Limit: w.Limit,
		ResetAt: int64(w.ResetAt), Instance: r.options.Instance[:min(len(r.options.Instance), maxInstance)],
	})
}

// take returns the warnings since the last call.
func (w *warned) take() frame.Warned {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = frame.Warned{}
	frame.SortWarnings(all.List)
	return all
}

// takeWarningsLocked adds the warnings to those of the ten seconds.
func (r *Recorder) takeWarningsLocked() {
	c := &r.collector
	if c.warned = r.warned.take(); c.warned.N > 0 {
		c.ranks.changed = true
		c.ranks.warned.Merge(&c.warned)
		c.ranks.warned.Trim()
	}
}

// MaxWarnings is the maximum number of warnings in an answer.
const MaxWarnings = 100

// WarningsQuery selects warnings.
type WarningsQuery struct {
	Rule string // default all rules
	Key  string // default all clients
	N    int    // default 20, at most MaxWarnings
}

// Warnings are the latest warnings that are known, newest first.
type Warnings struct {
	Warnings []frame.Warning
	Local    bool // the archive is unavailable, and the data is of this instance alone
}

// Warnings returns the latest clients that have reached a threshold of a rule, of the last day.
// The answer is at most two seconds old. Each second of each instance has up to
// frame.MaxWarnings, and so has each slot of the archive.
func (r *Recorder) Warnings(ctx context.Context, q WarningsQuery) (w *Warnings, err error) {
	q.N = cmp.Or(q.N, 20)
	if q.N < 1 || q.N > MaxWarnings {
		return nil, wrongQuery("%d warnings cannot be listed; ask for 1 to %d", q.N, MaxWarnings)
	}
	own, err := r.ask(ctx, func(a archive.Store) (err error) { w, err = r.warnings(ctx, a, q); return err })
	if err != nil {
		return nil, err
	}
	w.Local = own
	return w, nil
}

func (r *Recorder) warnings(ctx context.Context, a archive.Store, q WarningsQuery) (*Warnings, error) {
	now := r.options.Clock().Unix()
	out := &Warnings{}
	found := map[frame.Warning]bool{} // levels overlap; a warning that is in both counts once
	for level, l := range a.Levels(archive.Top) {
		err := each(ctx, a, archive.Top, level, l.Start(now-l.Keep), now+l.Step, func(s archive.Slot) {
			for _, w := range s.Frame.Warned.List {
				if (q.Rule == "" || w.Rule == q.Rule) && (q.Key == "" || w.Key == q.Key) {
					found[w] = true
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	out.Warnings = slices.Collect(maps.Keys(found))
	frame.SortWarnings(out.Warnings)
	out.Warnings = out.Warnings[:min(len(out.Warnings), q.N)]
	return out, nil
}
