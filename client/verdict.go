package client

import (
	"net/http"
	"time"

	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Reason tells why a request was allowed or denied.
type Reason uint8

const (
	Limits        Reason = iota // the limits decided, or no rule applies
	Exempt                      // the client is on the exempt list
	Blocked                     // the client is on the block list
	Unavailable                 // the store or the service is unavailable
	Overloaded                  // the service has shed the request
	UnknownClient               // the service knows no such client
)

var reasonNames = [...]string{Limits: "limits", Exempt: "exempt", Blocked: "blocked", Unavailable: "unavailable", Overloaded: "overloaded", UnknownClient: "unknown_client"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}

// Verdict is the answer to a request. Its numbers come from one limit: for an allowed
// request the one with the fewest units left, for a denied request the first in the
// document that denies. They are 0 if no limit was checked.
type Verdict struct {
	Allowed bool
	Reason  Reason

	Rule    string // the rule of that limit
	Level   string // the level of that limit, such as "team"; "" if the rule has no levels
	Status  int    // denied: the HTTP status for the end user
	Code    int64  // denied: the code that the rule defines
	Message string // denied: the message for the end user

	Limit, Remaining int64
	Reserved         int64         // denied: units that it lacks and that others have only reserved; RetryAfter then is a second at most
	ResetAt          time.Time     // when the client is fully reset, by the clock of the service's store; zero if no limit was checked
	ResetAfter       time.Duration // time until the client is fully reset
	RetryAfter       time.Duration // denied: time to wait; 0 if waiting does not help or the time is unknown
	Delay            time.Duration // delay an allowed request by this long

	// Degraded reports that the store or the service was unavailable. If it was the
	// service, Err is the reason.
	Degraded bool
	Err      error

	// Unheld reports that Reserve has charged the request without a hold, because the
	// service has no place for another one. What was charged stays.
	Unheld bool

	Priority Priority // of the request; 0 if it is normal

	Version int64 // version of the rules
	Results []Result
}

// Result is the result of one limit.
type Result struct {
	Rule      string
	Level     string // the level at which it counts, such as "team"; "" if the rule has no levels
	Key       string // identifies the client, as in "user:alice"
	Algorithm string
	Policy    string // the limit as the rule defines it, such as "100/1m"

	Allowed bool
	Shadow  bool // the rule is a shadow or soft rule and denies nothing
	Soft    bool // the rule is soft: tell the client if it is not Allowed
	Asked   bool // false if the store was unavailable; then the numbers are not valid
	Local   bool // the store was unavailable for this limit, and the instance decided by itself
	Penalty bool // a penalty of the rule runs, so the limit denies
	Warning int  // the highest threshold of the rule that the usage has reached, in percent; 0 if none

	Cost, Limit, Remaining        int64
	Reserved                      int64 // of a denied request: units that it lacks and that others have only reserved
	Leased                        int64 // units that other instances have on lease, as last known: neither used nor remaining
	Excess                        int64 // with Charge, units of Cost that were not charged, because the client is too deep in debt
	Leave                         int64 // units left for requests with a higher priority, which Remaining does not include
	ResetAt                       time.Time
	ResetAfter, RetryAfter, Delay time.Duration

	// Override is the temporary override that set the limit; nil if it comes from the rule.
	Override *Override
}

// Override is a temporary override.
type Override struct {
	ID   string
	Ends time.Time
}

// outage is when to come back while the service is unavailable: a restart takes some seconds.
const outage = 5 * time.Second

// local is the answer while the service is unavailable.
func (c *Client) local(why error) *Verdict {
	v := &Verdict{Allowed: true, Reason: Unavailable, Degraded: true, Err: why}
	if c.options.OnFailure == Closed {
		v.Allowed, v.Status, v.RetryAfter = false, http.StatusServiceUnavailable, outage
		v.Message = "The rate limiter is unavailable; try again soon."
	}
	return v
}

func verdictOf(a *pb.CheckResponse) *Verdict {
	v := &Verdict{
		Allowed: a.GetAllowed(), Reason: reasons[a.GetReason()],
		Rule: a.GetRule(), Level: a.GetLevel(), Status: int(a.GetStatus()), Code: a.GetCode(), Message: a.GetMessage(),
		Limit: a.GetLimit(), Remaining: a.GetRemaining(), Reserved: a.GetReserved(),
		ResetAt: instant(a.GetResetAt()), ResetAfter: a.GetResetAfter().AsDuration(), RetryAfter: a.GetRetryAfter().AsDuration(), Delay: a.GetDelay().AsDuration(),
		Priority: Priority(a.GetPriority()), Degraded: a.GetDegraded(), Unheld: a.GetUnheld(), Version: a.GetVersion(), Results: make([]Result, len(a.GetResults())),
	}
	for i, r := range a.GetResults() {
		v.Results[i] = Result{
			Rule: r.GetRule(), Level: r.GetLevel(), Key: r.GetKey(), Algorithm: r.GetAlgorithm(), Policy: r.GetPolicy(),
			Allowed: r.GetAllowed(), Shadow: r.GetShadow(), Asked: r.GetAsked(), Local: r.GetLocal(), Penalty: r.GetPenalty(),
			Soft: r.GetSoft(), Warning: int(r.GetWarning()),
			Cost: r.GetCost(), Excess: r.GetExcess(), Leave: r.GetLeave(), Limit: r.GetLimit(), Remaining: r.GetRemaining(), Reserved: r.GetReserved(), Leased: r.GetLeased(),
			ResetAt: instant(r.GetResetAt()), ResetAfter: r.GetResetAfter().AsDuration(), RetryAfter: r.GetRetryAfter().AsDuration(), Delay: r.GetDelay().AsDuration(),
		}
		if o := r.GetOverride(); o != nil {
			v.Results[i].Override = &Override{ID: o.GetId(), Ends: instant(o.GetEndsAt())}
		}
	}
	return v
}

// instant is a time that the service sends; zero if it is absent.
func instant(at *timestamppb.Timestamp) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.AsTime()
}

// reasons are those of the service. What is not here is as the limits say.
var reasons = map[pb.Reason]Reason{
	pb.Reason_REASON_EXEMPT: Exempt, pb.Reason_REASON_BLOCKED: Blocked, pb.Reason_REASON_UNAVAILABLE: Unavailable,
	pb.Reason_REASON_OVERLOADED: Overloaded, pb.Reason_REASON_UNKNOWN_CLIENT: UnknownClient,
}
