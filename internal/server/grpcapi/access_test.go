package grpcapi

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/inbound"
	"github.com/weirhq/weir/internal/rules/manage"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// caller makes a call of the management.
type caller func(ctx context.Context, s *stand, opts ...grpc.CallOption) error

// managedCalls is every method of the management, with a call that would succeed.
var managedCalls = map[string]struct {
	call    caller
	changes bool
}{
	pb.Rules_GetRules_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.admin.GetRules(ctx, &pb.GetRulesRequest{}, opts...)
		return err
	}, false},
	pb.Rules_ListVersions_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.admin.ListVersions(ctx, &pb.ListVersionsRequest{}, opts...)
		return err
	}, false},
	pb.Rules_GetVersion_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.admin.GetVersion(ctx, &pb.GetVersionRequest{Number: 2}, opts...)
		return err
	}, false},
	pb.Rules_ValidateRules_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.admin.ValidateRules(ctx, &pb.ValidateRulesRequest{Source: "{id: a, key: ip, limit: 1/1s}", Rule: true}, opts...)
		return err
	}, false},
	pb.Rules_PutRules_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.admin.PutRules(ctx, &pb.PutRulesRequest{Source: "rules: []", AnyVersion: true}, opts...)
		return err
	}, true},
	pb.Rules_CreateRule_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.admin.CreateRule(ctx, &pb.CreateRuleRequest{Source: "{id: a, key: ip, limit: 1/1s}"}, opts...)
		return err
	}, true},
	pb.Rules_PutRule_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.admin.PutRule(ctx, &pb.PutRuleRequest{Source: "{id: login, key: ip, limit: 1/1s}", AnyVersion: true}, opts...)
		return err
	}, true},
	pb.Rules_DeleteRule_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.admin.DeleteRule(ctx, &pb.DeleteRuleRequest{Id: "safe", AnyVersion: true}, opts...)
		return err
	}, true},
	pb.Rules_Rollback_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.admin.Rollback(ctx, &pb.RollbackRequest{Version: 2, AnyVersion: true}, opts...)
		return err
	}, true},
	pb.Keys_GetKey_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.keys.GetKey(ctx, &pb.GetKeyRequest{Key: "user:alice"}, opts...)
		return err
	}, false},
	pb.Keys_ResetKey_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.keys.ResetKey(ctx, &pb.ResetKeyRequest{Key: "user:alice"}, opts...)
		return err
	}, true},
	pb.Clients_GetClient_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.directory.GetClient(ctx, &pb.GetClientRequest{Client: "user:ann"}, opts...)
		return err
	}, false},
	pb.Clients_ListClients_FullMethodName: {func(ctx context.Context, s *stand, opts ...grpc.CallOption) error {
		_, err := s.directory.ListClients(ctx, &pb.ListClientsRequest{}, opts...)
		return err
	}, false},
}

func TestManagedCallsAreComplete(t *testing.T) {
	for _, d := range []grpc.ServiceDesc{pb.Rules_ServiceDesc, pb.Keys_ServiceDesc, pb.Clients_ServiceDesc} {
		for _, m := range d.Methods {
			if name := "/" + d.ServiceName + "/" + m.MethodName; managedCalls[name].call == nil {
				t.Errorf("%s is not tried without a token; add it to the list", name)
			}
		}
	}
}

func TestTokens(t *testing.T) {
	for name, c := range managedCalls {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
			want(t, c.call(t.Context(), s), fault.TokenRequired, "authorization: Bearer")
			want(t, c.call(as(t.Context(), "wrong-but-long-enough-for-one"), s), fault.InvalidToken)
			err := c.call(as(t.Context(), readerToken), s)
			if c.changes {
				want(t, err, fault.Forbidden, "bob")
			} else if err != nil {
				t.Errorf("a reader got %v", err)
			}
			if v, err := s.rules.Current(t.Context()); err != nil || v.Number != 2 {
				t.Errorf("the rules were changed: %v %v", v.Number, err)
			}
			var header metadata.MD
			ctx := metadata.AppendToOutgoingContext(as(t.Context(), adminToken), "x-request-id", "mine-1")
			if err := c.call(ctx, s, grpc.Header(&header)); err != nil || fmt.Sprint(header["x-request-id"]) != "[mine-1]" {
				t.Errorf("an admin got %v with %v", err, header)
			}
			log := s.log.String()
			for _, word := range []string{"holder=alice", "code=Unauthenticated", "request_id=mine-1", "client=127.0.0.1", "method=" + name} {
				if !strings.Contains(log, word) {
					t.Errorf("the log lacks %s: %s", word, log)
				}
			}
			if strings.Contains(log, adminToken) || strings.Contains(log, "wrong-but") {
				t.Errorf("the log has a token: %s", log)
			}
		})
	}
	// Open checks need no token.
	s := newPipe(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	if _, err := s.limiter.Check(t.Context(), &pb.CheckRequest{}); err != nil {
		t.Error(err)
	}
}

