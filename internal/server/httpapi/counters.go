package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirhq/weir/counter"
)

// MaxCountBody is the longest body of a call that counts, in bytes. The largest batch of
// the longest names fits.
const MaxCountBody = 256 << 10

var counterRoutes = []route{
	{"POST", "/v1/counters/add", using, counting((*Handler).addCounters)},
	{"POST", "/v1/counters/reset", using, counting((*Handler).resetCounters)},
	{"GET", "/v1/counters", looking, counting((*Handler).getCounters)},
	{"GET", "/v1/counters/history", looking, counting((*Handler).getCounterHistory)},
	{"POST", "/v1/ids", using, counting((*Handler).nextID)},

	{"POST", "/v1/boards/score", using, counting((*Handler).scoreBoard)},
	{"GET", "/v1/boards/top", looking, counting((*Handler).getTop)},
	{"GET", "/v1/boards/standing", looking, counting((*Handler).getStanding)},

	{"POST", "/v1/hot/hit", using, counting((*Handler).hitItems)},
	{"GET", "/v1/hot", looking, counting((*Handler).getHot)},
	{"GET", "/v1/hot/events", looking, counting((*Handler).getHotEvents)},

	{"POST", "/v1/actions", using, counting((*Handler).recordActions)},
	{"GET", "/v1/actions", looking, counting((*Handler).getActions)},
	{"GET", "/v1/actions/history", looking, counting((*Handler).getActionHistory)},
}

// counting makes a route of what answers with an object, or a problem.
func counting(serve func(*Handler, *call) (any, *Problem)) func(*Handler, *call) {
	return func(h *Handler, c *call) {
		if h.options.Counters == nil {
			c.refuse(notKept.of("This server keeps no counters; ask one that does."))
			return
		}
		answer, p := serve(h, c)
		if p != nil {
			c.refuse(p)
			return
		}
		c.answer(http.StatusOK, answer)
	}
}

// CounterKey names a counter. The same name with another window, or in another zone, is
// another counter.
type CounterKey struct {
	Name   string         `json:"name"`
	Group  string         `json:"group,omitempty"`  // on a Redis cluster, those of one group change together
	Window counter.Window `json:"window,omitempty"` // default ever
	Zone   string         `json:"zone,omitempty"`   // an IANA name; default UTC
}

// CounterDelta is a change of a counter.
type CounterDelta struct {
	CounterKey
	By *counter.Amount `json:"by,omitempty"` // default 1; may be negative
}

// AddRequest is the body of POST /v1/counters/add.
type AddRequest struct {
	Add []CounterDelta `json:"add"`
}

// ResetRequest is the body of POST /v1/counters/reset.
type ResetRequest struct {
	Reset []CounterKey `json:"reset"`
}

// CountersAnswer is what counters have: after an addition, before a reset. They are in
// the order in which they were named.
type CountersAnswer struct {
	Counters []CounterAnswer `json:"counters"`
}

// CounterAnswer is what one counter has.
type CounterAnswer struct {
	CounterKey
	Value counter.Amount `json:"value"`
}

// CounterHistoryAnswer is what GET /v1/counters/history answers.
type CounterHistoryAnswer struct {
	Counters []CounterTrack `json:"counters"`
}

// CounterTrack is what one counter had in each window, the earliest first.
type CounterTrack struct {
	CounterKey
	Points []PointAnswer `json:"points"`
}

// PointAnswer is what was counted in one window.
type PointAnswer struct {
	Start time.Time      `json:"start,omitzero"` // of the window, by the clocks of its zone; a counter without a window has none
	Value counter.Amount `json:"value"`
}

// IDRequest is the body of POST /v1/ids.
type IDRequest struct {
	Sequence string `json:"sequence"`
}

// IDAnswer is a number that is larger than all before it in its sequence.
type IDAnswer struct {
	ID int64 `json:"id"`
}

// addCounters answers POST /v1/counters/add: all are changed, or none.
func (h *Handler) addCounters(c *call) (any, *Problem) {
	var want AddRequest
	if p := c.decode(MaxCountBody, &want, "add"); p != nil {
		return nil, p
	}
	if p := batch("add", len(want.Add), counter.MaxBatch); p != nil {
		return nil, p
	}
	deltas, keys := make([]counter.Delta, len(want.Add)), make([]CounterKey, len(want.Add))
	for i, d := range want.Add {
		key, p := h.counterKey(d.CounterKey, within("add", i))
		if p != nil {
			return nil, p
		}
		keys[i], deltas[i] = d.CounterKey, counter.Delta{Key: key, By: counter.One}
		if d.By != nil {
			deltas[i].By = *d.By
		}
	}
	values, err := h.options.Counters.Add(c.r.Context(), deltas...)
	if err != nil {
		return nil, h.countTrouble(c, err, itself)
	}
	return valued(keys, values), nil
}

