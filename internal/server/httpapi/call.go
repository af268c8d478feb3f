package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/queue"
)

// call is one request while it is answered. It is the ResponseWriter of the handler,
// and records the response.
type call struct {
	http.ResponseWriter
	r *http.Request

	name     string    // of the route
	variable string    // what stands in the route's variable segment
	id       [1]string // of the request, as its header has it
	client   netip.Addr
	status   int // 0 until there is an answer
	logged   bool
	changes  bool // it may change something
	packs    bool // its answer may be compressed
	success  int  // the status of an answer that is no problem

	checks      manage.Checker // of a check
	caller      manage.Caller
	credentials manage.Credentials // by which the caller is known

	terms    *queue.Terms // of the queue that the route names
	bodies   *bodies
	releases []func() // of the room that the body takes
}

// Unwrap lets http.ResponseController reach the writer below.
func (c *call) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader takes note of the status. Hints such as 103 are none.
func (c *call) WriteHeader(status int) {
	if c.status == 0 && status >= 200 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *call) Write(body []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(body)
}

// Flush is for handlers that look for an http.Flusher.
func (c *call) Flush() {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	_ = http.NewResponseController(c.ResponseWriter).Flush()
}

// Values of headers that are the same in all answers. They are never changed.
var (
	nosniff     = []string{"nosniff"}
	uncached    = []string{"no-store"}
	typeJSON    = []string{"application/json"}
	typeProblem = []string{"application/problem+json"}
	typeText    = []string{"text/plain; charset=utf-8"}
	typeYAML    = []string{"application/yaml"}
)

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{ResponseWriter: w, r: r, success: http.StatusOK, bodies: &h.bodies}
	header := w.Header()
	header["X-Content-Type-Options"] = nosniff
	c.id[0] = manage.RequestID(r.Header["X-Request-Id"])
	header["X-Request-Id"] = c.id[:]

	found, variable, allowed := h.findRoute(r.Method, r.URL.Path)
	c.variable = variable
	switch {
	case found != nil:
		c.name = found.name
		c.logged = found.needs >= reading || found.needs == signing
		c.changes = found.needs.changes()
		if c.packs = (found.needs == reading || found.needs == browsing) && found.method == http.MethodGet; c.packs {
			header["Vary"] = byCoding
		}
	case ours(r.URL.Path):
		c.name = "/v1/"
	default:
		c.name = "/"
	}
	var start time.Time
	if c.logged || h.options.Observe != nil {
		start = time.Now()
	}
	defer h.end(c, start)
	var answer any
	var err error
	switch {
	case found != nil:
		if err = h.allow(c, found.needs); err == nil {
			answer, err = found.serve(h, c)
		}
	case len(allowed) > 0:
		header.Set("Allow", strings.Join(allowed, ", "))
		path := r.URL.Path
		if strings.HasPrefix(path, "/v1/clients/") {
			path = clientPath // the name may be an API key
		}
		err = fault.MethodNotAllowed.Of("%s does not support this method; it supports %s.", path, strings.Join(allowed, ", ")).Coded("", "allowed", strings.Join(allowed, ", "))
	case ours(r.URL.Path):
		err = fault.NotFound.Of("The API has no such path; GET /v1/openapi.yaml lists all paths.")
	default:
		answer, err = h.home(c)
	}
	c.release() // a client may take its time to read the answer
	if err != nil {
		h.fail(c, err)
	} else if answer != nil {
		c.answer(answer)
	}
}

// end closes a call, whichever way it went.
func (h *Handler) end(c *call, start time.Time) {
	cause := recover()
	if cause != nil && cause != http.ErrAbortHandler {
		h.options.Logger.Error("a call failed unexpectedly; please report this",
			"route", c.name, "request_id", c.id[0], "cause", cause, "stack", string(debug.Stack()))
		if c.status == 0 {
			c.reject(fault.Internal(""))
			cause = nil
		} else {
			cause = http.ErrAbortHandler // half an answer must not look like a whole one
		}
	}
	c.release()
	if !start.IsZero() {
		h.report(c, time.Since(start))
	}
	if cause != nil {
		panic(cause)
	}
}

// report tells who wants to know. Nothing in it was chosen by the client, but for the
// id that it gave the request.
func (h *Handler) report(c *call, took time.Duration) {
	status := c.status
	if status == 0 {
		status = http.StatusOK // as net/http answers for a handler that says nothing
	}
	if h.options.Observe != nil {
		h.options.Observe(c.r.Context(), c.name, status, took)
	}
	if !c.logged {
		return
	}
	level := slog.LevelInfo
	switch {
	case status < 400 && !c.changes:
		level = slog.LevelDebug // a dashboard looks every few seconds
	case status >= 500:
		level = slog.LevelError
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		level = slog.LevelWarn
	}
	h.options.Logger.LogAttrs(c.r.Context(), level, "management call",
		slog.String("method", c.r.Method), slog.String("route", c.name), slog.Int("status", status),
		slog.String("holder", c.caller.Name), slog.String("via", c.caller.Via.String()), slog.String("client", c.client.String()),
		slog.String("request_id", c.id[0]), slog.Duration("took", took))
}

