package engine

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

// Denial describes why a request was denied, for any protocol.
type Denial struct {
	// Verdict is the reason. It is valid as long as the verdict. If it is Allowed, the
	// charge was refunded, because the request had to be delayed and could not be.
	Verdict *Verdict

	Cause  Cause
	Detail string // the rule's message, or a sentence about the reason

	Rule     string   // the rule that denies, if any
	Level    string   // the level that denies, if the rule has levels; not the client there, which may be none of this client's business
	Code     int      // the code that the rule defines, if any
	Policies []string // names of the limits that deny
	Reserved int64    // units that the request lacks under that rule, if they are only reserved by others

	// RetryAfter is the time to wait; weir.Never if waiting does not help, for which clients
	// are told [Denial.Wait]. For a place of a request in flight it is a second, because
	// others usually end sooner than their places expire.
	RetryAfter time.Duration

	status int // of HTTP, if the cause alone does not tell
}

// Cause is the kind of a denial.
type Cause uint8

const (
	QuotaExceeded   Cause = iota // a limit denies the request
	ReducedCapacity              // the store is unavailable, too many requests are delayed, or there is an overload
	ClientBlocked                // the client is on the block list, or there is a [PermitError]
	InvalidRequest               // the request is invalid
	ClientUnknown                // no directory knows the client; see [Clients]
	TokenInvalid                 // the request has no valid token; see [rule.TokenError]
)

// HTTPStatus returns the status for an HTTP client: that of the rule, if it defines
// one, or that of a [rule.RequestError].
func (d *Denial) HTTPStatus() int {
	if d.status != 0 {
		return d.status
	}
	return [...]int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusForbidden, http.StatusBadRequest, http.StatusUnauthorized, http.StatusUnauthorized}[d.Cause]
}

// outage is the time to wait while the store is unavailable: a failover takes two or three
// seconds, and earlier retries only add load.
const outage = 5 * time.Second

// Describe returns the Denial for a verdict that denies.
func Describe(v *Verdict) Denial {
	switch v.Reason {
	case Blocked:
		return hopeless(v, ClientBlocked, "This client is blocked.")
	case UnknownClient:
		return hopeless(v, ClientUnknown, "A known API key is required.")
	case Unavailable:
		return unavailable(v)
	case Overloaded:
		return DescribeOverload(v)
	}
	d := Denial{Verdict: v, Policies: v.names(func(r *Result) bool { return !r.Allowed }), RetryAfter: weir.Never}
	if r := v.Speaker(); r != nil {
		d.RetryAfter = max(v.usualWait(), 1)
		d.explain(r)
	}
	return d
}

// DescribeError returns the Denial for a request that the engine could not decide. An
// unavailable store is not such a case, because each rule defines what happens then.
// The Denial contains no details about the rules or the application; log them.
func DescribeError(v *Verdict, err error) Denial {
	if values, ok := errors.AsType[*rule.ValuesError](err); ok { // the sender can correct it
		return hopeless(v, InvalidRequest, "The request has too many values for "+values.What+"; send one.")
	}
	if wrong, ok := errors.AsType[*rule.RequestError](err); ok {
		d := hopeless(v, InvalidRequest, wrong.Reason)
		if d.status = wrong.Status; wrong.Status == http.StatusServiceUnavailable {
			d.Cause, d.RetryAfter = ReducedCapacity, time.Second
		}
		return d
	}
	if wrong, ok := errors.AsType[*rule.TokenError](err); ok {
		return hopeless(v, TokenInvalid, wrong.Reason)
	}
	if _, ok := errors.AsType[*PermitError](err); ok {
		return hopeless(v, ClientBlocked, "The request may not be charged to this client.")
	}
	if _, invalid := errors.AsType[*weir.InvalidError](err); invalid {
		return hopeless(v, InvalidRequest, "The request is invalid, so its limits cannot be checked.")
	}
	return unavailable(v)
}

