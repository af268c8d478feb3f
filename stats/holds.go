package stats

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/archive"
)

var _ engine.HoldObserver = (*Recorder)(nil)

// holds count what becomes of holds. To reserve and to settle takes longer than a lock.
type holds struct {
	mu    sync.Mutex
	frame archive.Frame
}

func (s *holds) count(id string, do func(*archive.Holds)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(s.frame.Hold(id))
}

// take moves what was counted into a frame.
func (s *holds) take(f *archive.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Merge(&s.frame)
	s.frame = archive.Frame{}
}

func opened(h *archive.Holds) { h.Opened++ }

// ObserveHold implements [engine.HoldObserver].
func (r *Recorder) ObserveHold(e engine.HoldEvent) {
	x := r.index.Load()
	for i := range e.Parts {
		p := &e.Parts[i]
		id := x.nameOf(p.Rule)
		switch e.Kind {
		case engine.SettledHold:
			r.holds.count(id, func(h *archive.Holds) { h.Settle(p.Reserved, p.Used, p.Excess) })
		case engine.CancelledHold:
			r.holds.count(id, func(h *archive.Holds) { h.Cancelled++ })
		case engine.ChargedUnits:
			r.holds.count(id, func(h *archive.Holds) { h.Add(archive.HoldCounts{Charges: 1, Charged: p.Used, Excess: p.Excess}) })
		}
	}
}

// HoldsQuery selects the holds of a rule.
type HoldsQuery struct {
	Rule     string
	From, To time.Time
	Step     time.Duration // as in Query
}

// HoldSeries is what became of the holds of a rule over time.
type HoldSeries struct {
	Range
	Total  archive.Holds
	Points []HoldPoint // one for every step, even if there were no holds
}

// HoldPoint is what became of holds in one interval.
type HoldPoint struct {
	Time time.Time // start of the interval
	archive.Holds
}

// Holds returns what became of the holds of a rule, in at most MaxRulePoints steps. A hold
// counts as opened when it was reserved, and as settled or cancelled when that happened.
func (r *Recorder) Holds(ctx context.Context, q HoldsQuery) (*HoldSeries, error) {
	return ask(ctx, r, func(a archive.Store) (*HoldSeries, error) {
		g, err := r.plan(a, q.From, q.To, q.Step, MaxRulePoints)
		if err != nil {
			return nil, err
		}
		s := &HoldSeries{Range: g.span(), Points: make([]HoldPoint, g.points)}
		for i := range s.Points {
			s.Points[i].Time = g.time(int64(i))
		}
		return s, g.each(ctx, a, archive.Series, func(slot archive.Slot) {
			if h := slot.Frame.Holds[q.Rule]; h != nil {
				s.Points[g.at(slot.Start)].Merge(h)
				s.Total.Merge(h)
			}
		})
	})
}
