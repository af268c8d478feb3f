package grpclimit

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/field"
)

// Domain is that of the ErrorInfo in a refusal.
const Domain = "weir"

// Reasons in the ErrorInfo of a refusal.
const (
	QuotaExceeded   = "QUOTA_EXCEEDED"             // a limit refused
	ReducedCapacity = "TEMPORARY_REDUCED_CAPACITY" // the limits cannot be asked, or too many calls wait
	Blocked         = "BLOCKED"                    // the client is on the block list
	NotJudged       = "NOT_JUDGED"                 // the call cannot be judged
)

// Denial is what a refused client is told. In a Deny function it may be changed before
// it becomes an error.
type Denial struct {
	// Verdict is why. It is valid until the Deny function returns. A verdict that
	// is Allowed was taken back: the call would have had to be held, and could not be.
	Verdict *engine.Verdict

	Status codes.Code
	Reason string // a word for programs
	Detail string // the rule's message, or a sentence about what happened

	Rule     string   // which one refuses, if one does
	Code     int      // the rule's own code, if it has one
	Policies []string // the limits that refuse, as ratelimit-policy names them

	// RetryAfter is how long to wait; 0 if waiting does not help, or nobody knows.
	RetryAfter time.Duration
}

// outage is when to come back while the store is away: a failover takes two or three
// seconds.
const outage = 5 * time.Second

// Describe says what to tell the client of a verdict that refuses.
func Describe(v *engine.Verdict) *Denial {
	switch v.Reason {
	case engine.Blocked:
		return &Denial{Verdict: v, Status: codes.PermissionDenied, Reason: Blocked, Detail: "This client is blocked."}
	case engine.Failure:
		return unavailable(v)
	}
	d := exceeded(v, func(r *engine.Result) bool { return !r.Allowed })
	if r := v.Speaker(); r != nil {
		if v.RetryAfter != weir.Never {
			d.RetryAfter = max(v.RetryAfter, 1)
		}
		d.speak(r)
	}
	return d
}

// exceeded is that some of the limits refuse.
func exceeded(v *engine.Verdict, which func(*engine.Result) bool) *Denial {
	names := field.Names(v, which)
	return &Denial{
		Verdict: v, Status: codes.ResourceExhausted, Reason: QuotaExceeded, Policies: names[:min(len(names), field.MaxPolicies)],
	}
}

// speak lets the rule of a limit say why. Its status is one of HTTP, and not for here.
func (d *Denial) speak(r *engine.Result) {
	d.Rule, d.Code, d.Detail = r.Rule.ID, r.Rule.Deny.Code, r.Rule.Deny.Message
	switch {
	case d.Detail != "":
	case r.RetryAfter == weir.Never:
		d.Detail = "The call costs more than the limit " + d.Rule + " ever admits."
	case d.RetryAfter == 0:
		d.Detail = "The limit " + d.Rule + " is used up, and waiting does not help: the call costs more than another limit ever allows."
	default:
		d.Detail = "The limit " + d.Rule + " is used up; try again in " + strconv.FormatInt(field.Seconds(d.RetryAfter), 10) + " s."
	}
}

// impatient is that the queue is longer than the call can wait.
func impatient(v *engine.Verdict, late time.Duration) *Denial {
	slow := func(r *engine.Result) bool { return r.Delay == v.Delay }
	d := exceeded(v, slow)
	d.RetryAfter = max(late, 1)
	for i := range v.Results {
		if r := &v.Results[i]; !r.Shadow && slow(r) {
			d.speak(r)
			break
		}
	}
	return d
}

// unavailable is that the limits cannot be asked for.
func unavailable(v *engine.Verdict) *Denial {
	d := overloaded(v, "The call could not be judged just now; try again soon.", outage)
	for i := range v.Results {
		if r := &v.Results[i]; !r.Allowed && !r.Shadow {
			d.Rule = r.Rule.ID
			break
		}
	}
	return d
}

// overloaded is that there is no room, which is not the client's fault.
func overloaded(v *engine.Verdict, detail string, wait time.Duration) *Denial {
	return &Denial{Verdict: v, Status: codes.Unavailable, Reason: ReducedCapacity, Detail: detail, RetryAfter: wait}
}

// ambiguous is that a call says too much about who sent it.
func ambiguous(v *engine.Verdict, what string) *Denial {
	return &Denial{Verdict: v, Status: codes.InvalidArgument, Reason: NotJudged, Detail: "The call has too many values of " + what + "; send one."}
}

// senseless is that a call cannot be judged by anybody. Why is for the log: it is about
// the rules, or the application.
func senseless(v *engine.Verdict) *Denial {
	return &Denial{Verdict: v, Status: codes.InvalidArgument, Reason: NotJudged, Detail: "The call cannot be judged."}
}

// Err is the denial as a status with details of google.rpc: an ErrorInfo always, a
// RetryInfo if waiting helps, and a QuotaFailure that names the limits. Who the client
// is to them is not in it.
func (d *Denial) Err() error {
	info := &errdetails.ErrorInfo{Reason: d.Reason, Domain: Domain}
	if d.Rule != "" {
		info.Metadata = map[string]string{"rule": strings.ToValidUTF8(d.Rule, "?")}
		if d.Code != 0 {
			info.Metadata["code"] = strconv.Itoa(d.Code)
		}
	}
	details := []protoadapt.MessageV1{info}
	if d.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)})
	}
	detail := strings.ToValidUTF8(d.Detail, "?")
	if len(d.Policies) > 0 {
		quota := new(errdetails.QuotaFailure)
		for _, name := range d.Policies {
			quota.Violations = append(quota.Violations, &errdetails.QuotaFailure_Violation{
				Subject: "limit:" + name, Description: detail, QuotaId: name,
			})
		}
		details = append(details, quota)
	}
	code := d.Status
	if code == codes.OK {
		code = codes.ResourceExhausted // no error would be an admission
	}
	plain := status.New(code, detail)
	full, err := plain.WithDetails(details...)
	if err != nil {
		return plain.Err() // a Deny function put in what is no text
	}
	return full.Err()
}
