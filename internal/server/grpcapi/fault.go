package grpcapi

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/middleware/grpclimit"
	"github.com/weirhq/weir/rule"
)

// Domain is the domain of the ErrorInfo in an error.
const Domain = grpclimit.Domain

// kind is a kind of error. Its reason is a promise: programs branch on it. It is the type
// of the HTTP API's problem, in capitals.
type kind struct {
	reason string
	code   codes.Code
}

var (
	badField        = kind{"BAD_FIELD", codes.InvalidArgument}
	badRules        = kind{"BAD_RULES", codes.InvalidArgument}
	invalidRequest  = kind{"INVALID_REQUEST", codes.FailedPrecondition}
	noRule          = kind{"NO_RULE", codes.NotFound}
	noVersion       = kind{"NO_VERSION", codes.NotFound}
	holdUnknown     = kind{"HOLD_UNKNOWN", codes.NotFound}
	holdExpired     = kind{"HOLD_EXPIRED", codes.FailedPrecondition}
	noService       = kind{"NO_SERVICE", codes.NotFound}
	ruleExists      = kind{"RULE_EXISTS", codes.AlreadyExists}
	versionConflict = kind{"VERSION_CONFLICT", codes.Aborted}
	versionRequired = kind{"VERSION_REQUIRED", codes.FailedPrecondition}
	outOfRange      = kind{"OUT_OF_RANGE", codes.OutOfRange}
	countersFull    = kind{"COUNTERS_FULL", codes.FailedPrecondition}
	tokenRequired   = kind{"TOKEN_REQUIRED", codes.Unauthenticated}
	invalidToken    = kind{"INVALID_TOKEN", codes.Unauthenticated}
	forbidden       = kind{"FORBIDDEN", codes.PermissionDenied}
	crowded         = kind{"TOO_MANY_STREAMS", codes.ResourceExhausted}
	storeGone       = kind{"STORE_UNAVAILABLE", codes.Unavailable}
	rulesGone       = kind{"RULES_UNAVAILABLE", codes.Unavailable}
	busy            = kind{"BUSY", codes.Unavailable}
	stopping        = kind{"STOPPING", codes.Unavailable}
	notApplied      = kind{"NOT_APPLIED", codes.Internal}
	internalError   = kind{"INTERNAL_ERROR", codes.Internal}
)

// kinds are all of them, for the test that holds the documentation against them.
var kinds = []*kind{
	&badField, &badRules, &invalidRequest, &noRule, &noVersion, &holdUnknown, &holdExpired, &noService, &ruleExists, &versionConflict, &versionRequired, &outOfRange, &countersFull, &tokenRequired,
	&invalidToken, &forbidden, &crowded, &storeGone, &rulesGone, &busy, &stopping, &notApplied, &internalError,
}

// fault is an error on its way to the client.
type fault struct {
	kind     *kind
	detail   string
	field    string
	problems rule.Problems
	version  int64
	id       string
	delay    time.Duration
}

// of is a fault of this kind. The detail is a sentence that names the remedy.
func (k *kind) of(format string, args ...any) *fault {
	return &fault{kind: k, detail: manage.Clip(fmt.Sprintf(format, args...))}
}

// in names the field that the fault is about.
func (f *fault) in(field string) *fault {
	f.field = field
	return f
}

// wait says when to come back.
func (f *fault) wait(d time.Duration) *fault {
	f.delay = d
	return f
}

// at names a version of the rules.
func (f *fault) at(version int64) *fault {
	f.version = version
	return f
}

func (f *fault) Error() string { return "grpcapi: " + f.detail }

// maxDetails is how much of the problems of rules goes into an error, in bytes: it is sent
// as metadata, of which many clients take no more than 8 KiB. ValidateRules tells all.
const maxDetails = 3 << 10

// GRPCStatus is the fault as a status with details of google.rpc.
func (f *fault) GRPCStatus() *status.Status {
	info := &errdetails.ErrorInfo{Reason: f.kind.reason, Domain: Domain, Metadata: map[string]string{}}
	if f.version > 0 {
		info.Metadata["version"] = strconv.FormatInt(f.version, 10)
	}
	details := []protoadapt.MessageV1{info}
	if len(f.problems) > 0 {
		info.Metadata["problems"] = strconv.Itoa(len(f.problems))
		details = append(details, violations(f.problems))
	} else if f.field != "" {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: valid(f.field), Description: valid(f.detail), Reason: f.kind.reason},
		}})
	}
	if f.delay > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(f.delay)})
	}
	if f.id != "" {
		details = append(details, &errdetails.RequestInfo{RequestId: f.id})
	}
	plain := status.New(f.kind.code, valid(f.detail))
	full, err := plain.WithDetails(details...)
	if err != nil {
		return plain // cannot be: all of it is text
	}
	return full
}

// violations are as many of the problems as there is room for, but at least one.
func violations(problems rule.Problems) *errdetails.BadRequest {
	all := new(errdetails.BadRequest)
	for _, p := range problems {
		text := p.Message
		if p.Line > 0 {
			text = fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, text)
		}
		all.FieldViolations = append(all.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field: "source", Description: valid(manage.Clip(text)), Reason: p.Code,
		})
		if last := len(all.FieldViolations) - 1; last > 0 && proto.Size(all) > maxDetails {
			all.FieldViolations = all.FieldViolations[:last]
			break
		}
	}
	return all
}

// valid is text as a message of protobuf takes it.
func valid(text string) string { return strings.ToValidUTF8(text, "�") }
