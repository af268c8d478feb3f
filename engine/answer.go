package engine

import (
	"time"

	"github.com/weirhq/weir"
)

// Answer is what a verdict says as a whole, for any protocol: the numbers of the limit that
// speaks and, of a denial, why and for how long.
type Answer struct {
	Rule             string // of the limit that speaks, or of the denial
	Limit, Remaining int64  // 0 if no limit was checked
	ResetAt          weir.Micros
	ResetAfter       time.Duration
	RetryAfter       time.Duration // 0 if allowed; weir.Never if waiting does not help
	Status, Code     int           // of a denial
	Message          string        // of a denial
}

// Answer returns what the verdict says as a whole; see [Verdict.Speaker] and [Describe].
func (v *Verdict) Answer() (a Answer) {
	if s := v.Speaker(); s != nil {
		a = Answer{Rule: s.Rule.ID, Limit: s.Limit, Remaining: s.Remaining, ResetAt: s.ResetAt, ResetAfter: s.ResetAfter}
	}
	if !v.Allowed {
		d := Describe(v)
		a.Rule, a.RetryAfter, a.Status, a.Code, a.Message = d.Rule, d.RetryAfter, d.HTTPStatus(), d.Code, d.Detail
	}
	return a
}