// resetCounters answers POST /v1/counters/reset: it reads and resets at once, so that
// nothing is lost that is added meanwhile.
func (h *Handler) resetCounters(c *call) (any, *Problem) {
	var want ResetRequest
	if p := c.decode(MaxCountBody, &want, "reset"); p != nil {
		return nil, p
	}
	if p := batch("reset", len(want.Reset), counter.MaxBatch); p != nil {
		return nil, p
	}
	keys := make([]counter.Key, len(want.Reset))
	for i, k := range want.Reset {
		var p *Problem
		if keys[i], p = h.counterKey(k, within("reset", i)); p != nil {
			return nil, p
		}
	}
	values, err := h.options.Counters.Reset(c.r.Context(), keys...)
	if err != nil {
		return nil, h.countTrouble(c, err, itself)
	}
	return valued(want.Reset, values), nil
}

// getCounters answers GET /v1/counters.
func (h *Handler) getCounters(c *call) (any, *Problem) {
	_, named, keys, p := h.countersAsked(c)
	if p != nil {
		return nil, p
	}
	values, err := h.options.Counters.Get(c.r.Context(), keys...)
	if err != nil {
		return nil, h.countTrouble(c, err, itself)
	}
	return valued(named, values), nil
}

// getCounterHistory answers GET /v1/counters/history.
func (h *Handler) getCounterHistory(c *call) (any, *Problem) {
	query, named, keys, p := h.countersAsked(c, "n")
	if p != nil {
		return nil, p
	}
	n, p := query.windows(keys[0].Window)
	if p != nil {
		return nil, p
	}
	series, err := h.options.Counters.History(c.r.Context(), n, keys...)
	if err != nil {
		return nil, h.countTrouble(c, err, itself)
	}
	answer := CounterHistoryAnswer{Counters: make([]CounterTrack, len(named))}
	for i, key := range named {
		answer.Counters[i] = CounterTrack{CounterKey: key, Points: pointsOf(series[i])}
	}
	return answer, nil
}

// nextID answers POST /v1/ids.
func (h *Handler) nextID(c *call) (any, *Problem) {
	var want IDRequest
	if p := c.decode(maxSmallBody, &want, "sequence"); p != nil {
		return nil, p
	}
	id, err := h.options.Counters.NextID(c.r.Context(), want.Sequence)
	if err != nil {
		return nil, h.countTrouble(c, err, itself)
	}
	return IDAnswer{ID: id}, nil
}

// countersAsked are the counters that a query names: several names, and one group,
// window and zone for all.
func (h *Handler) countersAsked(c *call, more ...string) (query asked, named []CounterKey, keys []counter.Key, p *Problem) {
	if query, p = c.asked("name", append([]string{"group", "window", "zone"}, more...)...); p != nil {
		return nil, nil, nil, p
	}
	window, p := query.window(counter.Ever)
	if p != nil {
		return nil, nil, nil, p
	}
	names := query["name"]
	if p := batch("name", len(names), counter.MaxBatch); p != nil {
		return nil, nil, nil, p
	}
	for _, name := range names {
		k := CounterKey{Name: name, Group: query.text("group"), Window: window, Zone: query.text("zone")}
		key, p := h.counterKey(k, itself)
		if p != nil {
			return nil, nil, nil, p
		}
		named, keys = append(named, k), append(keys, key)
	}
	return query, named, keys, nil
}

// counterKey is a key as the store has it.
func (h *Handler) counterKey(k CounterKey, field func(string) string) (counter.Key, *Problem) {
	zone, p := h.zone(k.Zone, field("zone"))
	if p != nil {
		return counter.Key{}, p
	}
	key := counter.Key{Name: k.Name, Group: k.Group, Window: k.Window, Zone: zone}
	return key, invalidIn(counter.ValidateKeys([]counter.Key{key}), field)
}

// within is where the i-th entry of a list has its fields.
func within(list string, i int) func(string) string {
	return func(field string) string { return fmt.Sprintf("%s[%d].%s", list, i, field) }
}

func valued(keys []CounterKey, values []counter.Amount) CountersAnswer {
	answer := CountersAnswer{Counters: make([]CounterAnswer, len(keys))}
	for i, key := range keys {
		answer.Counters[i] = CounterAnswer{CounterKey: key, Value: values[i]}
	}
	return answer
}

func pointsOf(points []counter.Point) []PointAnswer {
	all := make([]PointAnswer, len(points))
	for i, p := range points {
		all[i] = PointAnswer{Start: p.Start, Value: p.Amount}
	}
	return all
}
