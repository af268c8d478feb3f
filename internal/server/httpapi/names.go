package httpapi

import (
	"time"

	"github.com/weirhq/weir/counter"
)

// NamesAnswer is what GET /v1/counters/names answers, by kind and name.
type NamesAnswer struct {
	Names []NamedAnswer `json:"names"`
	More  bool          `json:"more,omitempty"`  // as in counter.Names
	Usage *CounterUsage `json:"usage,omitempty"` // nil if the store has no maximum
}

// NamedAnswer is something that applications count, with what a call needs to read it.
type NamedAnswer struct {
	Kind      counter.Kind    `json:"kind"`
	Name      string          `json:"name"`
	Group     string          `json:"group,omitempty"`
	Window    counter.Window  `json:"window,omitempty"` // default ever
	Zone      string          `json:"zone,omitempty"`   // default UTC
	SlidingS  int64           `json:"sliding_s,omitempty"`
	Threshold int64           `json:"threshold,omitempty"`
	Cool      int64           `json:"cool,omitempty"`
	Value     *counter.Amount `json:"value,omitempty"` // of a counter
}

// CounterUsage is how full a store of counters is.
type CounterUsage struct {
	Entries  int   `json:"entries"`  // some may have expired
	Capacity int   `json:"capacity"` // from which on new names are rejected
	Rejected int64 `json:"rejected"` // calls, since the start
}

// getNames answers GET /v1/counters/names.
func (h *Handler) getNames(c *call) (any, error) {
	q := c.query("n")
	n := int(q.whole("n", 100, 1, counter.MaxBatch))
	if q.err != nil {
		return nil, q.err
	}
	names, err := h.options.Counters.Names(c.r.Context(), n)
	if err != nil {
		return nil, err
	}
	answer := &NamesAnswer{Names: make([]NamedAnswer, len(names.All)), More: names.More}
	if h.options.CounterUsage != nil {
		usage := h.options.CounterUsage()
		answer.Usage = &usage
	}
	var keys []counter.Key
	var counters []*NamedAnswer
	for i, one := range names.All {
		a := &answer.Names[i]
		*a = NamedAnswer{
			Kind: one.Kind, Name: readable(one.Name), Group: readable(one.Group), Window: one.Window,
			SlidingS: int64(one.Span / time.Second), Threshold: one.Threshold, Cool: one.Cool,
		}
		if one.Zone != counter.ZoneName(nil) {
			a.Zone = readable(one.Zone)
		}
		if one.Kind != counter.KindCounter && one.Kind != counter.KindDistinct {
			continue
		}
		key, wrong := counterKey(CounterKey{Name: one.Name, Group: one.Group, Window: one.Window, Zone: a.Zone, Distinct: one.Kind == counter.KindDistinct}, itself)
		if wrong == nil { // an application may have counted in a zone that only it knows
			keys, counters = append(keys, key), append(counters, a)
		}
	}
	if len(keys) == 0 {
		return answer, nil
	}
	values, err := h.options.Counters.Get(c.r.Context(), keys...)
	for i := range values {
		counters[i].Value = &values[i]
	}
	return answer, err
}