// text is an answer that is written as it is.
type text struct {
	kind []string
	body []byte
}

// answer writes a text, or a value as JSON.
func (c *call) answer(value any) {
	t, ok := value.(text)
	if !ok {
		body, err := json.Marshal(value)
		if err != nil {
			panic(err) // every answer has a notation
		}
		t = text{typeJSON, append(body, '\n')}
	}
	c.Header()["Content-Type"] = t.kind
	if c.packs {
		t.body = c.packed(t.body)
	}
	c.WriteHeader(c.success)
	c.Write(t.body)
}

const (
	minPacked  = 1400 // bytes: fewer travel in one packet anyway
	maxPacking = 4    // at once, so that checks have enough CPU time; others are sent as they are
)

// packing is how many answers are being compressed, in the whole process.
var packing atomic.Int32

// packed is the body of an answer of the management, compressed if that is worth it and the
// client takes it so. Lists and statistics become a tenth.
//
// The length of what is compressed tells something about a secret to whoever chooses a part
// of it and sees the length (BREACH). Nobody can do both here: a page of another site
// cannot make calls with a session, and calls without one have no secret.
func (c *call) packed(body []byte) []byte {
	if len(body) < minPacked || !budget.AcceptsGzip(c.r.Header["Accept-Encoding"]) {
		return body
	}
	defer packing.Add(-1)
	if packing.Add(1) > maxPacking {
		return body
	}
	small := budget.GzipFast(body)
	if small == nil {
		return body
	}
	header := c.Header()
	header["Content-Encoding"] = typeGzip
	header.Set("Content-Length", strconv.Itoa(len(small)))
	if tag := header["Etag"]; len(tag) == 1 { // which stands for the same rules, but for other bytes
		header["Etag"] = []string{"W/" + tag[0]}
	}
	return small
}

// Values of headers, which are never changed.
var (
	typeGzip = []string{"gzip"}
	byCoding = []string{"Accept-Encoding"}
)

// problemPrefix and the name of a kind are its type.
const problemPrefix = "urn:weir:problem:"

// calls is how this API names what a remedy needs.
var calls = fault.Calls{
	Token: "the header Authorization: Bearer or Weir-Token", Rules: "GET /v1/rules lists all rules", Versions: "GET /v1/rules/history lists",
	Replace: "PUT /v1/rules/%[1]s to replace it", Base: `If-Match: "%[1]d"`, Always: `POST /v1/check and "charge": "always"`,
}

// challenges are what WWW-Authenticate says.
var challenges = map[*fault.Kind]string{
	fault.TokenRequired: `Bearer realm="weir"`,
	fault.InvalidToken:  `Bearer realm="weir", error="invalid_token"`,
	fault.Forbidden:     `Bearer realm="weir", error="insufficient_scope"`,
}

// statusClientGone is the usual status in access logs for a client that disconnected
// before its answer. No client receives it.
const statusClientGone = 499

// fail answers with an error.
func (h *Handler) fail(c *call, err error) {
	f := calls.Of(err)
	often, isOften := errors.AsType[*manage.TooOftenError](err)
	switch {
	case isOften:
		c.logged = false // it costs less to send than to log
		httplimit.WriteDenial(c, often.Verdict, httplimit.AllHeaders)
		return
	case f == nil && errors.Is(err, context.Canceled):
		c.WriteHeader(statusClientGone)
		return
	case f == nil:
		f = fault.TimedOut("call")
	}
	if f.Code == "session-over" {
		h.endSession(c)
	}
	c.reject(f)
}

// reject answers with a problem, which no cache may keep.
func (c *call) reject(f *fault.Fault) {
	body, err := json.Marshal(Problem{
		Type: problemPrefix + f.Kind.Name, Title: f.Kind.Title, Status: f.Kind.Status, Detail: f.Detail, Code: f.Code, Field: f.Field,
		Params: f.Params, RequestID: c.id[0], Problems: f.Problems, Version: f.Version,
	})
	if err != nil {
		panic(err) // every problem has a notation
	}
	header := c.Header()
	header["Content-Type"], header["Cache-Control"] = typeProblem, uncached
	if challenge := challenges[f.Kind]; challenge != "" {
		header.Set("WWW-Authenticate", challenge)
	}
	if f.Version > 0 {
		c.setTag(versionText(f.Version))
	}
	if f.Retry > 0 {
		header.Set("Retry-After", strconv.FormatInt(notation.CeilDuration(f.Retry, time.Second), 10))
	}
	c.WriteHeader(f.Kind.Status)
	c.Write(append(body, '\n'))
}

// trouble is for what goes wrong below a call.
func (h *Handler) trouble(c *call) fault.Trouble {
	return fault.Trouble{Calls: &calls, Context: c.r.Context(), Logger: h.options.Logger, Name: slog.String("route", c.name), ID: c.id[0]}
}
