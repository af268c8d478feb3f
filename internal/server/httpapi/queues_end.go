package httpapi

import (
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/queue"
)

// LeaseToken is the body of the calls that end or extend a lease.
type LeaseToken struct {
	Token string `json:"token"`
}

func (l *LeaseToken) validate() error {
	if l.Token == "" {
		return fault.BadField.Of("token: required; send the token of the lease.").In("token")
	}
	return nil
}

// NackRequest is the body of POST /v1/queues/{queue}/nack.
type NackRequest struct {
	LeaseToken
	Reason string `json:"reason,omitempty"` // for people
	Bury   bool   `json:"bury,omitempty"`   // make it a dead letter at once
}

// StateAnswer is what has become of an item.
type StateAnswer struct {
	State          queue.State `json:"state"`
	RetryAfterMS   *int64      `json:"retry_after_ms,omitempty"`   // of what is delayed
	ExpiresAfterMS *int64      `json:"expires_after_ms,omitempty"` // of what is leased
}

// ackWork answers POST /v1/queues/{queue}/ack: it is done.
func (h *Handler) ackWork(c *call, want *LeaseToken) (any, error) {
	return StateAnswer{State: queue.Done}, h.options.Queues.Ack(c.r.Context(), c.variable, want.Token)
}

// returnWork answers POST /v1/queues/{queue}/return: it was not begun.
func (h *Handler) returnWork(c *call, want *LeaseToken) (any, error) {
	return StateAnswer{State: queue.Ready}, h.options.Queues.Return(c.r.Context(), c.variable, want.Token)
}

// extendLease answers POST /v1/queues/{queue}/extend: the worker needs more time.
func (h *Handler) extendLease(c *call, want *LeaseToken) (any, error) {
	left, err := h.options.Queues.Extend(c.r.Context(), c.variable, want.Token)
	expires := left.Milliseconds()
	return StateAnswer{State: queue.Leased, ExpiresAfterMS: &expires}, err
}

// nackWork answers POST /v1/queues/{queue}/nack: it has failed.
func (h *Handler) nackWork(c *call, want *NackRequest) (any, error) {
	outcome, err := h.options.Queues.Nack(c.r.Context(), c.variable, want.Token, queue.Failure{Reason: want.Reason, Bury: want.Bury})
	if outcome.Dead {
		return StateAnswer{State: queue.Dead}, err
	}
	retry := millis(outcome.RetryAfter)
	return StateAnswer{State: queue.Delayed, RetryAfterMS: &retry}, err
}

// maxReasonBody is the longest body with a reason, of which queue.MaxReasonLen are kept:
// who sends a whole trace is not rejected for it.
const maxReasonBody = 64 << 10
