package stats

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// Bounds of RuleSeries. The archive still contains removed rules, so there may be
// thousands.
const (
	MaxRulePoints  = 1000
	MaxSeriesRules = 50
)

// RuleQuery selects the rules that are compared over time.
type RuleQuery struct {
	From, To time.Time
	Step     time.Duration // as in Query
	By       By
	N        int // number of rules; default 5, at most MaxSeriesRules
}

// RuleSeries holds the decisions of rules over time, those with the most decisions
// first.
type RuleSeries struct {
	Range
	Times []time.Time // start of each step
	Rules []RuleValues
	Other RuleValues // all other rules together
}

// RuleValues is how often a rule did something: in all, and in each step.
type RuleValues struct {
	Rule   string  `json:"rule"`
	Total  int64   `json:"total"`
	Values []int64 `json:"values"`
}

// of is the number of decisions of a rule that count.
func (b By) of(c *archive.Counts) int64 {
	return [...]int64{ByTotal: c.Total(), ByAllowed: c.Allowed, ByDenied: c.Denied, ByShadowDenied: c.ShadowDenied, BySoftDenied: c.SoftDenied}[b]
}

// RuleSeries returns the rules with the most decisions of a kind, over time. Rules
// without any are left out.
func (r *Recorder) RuleSeries(ctx context.Context, q RuleQuery) (*RuleSeries, error) {
	q.N = cmp.Or(q.N, 5)
	switch {
	case int(q.By) >= len(byNames):
		return nil, wrongQuery("there is no such order; use the constants")
	case q.N < 1 || q.N > MaxSeriesRules:
		return nil, wrongQuery("%d rules cannot be compared; ask for 1 to %d", q.N, MaxSeriesRules)
	}
	return ask(ctx, r, func(a archive.Store) (*RuleSeries, error) { return r.ruleSeries(ctx, a, q) })
}

func (r *Recorder) ruleSeries(ctx context.Context, a archive.Store, q RuleQuery) (*RuleSeries, error) {
	g, err := r.plan(a, q.From, q.To, q.Step, MaxRulePoints)
	if err != nil {
		return nil, err
	}
	byID := map[string]*RuleValues{}
	err = g.each(ctx, a, archive.Series, func(s archive.Slot) {
		for line, counts := range s.Frame.Rules {
			n := q.By.of(counts)
			if n == 0 {
				continue
			}
			v := byID[line.Rule]
			if v == nil {
				v = &RuleValues{Rule: line.Rule, Values: make([]int64, g.points)}
				byID[line.Rule] = v
			}
			v.add(g.at(s.Start), n)
		}
	})
	if err != nil {
		return nil, err
	}
	s := &RuleSeries{Range: g.span(), Other: RuleValues{Rule: archive.Other, Values: make([]int64, g.points)}}
	for i := range g.points {
		s.Times = append(s.Times, g.time(i))
	}
	for id, v := range byID {
		if id != archive.Other {
			s.Rules = append(s.Rules, *v)
		}
	}
	slices.SortFunc(s.Rules, func(a, b RuleValues) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Rule, b.Rule))
	})
	rest := s.Rules[min(q.N, len(s.Rules)):]
	if v := byID[archive.Other]; v != nil {
		rest = append(slices.Clip(rest), *v)
	}
	s.Rules = s.Rules[:min(q.N, len(s.Rules))]
	for _, v := range rest {
		for i, n := range v.Values {
			s.Other.add(i, n)
		}
	}
	return s, nil
}

func (v *RuleValues) add(at int, n int64) {
	v.Total += n
	v.Values[at] += n
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
