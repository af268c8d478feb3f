package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/middleware/grpclimit"
	"github.com/weirhq/weir/rule"
)

// Domain is the domain of the ErrorInfo in an error.
const Domain = grpclimit.Domain

// calls is how this API names what a remedy needs.
var calls = fault.Calls{
	Token: "the metadata authorization: Bearer or weir-token", Rules: "GetRules returns all rules", Versions: "ListVersions lists",
	Replace: "replace it with PutRule", Base: "%[1]d as base", Always: "Charge",
}

// failed is an error as a client gets it: a status with details of google.rpc. The id is that of
// the call; "" if it has none.
func failed(err error, id string) error {
	if err == nil {
		return nil
	}
	if often, ok := errors.AsType[*manage.TooOftenError](err); ok {
		return grpclimit.Describe(often.Verdict).Err()
	}
	f := calls.Of(err)
	if _, is := status.FromError(err); f == nil && is {
		return err
	}
	if f == nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return status.FromContextError(err).Err()
		}
		f = fault.TimedOut("call")
	}
	return statusOf(f, id).Err()
}

// maxDetails is how much of the problems of rules goes into an error, in bytes: it is sent
// as metadata, of which many clients take no more than 8 KiB. ValidateRules tells all.
const maxDetails = 3 << 10

func statusOf(f *fault.Fault, id string) *status.Status {
	info := &errdetails.ErrorInfo{Reason: f.Kind.Reason, Domain: Domain, Metadata: map[string]string{}}
	if f.Version > 0 {
		info.Metadata["version"] = strconv.FormatInt(f.Version, 10)
	}
	details := []protoadapt.MessageV1{info}
	if len(f.Problems) > 0 {
		info.Metadata["problems"] = strconv.Itoa(len(f.Problems))
		details = append(details, violations(f.Problems))
	} else if f.Field != "" {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: valid(f.Field), Description: valid(f.Detail), Reason: f.Kind.Reason},
		}})
	}
	if f.Retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(f.Retry)})
	}
	if id != "" {
		details = append(details, &errdetails.RequestInfo{RequestId: id})
	}
	plain := status.New(f.Kind.Code, valid(f.Detail))
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

// trouble is for what goes wrong below a call.
func (s *Server) trouble(c *call) fault.Trouble {
	return fault.Trouble{Calls: &calls, Context: c, Logger: s.options.Logger, Name: slog.String("method", c.method), ID: c.id}
}

// codeOf is what the client gets to see of an error.
func codeOf(err error) codes.Code {
	if st, ok := status.FromError(err); ok {
		return st.Code()
	}
	return status.FromContextError(err).Code()
}

// valid is text as a message of protobuf takes it.
func valid(text string) string { return strings.ToValidUTF8(text, "�") }
