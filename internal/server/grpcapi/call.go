package grpcapi

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/weirhq/weir/internal/inbound"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
)

// call is one call that may need a token.
type call struct {
	context.Context
	method string
	id     string
	holder string // of the token, "" if none was asked for
	client netip.Addr
}

// requestID is where a call is named, in metadata both ways.
const requestID = "x-request-id"

// managed answers a call of the management, if the caller may make it.
func managed[A any](ctx context.Context, s *Server, method string, needs trust.Rights, do func(*call) (*A, error)) (*A, error) {
	return guarded(ctx, s, method, manage.Visit{Needs: needs}, do)
}

// guarded answers a call, if the guard allows the visit. Calls that are not counted are not
// logged, either: applications make them as often as they like.
func guarded[A any](ctx context.Context, s *Server, method string, visit manage.Visit, do func(*call) (*A, error)) (*A, error) {
	start := time.Now()
	md, _ := metadata.FromIncomingContext(ctx)
	c := &call{Context: ctx, method: method, id: manage.RequestID(md[requestID])}
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
