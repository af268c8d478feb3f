package httpapi

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/duration"
	"github.com/weirhq/weir/internal/headerfield"
	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/rule"
)

// describeVerdict makes an answer of a verdict.
func (h *Handler) describeVerdict(q *question, policies *manage.Policies) {
	v, a := &q.verdict, &q.answer
	if need := 1 + len(v.Results); cap(q.waits) < need {
		q.waits = make([]int64, need) // all at once: the answer points into it
	}
	waits := q.waits[:1+len(v.Results)]
	*a = CheckAnswer{
		Allowed: v.Allowed, Reason: v.Reason.String(), RetryAfterMS: &waits[0],
		DelayMS: millis(v.Delay), Unheld: v.Unheld, Degraded: v.Degraded != nil, Version: v.Version, Results: a.Results[:0],
	}
	waits[0] = 0
	if v.Priority != rule.Normal {
		a.Priority = v.Priority.String()
	}
	if v.Hold != (weir.HoldID{}) {
		a.Hold, a.HoldExpiresAt = v.Hold.String(), v.HoldExpires.Time()
	}
	said := v.Answer()
	a.Status, a.Rule, a.Code, a.Message = said.Status, said.Rule, said.Code, said.Message
	a.Limit, a.Remaining = said.Limit, said.Remaining
	a.ResetAt, a.ResetAfterMS = headerfield.UnixSeconds(said.ResetAt), millis(said.ResetAfter)
	if waits[0] = millis(said.RetryAfter); said.RetryAfter == weir.Never {
		a.RetryAfterMS = nil
	}
	if a.Results == nil {
		a.Results = []LimitAnswer{}
	}
	for i := range v.Results {
		a.Results = append(a.Results, h.limitAnswer(&v.Results[i], policies, &waits[1+i]))
	}
}

// limitAnswer is what one limit says. The wait is kept where the caller wants it.
func (h *Handler) limitAnswer(r *engine.Result, policies *manage.Policies, wait *int64) LimitAnswer {
	a := LimitAnswer{
		Rule: r.Rule.ID, Key: r.Key, Algorithm: r.Quota.Algorithm().String(), Policy: policies.Of(r, h.options.Engine),
		Allowed: r.Allowed, Shadow: r.Shadow, Soft: r.Soft, Asked: r.Asked,
		Local: r.Local, Cost: r.Cost, Excess: r.Excess, Leave: r.Leave, Limit: r.Limit, Remaining: r.Remaining,
		ResetAfterMS: millis(r.ResetAfter), DelayMS: millis(r.Delay), Penalty: r.Penalty, Warning: r.Warning(),
	}
	if r.Asked {
		a.ResetAt = headerfield.UnixSeconds(r.ResetAt)
	}
	if r.RetryAfter != weir.Never {
		*wait = millis(r.RetryAfter)
		a.RetryAfterMS = wait
	}
	if o := r.Override; o != nil {
		a.Override = &LimitOverride{o.ID, o.Ends}
	}
	return a
}

func millis(d time.Duration) int64 { return duration.Up(d, time.Millisecond) }
