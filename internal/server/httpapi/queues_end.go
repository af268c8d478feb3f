package httpapi

import (
	"github.com/weirhq/weir/queue"
)

// LeaseToken is the body of the calls that end or extend a lease.
type LeaseToken struct {
	Token string `json:"token"`
}

// NackRequest is the body of POST /v1/queues/{queue}/nack.
type NackRequest struct {
	Token  string `json:"token"`
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
func (h *Handler) ackWork(c *call, _ *queue.Terms) (any, *Problem) {
	token, p := c.leaseToken()
	if p != nil {
		return nil, p
	}
	if err := h.options.Queues.Ack(c.r.Context(), c.variable, token); err != nil {
		return nil, h.queueTrouble(c, err)
	}
	return StateAnswer{State: queue.Done}, nil
}

// returnWork answers POST /v1/queues/{queue}/return: it was not begun.
func (h *Handler) returnWork(c *call, _ *queue.Terms) (any, *Problem) {
	token, p := c.leaseToken()
	if p != nil {
		return nil, p
	}
	if err := h.options.Queues.Return(c.r.Context(), c.variable, token); err != nil {
		return nil, h.queueTrouble(c, err)
	}
	return StateAnswer{State: queue.Ready}, nil
}

// extendLease answers POST /v1/queues/{queue}/extend: the worker needs more time.
func (h *Handler) extendLease(c *call, _ *queue.Terms) (any, *Problem) {
	token, p := c.leaseToken()
	if p != nil {
		return nil, p
	}
	left, err := h.options.Queues.Extend(c.r.Context(), c.variable, token)
	if err != nil {
		return nil, h.queueTrouble(c, err)
	}
	expires := left.Milliseconds()
	return StateAnswer{State: queue.Leased, ExpiresAfterMS: &expires}, nil
}

// nackWork answers POST /v1/queues/{queue}/nack: it has failed.
func (h *Handler) nackWork(c *call, _ *queue.Terms) (any, *Problem) {
	var want NackRequest
	if p := c.decode(maxReasonBody, &want, "token", "reason", "bury"); p != nil {
		return nil, p
	}
	if p := missingToken(want.Token); p != nil {
		return nil, p
	}
	outcome, err := h.options.Queues.Nack(c.r.Context(), c.variable, want.Token, queue.Failure{Reason: want.Reason, Bury: want.Bury})
	switch {
	case err != nil:
		return nil, h.queueTrouble(c, err)
	case outcome.Dead:
		return StateAnswer{State: queue.Dead}, nil
	}
	retry := millis(outcome.RetryAfter)
	return StateAnswer{State: queue.Delayed, RetryAfterMS: &retry}, nil
}

// maxReasonBody is the longest body with a reason, of which queue.MaxReasonLen are kept:
// who sends a whole trace is not refused for it.
const maxReasonBody = 64 << 10

// leaseToken reads the body of a call about a lease.
func (c *call) leaseToken() (string, *Problem) {
	var want LeaseToken
	if p := c.decode(maxSmallBody, &want, "token"); p != nil {
		return "", p
	}
	return want.Token, missingToken(want.Token)
}

func missingToken(token string) *Problem {
	if token == "" {
		return badField.of("token: it is missing; send the one of the lease.").in("token")
	}
	return nil
}
