// Package fault is the catalogue of what can go wrong with a call: the kinds, and the sentence
// for each error of the packages below. Every protocol has a column in it, and renders a [Fault]
// in its own form.
package fault

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
)

// Kind is a kind of fault. Its names are promises: programs branch on them.
type Kind struct {
	Name   string     // in the type of a problem over HTTP
	Reason string     // over gRPC: the name in capitals
	Word   string     // over RESP: the reason, or what Redis says
	Title  string     // over HTTP
	Status int        // over HTTP; 0 if it cannot happen there
	Code   codes.Code // over gRPC; OK if it cannot happen there
}

// kinds are all of them; see [Kinds].
var kinds []*Kind

// Kinds returns all kinds, for the tests that compare the documentation with them.
func Kinds() []*Kind { return kinds }

func newKind(name string, status int, code codes.Code, title string) *Kind {
	reason := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	k := &Kind{Name: name, Reason: reason, Word: reason, Title: title, Status: status, Code: code}
	kinds = append(kinds, k)
	return k
}

func (k *Kind) inRedis(word string) *Kind {
	k.Word = word
	return k
}

var (
	BadBody          = newKind("bad-body", http.StatusBadRequest, codes.OK, "Invalid body")
	BadField         = newKind("bad-field", http.StatusBadRequest, codes.InvalidArgument, "Invalid value")
	BadRules         = newKind("bad-rules", http.StatusBadRequest, codes.InvalidArgument, "Invalid rules")
	TooLarge         = newKind("too-large", http.StatusRequestEntityTooLarge, codes.OK, "Body too large")
	InvalidRequest   = newKind("invalid-request", http.StatusUnprocessableEntity, codes.FailedPrecondition, "Invalid request")
	NoRule           = newKind("no-rule", http.StatusNotFound, codes.NotFound, "Rule not found")
	NoVersion        = newKind("no-version", http.StatusNotFound, codes.NotFound, "Version not found")
	NoOverride       = newKind("no-override", http.StatusNotFound, codes.OK, "Override not found")
	NoClient         = newKind("no-client", http.StatusNotFound, codes.NotFound, "Client not found")
	NotFound         = newKind("not-found", http.StatusNotFound, codes.OK, "Path not found")
	NotEnabled       = newKind("not-enabled", http.StatusNotFound, codes.OK, "Feature not enabled")
	NoService        = newKind("no-service", 0, codes.NotFound, "Service not found")
	MethodNotAllowed = newKind("method-not-allowed", http.StatusMethodNotAllowed, codes.OK, "Method not allowed")
	RuleExists       = newKind("rule-exists", http.StatusConflict, codes.AlreadyExists, "Rule already exists")
	ClientInUse      = newKind("client-in-use", http.StatusConflict, codes.OK, "Client in use")
	VersionConflict  = newKind("version-conflict", http.StatusPreconditionFailed, codes.Aborted, "Version conflict")
	VersionRequired  = newKind("version-required", http.StatusPreconditionRequired, codes.FailedPrecondition, "Version required")

	OutOfRange   = newKind("out-of-range", http.StatusUnprocessableEntity, codes.OutOfRange, "Counter out of range")
	CountersFull = newKind("counters-full", http.StatusInsufficientStorage, codes.FailedPrecondition, "Counters full")
	ClientsFull  = newKind("clients-full", http.StatusInsufficientStorage, codes.OK, "Directory of clients full")
	NoQueue      = newKind("no-queue", http.StatusNotFound, codes.OK, "Queue not found")
	QueueFull    = newKind("queue-full", http.StatusTooManyRequests, codes.OK, "Queue full")
	LeaseLost    = newKind("lease-lost", http.StatusConflict, codes.OK, "Lease lost")

	HoldUnknown = newKind("hold-unknown", http.StatusNotFound, codes.NotFound, "Hold not found")
	HoldExpired = newKind("hold-expired", http.StatusConflict, codes.FailedPrecondition, "Hold expired")

	TokenRequired      = newKind("token-required", http.StatusUnauthorized, codes.Unauthenticated, "Token required").inRedis("NOAUTH")
	InvalidToken       = newKind("invalid-token", http.StatusUnauthorized, codes.Unauthenticated, "Invalid token").inRedis("WRONGPASS")
	Forbidden          = newKind("forbidden", http.StatusForbidden, codes.PermissionDenied, "Insufficient scope").inRedis("NOPERM")
	ForeignHost        = newKind("foreign-host", http.StatusForbidden, codes.OK, "Unknown host name")
	ForeignOrigin      = newKind("foreign-origin", http.StatusForbidden, codes.OK, "Cross-origin request")
	ConflictingHeaders = newKind("conflicting-headers", http.StatusForbidden, codes.OK, "Conflicting headers")

	TooManyStreams   = newKind("too-many-streams", 0, codes.ResourceExhausted, "Too many streams")
	StoreUnavailable = newKind("store-unavailable", http.StatusServiceUnavailable, codes.Unavailable, "Store unavailable")
	RulesReadOnly    = newKind("rules-read-only", http.StatusConflict, codes.FailedPrecondition, "Rules read-only")
	ClientsReadOnly  = newKind("clients-read-only", http.StatusConflict, codes.OK, "Clients read-only")
	RulesUnavailable = newKind("rules-unavailable", http.StatusServiceUnavailable, codes.Unavailable, "Rules unavailable")
	Busy             = newKind("busy", http.StatusServiceUnavailable, codes.Unavailable, "Server busy")
	Stopping         = newKind("stopping", 0, codes.Unavailable, "Server stopping")
	NotReady         = newKind("not-ready", http.StatusServiceUnavailable, codes.OK, "Server not ready")
	NotApplied       = newKind("not-applied", http.StatusInternalServerError, codes.Internal, "Rules not applied")
	InternalError    = newKind("internal-error", http.StatusInternalServerError, codes.Internal, "Internal error")
)

