package httpapi

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/manage"
)

// call is one request on its way to its answer. It is the ResponseWriter of whoever
// answers, and takes note of what they say.
type call struct {
	http.ResponseWriter
	r *http.Request

	name     string // of the route
	variable string // what stands in the route's variable segment
	id       string // of the request
	holder   string // of the token, "" if none was asked for
	client   netip.Addr
	status   int // 0 until there is an answer
	logged   bool
	changes  bool // it may change something

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

// Values of headers that are the same in all answers. Nobody changes them.
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
	c := &call{ResponseWriter: w, r: r, bodies: &h.bodies}
	header := w.Header()
	header["X-Content-Type-Options"] = nosniff
	c.id = identify(header, r)

	found, variable, allowed := h.find(r.Method, r.URL.Path)
	c.variable = variable
	switch {
	case found != nil:
		c.name = found.name
		c.logged, c.changes = found.needs >= reading, found.needs == changing
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
	switch {
	case found != nil:
		if h.admit(c, found.needs) {
			found.serve(h, c)
		}
	case len(allowed) > 0:
		header.Set("Allow", strings.Join(allowed, ", "))
		c.refuse(wrongMethod.of("%s does not take this method; it takes %s.", r.URL.Path, strings.Join(allowed, ", ")))
	case ours(r.URL.Path):
		c.refuse(noRoute.of("The API has no such path; GET /v1/openapi.yaml lists all."))
	default:
		h.home(c)
	}
}

// end closes a call, whichever way it went.
func (h *Handler) end(c *call, start time.Time) {
	cause := recover()
	if cause != nil && cause != http.ErrAbortHandler {
		h.options.Logger.Error("a call has failed unexpectedly; please report this",
			"route", c.name, "request_id", c.id, "cause", cause, "stack", string(debug.Stack()))
		if c.status == 0 {
			c.refuse(crashed.of("Something went wrong in weir itself; its log says what, under this request id."))
			cause = nil
		} else {
			cause = http.ErrAbortHandler // half an answer must not look like a whole one
		}
	}
	for _, release := range c.releases {
		release()
	}
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
		slog.String("holder", c.holder), slog.String("client", c.client.String()),
		slog.String("request_id", c.id), slog.Duration("took", took))
}

// identify gives the answer the id of the request: the client's, if it can do no harm
// in a log, or a new one.
func identify(header http.Header, r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) == 1 && manage.IsRequestID(given[0]) {
		header["X-Request-Id"] = given[:1:1]
		return given[0]
	}
	values := []string{manage.NewRequestID()}
	header["X-Request-Id"] = values
	return values[0]
}

// answer writes a value as JSON.
func (c *call) answer(status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // every answer has a notation
	}
	c.Header()["Content-Type"] = typeJSON
	c.WriteHeader(status)
	c.Write(append(body, '\n'))
}

// text writes an answer for people.
func (c *call) text(status int, kind []string, body []byte) {
	c.Header()["Content-Type"] = kind
	c.WriteHeader(status)
	c.Write(body)
}

// query reads the query, which may have these parameters, each once, and no other.
func (c *call) query(known ...string) (url.Values, *Problem) { return c.queryWith("", known...) }

// queryWith is query with one parameter that may be there several times.
func (c *call) queryWith(many string, known ...string) (url.Values, *Problem) {
	if many != "" {
		known = append([]string{many}, known...)
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, badField.of("The query cannot be read; escape what is special in it, as in ?key=user%%3Aalice.")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !slices.Contains(known, name):
			return nil, unknownName("parameter", name, known)
		case len(query[name]) > 1 && name != many:
			return nil, badField.of("%s: it is there %d times; send it once.", name, len(query[name])).in(name)
		}
	}
	return query, nil
}
