package grpcapi

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
)

// A priority is one of four, and has its share.
func TestPriority(t *testing.T) {
	s := newStand(t, Options{})
	for _, c := range []struct{ asked, want pb.Priority }{
		{pb.Priority_PRIORITY_LOW, pb.Priority_PRIORITY_LOW}, {pb.Priority_PRIORITY_CRITICAL, pb.Priority_PRIORITY_CRITICAL},
		{pb.Priority_PRIORITY_NORMAL, 0}, {0, 0},
	} {
		a, err := s.limiter.Check(t.Context(), &pb.CheckRequest{User: "alice", Priority: c.asked})
		if err != nil || a.GetPriority() != c.want {
			t.Errorf("%v: %v, %v", c.asked, a, err)
		}
	}
	for _, odd := range []pb.Priority{-1, 5, 256 + 1} {
		if _, err := s.limiter.Check(t.Context(), &pb.CheckRequest{User: "alice", Priority: odd}); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "critical, high, normal or low") {
			t.Errorf("%d: %v", odd, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for name, start := range map[string]func(testing.TB, Options) *stand{
		"tcp": func(t testing.TB, o Options) *stand { return newStand(t, o) }, "pipe": newPipe,
	} {
		t.Run(name, func(t *testing.T) { testCheck(t, start(t, Options{})) })
	}
}

func testCheck(t *testing.T, s *stand) {
	login := &pb.CheckRequest{Ip: "198.51.100.7", Method: "POST", Path: "/api/login?next=/"}
	result := func(allowed bool, remaining int64, reset, retry time.Duration) *pb.LimitResult {
		r := &pb.LimitResult{
			Rule: "login", Key: "ip:198.51.100.7", Algorithm: "sliding_log", Policy: "2/1m",
			Allowed: allowed, Asked: true, Cost: 1, Limit: 2, Remaining: remaining, ResetAfter: durationpb.New(reset),
		}
		if retry > 0 {
			r.RetryAfter = durationpb.New(retry)
		}
		return r
	}
	minute := time.Minute
	for i, step := range []struct {
		peek bool
		want *pb.CheckResponse
	}{
		{true, &pb.CheckResponse{Allowed: true, Remaining: 2, Results: []*pb.LimitResult{{
			Rule: "login", Key: "ip:198.51.100.7", Algorithm: "sliding_log", Policy: "2/1m", Allowed: true, Asked: true, Cost: 1, Limit: 2, Remaining: 2,
		}}}},
		{false, &pb.CheckResponse{Allowed: true, Remaining: 1, ResetAfter: durationpb.New(minute), Results: []*pb.LimitResult{result(true, 1, minute, 0)}}},
		{false, &pb.CheckResponse{Allowed: true, Remaining: 0, ResetAfter: durationpb.New(minute), Results: []*pb.LimitResult{result(true, 0, minute, 0)}}},
		{false, &pb.CheckResponse{
			Allowed: false, Status: 429, Code: 10007, Message: "too many logins", ResetAfter: durationpb.New(minute), RetryAfter: durationpb.New(minute),
			Results: []*pb.LimitResult{result(false, 0, minute, minute)},
		}},
	} {
		ask := s.limiter.Check
		if step.peek {
			ask = s.limiter.Peek
		}
		got, err := ask(t.Context(), login)
		if err != nil {
			t.Fatal(err)
		}
		at := timestamppb.New(begin.Add(step.want.ResetAfter.AsDuration()))
		step.want.ResetAt, step.want.Results[0].ResetAt = at, at
		step.want.Rule, step.want.Limit, step.want.Version, step.want.Reason = "login", 2, 2, pb.Reason_REASON_LIMITS
		if !proto.Equal(got, step.want) {
			t.Errorf("answer %d is\n%v, want\n%v", i, got, step.want)
		}
	}
	for _, c := range []struct {
		req  *pb.CheckRequest
		want string
	}{
		{&pb.CheckRequest{}, "true LIMITS  0 0 []"},
		{&pb.CheckRequest{User: "healthcheck", Path: "/api/x"}, "true EXEMPT  0 0 []"},
		{&pb.CheckRequest{Ip: "203.0.113.66"}, "false BLOCKED  403 0 []"},
		{&pb.CheckRequest{User: "eve", Path: "/api/x", Cost: 101}, "false LIMITS api 429 0 [api user:eve -]"},
		{&pb.CheckRequest{User: "bob", Path: "/api/x", Tier: "enterprise"}, "true LIMITS  0 0 []"},
		{&pb.CheckRequest{Path: "/queue"}, "true LIMITS queue 0 0 [queue global -]"},
		{&pb.CheckRequest{Path: "/queue"}, "true LIMITS queue 0 100ms [queue global 100ms]"},
		{&pb.CheckRequest{Headers: map[string]string{"x-tenant": "acme"}}, "true LIMITS  0 0 [tenant header:X-Tenant:acme shadow -]"},
		{&pb.CheckRequest{Cookies: map[string]string{"lang": "1"}, Query: map[string]string{"page": "2"}}, "true LIMITS session 0 0 [session cookie:lang:sha256:10df32ddbfb87ee6845a9e9562a0535e|query:page:sha256:195d405d326879c42081d477fae896a7 -]"},
		{&pb.CheckRequest{ApiKey: "k", Path: "/secret"}, "true LIMITS secret 0 0 [secret api_key:sha256:"},
		{&pb.CheckRequest{Attributes: map[string]string{"action": "post"}}, "true LIMITS action 0 0 [action attr:action:post - action attr:action:post -]"},
	} {
		a, err := s.limiter.Check(t.Context(), c.req)
		if err != nil {
			t.Fatal(err)
		}
		if got := short(a); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: %s, want %s", c.req, got, c.want)
		}
		if !a.Allowed && a.Rule == "api" && (a.RetryAfter != nil || a.Results[0].RetryAfter != nil) {
			t.Errorf("waiting does not help, but %v", a)
		}
	}
	s.store.lost.Store(true)
	for _, c := range []struct{ path, want string }{
		{"/safe", "false UNAVAILABLE safe 503 0 [safe global unasked -]"},
		{"/queue", "true LIMITS  0 0 [queue global unasked -]"},
	} {
		a, err := s.limiter.Check(t.Context(), &pb.CheckRequest{Path: c.path})
		if err != nil {
			t.Fatal(err)
		}
		if got := short(a); got != c.want || !a.Degraded || !a.Allowed && a.RetryAfter.AsDuration() != 5*time.Second {
			t.Errorf("%s without a store: %s of %v", c.path, got, a)
		}
	}
}

// short is the heart of an answer.
func short(a *pb.CheckResponse) string {
	var results []string
	delay := func(d *durationpb.Duration) string {
		if d == nil {
			return "-"
		}
		return d.AsDuration().String()
	}
	for _, r := range a.Results {
		text := r.Rule + " " + r.Key
		if r.Shadow {
			text += " shadow"
		}
		if !r.Asked {
			text += " unasked"
		}
		results = append(results, text+" "+delay(r.Delay))
	}
	wait := "0"
	if a.Delay != nil {
		wait = a.Delay.AsDuration().String()
	}
	return fmt.Sprintf("%v %s %s %d %s %v", a.Allowed, strings.TrimPrefix(a.Reason.String(), "REASON_"), a.Rule, a.Status, wait, results)
}

func TestCheckProblems(t *testing.T) {
	s := newPipe(t, Options{})
	long := func(n int) string { return strings.Repeat("x", n) }
	entries := func(n, size int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("K%d", i)] = long(size)
		}
		return m
	}
	for _, c := range []struct {
		req         *pb.CheckRequest
		field, word string
	}{
		{&pb.CheckRequest{Cost: -1}, "cost", "negative"},
		{&pb.CheckRequest{Cost: 1 << 60}, "cost", "more than any limit"},
		{&pb.CheckRequest{Ip: "localhost"}, "ip", "without a port"},
		{&pb.CheckRequest{Ip: "192.0.2.1:80"}, "ip", "without a port"},
		{&pb.CheckRequest{Ip: long(manage.MaxWord + 1)}, "ip", "1025 bytes"},
		{&pb.CheckRequest{Ip: long(manage.MaxWord)}, "ip", "ip: \"xx"},
		{&pb.CheckRequest{Path: "api"}, "path", "slash"},
		{&pb.CheckRequest{Path: "?a"}, "path", "slash"},
		{&pb.CheckRequest{Path: "/" + long(manage.MaxText)}, "path", "8193 bytes"},
		{&pb.CheckRequest{User: long(manage.MaxWord + 1)}, "user", "1025 bytes"},
		{&pb.CheckRequest{ApiKey: long(manage.MaxWord + 1)}, "api_key", "1025 bytes"},
		{&pb.CheckRequest{Tier: long(manage.MaxWord + 1)}, "tier", "1025 bytes"},
		{&pb.CheckRequest{Method: long(manage.MaxWord + 1)}, "method", "1025 bytes"},
		{&pb.CheckRequest{Host: long(manage.MaxWord + 1)}, "host", "1025 bytes"},
		{&pb.CheckRequest{Headers: entries(101, 0)}, "headers", "101 entries"},
		{&pb.CheckRequest{Query: map[string]string{"a": long(manage.MaxText + 1)}}, "query", "send less"},
		{&pb.CheckRequest{Cookies: map[string]string{long(manage.MaxWord + 1): ""}}, "cookies", "send less"},
		{&pb.CheckRequest{Attributes: entries(20, 4<<10)}, "attributes", "65536 bytes"},
		{&pb.CheckRequest{Headers: map[string]string{"x-a": "1", "X-A": "2"}}, "headers", "X-A is given twice"},
	} {
		_, err := s.limiter.Check(t.Context(), c.req)
		want(t, err, fault.BadField, c.word).about(t, c.field)
		_, err = s.limiter.CheckMany(t.Context(), &pb.CheckManyRequest{Requests: []*pb.CheckRequest{{Path: "/safe"}, c.req}})
		want(t, err, fault.BadField, "Request 2").about(t, "requests[1]."+c.field)
		if text := status.Convert(err).Message(); len(text) > manage.MaxDetail {
			t.Errorf("the message has %d bytes", len(text))
		}
	}
	a, err := s.limiter.Check(t.Context(), &pb.CheckRequest{Path: "/safe"})
	if err != nil || a.Remaining != 9 {
		t.Errorf("calls that were denied have charged something: %v %v", a, err)
	}
	// What is just short enough passes.
	for _, req := range []*pb.CheckRequest{
		{User: long(manage.MaxWord), Path: "/" + long(manage.MaxText-1), Cost: 1 << 50},
		{Headers: entries(100, 600)},
	} {
		if _, err := s.limiter.Check(t.Context(), req); err != nil {
			t.Error(err)
		}
	}
	// Larger than any message.
	if _, err := s.limiter.Check(t.Context(), &pb.CheckRequest{User: long(maxMessage)}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a huge message: %v", err)
	}
}

