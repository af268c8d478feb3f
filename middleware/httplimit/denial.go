package httplimit

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/field"
)

// Denial is what a refused client is told. In a Deny function it may be changed
// before it is written.
type Denial struct {
	// Verdict is why. It is valid until the Deny function returns. A verdict that
	// is Allowed was taken back: the request would have had to be held, and could
	// not be.
	Verdict *engine.Verdict

	Status int    // of HTTP
	Type   string // what kind of problem it is, a URI
	Title  string // the same for people
	Detail string // the rule's message, or a sentence about what happened

	Rule     string   // which one refuses, if one does
	Code     int      // the rule's own code, if it has one
	Policies []string // the limits that refuse, as RateLimit-Policy names them

	// RetryAfter is how long to wait; 0 if waiting does not help, or nobody knows.
	RetryAfter time.Duration
}

// Problem types of draft-ietf-httpapi-ratelimit-headers.
const (
	quotaTitle      = "Quota Exceeded"
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// outage is when to come back while the store is away: a failover takes two or three
// seconds, and whoever comes earlier only makes it harder.
const outage = 5 * time.Second

// Describe says what to tell the client of a verdict that refuses.
func Describe(v *engine.Verdict) *Denial {
	d := new(Denial)
	d.describe(v)
	return d
}

func (d *Denial) describe(v *engine.Verdict) {
	switch v.Reason {
	case engine.Blocked:
		*d = Denial{
			Verdict: v, Status: http.StatusForbidden,
			Type: "about:blank", Title: "Forbidden", Detail: "This client is blocked.",
		}
		return
	case engine.Failure:
		*d = unavailable(v)
		return
	}
	*d = Denial{Verdict: v, Status: http.StatusTooManyRequests, Type: quotaExceeded, Title: quotaTitle}
	d.Policies = field.Names(v, func(r *engine.Result) bool { return !r.Allowed })
	if r := v.Speaker(); r != nil {
		if v.RetryAfter != weir.Never {
			d.RetryAfter = max(v.RetryAfter, 1)
		}
		d.speak(r)
	}
}

// speak lets the rule of a limit say why.
func (d *Denial) speak(r *engine.Result) {
	deny := &r.Rule.Deny
	d.Rule, d.Code, d.Detail = r.Rule.ID, deny.Code, deny.Message
	if deny.Status != 0 {
		d.Status = deny.Status
	}
	switch {
	case d.Detail != "":
	case r.RetryAfter == weir.Never:
		d.Detail = "The request costs more than the limit " + d.Rule + " ever admits."
	case d.RetryAfter == 0:
		d.Detail = "The limit " + d.Rule + " is used up, and waiting does not help: the request costs more than another limit ever allows."
	default:
		var room [192]byte
		text := append(append(room[:0], "The limit "...), d.Rule...)
		text = strconv.AppendInt(append(text, " is used up; try again in "...), field.Seconds(d.RetryAfter), 10)
		d.Detail = string(append(text, " s."...))
	}
}

// unavailable is that the limits cannot be asked for.
func unavailable(v *engine.Verdict) Denial {
	d := overloaded(v, "The request could not be judged just now; try again soon.", outage)
	for i := range v.Results {
		if r := &v.Results[i]; !r.Allowed && !r.Shadow {
			d.Rule = r.Rule.ID
			break
		}
	}
	return d
}

// overloaded is that there is no room, which is not the client's fault.
func overloaded(v *engine.Verdict, detail string, wait time.Duration) Denial {
	return Denial{
		Verdict: v, Status: http.StatusServiceUnavailable, Type: reducedCapacity,
		Title: "Temporary Reduced Capacity", Detail: detail, RetryAfter: wait,
	}
}

// ambiguous is that a request says too much about who sent it. Whoever has sent it can
// help it, so it is told what.
func ambiguous(v *engine.Verdict, what string) Denial {
	return Denial{
		Verdict: v, Status: http.StatusBadRequest,
		Type: "about:blank", Title: "Bad Request", Detail: "The request has too many values of " + what + "; send one.",
	}
}

// senseless is that a request cannot be judged by anybody. Why is for the log: it is
// about the rules, or the application.
func senseless(v *engine.Verdict) Denial {
	return Denial{
		Verdict: v, Status: http.StatusBadRequest,
		Type: "about:blank", Title: "Bad Request", Detail: "The request cannot be judged.",
	}
}

// deny answers a request that may not go on.
func (m *Middleware) deny(w http.ResponseWriter, r *http.Request, p *pass) {
	d := &p.denial
	writeHeaders(w.Header(), d.Verdict, 0, d.RetryAfter, m.options.Headers)
	if m.options.Deny == nil {
		d.Write(w)
		return
	}
	w.Header().Set("Cache-Control", "no-store") // RFC 6585 wants it, whatever is written
	m.options.Deny(w, r, d)
}

// WriteDenial answers a request that a verdict of this moment denies: headers and
// body. To change what it says, see [Describe] and [WriteHeaders].
func WriteDenial(w http.ResponseWriter, v *engine.Verdict, families Headers) {
	d := Describe(v)
	writeHeaders(w.Header(), v, 0, d.RetryAfter, families)
	d.Write(w)
}

// Write answers with the status and an application/problem+json of RFC 9457, which no
// cache may keep. The headers about limits are not its business.
func (d *Denial) Write(w http.ResponseWriter) {
	h, values := w.Header(), []string{"no-store", "application/problem+json"}
	delete(h, "Content-Length") // of an answer that somebody else had in mind
	h["Cache-Control"], h["Content-Type"] = values[:1:1], values[1:]
	w.WriteHeader(d.Status)
	body := bodies.Get().(*[]byte)
	*body = d.append((*body)[:0])
	w.Write(*body)
	bodies.Put(body)
}

// bodies are used again: none is longer than the names and messages of rules.
var bodies = sync.Pool{New: func() any { return new([]byte) }}
