package httpapi

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

// DistributionSample is values for a distribution, which is named as CounterKey does a counter.
type DistributionSample struct {
	Name   string         `json:"name"`
	Group  string         `json:"group,omitempty"`
	Window counter.Window `json:"window,omitempty"` // default ever
	Zone   string         `json:"zone,omitempty"`   // an IANA name; default UTC
	Values []Reading      `json:"values"`
}

// Reading is a measured value: any number, which is rounded to an amount.
type Reading counter.Amount

// MarshalJSON writes it as an amount.
func (r Reading) MarshalJSON() ([]byte, error) { return counter.Amount(r).MarshalJSON() }

// UnmarshalJSON reads any number.
func (r *Reading) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseFloat(string(text), 64)
	amount, err2 := counter.FromFloat(n)
	if err != nil || err2 != nil {
		return &weir.InvalidError{Field: "values", Reason: fmt.Sprintf("%.40q is not a value; send numbers from 0 to 9e12", text)}
	}
	*r = Reading(amount)
	return nil
}

// ObserveRequest is the body of POST /v1/distributions/observe.
type ObserveRequest struct {
	Observe []DistributionSample `json:"observe"`
}

// ObserveAnswer is how many values were added.
type ObserveAnswer struct {
	Observed int `json:"observed"`
}

// DistributionsAnswer is what GET /v1/distributions answers.
type DistributionsAnswer struct {
	Distributions []DistributionTrack `json:"distributions"`
}

// DistributionTrack is a distribution in each window, the earliest first, and in all of them
// together.
type DistributionTrack struct {
	CounterKey
	Points []Percentiles `json:"points"`
	Merged Percentiles   `json:"merged"`
}

// Percentiles are a distribution in figures. Without values, it has only the count.
type Percentiles struct {
	Start time.Time       `json:"start,omitzero"` // of the window
	Count int64           `json:"count"`
	Sum   *counter.Amount `json:"sum,omitempty"`
	Mean  *counter.Amount `json:"mean,omitempty"`
	Min   *counter.Amount `json:"min,omitempty"`
	Max   *counter.Amount `json:"max,omitempty"`
	P50   *counter.Amount `json:"p50,omitempty"`
	P95   *counter.Amount `json:"p95,omitempty"`
	P99   *counter.Amount `json:"p99,omitempty"`
}

func percentiles(s counter.Summary) Percentiles {
	if s.Count == 0 {
		return Percentiles{Start: s.Start}
	}
	return Percentiles{
		Start: s.Start, Count: s.Count, Sum: &s.Sum, Mean: &s.Mean, Min: &s.Min, Max: &s.Max, P50: &s.P50, P95: &s.P95, P99: &s.P99,
	}
}

// observe answers POST /v1/distributions/observe: all values are added, or none.
func (h *Handler) observe(c *call, want *ObserveRequest) (any, error) {
	n := 0
	samples, err := fault.Each("observe", want.Observe, counter.MaxBatch, func(s DistributionSample, field func(string) string) (sample counter.Sample, err error) {
		if sample.Key, err = counterKey(CounterKey{Name: s.Name, Group: s.Group, Window: s.Window, Zone: s.Zone}, field); err != nil {
			return sample, err
		}
		for _, v := range s.Values {
			sample.Values = append(sample.Values, counter.Amount(v))
		}
		n += len(s.Values)
		return sample, manage.CheckSample(sample, field)
	})
	if err != nil {
		return nil, err
	}
	return ObserveAnswer{Observed: n}, h.options.Counters.Observe(c.r.Context(), samples...)
}

// getDistributions answers GET /v1/distributions.
func (h *Handler) getDistributions(c *call) (any, error) {
	q, named, keys := countersAsked(c, "n")
	n := q.windows(q.window(counter.Ever))
	if q.err != nil {
		return nil, q.err
	}
	series, err := h.options.Counters.Distributions(c.r.Context(), n, keys...)
	answer := DistributionsAnswer{Distributions: make([]DistributionTrack, len(series))}
	for i, points := range series {
		each, merged := counter.Summarize(points)
		track := DistributionTrack{CounterKey: named[i], Points: make([]Percentiles, len(each)), Merged: percentiles(merged)}
		for j := range each {
			track.Points[j] = percentiles(each[j])
		}
		answer.Distributions[i] = track
	}
	return answer, err
}
