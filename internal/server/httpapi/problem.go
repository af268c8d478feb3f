package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/weirhq/weir/internal/manage"
)

// kind is a kind of problem. Its name is a promise: programs branch on it.
type kind struct {
	name   string
	status int
	title  string
}

// problemPrefix and the name of a kind are its type.
const problemPrefix = "urn:weir:problem:"

var (
	badBody          = newKind("bad-body", http.StatusBadRequest, "Invalid body")
	badField         = newKind("bad-field", http.StatusBadRequest, "Invalid value")
	badRules         = newKind("bad-rules", http.StatusBadRequest, "Invalid rules")
	tooLarge         = newKind("too-large", http.StatusRequestEntityTooLarge, "Body too large")
	invalidRequest   = newKind("invalid-request", http.StatusUnprocessableEntity, "Invalid request")
	noRule           = newKind("no-rule", http.StatusNotFound, "Rule not found")
	noVersion        = newKind("no-version", http.StatusNotFound, "Version not found")
	noOverride       = newKind("no-override", http.StatusNotFound, "Override not found")
	notFound         = newKind("not-found", http.StatusNotFound, "Path not found")
	notEnabled       = newKind("not-enabled", http.StatusNotFound, "Feature not enabled")
	methodNotAllowed = newKind("method-not-allowed", http.StatusMethodNotAllowed, "Method not allowed")
	ruleExists       = newKind("rule-exists", http.StatusConflict, "Rule already exists")
	versionConflict  = newKind("version-conflict", http.StatusPreconditionFailed, "Version conflict")
	versionRequired  = newKind("version-required", http.StatusPreconditionRequired, "Version required")

	outOfRange   = newKind("out-of-range", http.StatusUnprocessableEntity, "Counter out of range")
	countersFull = newKind("counters-full", http.StatusInsufficientStorage, "Counters full")
	noQueue      = newKind("no-queue", http.StatusNotFound, "Queue not found")
	queueFull    = newKind("queue-full", http.StatusTooManyRequests, "Queue full")
	leaseLost    = newKind("lease-lost", http.StatusConflict, "Lease lost")

	holdUnknown = newKind("hold-unknown", http.StatusNotFound, "Hold not found")
	holdExpired = newKind("hold-expired", http.StatusConflict, "Hold expired")

	tokenRequired      = newKind("token-required", http.StatusUnauthorized, "Token required")
	invalidToken       = newKind("invalid-token", http.StatusUnauthorized, "Invalid token")
	forbidden          = newKind("forbidden", http.StatusForbidden, "Insufficient scope")
	foreignHost        = newKind("foreign-host", http.StatusForbidden, "Unknown host name")
	foreignOrigin      = newKind("foreign-origin", http.StatusForbidden, "Cross-origin request")
	conflictingHeaders = newKind("conflicting-headers", http.StatusForbidden, "Conflicting headers")

	storeGone     = newKind("store-unavailable", http.StatusServiceUnavailable, "Store unavailable")
	rulesGone     = newKind("rules-unavailable", http.StatusServiceUnavailable, "Rules unavailable")
	busy          = newKind("busy", http.StatusServiceUnavailable, "Server busy")
	notReady      = newKind("not-ready", http.StatusServiceUnavailable, "Server not ready")
	notApplied    = newKind("not-applied", http.StatusInternalServerError, "Rules not applied")
	internalError = newKind("internal-error", http.StatusInternalServerError, "Internal error")
)

// kinds are all of them, for the tests that hold the documentation against them.
var kinds []*kind

func newKind(name string, status int, title string) *kind {
	k := &kind{name, status, title}
	kinds = append(kinds, k)
	return k
}

// of is a problem of this kind. The detail is a sentence that names the remedy.
func (k *kind) of(format string, args ...any) *Problem {
	return &Problem{
		Type: problemPrefix + k.name, Title: k.title, Status: k.status, Detail: manage.Clip(fmt.Sprintf(format, args...)),
	}
}

// in names the field that the problem is about.
func (p *Problem) in(field string) *Problem {
	p.Field = field
	return p
}

// coded names the detail, for those who say it in another language, and what it says as
// pairs of a name and a value. The code is "" if the type has no other detail.
func (p *Problem) coded(code string, params ...any) *Problem {
	p.Code = code
	for i := 0; i+1 < len(params); i += 2 {
		if p.Params == nil {
			p.Params = map[string]any{}
		}
		value := params[i+1]
		switch v := value.(type) {
		case string:
			value = manage.Clip(v)
		case fmt.Stringer:
			value = v.String()
		}
		p.Params[fmt.Sprint(params[i])] = value
	}
	return p
}

// after says in how many seconds to come back.
func (p *Problem) after(seconds string) *Problem {
	p.retry = seconds
	return p
}

// Error makes a problem an error, so that functions can return it.
func (p *Problem) Error() string { return "httpapi: " + p.Detail }

// statusClientGone is the usual status in access logs for a client that disconnected
// before its answer. No client receives it.
const statusClientGone = 499

// outOfTime is the problem of a call whose context ended before it was answered.
func outOfTime(err error) *Problem {
	if errors.Is(err, context.Canceled) {
		return &Problem{Status: statusClientGone}
	}
	return busy.of("The call timed out before it was answered; try again.").coded("timed-out").after("1")
}

// outage is when to come back while a store is unavailable, in seconds: a failover takes
// two or three, and earlier retries only add load.
const outage = "5"

// unavailable returns the problem of a call that needs something that is unavailable,
// unless the call itself has ended. The cause is only logged, because it may contain
// internal paths and servers.
func (h *Handler) unavailable(c *call, level slog.Level, what string, err error, p *Problem) *Problem {
	if own := c.r.Context().Err(); own != nil && errors.Is(err, own) {
		return outOfTime(own)
	}
	h.options.Logger.Log(c.r.Context(), level, what, "route", c.name, "request_id", c.id, "error", err)
	return p.after(outage)
}

// reject answers with a problem, which no cache may keep.
func (c *call) reject(p *Problem) {
	if p.Status == statusClientGone {
		c.WriteHeader(p.Status) // the client has disconnected
		return
	}
	p.RequestID = c.id
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // every problem has a notation
	}
	header := c.Header()
	header["Content-Type"], header["Cache-Control"] = typeProblem, uncached
	if p.retry != "" {
		header.Set("Retry-After", p.retry)
	}
	c.WriteHeader(p.Status)
	c.Write(append(body, '\n'))
}
