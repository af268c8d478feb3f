package httpapi

import (
	"encoding/json"
	"fmt"
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
	badBody     = kind{"bad-body", http.StatusBadRequest, "The body cannot be read"}
	badField    = kind{"bad-field", http.StatusBadRequest, "A value cannot be used"}
	badRules    = kind{"bad-rules", http.StatusBadRequest, "The rules cannot be used"}
	tooLarge    = kind{"too-large", http.StatusRequestEntityTooLarge, "The body is too large"}
	unjudged    = kind{"unjudged", http.StatusUnprocessableEntity, "The request cannot be judged"}
	noRule      = kind{"no-rule", http.StatusNotFound, "There is no such rule"}
	noVersion   = kind{"no-version", http.StatusNotFound, "There is no such version"}
	noRoute     = kind{"no-route", http.StatusNotFound, "There is no such path"}
	notKept     = kind{"not-kept", http.StatusNotFound, "This server keeps nothing of the kind"}
	wrongMethod = kind{"wrong-method", http.StatusMethodNotAllowed, "The path does not take this method"}
	ruleExists  = kind{"rule-exists", http.StatusConflict, "The rule is there already"}
	outdated    = kind{"outdated", http.StatusPreconditionFailed, "The rules have changed"}
	unversioned = kind{"unversioned", http.StatusPreconditionRequired, "A version must be named"}

	outOfRange = kind{"out-of-range", http.StatusUnprocessableEntity, "The amount would leave the range"}
	noQueue    = kind{"no-queue", http.StatusNotFound, "There is no such queue"}
	queueFull  = kind{"queue-full", http.StatusTooManyRequests, "The queue is full"}
	leaseLost  = kind{"lease-lost", http.StatusConflict, "The lease is lost"}

	noToken       = kind{"no-token", http.StatusUnauthorized, "A token is needed"}
	wrongToken    = kind{"wrong-token", http.StatusUnauthorized, "The token is not known"}
	readOnly      = kind{"read-only", http.StatusForbidden, "The token may not do this"}
	foreignHost   = kind{"foreign-host", http.StatusForbidden, "The server does not go by this name"}
	foreignOrigin = kind{"foreign-origin", http.StatusForbidden, "The call comes from another site"}
	contradiction = kind{"contradiction", http.StatusForbidden, "The headers contradict each other"}

	storeGone = kind{"store-unavailable", http.StatusServiceUnavailable, "The store cannot be asked"}
	rulesGone = kind{"rules-unavailable", http.StatusServiceUnavailable, "The rules cannot be read or written"}
	busy      = kind{"busy", http.StatusServiceUnavailable, "Others are faster"}
	notReady  = kind{"not-ready", http.StatusServiceUnavailable, "Not ready yet"}
	unapplied = kind{"unapplied", http.StatusInternalServerError, "The rules are written, but not in force"}
	crashed   = kind{"crashed", http.StatusInternalServerError, "Something went wrong in weir"}
)

// kinds are all of them, for the tests that hold the documentation against them.
var kinds = []*kind{
	&badBody, &badField, &badRules, &tooLarge, &unjudged, &noRule, &noVersion, &noRoute, &notKept, &wrongMethod,
	&ruleExists, &outdated, &unversioned, &outOfRange, &noQueue, &queueFull, &leaseLost, &noToken, &wrongToken, &readOnly, &foreignHost, &foreignOrigin,
	&contradiction, &storeGone, &rulesGone, &busy, &notReady, &unapplied, &crashed,
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

// refuse answers with a problem, which no cache may keep.
func (c *call) refuse(p *Problem) {
	p.RequestID = c.id
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // every problem has a notation
	}
	header := c.Header()
	header["Content-Type"], header["Cache-Control"] = typeProblem, uncached
	c.WriteHeader(p.Status)
	c.Write(append(body, '\n'))
}
