package httpapi

import (
	"net/http"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
)

var holdRoutes = []route{
	{"POST", "/v1/reserve", checking, (*Handler).reserve},
	{"POST", "/v1/settle", checking, settling((*Handler).settle)},
	{"POST", "/v1/cancel", checking, settling((*Handler).cancel)},
	{"POST", "/v1/extend", checking, settling((*Handler).extend)},
}

// ReserveRequest is the body of POST /v1/reserve: a request, which is neither peeked at nor
// charged always.
type ReserveRequest struct {
	CheckRequest
	TTLMS int64 `json:"ttl_ms,omitempty"` // how long the hold lasts; 0 for a minute
}

// HoldRequest is the body of POST /v1/cancel.
type HoldRequest struct {
	Hold string `json:"hold"` // as the reservation returned it

	id weir.HoldID
}

func (r *HoldRequest) validate() error {
	id, err := manage.HoldOf(r.Hold)
	r.id = id
	return err
}

// SettleRequest is the body of POST /v1/settle.
type SettleRequest struct {
	HoldRequest
	Used *Amount `json:"used"` // rules with other units keep what was reserved
}

func (r *SettleRequest) validate() error {
	if err := r.HoldRequest.validate(); err != nil {
		return err
	}
	if r.Used == nil {
		return fault.Field("used", "required; send the units that were used, or call /v1/cancel if there are none.")
	}
	if err := manage.CheckUsed(r.Used.Units); err != nil {
		return err
	}
	return manage.CheckUnits("used", r.Used.ByUnit, 0)
}

// ExtendRequest is the body of POST /v1/extend.
type ExtendRequest struct {
	HoldRequest
	TTLMS int64 `json:"ttl_ms,omitempty"` // from now on; 0 for a minute

	ttl time.Duration
}

func (r *ExtendRequest) validate() error {
	if err := r.HoldRequest.validate(); err != nil {
		return err
	}
	ttl, err := manage.TTL(r.TTLMS)
	r.ttl = ttl
	return err
}

// reserve answers POST /v1/reserve.
func (h *Handler) reserve(c *call) (any, error) {
	var ttl int64
	return h.decide(c, &ttl)
}

// settle answers POST /v1/settle.
func (h *Handler) settle(c *call, want *SettleRequest) (engine.Settled, error) {
	var used engine.Used = engine.Units(want.Used.Units)
	if want.Used.ByUnit != nil {
		used = engine.ByUnit(want.Used.ByUnit)
	}
	s, err := h.options.Engine.Settle(c.r.Context(), want.id, used)
	if err == nil {
		h.checker(c).Settled(&s, used)
	}
	return s, err
}

// cancel answers POST /v1/cancel.
func (h *Handler) cancel(c *call, want *HoldRequest) (engine.Settled, error) {
	return h.options.Engine.Cancel(c.r.Context(), want.id)
}

// extend answers POST /v1/extend.
func (h *Handler) extend(c *call, want *ExtendRequest) (engine.Settled, error) {
	return h.options.Engine.Extend(c.r.Context(), want.id, want.ttl)
}

// settling makes a handler of one that ends or extends a hold.
func settling[T any](do func(*Handler, *call, *T) (engine.Settled, error)) handler {
	return taking(maxSmallBody, func(h *Handler, c *call, want *T) (any, error) {
		if err := c.checks.Need(trust.Check); err != nil {
			return nil, err
		}
		s, err := do(h, c, want)
		return h.holdAnswer(c, &s, err)
	})
}

func (h *Handler) holdAnswer(c *call, s *engine.Settled, err error) (any, error) {
	if err := h.trouble(c).Ended(s, err); err != nil {
		return nil, err
	}
	if s.State == weir.HoldPending {
		c.success = http.StatusAccepted
	}
	var w writer
	manage.TellSettled(&w, s)
	return text{typeJSON, append(w.out, '\n')}, nil
}
