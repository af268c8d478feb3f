package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/inbound"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/middleware/grpclimit"
	"github.com/weirhq/weir/rule"
)

// call is one call that may need a token.
type call struct {
	context.Context
	method string
	id     string
	holder string // of the token, "" if none was asked for
	client netip.Addr
}

// callOf is the call of a context.
func callOf(ctx context.Context) *call {
	method, _ := grpc.Method(ctx)
	return &call{Context: ctx, method: method}
}

// requestID is where a call is named, in metadata both ways.
const requestID = "x-request-id"

// managed answers a call of the management, if the caller may make it.
func managed[A any](ctx context.Context, s *Server, needs trust.Rights, do func(*call) (*A, error)) (*A, error) {
	return guarded(ctx, s, manage.Visit{Needs: needs}, do)
}

// guarded answers a call, if the guard allows the visit. Calls that are not counted are not
// logged, either: applications make them as often as they like.
func guarded[A any](ctx context.Context, s *Server, visit manage.Visit, do func(*call) (*A, error)) (*A, error) {
	start := time.Now()
	md, _ := metadata.FromIncomingContext(ctx)
	c := callOf(ctx)
	c.id = manage.RequestID(md[requestID])
	c.client = s.clientOf(ctx, md)
	_ = grpc.SetHeader(ctx, metadata.Pairs(requestID, c.id)) // fails if there is no client to tell

	var answer *A
	visit.Client, visit.Credentials = c.client, credentialsOf(md)
	caller, err := s.options.Guard.Allow(c, s.options.Tokens(), visit)
	c.holder = caller.Name
	_, often := errors.AsType[*manage.TooOftenError](err)
	if err == nil {
		answer, err = do(c)
	}
	err = failed(err, c.id)
	if !visit.Uncounted && !often { // which costs less to send than to log
		s.report(c, err, time.Since(start))
	}
	return answer, err
}

// tokenKey is where a token may stand in metadata besides authorization.
var tokenKey = strings.ToLower(manage.TokenHeader)

func credentialsOf(md metadata.MD) manage.Credentials {
	return manage.Credentials{Token: md[tokenKey], Authorization: md["authorization"]}
}

func (s *Server) clientOf(ctx context.Context, md metadata.MD) netip.Addr {
	client, _ := s.clients.Client(inbound.RemoteOf(ctx), inbound.Proxied(md))
	return client
}

// checker finds out who checks.
func (s *Server) checker(ctx context.Context) (manage.Checker, error) {
	if s.options.Checks.Open() {
		return s.options.Checks.Anybody(), nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	return s.options.Checks.Identify(ctx, s.clientOf(ctx, md), credentialsOf(md))
}

// withClient is who checks, for what is logged.
func (s *Server) withClient(ctx context.Context, k *manage.Checker) *manage.Checker {
	if !k.Client.IsValid() {
		md, _ := metadata.FromIncomingContext(ctx)
		k.Client = s.clientOf(ctx, md)
	}
	return k
}

// report tells the log. Nothing in it was chosen by the client, but for the id that it
// gave the call.
func (s *Server) report(c *call, err error, took time.Duration) {
	level, code := slog.LevelInfo, codeOf(err)
	switch code {
	case codes.Internal, codes.Unavailable, codes.Unknown:
		level = slog.LevelError
	case codes.Unauthenticated, codes.PermissionDenied:
		level = slog.LevelWarn
	}
	s.options.Logger.LogAttrs(c, level, "management call",
		slog.String("method", c.method), slog.String("code", code.String()),
		slog.String("holder", c.holder), slog.String("client", c.client.String()),
		slog.String("request_id", c.id), slog.Duration("took", took))
}

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