// Fault is what goes wrong with a call.
type Fault struct {
	Kind   *Kind
	Detail string // a sentence that names the remedy
	Field  string // of the call, if it is about one

	// Code names the detail, for those who say it in another language; "" if the kind has no
	// other detail. Params are what it says.
	Code   string
	Params map[string]any

	Problems rule.Problems // of rules that cannot be used
	Version  int64         // of the rules, if it is about one
	Retry    time.Duration // when to come back; 0 if it is unknown
}

// Of returns a fault of this kind. The detail is a sentence that names the remedy.
func (k *Kind) Of(format string, args ...any) *Fault {
	return &Fault{Kind: k, Detail: manage.Clip(fmt.Sprintf(format, args...))}
}

// Field returns a fault in a field of a call. The detail begins with the name of the field.
func Field(field, format string, args ...any) *Fault {
	return BadField.Of("%s: %s", field, fmt.Sprintf(format, args...)).In(field)
}

func (f *Fault) Error() string { return f.Kind.Name + ": " + f.Detail }

// In names the field that the fault is about.
func (f *Fault) In(field string) *Fault {
	f.Field = field
	return f
}

// Coded names the detail, and what it says as pairs of a name and a value.
func (f *Fault) Coded(code string, params ...any) *Fault {
	f.Code = code
	for i := 0; i+1 < len(params); i += 2 {
		if f.Params == nil {
			f.Params = map[string]any{}
		}
		value := params[i+1]
		switch v := value.(type) {
		case string:
			value = manage.Clip(v)
		case fmt.Stringer:
			value = v.String()
		}
		f.Params[fmt.Sprint(params[i])] = value
	}
	return f
}

// After says when to come back.
func (f *Fault) After(wait time.Duration) *Fault {
	f.Retry = wait
	return f
}

// At names a version of the rules.
func (f *Fault) At(version int64) *Fault {
	f.Version = version
	return f
}