func TestCheckMany(t *testing.T) {
	s := newStand(t, Options{})
	var req pb.CheckManyRequest
	for range 3 {
		req.Requests = append(req.Requests, &pb.CheckRequest{Ip: "192.0.2.1", Method: "POST", Path: "/api/login"}, &pb.CheckRequest{User: "alice", Path: "/api/x", Cost: 10})
	}
	a, err := s.limiter.CheckMany(t.Context(), &req)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range a.Responses {
		got = append(got, fmt.Sprintf("%v %d", r.Allowed, r.Remaining))
	}
	if text := strings.Join(got, ", "); text != "true 1, true 90, true 0, true 80, false 0, true 70" {
		t.Error(text)
	}
	req.Requests = make([]*pb.CheckRequest, MaxChecks)
	for i := range req.Requests {
		req.Requests[i] = &pb.CheckRequest{User: fmt.Sprint("user-", i), Path: "/api/x"}
	}
	if a, err = s.limiter.CheckMany(t.Context(), &req); err != nil || len(a.Responses) != MaxChecks || a.Responses[99].Results[0].Key != "user:user-99" {
		t.Errorf("%v %v", a, err)
	}
	req.Requests = append(req.Requests, &pb.CheckRequest{})
	_, err = s.limiter.CheckMany(t.Context(), &req)
	want(t, err, fault.BadField, "101 requests").about(t, "requests")
	if a, err = s.limiter.CheckMany(t.Context(), &pb.CheckManyRequest{}); err != nil || len(a.Responses) != 0 {
		t.Errorf("%v %v", a, err)
	}
}

