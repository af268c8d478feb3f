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
	badBody     = newKind("bad-body", http.StatusBadRequest, "The body cannot be read")
	badField    = newKind("bad-field", http.StatusBadRequest, "A value cannot be used")
	badRules    = newKind("bad-rules", http.StatusBadRequest, "The rules cannot be used")
	tooLarge    = newKind("too-large", http.StatusRequestEntityTooLarge, "The body is too large")
	unjudged    = newKind("unjudged", http.StatusUnprocessableEntity, "The request cannot be judged")
	noRule      = newKind("no-rule", http.StatusNotFound, "There is no such rule")
	noVersion   = newKind("no-version", http.StatusNotFound, "There is no such version")
	noRoute     = newKind("no-route", http.StatusNotFound, "There is no such path")
	notKept     = newKind("not-kept", http.StatusNotFound, "This server keeps nothing of the kind")
	wrongMethod = newKind("wrong-method", http.StatusMethodNotAllowed, "The path does not take this method")
	ruleExists  = newKind("rule-exists", http.StatusConflict, "The rule is there already")
	outdated    = newKind("outdated", http.StatusPreconditionFailed, "The rules have changed")
	unversioned = newKind("unversioned", http.StatusPreconditionRequired, "A version must be named")

	outOfRange = newKind("out-of-range", http.StatusUnprocessableEntity, "The amount would leave the range")
	noQueue    = newKind("no-queue", http.StatusNotFound, "There is no such queue")
	queueFull  = newKind("queue-full", http.StatusTooManyRequests, "The queue is full")
	leaseLost  = newKind("lease-lost", http.StatusConflict, "The lease is lost")

	noToken       = newKind("no-token", http.StatusUnauthorized, "A token is needed")
	wrongToken    = newKind("wrong-token", http.StatusUnauthorized, "The token is not known")
	readOnly      = newKind("read-only", http.StatusForbidden, "The token may not do this")
	foreignHost   = newKind("foreign-host", http.StatusForbidden, "The server does not go by this name")
	foreignOrigin = newKind("foreign-origin", http.StatusForbidden, "The call comes from another site")
	contradiction = newKind("contradiction", http.StatusForbidden, "The headers contradict each other")

	storeGone = newKind("store-unavailable", http.StatusServiceUnavailable, "The store cannot be asked")
	rulesGone = newKind("rules-unavailable", http.StatusServiceUnavailable, "The rules cannot be read or written")
	busy      = newKind("busy", http.StatusServiceUnavailable, "Others are faster")
	notReady  = newKind("not-ready", http.StatusServiceUnavailable, "Not ready yet")
	unapplied = newKind("unapplied", http.StatusInternalServerError, "The rules are written, but not in force")
	crashed   = newKind("crashed", http.StatusInternalServerError, "Something went wrong in weir")
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

// after says in how many seconds to come back.
func (p *Problem) after(seconds string) *Problem {
	p.retry = seconds
	return p
}

// Error makes a problem an error, so that whoever finds it can return it.
func (p *Problem) Error() string { return "httpapi: " + p.Detail }

// statusClientGone is what access logs call a client that did not wait for its
// answer. Nobody else sees it.
const statusClientGone = 499

// outOfTime is the problem of a call whose context ended before it was answered.
func outOfTime(err error) *Problem {
	if errors.Is(err, context.Canceled) {
		return &Problem{Status: statusClientGone}
	}
	return busy.of("There was no time left to answer; try again.").after("1")
}

// outage is when to come back while a store is unavailable, in seconds: a failover takes
// two or three, and whoever comes earlier only makes it harder.
const outage = "5"

// unavailable is the problem of a call that needs what is unavailable just now, unless the call
// itself is over. Why is for the log: it may be about paths and servers that are nobody's
// business.
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
		c.WriteHeader(p.Status) // nobody reads more
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
