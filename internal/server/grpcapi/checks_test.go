package grpcapi

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// Nobody charges anybody without a token that is good for it, by whatever method.
func TestWhoMayCharge(t *testing.T) {
	const edge, billing, eu = "a-check-token-of-the-tests", "a-charge-token-of-the-tests", "a-token-for-users-in-the-eu"
	list, err := trust.ParseTokens([]byte("alice admin " + adminToken + "\nbob read " + readerToken + "\nedge check " + edge + "\nbilling charge " + billing + "\neu check clients=user:eu-* " + eu))
	if err != nil {
		t.Fatal(err)
	}
	guard, err := manage.NewGuard(manage.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tokens, log := func() *trust.List { return list }, new(strings.Builder)
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens, Guard: guard, Checks: manage.NewChecks(tokens, guard, slog.New(slog.NewTextHandler(log, nil)))}})
	request := func(user string) *pb.CheckRequest { return &pb.CheckRequest{User: user, Path: "/api/x", Cost: 100000} }
	hold := strings.Repeat("0", 32)
	used := int64(1)
	calls := map[string]func(ctx context.Context, user string) error{
		"Check": func(ctx context.Context, user string) error {
			_, err := s.limiter.Check(ctx, request(user))
			return err
		},
		"Peek": func(ctx context.Context, user string) error { _, err := s.limiter.Peek(ctx, request(user)); return err },
		"Charge": func(ctx context.Context, user string) error {
			_, err := s.limiter.Charge(ctx, request(user))
			return err
		},
		"CheckMany": func(ctx context.Context, user string) error {
			_, err := s.limiter.CheckMany(ctx, &pb.CheckManyRequest{Requests: []*pb.CheckRequest{request(user)}})
			return err
		},
		"Reserve": func(ctx context.Context, user string) error {
			_, err := s.limiter.Reserve(ctx, &pb.ReserveRequest{Request: request(user)})
			return err
		},
		"Settle": func(ctx context.Context, _ string) error {
			_, err := s.limiter.Settle(ctx, &pb.SettleRequest{Hold: hold, Used: &used})
			return err
		},
		"Cancel": func(ctx context.Context, _ string) error {
			_, err := s.limiter.Cancel(ctx, &pb.CancelRequest{Hold: hold})
			return err
		},
		"Extend": func(ctx context.Context, _ string) error {
			_, err := s.limiter.Extend(ctx, &pb.ExtendRequest{Hold: hold})
			return err
		},
	}
	if n := len(pb.Limiter_ServiceDesc.Methods); len(calls) != n {
		t.Fatalf("%d of %d methods are tried", len(calls), n)
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			want(t, call(t.Context(), "victim"), fault.TokenRequired, "weir-token")
			want(t, call(as(t.Context(), "wrong-but-long-enough-for-one"), "victim"), fault.InvalidToken)
			aboutHold := name == "Settle" || name == "Cancel" || name == "Extend"
			for _, c := range []struct {
				token, user string
				allowed     bool
				words       string
			}{
				{readerToken, "victim", name == "Peek", "The token of bob has the rights read; use one with the right"},
				{edge, "alice", name != "Charge", "with the right charge"},
				{eu, "victim", aboutHold, ""},
				{eu, "eu-1", name != "Charge", ""},
				{billing, "alice", true, ""},
				{adminToken, "alice", true, ""},
			} {
				err := call(metadata.AppendToOutgoingContext(t.Context(), "weir-token", c.token), c.user)
				switch {
				case !c.allowed:
					want(t, err, fault.Forbidden, c.words)
				case aboutHold:
					want(t, err, fault.HoldUnknown)
				case err != nil:
					t.Errorf("%s for %s: %v", c.token, c.user, err)
				}
			}
		})
	}
	v, err := s.limiter.Peek(as(t.Context(), readerToken), &pb.CheckRequest{User: "victim", Path: "/api/x"})
	if err != nil || v.Results[0].Remaining != v.Results[0].Limit {
		t.Errorf("the victim was charged: %v %v", v, err)
	}
	if _, err := s.health.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("the health needs no token: %v", err)
	}
	if text := log.String(); !strings.Contains(text, `msg="charged always" rules=api key=user:alice cost=100000 fitted=false holder=billing client=127.0.0.1`) || strings.Contains(text, billing) {
		t.Error(text)
	}
}

// If one of several requests is invalid by the rules that apply to it, or its caller may not
// charge it, none is charged.
func TestCheckManyChargesNone(t *testing.T) {
	const eu = "a-token-for-users-in-the-eu"
	list, err := trust.ParseTokens([]byte("bob read " + readerToken + "\neu check clients=user:eu-* " + eu))
	if err != nil {
		t.Fatal(err)
	}
	guard, err := manage.NewGuard(manage.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tokens := func() *trust.List { return list }
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens, Guard: guard, Checks: manage.NewChecks(tokens, guard, slog.New(slog.DiscardHandler)), Rules: openRules(t, `
rules:
  - {id: all, key: user, limit: 10/1h}
  - {id: weighted, match: {path: /llm}, key: user, limit: 1000/1h, tokens: {weights: {input: 1, output: 4}}}
`)}})
	for _, c := range []struct {
		req          *pb.CheckRequest
		kind         *fault.Kind
		words, about string
	}{
		{&pb.CheckRequest{User: "victim"}, fault.Forbidden, `Request 2: The token of eu has the right check, but not for the rule all and the client "user:victim"`, ""},
		{&pb.CheckRequest{User: "eu-1", Path: "/llm", Cost: 7}, fault.BadField, "Request 2: ", "requests[1].cost"},
	} {
		_, err := s.limiter.CheckMany(as(t.Context(), eu), &pb.CheckManyRequest{Requests: []*pb.CheckRequest{{User: "eu-1"}, c.req}})
		if f := want(t, err, c.kind, c.words); c.about != "" {
			f.about(t, c.about)
		}
	}
	if v, err := s.limiter.Peek(as(t.Context(), eu), &pb.CheckRequest{User: "eu-1"}); err != nil || v.Remaining != 10 {
		t.Errorf("the first request was charged: %v %v", v, err)
	}
}

// Where everybody may check, the log has the client that a trusted proxy names.
func TestOpenChecksLog(t *testing.T) {
	log := new(strings.Builder)
	s := newStand(t, Options{
		Service:        manage.Service{Checks: manage.NewChecks(nil, nil, slog.New(slog.NewTextHandler(log, nil)))},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", "198.51.100.7")
	if _, err := s.limiter.Charge(ctx, &pb.CheckRequest{User: "alice", Path: "/api/x"}); err != nil || !strings.Contains(log.String(), "client=198.51.100.7") {
		t.Error(err, log)
	}
}
