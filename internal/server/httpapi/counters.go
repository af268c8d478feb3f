package httpapi

import (
	"errors"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

// MaxCountBody is the longest body of a call that counts, in bytes. The largest batch of
// the longest names fits.
const MaxCountBody = 256 << 10

var counterRoutes = []route{
	{"POST", "/v1/counters/add", using, counting(taking(MaxCountBody, (*Handler).addCounters))},
	{"POST", "/v1/counters/set", using, counting(taking(MaxCountBody, (*Handler).setCounters))},
	{"POST", "/v1/counters/reset", using, counting(taking(MaxCountBody, (*Handler).resetCounters))},
	{"GET", "/v1/counters", looking, counting((*Handler).getCounters)},
	{"GET", "/v1/counters/names", reading, counting((*Handler).getNames)},
	{"GET", "/v1/counters/history", looking, counting((*Handler).getCounterHistory)},
	{"POST", "/v1/distributions/observe", using, counting(taking(MaxCountBody, (*Handler).observe))},
	{"GET", "/v1/distributions", looking, counting((*Handler).getDistributions)},
	{"POST", "/v1/ids", using, counting(taking(maxSmallBody, (*Handler).nextID))},

	{"POST", "/v1/boards/score", using, counting(taking(MaxCountBody, (*Handler).scoreBoard))},
	{"GET", "/v1/boards/top", looking, counting((*Handler).getTop)},
	{"GET", "/v1/boards/standing", looking, counting((*Handler).getStanding)},

	{"POST", "/v1/hot/hit", using, counting(taking(MaxCountBody, (*Handler).hitItems))},
	{"GET", "/v1/hot", looking, counting((*Handler).getHot)},
	{"GET", "/v1/hot/events", looking, counting((*Handler).getHotEvents)},

	{"POST", "/v1/actions", using, counting(taking(MaxCountBody, (*Handler).recordActions))},
	{"GET", "/v1/actions", looking, counting((*Handler).getActions)},
	{"GET", "/v1/actions/history", looking, counting((*Handler).getActionHistory)},
}

// counting makes a handler of one that needs counters.
func counting(serve handler) handler {
	return withCounters(func(h *Handler, c *call) (any, error) {
		answer, err := serve(h, c)
		return answer, h.storeTrouble(c, err)
	})
}

var withCounters = having(func(o *Options) bool { return o.Counters != nil }, "counters-off", "Counters are not enabled on this server.")

// storeTrouble is why a store has not done what it was asked; nil if it has.
func (h *Handler) storeTrouble(c *call, err error) error {
	changes := c.r.Method != "GET" && c.r.Method != "HEAD"
	return h.trouble(c).Store("store of counters or queues unavailable", changes, err, &h.warned, h.options.Clock())
}

// itself is for fields that are called as in the lower package.
func itself(field string) string { return field }

// CounterKey names a counter. The same name with another window, or in another zone, is
// another counter.
type CounterKey struct {
	Name   string         `json:"name"`
	Group  string         `json:"group,omitempty"`  // on a Redis cluster, those of one group change together
	Window counter.Window `json:"window,omitempty"` // default ever
	Zone   string         `json:"zone,omitempty"`   // an IANA name; default UTC

	// Distinct makes it a counter of different members. It is another counter than one
	// of the same name without.
	Distinct bool `json:"distinct,omitempty"`
}

// CounterDelta is a change of a counter.
type CounterDelta struct {
	CounterKey
	By      *counter.Amount `json:"by,omitempty"`      // default 1; may be negative
	Members []string        `json:"members,omitempty"` // to add to a distinct counter, instead of by
}

// AddRequest is the body of POST /v1/counters/add.
type AddRequest struct {
	Add []CounterDelta `json:"add"`
}

// CounterSetting is a new value of a counter.
type CounterSetting struct {
	CounterKey
	Value *NewValue `json:"value"`
}

// NewValue is an amount whose field is not by.
type NewValue counter.Amount

// MarshalJSON writes it as an amount.
func (v NewValue) MarshalJSON() ([]byte, error) { return counter.Amount(v).MarshalJSON() }

// UnmarshalJSON reads it as an amount.
func (v *NewValue) UnmarshalJSON(text []byte) error {
	err := (*counter.Amount)(v).UnmarshalJSON(text)
	if invalid, ok := errors.AsType[*weir.InvalidError](err); ok {
		invalid.Field = "value"
	}
	return err
}

// SetRequest is the body of POST /v1/counters/set.
type SetRequest struct {
	Set []CounterSetting `json:"set"`
}

// SetAnswer is what counters have and what they had before, in the order in which they were
// named.
type SetAnswer struct {
	Counters []SetCounter `json:"counters"`
}

// SetCounter is what one counter has, and what it had.
type SetCounter struct {
	CounterKey
	Value    counter.Amount `json:"value"`
	Previous counter.Amount `json:"previous"`
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
	Points []counter.Point `json:"points"`
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
func (h *Handler) addCounters(c *call, want *AddRequest) (any, error) {
	deltas, err := fault.Each("add", want.Add, counter.MaxBatch, func(d CounterDelta, field func(string) string) (delta counter.Delta, err error) {
		if delta.Key, err = counterKey(d.CounterKey, field); err != nil {
			return delta, err
		}
		if delta.Members = d.Members; d.By != nil || !d.Distinct {
			delta.By = amount(d.By)
		}
		return delta, manage.CheckDelta(delta, field)
	})
	if err != nil {
		return nil, err
	}
	values, err := h.options.Counters.Add(c.r.Context(), deltas...)
	return valued(want.Add, values), err
}

// amount returns how much is counted; default one.
func amount(by *counter.Amount) counter.Amount {
	if by == nil {
		return counter.One
	}
	return *by
}

// setCounters answers POST /v1/counters/set: all are set, or none.
func (h *Handler) setCounters(c *call, want *SetRequest) (any, error) {
	settings, err := fault.Each("set", want.Set, counter.MaxBatch, func(s CounterSetting, field func(string) string) (setting counter.Setting, err error) {
		if setting.Key, err = counterKey(s.CounterKey, field); err != nil {
			return setting, err
		}
		if s.Value == nil {
			return setting, fault.Field(field("value"), "required; send the new value.").Coded("required")
		}
		setting.To = counter.Amount(*s.Value)
		return setting, manage.CheckSetting(setting, field)
	})
	if err != nil {
		return nil, err
	}
	previous, err := h.options.Counters.Set(c.r.Context(), settings...)
	answer := SetAnswer{Counters: make([]SetCounter, len(previous))}
	for i, had := range previous {
		answer.Counters[i] = SetCounter{CounterKey: want.Set[i].CounterKey, Value: settings[i].To, Previous: had}
	}
	return answer, err
}

// resetCounters answers POST /v1/counters/reset: it reads and resets at once, so that
// nothing is lost that is added meanwhile.
func (h *Handler) resetCounters(c *call, want *ResetRequest) (any, error) {
	keys, err := fault.Each("reset", want.Reset, counter.MaxBatch, counterKey)
	if err != nil {
		return nil, err
	}
	values, err := h.options.Counters.Reset(c.r.Context(), keys...)
	return valued(want.Reset, values), err
}

// getCounters answers GET /v1/counters.
func (h *Handler) getCounters(c *call) (any, error) {
	q, named, keys := countersAsked(c, "distinct")
	if q.err != nil {
		return nil, q.err
	}
	values, err := h.options.Counters.Get(c.r.Context(), keys...)
	return valued(named, values), err
}

// getCounterHistory answers GET /v1/counters/history.
func (h *Handler) getCounterHistory(c *call) (any, error) {
	q, named, keys := countersAsked(c, "distinct", "n")
	n := q.windows(q.window(counter.Ever))
	if q.err != nil {
		return nil, q.err
	}
	series, err := h.options.Counters.History(c.r.Context(), n, keys...)
	answer := CounterHistoryAnswer{Counters: make([]CounterTrack, len(series))}
	for i, points := range series {
		answer.Counters[i] = CounterTrack{CounterKey: named[i], Points: points}
	}
	return answer, err
}

// nextID answers POST /v1/ids.
func (h *Handler) nextID(c *call, want *IDRequest) (any, error) {
	id, err := h.options.Counters.NextID(c.r.Context(), want.Sequence)
	return IDAnswer{ID: id}, err
}

// countersAsked are the counters or distributions that a query names: several names, and one group,
// window and zone for all.
func countersAsked(c *call, more ...string) (q *query, named []CounterKey, keys []counter.Key) {
	q = c.queryOfTexts("name", append([]string{"group", "window", "zone"}, more...)...)
	window, distinct := q.window(counter.Ever), q.yes("distinct")
	for _, name := range q.list("name", counter.MaxBatch) {
		k := CounterKey{Name: name, Group: q.text("group"), Window: window, Zone: q.text("zone"), Distinct: distinct}
		key, err := counterKey(k, itself)
		q.wrong(err)
		named, keys = append(named, k), append(keys, key)
	}
	return q, named, keys
}

// counterKey is a key as the store has it.
func counterKey(k CounterKey, field func(string) string) (counter.Key, error) {
	return manage.CounterName(k).Key(field)
}

// itself lets what embeds a key be asked for it.
func (k CounterKey) itself() CounterKey { return k }

func valued[K interface{ itself() CounterKey }](keys []K, values []counter.Amount) CountersAnswer {
	answer := CountersAnswer{Counters: make([]CounterAnswer, len(values))}
	for i, value := range values {
		answer.Counters[i] = CounterAnswer{CounterKey: keys[i].itself(), Value: value}
	}
	return answer
}
