package httpapi

import (
	"errors"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/manage"
)

// MaxCountBody is the longest body of a call that counts, in bytes. The largest batch of
// the longest names fits.
const MaxCountBody = 256 << 10

var counterRoutes = []route{
	{"POST", "/v1/counters/add", using, counting(taking(MaxCountBody, (*Handler).addCounters))},
	{"POST", "/v1/counters/set", using, counting(taking(MaxCountBody, (*Handler).setCounters))},
	{"POST", "/v1/counters/reset", using, counting(taking(MaxCountBody, (*Handler).resetCounters))},
	{"GET", "/v1/counters", looking, counting((*Handler).getCounters)},
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
	return func(h *Handler, c *call) (any, error) {
		if h.options.Counters == nil {
			return nil, fault.NotEnabled.Of("Counters are not enabled on this server.").Coded("counters-off")
		}
		answer, err := serve(h, c)
		if errors.Is(err, counter.ErrFull) {
			h.warn(c, "counters full; new names are rejected", err)
		}
		return answer, h.storeTrouble(c, err)
	}
}

// warn logs an error of a store. Clients can cause such errors at any rate, so they are logged
// at most once per second.
func (h *Handler) warn(c *call, message string, err error) {
	now := h.options.Clock().Unix()
	if before := h.warned.Load(); before != now && h.warned.CompareAndSwap(before, now) {
		h.options.Logger.Warn(message, "route", c.name, "request_id", c.id, "error", err)
	}
}

// storeTrouble returns the fault for an error of a store.
func (h *Handler) storeTrouble(c *call, err error) error {
	if err == nil || calls.Of(err) != nil {
		return err
	}
	if left := c.r.Context().Err(); left != nil {
		return left
	}
	h.warn(c, "store of counters or queues unavailable", err)
	return fault.Store(c.r.Method != "GET" && c.r.Method != "HEAD")
}

// invalidIn is an error of a check, which is a *weir.InvalidError or nil. Where the value stands
// is called what field makes of the lower package's own name for it.
func invalidIn(err error, field func(string) string) error {
	if invalid, ok := errors.AsType[*weir.InvalidError](err); ok {
		return &weir.InvalidError{Field: field(invalid.Field), Reason: invalid.Reason}
	}
	return nil
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

// delta is what is added to a counter.
func (d *CounterDelta) delta(key counter.Key) counter.Delta {
	delta := counter.Delta{Key: key, Members: d.Members}
	if d.By != nil || !key.Distinct {
		delta.By = amount(d.By)
	}
	return delta
}

// AddRequest is the body of POST /v1/counters/add.
type AddRequest struct {
	Add []CounterDelta `json:"add"`
}

func (r *AddRequest) validate() error { return fault.Length("add", len(r.Add), counter.MaxBatch) }

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

func (r *SetRequest) validate() error { return fault.Length("set", len(r.Set), counter.MaxBatch) }

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

func (r *ResetRequest) validate() error { return fault.Length("reset", len(r.Reset), counter.MaxBatch) }

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
	deltas, keys := make([]counter.Delta, len(want.Add)), make([]CounterKey, len(want.Add))
	for i, d := range want.Add {
		key, err := counterKey(d.CounterKey, manage.Within("add", i))
		if err != nil {
			return nil, err
		}
		keys[i], deltas[i] = d.CounterKey, d.delta(key)
		if err := wrong(manage.CheckDelta(deltas[i], manage.Within("add", i))); err != nil {
			return nil, err
		}
	}
	values, err := h.options.Counters.Add(c.r.Context(), deltas...)
	return valued(keys, values), err
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
	settings := make([]counter.Setting, len(want.Set))
	for i, s := range want.Set {
		key, err := counterKey(s.CounterKey, manage.Within("set", i))
		if err != nil {
			return nil, err
		}
		if s.Value == nil {
			field := manage.Within("set", i)("value")
			return nil, fault.BadField.Of("%s: required; send the new value.", field).In(field).Coded("required")
		}
		settings[i] = counter.Setting{Key: key, To: counter.Amount(*s.Value)}
		if err := wrong(manage.CheckSetting(settings[i], manage.Within("set", i))); err != nil {
			return nil, err
		}
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
	keys := make([]counter.Key, len(want.Reset))
	for i, k := range want.Reset {
		var err error
		if keys[i], err = counterKey(k, manage.Within("reset", i)); err != nil {
			return nil, err
		}
	}
	values, err := h.options.Counters.Reset(c.r.Context(), keys...)
	return valued(want.Reset, values), err
}

// getCounters answers GET /v1/counters.
func (h *Handler) getCounters(c *call) (any, error) {
	q, named, keys := countersAsked(c)
	if q.err != nil {
		return nil, q.err
	}
	values, err := h.options.Counters.Get(c.r.Context(), keys...)
	return valued(named, values), err
}

// getCounterHistory answers GET /v1/counters/history.
func (h *Handler) getCounterHistory(c *call) (any, error) {
	q, named, keys := countersAsked(c, "n")
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

// countersAsked are the counters that a query names: several names, and one group,
// window and zone for all.
func countersAsked(c *call, more ...string) (q *query, named []CounterKey, keys []counter.Key) {
	q = c.queryOfTexts("name", append([]string{"group", "window", "zone", "distinct"}, more...)...)
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
	key, bad := manage.CounterName(k).Key(field)
	return key, wrong(bad)
}

func valued(keys []CounterKey, values []counter.Amount) CountersAnswer {
	answer := CountersAnswer{Counters: make([]CounterAnswer, len(values))}
	for i, value := range values {
		answer.Counters[i] = CounterAnswer{CounterKey: keys[i], Value: value}
	}
	return answer
}