// An answer is its own: what is used again for the next question is not in it.
func TestAnswersDoNotMix(t *testing.T) {
	s := newStand(t, Options{})
	var v engine.Verdict
	var answers []*pb.CheckResponse
	for _, user := range []string{"alice", "carol"} {
		if err := s.engine.Check(t.Context(), &rule.Request{User: user, Path: "/api/x"}, &v); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer(&v))
	}
	if got := answers[0].Results[0].Key; got != "user:alice" {
		t.Errorf("the answer to alice is about %s", got)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				user := fmt.Sprintf("user-%d-%d", g, i)
				a, err := s.limiter.Check(t.Context(), &pb.CheckRequest{User: user, Path: "/api/x"})
				if err != nil {
					t.Error(err)
					return
				}
				if len(a.Results) != 1 || a.Results[0].Key != "user:"+user || a.Remaining != 99 {
					t.Errorf("%s got %v", user, a)
				}
			}
		})
	}
	wg.Wait()
}

func TestUnjudged(t *testing.T) {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range 100 {
		fmt.Fprintf(&text, "- {id: r%d, key: global, limits: [%d/1s, 10/1m, 11/2m, 12/3m]}\n", i, i+1)
	}
	s := newPipe(t, Options{Service: manage.Service{Rules: openRules(t, text.String())}})
	_, err := s.limiter.Check(t.Context(), &pb.CheckRequest{})
	want(t, err, fault.InvalidRequest)
	_, err = s.limiter.CheckMany(t.Context(), &pb.CheckManyRequest{Requests: []*pb.CheckRequest{{}}})
	want(t, err, fault.InvalidRequest)
}

func TestCheckEnds(t *testing.T) {
	s := newPipe(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := limiter{s: s.Server}
	if _, err := l.Check(ctx, &pb.CheckRequest{Path: "/safe"}); status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
	ctx, cancel = context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, err := l.CheckMany(ctx, &pb.CheckManyRequest{Requests: []*pb.CheckRequest{{Path: "/safe"}}}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
}
