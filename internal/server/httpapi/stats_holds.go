package httpapi

import (
	"context"
	"time"

	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/frame"
)

// HoldsAnswer is what GET /v1/stats/holds answers.
type HoldsAnswer struct {
	StatsRange
	Rule  string `json:"rule"`
	Local bool   `json:"local,omitempty"`
	frame.HoldCounts
	Ratio  *HoldRatio  `json:"ratio,omitempty"` // nil if nothing was settled
	Points []HoldPoint `json:"points"`
}

// HoldRatio is what settled holds used of what they had reserved. Above 1 the estimates are
// too low.
type HoldRatio struct {
	Total float64 `json:"total"` // of all units
	P50   float64 `json:"p50"`   // of single holds
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
}

// HoldPoint is one step.
type HoldPoint struct {
	T int64 `json:"t"` // when it began
	frame.HoldCounts
}

// statsHolds answers GET /v1/stats/holds.
func (h *Handler) statsHolds(c *call) (any, error) {
	in := c.query("rule", "from", "to", "step")
	q := stats.HoldsQuery{Rule: in.rule(), Step: in.step()}
	q.From, q.To = in.stretch(h.options.Clock(), time.Hour)
	if in.err != nil {
		return nil, in.err
	}
	s, err := consult(h, c, "step", func(ctx context.Context) (*stats.HoldSeries, error) { return h.options.Stats.Holds(ctx, q) })
	if err != nil {
		return nil, err
	}
	answer := &HoldsAnswer{
		StatsRange: rangeOf(s.From, s.To, s.Step), Rule: q.Rule, Local: s.Local, HoldCounts: s.Total.HoldCounts, Points: make([]HoldPoint, len(s.Points)),
	}
	if s.Total.Reserved > 0 {
		answer.Ratio = &HoldRatio{float64(s.Total.Used) / float64(s.Total.Reserved), s.Total.Ratio(0.5), s.Total.Ratio(0.9), s.Total.Ratio(0.99)}
	}
	for i, p := range s.Points {
		answer.Points[i] = HoldPoint{p.Time.Unix(), p.HoldCounts}
	}
	return answer, h.knownRule(q.Rule, s.Total.HoldCounts != frame.HoldCounts{})
}
