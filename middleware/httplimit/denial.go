package httplimit

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/gateway/llm"
	"github.com/weirhq/weir/internal/notation"
)

// Denial is the answer to a denied client. A Deny function may change it before it is
// written. It is valid until that function returns.
type Denial struct {
	engine.Denial

	Status int    // HTTP status
	Type   string // kind of problem, a URI
	Title  string // kind of problem, for people
}

// Problem types of draft-ietf-httpapi-ratelimit-headers.
const (
	quotaTitle      = "Quota Exceeded"
	quotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	reducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

var problems = [...]struct{ kind, title string }{
	engine.QuotaExceeded:   {quotaExceeded, quotaTitle},
	engine.ReducedCapacity: {reducedCapacity, "Temporary Reduced Capacity"},
	engine.ClientBlocked:   {"about:blank", "Forbidden"},
	engine.InvalidRequest:  {"about:blank", ""}, // that of the status
	engine.ClientUnknown:   {"about:blank", "Unauthorized"},
	engine.TokenInvalid:    {"about:blank", "Unauthorized"},
}

// Describe returns the Denial for a verdict that denies.
func Describe(v *engine.Verdict) *Denial {
	d := &Denial{Denial: engine.Describe(v)}
	d.translate()
	return d
}

// translate says in HTTP what the denial says.
func (d *Denial) translate() {
	d.Status, d.Type, d.Title = d.HTTPStatus(), problems[d.Cause].kind, problems[d.Cause].title
	if d.Title == "" {
		d.Title = http.StatusText(d.Status)
	}
}

// deny answers a request that may not go on.
func (m *Middleware) deny(w http.ResponseWriter, r *http.Request, d *Denial, prompt *prompt) {
	d.translate()
	writeHeaders(w.Header(), d.Verdict, 0, d.Wait(), m.options.Headers)
	switch {
	case m.options.Deny != nil:
	case prompt != nil && prompt.messages.Speaks():
		prompt.answerMessages(w, d)
		return
	case prompt != nil && prompt.tokens:
		said := d.Verdict.Speaker()
		prompt.problem(w, &llm.Problem{Status: d.Status, Message: d.Detail, Wait: d.Wait(), Requests: said != nil && countsRequests(said.Rule)})
		return
	default:
		d.Write(w)
		return
	}
	w.Header()["Cache-Control"] = []string{"no-store"} // RFC 6585 wants it, whatever is written
	m.options.Deny(w, r, d)
}

// WriteDenial answers a request that a verdict just denied, with headers and body. To
// change the answer, use [Describe] and [WriteHeaders].
func WriteDenial(w http.ResponseWriter, v *engine.Verdict, families Headers) {
	d := Describe(v)
	writeHeaders(w.Header(), v, 0, d.Wait(), families)
	d.Write(w)
}

// Write answers with the status and an application/problem+json body (RFC 9457), which
// must not be cached. It does not write the headers about limits.
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

// append appends the denial as JSON. It is written by hand because it is written most
// when there is least time for it.
func (d *Denial) append(dst []byte) []byte {
	if d.Type == quotaExceeded && d.Title == quotaTitle { // as nearly always
		dst = append(dst, `{"type":"`+quotaExceeded+`","title":"`+quotaTitle+`"`...)
	} else {
		dst = document.AppendString(append(dst, `{"type":`...), d.Type)
		dst = document.AppendString(append(dst, `,"title":`...), d.Title)
	}
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(d.Status), 10)
	if d.Detail != "" {
		dst = document.AppendString(append(dst, `,"detail":`...), d.Detail)
	}
	if d.Rule != "" {
		dst = document.AppendString(append(dst, `,"rule":`...), d.Rule)
	}
	if d.Level != "" {
		dst = document.AppendString(append(dst, `,"level":`...), d.Level)
	}
	if d.Code != 0 {
		dst = strconv.AppendInt(append(dst, `,"code":`...), int64(d.Code), 10)
	}
	for i, name := range d.Policies {
		if i == 0 {
			dst = append(dst, `,"violated-policies":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = document.AppendString(dst, name)
		if i == len(d.Policies)-1 {
			dst = append(dst, ']')
		}
	}
	if d.Reserved > 0 {
		dst = strconv.AppendInt(append(dst, `,"reserved":`...), d.Reserved, 10)
	}
	if wait := d.Wait(); wait > 0 {
		dst = strconv.AppendInt(append(dst, `,"retry_after":`...), notation.CeilDuration(wait, time.Second), 10)
	}
	return append(dst, "}\n"...)
}
