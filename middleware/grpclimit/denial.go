package grpclimit

import (
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
)

// Domain is the domain in the ErrorInfo of a denial.
const Domain = "weir"

// Reasons in the ErrorInfo of a denial.
const (
	QuotaExceeded   = "QUOTA_EXCEEDED"             // a limit denied the call
	ReducedCapacity = "TEMPORARY_REDUCED_CAPACITY" // the store is unavailable, too many calls are delayed, or there is an overload
	Blocked         = "BLOCKED"                    // the client is on the block list
	InvalidRequest  = "INVALID_REQUEST"            // the call is invalid
	UnknownClient   = "UNKNOWN_CLIENT"             // no directory knows the client
	InvalidToken    = "INVALID_TOKEN"              // the call has no valid token
)

// Denial describes why a call was denied. A Deny function may change it before it
// becomes an error. It is valid until that function returns.
type Denial struct {
	engine.Denial

	Status codes.Code
	Reason string // a constant for programs
}

var statuses = [...]struct {
	code   codes.Code
	reason string
}{
	engine.QuotaExceeded:   {codes.ResourceExhausted, QuotaExceeded},
	engine.ReducedCapacity: {codes.Unavailable, ReducedCapacity},
	engine.ClientBlocked:   {codes.PermissionDenied, Blocked},
	engine.InvalidRequest:  {codes.InvalidArgument, InvalidRequest},
	engine.ClientUnknown:   {codes.Unauthenticated, UnknownClient},
	engine.TokenInvalid:    {codes.Unauthenticated, InvalidToken},
}

// Describe returns the Denial for a verdict that denies.
func Describe(v *engine.Verdict) *Denial { return translate(engine.Describe(v)) }

// translate says in gRPC what a denial says. A rule's status is one of HTTP, and not for
// here. Trailers are as short as headers have to be.
func translate(d engine.Denial) *Denial {
	d.Policies = d.Policies[:min(len(d.Policies), front.MaxPolicies)]
	return &Denial{Denial: d, Status: statuses[d.Cause].code, Reason: statuses[d.Cause].reason}
}

// Err returns the denial as a status with google.rpc details: always an ErrorInfo, a
// RetryInfo if waiting helps, and a QuotaFailure that names the limits. It does not
// contain the client's key.
func (d *Denial) Err() error {
	info := &errdetails.ErrorInfo{Reason: d.Reason, Domain: Domain}
	if d.Rule != "" {
		info.Metadata = map[string]string{"rule": strings.ToValidUTF8(d.Rule, "?")}
		if d.Code != 0 {
			info.Metadata["code"] = strconv.Itoa(d.Code)
		}
		if d.Level != "" {
			info.Metadata["level"] = d.Level
		}
		if d.Reserved > 0 {
			info.Metadata["reserved"] = strconv.FormatInt(d.Reserved, 10)
		}
	}
	details := []protoadapt.MessageV1{info}
	if wait := d.Wait(); wait > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	}
	detail := strings.ToValidUTF8(d.Detail, "?")
	if len(d.Policies) > 0 {
		quota := new(errdetails.QuotaFailure)
		for _, name := range d.Policies {
			quota.Violations = append(quota.Violations, &errdetails.QuotaFailure_Violation{
				Subject: "limit:" + name, Description: detail, QuotaId: name,
			})
		}
		details = append(details, quota)
	}
	code := d.Status
	if code == codes.OK {
		code = codes.ResourceExhausted // no error would be an allowance
	}
	plain := status.New(code, detail)
	full, err := plain.WithDetails(details...)
	if err != nil {
		return plain.Err() // a Deny function put in what is no text
	}
	return full.Err()
}
