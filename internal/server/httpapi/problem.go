package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/middleware/httplimit"
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
		c.setETag(f.Version)
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
