package stats

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// MaxLatest is the maximum number of denials or warnings in an answer.
const MaxLatest = 100

// LatestQuery selects denials or warnings.
type LatestQuery struct {
	Rule string // default all rules and, for denials, the block list
	Key  string // default all clients
	N    int    // default 20, at most MaxLatest

	// Since is how far to look back. Default as far as data is kept.
	Since time.Time

	// MinPeriod leaves out warnings about limits with a shorter period, and about limits that
	// have none, such as a concurrency limit. Default 0: all.
	MinPeriod time.Duration
}

// lastMinute, in seconds, is read first, because it usually has enough.
const lastMinute = 60

// Latest are the latest denials or warnings that are known, newest first.
type Latest[E any] struct {
	Events []E
	Local  bool // the archive is unavailable, and the data is of this instance alone
}

func (l *Latest[E]) setLocal() { l.Local = true }

// Denials returns the latest denials, which are a sample: see [archive.MaxDenials]. The answer is
// at most two seconds old. For each client and rule, up to four denials are kept: in every ten
// seconds of the last ten minutes, in every five minutes of the last two hours, and in every
// hour of the last day.
func (r *Recorder) Denials(ctx context.Context, q LatestQuery) (*Latest[archive.Denial], error) {
	return latest(ctx, r, q, "denials", archive.SortDenials, func(f *archive.Frame) []archive.Denial { return f.Denials },
		func(d archive.Denial) bool { return q.selects(d.Rule, d.Key, d.At) })
}

// Warnings returns the latest clients that have reached a threshold of a rule, of the last day.
// The answer is at most two seconds old. Each second of each instance has up to
// archive.MaxWarnings, and so has each slot of the archive.
func (r *Recorder) Warnings(ctx context.Context, q LatestQuery) (*Latest[archive.Warning], error) {
	return latest(ctx, r, q, "warnings", archive.SortWarnings, func(f *archive.Frame) []archive.Warning { return f.Warned.List },
		func(w archive.Warning) bool { return q.selects(w.Rule, w.Key, w.At) && q.reaches(w.Policy) })
}

func (q *LatestQuery) selects(rule, key string, at archive.Instant) bool {
	return int64(at) >= q.Since.UnixMicro() && (q.Rule == "" || rule == q.Rule) && (q.Key == "" || key == q.Key)
}

// reaches reports whether a limit, as rules define it, has the period that was asked for.
func (q *LatestQuery) reaches(policy string) bool {
	if q.MinPeriod == 0 {
		return true
	}
	if l, err := weir.ParseLimit(policy); err == nil {
		return l.Period >= q.MinPeriod
	}
	rate, err := rule.ParseRate(policy) // of money
	return err == nil && rate.Period >= q.MinPeriod
}

// latest goes back in time in one list of frames, until it has enough.
func latest[E comparable](ctx context.Context, r *Recorder, q LatestQuery, name string, sort func([]E), list func(*archive.Frame) []E, selected func(E) bool) (*Latest[E], error) {
	q.N = cmp.Or(q.N, 20)
	if q.N < 1 || q.N > MaxLatest {
		return nil, wrongQuery("%d %s cannot be listed; ask for 1 to %d", q.N, name, MaxLatest)
	}
	now := r.options.Clock().Unix()
	return ask(ctx, r, func(a archive.Store) (*Latest[E], error) {
		found := map[E]bool{} // levels overlap; what is in both counts once
		levels := a.Levels(archive.Top)
		to := now + levels[0].Step
		for level := -1; level < len(levels) && len(found) < q.N && to > q.Since.Unix(); level++ {
			l, from := levels[max(level, 0)], now-lastMinute
			if level >= 0 {
				from = now - l.Keep
			}
			from = max(from, q.Since.Unix())
			err := each(ctx, a, archive.Top, max(level, 0), l.Start(from), to, func(s archive.Slot) {
				for _, one := range list(s.Frame) {
					if selected(one) {
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
		sort(all)
		return &Latest[E]{Events: all[:min(len(all), q.N)]}, nil
	})
}
