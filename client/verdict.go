package client

import (
	"net/http"
	"time"

	pb "github.com/weirhq/weir/proto/weir/v1"
)

// Reason is why a request was allowed or denied.
type Reason uint8

const (
	Limits      Reason = iota // its limits say so; or no rule applies to it
	Exempt                    // it is on the list of those who are not limited
	Blocked                   // it is on the list of those who are denied
	Unavailable               // the store or the service is
)

var reasonNames = [...]string{Limits: "limits", Exempt: "exempt", Blocked: "blocked", Unavailable: "unavailable"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}

// Verdict is the answer to a request. The numbers are of the limit that speaks for it:
// the tightest one of an allowed request, the first in the document that denies of a
// denied one. They are 0 if no limit was asked.
type Verdict struct {
	Allowed bool
	Reason  Reason

	Rule    string // that speaks
	Status  int    // of a denial: the HTTP status that the end user should get
	Code    int64  // of a denial: the rule's own
	Message string // of a denial: for the end user

	Limit, Remaining int64
	ResetAfter       time.Duration // until the client is fully reset
	RetryAfter       time.Duration // of a denial; 0 if waiting does not help, or nobody knows
	Delay            time.Duration // hold an allowed request this long, then let it go

	// Degraded is that the store or the service could not be asked. If it was the
	// service, Err is why.
	Degraded bool
	Err      error

	Version int64 // of the rules
	Results []Result
}

// Result is what one limit says.
type Result struct {
	Rule      string
	Key       string // who is limited, as in "user:alice"
	Algorithm string
	Policy    string // the limit as a rule has it, such as "100/1m"

	Allowed bool
	Shadow  bool // it has no say
	Asked   bool // false if the store is unavailable: then the numbers mean nothing

	Cost, Limit, Remaining        int64
	ResetAfter, RetryAfter, Delay time.Duration
}

// outage is when to come back while the service is unavailable: a restart takes some seconds.
const outage = 5 * time.Second

// local is the answer while the service is unavailable.
func (c *Client) local(why error) *Verdict {
	v := &Verdict{Allowed: true, Reason: Unavailable, Degraded: true, Err: why}
	if c.options.OnFailure == Closed {
		v.Allowed, v.Status, v.RetryAfter = false, http.StatusServiceUnavailable, outage
		v.Message = "The request could not be judged just now; try again soon."
	}
	return v
}

func verdictOf(a *pb.CheckResponse) *Verdict {
	v := &Verdict{
		Allowed: a.GetAllowed(), Reason: reasons[a.GetReason()],
		Rule: a.GetRule(), Status: int(a.GetStatus()), Code: a.GetCode(), Message: a.GetMessage(),
		Limit: a.GetLimit(), Remaining: a.GetRemaining(),
		ResetAfter: a.GetResetAfter().AsDuration(), RetryAfter: a.GetRetryAfter().AsDuration(), Delay: a.GetDelay().AsDuration(),
		Degraded: a.GetDegraded(), Version: a.GetVersion(), Results: make([]Result, len(a.GetResults())),
	}
	for i, r := range a.GetResults() {
		v.Results[i] = Result{
			Rule: r.GetRule(), Key: r.GetKey(), Algorithm: r.GetAlgorithm(), Policy: r.GetPolicy(),
			Allowed: r.GetAllowed(), Shadow: r.GetShadow(), Asked: r.GetAsked(),
			Cost: r.GetCost(), Limit: r.GetLimit(), Remaining: r.GetRemaining(),
			ResetAfter: r.GetResetAfter().AsDuration(), RetryAfter: r.GetRetryAfter().AsDuration(), Delay: r.GetDelay().AsDuration(),
		}
	}
	return v
}

// reasons are those of the service. What is not here is as the limits say.
var reasons = map[pb.Reason]Reason{
	pb.Reason_REASON_EXEMPT: Exempt, pb.Reason_REASON_BLOCKED: Blocked, pb.Reason_REASON_UNAVAILABLE: Unavailable,
}