// hopeless is a denial that does not end by itself.
func hopeless(v *Verdict, cause Cause, detail string) Denial {
	return Denial{Verdict: v, Cause: cause, Detail: detail, RetryAfter: weir.Never}
}

// Wait returns the time to wait as headers tell it: 0 if waiting does not help.
func (d *Denial) Wait() time.Duration {
	if d.RetryAfter == weir.Never {
		return 0
	}
	return d.RetryAfter
}

// DescribeOverload returns the Denial for a request that cannot be served because the process or
// what it protects is overloaded.
func DescribeOverload(v *Verdict) Denial {
	return Denial{
		Verdict: v, Cause: ReducedCapacity, RetryAfter: time.Second,
		Detail: "The server is overloaded; try again soon.",
	}
}

// unavailable is that the limits cannot be asked for.
func unavailable(v *Verdict) Denial {
	d := Denial{
		Verdict: v, Cause: ReducedCapacity, RetryAfter: outage,
		Detail: "The rate limiter is unavailable; try again soon.",
	}
	if r := v.Speaker(); r != nil {
		d.Rule, d.Level = r.Rule.ID, r.Level()
	}
	return d
}

// impatient is that the queue is longer than the request can wait.
func impatient(v *Verdict, late time.Duration) Denial {
	slow := func(r *Result) bool { return r.Delay == v.Delay }
	d := Denial{Verdict: v, Policies: v.names(slow), RetryAfter: max(late, 1)}
	for i := range v.Results {
		if r := &v.Results[i]; !r.Shadow && slow(r) {
			d.explain(r)
			break
		}
	}
	return d
}

// explain lets the rule of a limit say why.
func (d *Denial) explain(r *Result) {
	deny, limit := &r.Rule.Deny, r.title()
	d.Rule, d.Level, d.Code, d.Detail, d.Reserved, d.status = r.Rule.ID, r.Level(), deny.Code, deny.Message, r.Reserved, deny.Status
	switch {
	case d.Detail != "":
	case r.isPlace() && d.RetryAfter != weir.Never:
		d.Detail = fmt.Sprintf("The limit %s allows %s at the same time; %s", limit, notation.Count(r.Limit-r.Leave, "request"), d.again(r))
	case r.RetryAfter == weir.Never && r.Leave > 0:
		d.Detail = "The request costs more than the share of " + d.Verdict.Priority.String() + " requests in the limit " + limit + " allows at once."
	case r.RetryAfter == weir.Never:
		d.Detail = "The request costs more than the limit " + limit + " allows at once."
	case d.RetryAfter == weir.Never:
		d.Detail = "The limit " + limit + " is used up, and waiting does not help: the request costs more than another limit allows at once."
	case r.AtShare:
		d.Detail = fmt.Sprintf("Too many requests of this client under the limit %s are not settled yet; %s", limit, d.again(r))
	case r.full:
		d.Detail = fmt.Sprintf("Too many requests under the limit %s are not settled yet; %s", limit, d.again(r))
	case r.Reserved > 0:
		d.Detail = fmt.Sprintf("The request lacks %s of the limit %s, which other requests have only reserved; %s", r.units(r.Reserved), limit, d.again(r))
	case r.Penalty:
		d.Detail = fmt.Sprintf("The limit %s was exceeded, so a penalty runs; %s", limit, d.again(r))
	case 0 < r.Remaining && r.Remaining < r.Cost && r.Leave == 0:
		d.Detail = fmt.Sprintf("The request costs %s, and the limit %s has %s left; %s", r.units(r.Cost), limit, r.units(r.Remaining), d.again(r))
	default:
		var buffer [192]byte // a denial is to make little garbage
		text := append(buffer[:0], "The limit "...)
		if r.Leave > 0 {
			text = append(append(append(buffer[:0], "The share of "...), d.Verdict.Priority.String()...), " requests in the limit "...)
		}
		text = append(text, limit...)
		d.Detail = string(d.appendAgain(append(text, " is used up; "...), r))
	}
}

