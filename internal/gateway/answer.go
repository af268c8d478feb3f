package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/middleware/httplimit"
)

// answer is what the gateway says itself. It never quotes the client, nor an upstream.
type answer struct {
	status int
	title  string
	detail string
	retry  bool // say when to come back
}

var (
	noRoute     = &answer{http.StatusNotFound, "Not Found", "No route matches this host and path.", false}
	badTarget   = &answer{http.StatusBadRequest, "Bad Request", "The request must have a path that begins with a slash.", false}
	badHost     = &answer{http.StatusBadRequest, "Bad Request", "The host must be a name or an address, with an optional port.", false}
	climbing    = &answer{http.StatusBadRequest, "Bad Request", "The path leads above its root.", false}
	badUpgrade  = &answer{http.StatusBadRequest, "Bad Request", "The Upgrade header has an invalid protocol name.", false}
	badBody     = &answer{http.StatusBadRequest, "Bad Request", "The body of the request ended early or is malformed.", false}
	noTunnel    = &answer{http.StatusMethodNotAllowed, "Method Not Allowed", "This gateway does not support CONNECT.", false}
	slowBody    = &answer{http.StatusRequestTimeout, "Request Timeout", "The body of the request took too long.", false}
	bigBody     = &answer{http.StatusRequestEntityTooLarge, "Content Too Large", "The body of the request is too large.", false}
	clientGone  = &answer{status: statusClientGone}
	badGateway  = &answer{http.StatusBadGateway, "Bad Gateway", "The upstream sent an invalid response.", true}
	unreachable = &answer{http.StatusBadGateway, "Bad Gateway", "No upstream is available; try again soon.", true}
	busy        = &answer{http.StatusServiceUnavailable, "Service Unavailable", "Too many requests are in flight; try again soon.", true}
	overloaded  = &answer{http.StatusServiceUnavailable, "Service Unavailable", "The upstream is overloaded; try again soon.", true}
	late        = &answer{http.StatusGatewayTimeout, "Gateway Timeout", "The upstream did not respond in time.", true}
	loop        = &answer{http.StatusLoopDetected, "Loop Detected", "The request passed through this gateway before; an upstream points back to it.", false}
)

// statusClientGone is the usual status in access logs for a client that disconnected
// before its answer. No client receives it.
const statusClientGone = 499

// write answers the request. If it was checked, the headers about limits are already
// set.
func (a *answer) write(w http.ResponseWriter, wait time.Duration) {
	if a == clientGone {
		w.WriteHeader(a.status)
		return
	}
	d := httplimit.Denial{Status: a.status, Type: "about:blank", Title: a.title}
	d.Detail = a.detail
	if a.retry {
		d.RetryAfter = max(wait, time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(notation.CeilDuration(d.RetryAfter, time.Second), 10))
	}
	if a == noTunnel {
		w.Header().Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
	}
	d.Write(w)
}

// isLost reports whether an upstream may have done what it was sent, although it did not answer.
func (a *answer) isLost(err error) bool {
	return (a == clientGone || a == badGateway || a == late) && connectFailure(err) == nil
}

// connectError is a connection that could not be made. Whatever was to be sent over it
// has not been.
type connectError struct{ cause error }

func (e *connectError) Error() string { return "gateway: connect: " + e.cause.Error() }
func (e *connectError) Unwrap() error { return e.cause }

var (
	errOverloaded = errors.New("gateway: the upstream has as many requests in flight as it can answer")

	errBusy     = errors.New("gateway: the upstream has the maximum number of requests in flight")
	errSwitched = errors.New("gateway: the upstream switched to a protocol that was not requested")
	errTorn     = errors.New("gateway: the response was cut off")
)

// explain finds the answer to a request that came to nothing.
func (x *exchange) explain(err error) *answer {
	switch {
	case x.Context.Err() != nil && errors.Is(x.Context.Err(), context.Canceled):
		return clientGone
	case errors.Is(err, errOverloaded), errors.Is(x.body.failed(), errOverloaded):
		return overloaded
	case x.body.failed() != nil:
		return blameClient(x.body.failed())
	case errors.Is(err, errBusy):
		return busy
	case timedOut(err):
		return late
	case connectFailure(err) != nil:
		return unreachable
	}
	return badGateway
}

// blameClient is for a body that could not be read.
func blameClient(err error) *answer {
	_, big := errors.AsType[*http.MaxBytesError](err)
	switch {
	case big:
		return bigBody
	case timedOut(err):
		return slowBody
	}
	return badBody
}

func timedOut(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}
