package httplimit

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/notation"
)

// Headers selects groups of response headers.
type Headers uint8

const (
	// XRateLimit is X-RateLimit-Limit, -Remaining and -Reset, in units and Unix
	// seconds, and X-RateLimit-Degraded: 1 if the store is unavailable.
	XRateLimit Headers = front.XRateLimit

	// RateLimit is RateLimit-Policy and RateLimit, the structured fields of
	// draft-ietf-httpapi-ratelimit-headers. With either of the two, clients that have
	// reached a threshold of a rule, or exceeded a soft one, get RateLimit-Warning.
	RateLimit Headers = front.RateLimit

	// RetryAfter is Retry-After, in seconds, for denied requests.
	RetryAfter Headers = front.RetryAfter

	// NoHeaders disables all of them.
	NoHeaders Headers = 1 << 3

	AllHeaders = XRateLimit | RateLimit | RetryAfter
)

// WriteHeaders sets the headers for a new verdict. They describe one limit: for an
// allowed request the one with the fewest units left, for a denied request the first
// that denies.
//
// X-RateLimit-Reset is when the client is fully reset, by the store's clock, rounded up
// to a second. The t of RateLimit is the same in seconds from now. For a denied request
// it is the time to wait, like Retry-After: the longest of all limits that deny. That
// is never 0, and absent if waiting does not help.
func WriteHeaders(h http.Header, v *engine.Verdict, families Headers) {
	var wait time.Duration
	if !v.Allowed {
		d := engine.Describe(v)
		wait = d.Wait()
	}
	writeHeaders(h, v, 0, wait, families)
}

// writeHeaders is WriteHeaders for a verdict of some time ago, of a request that has
// to wait if it was denied.
func writeHeaders(h http.Header, v *engine.Verdict, age, wait time.Duration, families Headers) {
	if v.Degraded == nil && len(v.Results) == 1 && v.Speaker() != nil && v.Results[0].Reserved == 0 && !front.Warns(v) && !v.Results[0].Compiled.FollowsCalendar() {
		writeFew(h, v, age, wait, families)
		return
	}
	front.Write(h, &front.HTTP, v, age, wait, int(families))
}

// writeFew is writeHeaders for a request under a single limit, which is what there is
// most of. What is the same for every request under that limit is written
// once: the limit itself, its name and its policy. That of a calendar limit is not: months differ.
func writeFew(h http.Header, v *engine.Verdict, age, wait time.Duration, families Headers) {
	if wait <= 0 {
		families &^= RetryAfter
	}
	if families&AllHeaders == 0 {
		return
	}
	s := &v.Results[0]
	same := sayings.of(v, s)
	var buf [160]byte
	text := strconv.AppendInt(buf[:0], s.Remaining, 10)
	remaining := len(text)
	text = strconv.AppendInt(text, front.UnixSeconds(s.ResetAt), 10)
	reset := len(text)
	text = append(text, same.name...)
	text = front.AppendParameter(text, 'r', s.Remaining)
	until := s.ResetAfter - age
	if wait > 0 {
		until = wait
	}
	seconds := len(text) + len(";t=")
	text = front.AppendParameter(text, 't', notation.CeilDuration(until, time.Second))
	all := string(text)
	// An array of the request's own: handlers may change what they find in the headers.
	values := [...]string{same.limit, all[:remaining], all[remaining:reset], same.policy, all[reset:], all[seconds:]}
	if families&XRateLimit != 0 {
		h["X-Ratelimit-Limit"] = values[0:1:1]
		h["X-Ratelimit-Remaining"] = values[1:2:2]
		h["X-Ratelimit-Reset"] = values[2:3:3]
	}
	if families&RateLimit != 0 {
		h["Ratelimit-Policy"] = values[3:4:4]
		h["Ratelimit"] = values[4:5:5]
	}
	if families&RetryAfter != 0 {
		h["Retry-After"] = values[5:6:6]
	}
}

// saying is the part of the headers that is the same for all clients of a limit.
type saying struct{ name, limit, policy string }

// said remembers sayings. Limits come and go with the rules, so there is a bound.
type said struct {
	byLimit sync.Map // *weir.Compiled → *saying
	n       atomic.Int64
}

const maxSaid = 10_000

var sayings said

// of returns what is said of the only limit of a verdict.
func (all *said) of(v *engine.Verdict, r *engine.Result) *saying {
	if s, found := all.byLimit.Load(r.Compiled); found {
		return s.(*saying)
	}
	s := &saying{
		name:   string(front.AppendName(nil, v, r)), // in quotes
		limit:  strconv.FormatInt(r.Limit, 10),
		policy: string(front.AppendPolicies(nil, v)),
	}
	if all.n.Add(1) > maxSaid {
		all.byLimit.Clear()
		all.n.Store(1)
	}
	all.byLimit.Store(r.Compiled, s)
	return s
}