// title is what a denial calls the limit of a result.
func (r *Result) title() string {
	title := r.Rule.ID
	if _, money := r.Rule.DisplayLimit(r.Compiled); money != "" {
		title += " of " + money
	}
	if level := r.Level(); level != "" {
		title += " of the level " + level // and not the client there, which may be none of this client's business
	}
	return title
}

// units is a number of units of the limit as people read it.
func (r *Result) units(n int64) string {
	return cmp.Or(r.Rule.Display(r.Compiled, n), notation.Count(n, "unit"))
}

// again says when to try again: not sooner because of the limit that is named, or of another one.
func (d *Denial) again(r *Result) string { return string(d.appendAgain(nil, r)) }

func (d *Denial) appendAgain(dst []byte, r *Result) []byte {
	wait := notation.CeilDuration(d.RetryAfter, time.Second)
	if !r.Allowed && wait > d.Verdict.waitFor(r) {
		dst = append(dst, "because of another limit, "...)
	}
	return append(strconv.AppendInt(append(dst, "try again in "...), wait, 10), " s."...)
}

// waitFor returns for how many seconds a client waits for a limit that denies, and for those that its denial calls the
// same; a place has a sentence of its own.
func (v *Verdict) waitFor(r *Result) int64 {
	wait := max(r.usualWait(), 1)
	for i := range v.inGroup(enforced) {
		if same := &v.Results[i]; !same.Allowed && same.usualWait() > wait && !r.isPlace() && same.title() == r.title() {
			wait = same.usualWait()
		}
	}
	return notation.CeilDuration(wait, time.Second)
}

// usualWait is RetryAfter, but a second for a place: requests usually end sooner than their
// places expire.
func (r *Result) usualWait() time.Duration {
	if r.RetryAfter != weir.Never && r.isPlace() {
		return min(r.RetryAfter, time.Second)
	}
	return r.RetryAfter
}

// usualWait is the longest of the results that deny.
func (v *Verdict) usualWait() time.Duration {
	if v.places == 0 {
		return v.RetryAfter
	}
	wait := time.Duration(0)
	for i := range v.inGroup(enforced) {
		if r := &v.Results[i]; !r.Allowed {
			wait = max(wait, r.usualWait())
		}
	}
	return wait
}

// Name returns the name of a result's limit in headers and denials: the id of its rule, the level if the rule
// has levels and, if it has several limits for this client, the period or "concurrency". An id contains no
// colon, so names are unique.
func (v *Verdict) Name(r *Result) string {
	var buffer [128]byte
	if name := v.AppendName(buffer[:0], r); string(name) != r.Rule.ID {
		return string(name)
	}
	return r.Rule.ID
}

// AppendName appends the Name to dst.
func (v *Verdict) AppendName(dst []byte, r *Result) []byte {
	dst = appendID(dst, r.Rule.ID)
	level := r.Level()
	if level != "" {
		dst = append(append(dst, ':'), level...)
	}
	for i := range v.Results {
		if other := &v.Results[i]; other.Rule == r.Rule && other.Compiled != r.Compiled && other.Level() == level {
			if dst = append(dst, ':'); r.isPlace() {
				return append(dst, "concurrency"...)
			}
			return notation.AppendDuration(dst, r.Compiled.Limit().Period)
		}
	}
	return dst
}

// names are those of some of the limits that were asked, each once. Shadow rules are not
// among them.
func (v *Verdict) names(which func(*Result) bool) []string {
	var names []string
	for i := range v.Results {
		if r := &v.Results[i]; r.Asked && !r.Shadow && which(r) {
			if name := v.Name(r); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// appendID appends the id of a rule. Those that [rule.Parse] accepts stay as they
// are; in others, what a header cannot have is escaped as in a URL.
func appendID(dst []byte, id string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(id) {
		switch b := id[i]; {
		case b <= 0x20, b >= 0x7f, b == '"', b == '\\', b == '%', b == ':':
			dst = append(dst, '%', hex[b>>4], hex[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return dst
}
