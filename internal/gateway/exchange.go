package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/middleware/httplimit"
)

// exchange is one request on its way, the context under which it goes, and its handler
// behind the limiter. It is one allocation instead of several.
type exchange struct {
	context.Context
	gateway *Gateway
	w       http.ResponseWriter
	in      *http.Request
	limited httplimit.Exchange
	route   *route
	began   time.Time

	client   netip.Addr
	ofClient *atomic.Int64 // how many requests it has in flight; nil if it may not have any

	choice  choice
	tried   []*target
	few     [maxTries]*target // memory for tried
	place   front.Waiting     // in the adaptive limit of the choice
	upgrade bool              // the client asked for a WebSocket
	body    *body             // nil if the request has none

	forwarded [3]string // values of headers on the way out

	out     http.Request // to the upstream
	url     url.URL      // of out
	bodyOne body         // memory for body
	trace   httptrace.ClientTrace

	mu       sync.Mutex
	answered bool // the transport has returned; guarded by mu

	status int
	header time.Duration
	err    error
	ended  bool // the handler returned; it panics when an answer is cut off
}

// answer ends the exchange with words of the gateway's own.
func (x *exchange) answer(a *answer, why error) {
	x.status, x.err = a.status, why
	wait := time.Second
	if x.choice.target != nil {
		wait = x.choice.wait(x.gateway.now())
	}
	a.write(x.w, wait)
}

// leave says that the upstream has nothing more to do for this request.
func (x *exchange) leave(o overload.Outcome) {
	if x.choice.target != nil {
		x.place.Leave(x.gateway.now(), o)
		x.choice.inFlight.Add(-1)
	}
}

// end is called when everything is over, also by a panic.
func (x *exchange) end() {
	x.leave(x.outcome())
	if x.ofClient != nil {
		x.ofClient.Add(-1)
	}
	o := Outcome{Status: x.status, Header: x.header, Took: time.Since(x.began), Tries: len(x.tried), Err: x.err}
	if x.route != nil {
		o.Route = x.route.name
	}
	if x.choice.target != nil {
		o.Upstream = x.choice.name
	}
	if !x.ended {
		if o.Err = x.Context.Err(); o.Err == nil {
			o.Err = errTorn
		}
	}
	x.gateway.options.Observe(o)
}

// body is the body of a request. It knows whose fault it is if it cannot be read. Close
// does nothing, because one upstream that cannot be reached must not close it for the next;
// the server closes its own in the end.
type body struct {
	reader   io.Reader
	exchange *exchange
	err      atomic.Pointer[error]
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.exchange.place.Read(b.reader, p, errOverloaded)
	if err != nil && err != io.EOF {
		failure := err // or every err would be an allocation
		b.err.Store(&failure)
	}
	return n, err
}

func (b *body) Close() error { return nil }

func (b *body) failed() error {
	if b == nil {
		return nil
	}
	if err := b.err.Load(); err != nil {
		return *err
	}
	return nil
}

// climbs reports whether a path leads out of where it begins, by any of the readings
// that servers are known for.
func climbs(r *http.Request) bool {
	path, raw := r.URL.Path, r.URL.RawPath
	if !strings.Contains(path, "..") {
		return false
	}
	return climbsAs(path) || raw != "" && climbsAs(dots.Replace(raw))
}

var dots = strings.NewReplacer("%2e", ".", "%2E", ".")

func climbsAs(path string) bool {
	depth := 0
	for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		segment, _, _ = strings.Cut(segment, ";")
		switch segment {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}

// acquire takes a place at the upstream that was chosen. It returns false if the upstream has
// as many requests in flight as it can answer.
func (x *exchange) acquire() bool {
	l := x.choice.adaptive
	if x.place.Now = nil; l == nil {
		return true
	}
	x.place.Now = x.gateway.clock
	now := x.gateway.now()
	ok := l.Enter(now, overload.Priority(x.limited.Priority), x.client, &x.place.Place)
	if !ok {
		x.choice.overloaded(now, x.gateway)
	}
	return ok
}

// outcome is what the end of the exchange says about the upstream.
func (x *exchange) outcome() overload.Outcome {
	if x.body.failed() != nil {
		return overload.Ignored // whatever the upstream made of half a request
	}
	return overload.OutcomeOf(x.Context, x.ended, x.status)
}