// The author of a change is the holder of the token.
func TestAuthor(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	w, err := s.admin.DeleteRule(as(t.Context(), adminToken), &pb.DeleteRuleRequest{Id: "safe", AnyVersion: true})
	if err != nil || w.Version.Author != "alice" {
		t.Errorf("%v %v", w, err)
	}
}

func TestBearer(t *testing.T) {
	s := newPipe(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	for _, c := range []struct {
		values []string
		want   codes.Code
	}{
		{[]string{"bearer " + adminToken}, codes.OK},
		{[]string{"Bearer   " + adminToken}, codes.OK},
		{[]string{"Basic " + adminToken}, codes.Unauthenticated},
		{[]string{"Bearer"}, codes.Unauthenticated},
		{[]string{adminToken}, codes.Unauthenticated},
		{[]string{"Bearer " + adminToken, "Bearer " + adminToken}, codes.Unauthenticated},
		{[]string{"Bearer " + adminToken + "x"}, codes.Unauthenticated},
	} {
		ctx := t.Context()
		for _, v := range c.values {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", v)
		}
		if _, err := s.admin.GetRules(ctx, &pb.GetRulesRequest{}); status.Code(err) != c.want {
			t.Errorf("%v: %v", c.values, err)
		}
	}
}

// A client that calls too often, or tries tokens, is stopped and not even logged.
// Behind a trusted proxy, each client counts separately.
func TestGuard(t *testing.T) {
	guard := func(calls, failures int64) *manage.Guard {
		g, err := manage.NewGuard(manage.GuardOptions{
			Calls:    weir.Limit{Algorithm: weir.SlidingLog, N: calls, Period: time.Hour},
			Failures: weir.Limit{Algorithm: weir.SlidingLog, N: failures, Period: time.Hour},
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t), Guard: guard(100, 2)}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	try := func(client, bearer string) error {
		ctx := metadata.AppendToOutgoingContext(as(t.Context(), bearer), "x-forwarded-for", client)
		_, err := s.admin.GetRules(ctx, &pb.GetRulesRequest{})
		return err
	}
	for range 2 {
		want(t, try("192.0.2.1", "wrong-but-long-enough-for-one"), fault.InvalidToken)
	}
	lines := strings.Count(s.log.String(), "\n")
	for _, bearer := range []string{"wrong-but-long-enough-for-one", adminToken} {
		err := try("192.0.2.1", bearer)
		p := read(err)
		if status.Code(err) != codes.ResourceExhausted || p.info.Reason != "QUOTA_EXCEEDED" || p.retry.RetryDelay.AsDuration() < time.Minute {
			t.Errorf("%v %+v", err, p)
		}
	}
	if now := strings.Count(s.log.String(), "\n"); now != lines {
		t.Errorf("the log has grown by %d lines", now-lines)
	}
	if err := try("192.0.2.2", adminToken); err != nil {
		t.Errorf("another client got %v", err)
	}

	s = newStand(t, Options{Service: manage.Service{Guard: guard(3, 1)}})
	for i := range 5 {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", fmt.Sprint("192.0.2.", i)) // which is not trusted
		_, err := s.admin.GetRules(ctx, &pb.GetRulesRequest{})
		if got := status.Code(err); (got == codes.OK) != (i < 3) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if _, err := s.limiter.Check(t.Context(), &pb.CheckRequest{}); err != nil {
		t.Error("a check is no management", err)
	}
}

func TestRemoteOf(t *testing.T) {
	from := func(a net.Addr) context.Context { return peer.NewContext(t.Context(), &peer.Peer{Addr: a}) }
	for _, c := range []struct {
		ctx  context.Context
		want string
	}{
		{t.Context(), "unknown"},
		{from(nil), "unknown"},
		{from(&net.UnixAddr{Name: "/run/x", Net: "unix"}), "@"},
		{from(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}), "192.0.2.1:5"},
	} {
		if got := inbound.RemoteOf(c.ctx); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestNewRejects(t *testing.T) {
	s := newPipe(t, Options{})
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Service: manage.Service{Rules: s.rules}}, "Options.Engine is required"},
		{Options{Service: manage.Service{Engine: s.engine}}, "Options.Rules is required"},
		{Options{Service: manage.Service{Engine: s.engine, Rules: s.rules}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}, "TrustedProxies"},
	} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := New(Options{Service: manage.Service{Engine: s.engine, Editor: manage.NewEditor(s.rules, nil)}}); err != nil {
		t.Error(err)
	}
}
