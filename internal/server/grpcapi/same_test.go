package grpcapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
	pb "github.com/weirhq/weir/sdk/proto/weir/v1"
	"github.com/weirhq/weir/store/memory"
)

// What a client asks over gRPC is answered as over HTTP: two engines with the same rules
// and clock, one behind each, are asked the same.
func TestSameAsHTTP(t *testing.T) {
	s := newPipe(t, Options{})
	e, store := newEngine(t, &s.clock)
	current, err := s.rules.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := installer(e)(current); err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(httpapi.Options{Service: manage.Service{Engine: e, Rules: s.rules}, Clock: s.time})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	over := []engine.Override{{
		ID: "88d2", Rule: "api", Key: "user:alice", Quota: rule.Quota{Rates: []rule.Rate{{N: 7, Period: time.Minute}}},
		Ends: s.time().Add(time.Hour),
	}}
	e.InstallOverrides(over)
	s.engine.InstallOverrides(over)
	rapid.Check(t, func(t *rapid.T) {
		// No call is in flight while the stores change.
		store.HoldStore, s.store.HoldStore = memory.New(memory.Options{Clock: s.micros}), memory.New(memory.Options{Clock: s.micros})
		for range rapid.IntRange(1, 30).Draw(t, "requests") {
			s.move(time.Duration(rapid.Int64Range(0, 20_000_000).Draw(t, "µs")) * time.Microsecond)
			lost := rapid.IntRange(0, 9).Draw(t, "lost") == 0
			store.lost.Store(lost)
			s.store.lost.Store(lost)
			req, peek := drawRequest(t), rapid.IntRange(0, 4).Draw(t, "peek") == 0
			want, problem := askHTTP(t, h, req, peek)
			ask := s.limiter.Check
			if peek {
				ask = s.limiter.Peek
			}
			got, err := ask(t.Context(), req)
			switch {
			case problem != nil || err != nil:
				sameProblem(t, problem, err)
				seen["mistake"]++
				continue
			case got.Degraded:
				seen["degraded"]++
			case !got.Allowed:
				seen["denied"]++
			case slices.ContainsFunc(got.Results, func(r *pb.LimitResult) bool { return r.Override != nil }):
				seen["overridden"]++
			case len(got.Results) > 0:
				seen["allowed"]++
			}
			if got.Display != nil {
				seen["in dollars"]++
			}
			sameAnswer(t, want, got)
		}
	})
	for _, what := range []string{"mistake", "degraded", "denied", "overridden", "allowed", "in dollars"} {
		if seen[what] == 0 {
			t.Errorf("there was none that was %s, so that nothing is known about it: %v", what, seen)
		}
	}
}

func drawRequest(t *rapid.T) *pb.CheckRequest {
	word := func(name string, words ...string) string { return rapid.SampledFrom(words).Draw(t, name) }
	table := func(name string, entries ...string) map[string]string {
		m := map[string]string{}
		for _, e := range entries {
			if rapid.IntRange(0, 2).Draw(t, name) == 0 {
				key, value, _ := strings.Cut(e, "=")
				m[key] = value
			}
		}
		return m
	}
	return &pb.CheckRequest{
		Ip:      word("ip", "", "192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::2", "203.0.113.66", "not an address"),
		User:    word("user", "", "alice", "bob", "healthcheck", "ünï|\\x"),
		ApiKey:  word("api key", "", "a-secret", "another"),
		Tier:    word("tier", "", "pro", "enterprise", "unknown"),
		Method:  word("method", "", "POST", "post", "GET"),
		Host:    word("host", "", "Example.com:80"),
		Path:    word("path", "", "/", "/api/login", "/api//login/?x=1", "/api/items", "/secret", "/safe", "/queue", "/money", "relative"),
		Headers: table("headers", "X-Tenant=acme", "x-tenant=other", "Host=x"),
		Cookies: table("cookies", "lang=1", "lang=2"), Query: table("query", "page=1"),
		Attributes: table("attributes", "action=post", "x=<&>"),
		Cost:       rapid.SampledFrom([]int64{0, 0, 1, 2, 5, 101, 1 << 50, 1<<50 + 1, -1}).Draw(t, "cost"),
	}
}

func askHTTP(t *rapid.T, h http.Handler, req *pb.CheckRequest, peek bool) (*httpapi.CheckAnswer, *httpapi.Problem) {
	body, err := json.Marshal(httpapi.CheckRequest{
		IP: req.Ip, User: req.User, APIKey: req.ApiKey, Tier: req.Tier, Method: req.Method, Host: req.Host, Path: req.Path,
		Headers: req.Headers, Cookies: req.Cookies, Query: req.Query, Attributes: req.Attributes, Cost: httpapi.Amount{Units: req.Cost}, Peek: peek,
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "http://localhost/v1/check", strings.NewReader(string(body)))
	h.ServeHTTP(w, r)
	if w.Code == http.StatusOK {
		answer := new(httpapi.CheckAnswer)
		if err := json.Unmarshal(w.Body.Bytes(), answer); err != nil {
			t.Fatal(err)
		}
		return answer, nil
	}
	problem := new(httpapi.Problem)
	if err := json.Unmarshal(w.Body.Bytes(), problem); err != nil {
		t.Fatal(err)
	}
	return nil, problem
}

// sameProblem fails unless both say that the same is wrong.
func sameProblem(t *rapid.T, p *httpapi.Problem, err error) {
	if p == nil || err == nil {
		t.Fatalf("HTTP says %+v, and gRPC %v", p, err)
	}
	got := read(err)
	if p.Detail != got.text || strings.TrimPrefix(p.Type, "urn:weir:problem:") != strings.ToLower(strings.ReplaceAll(got.info.Reason, "_", "-")) || fmt.Sprint(got.fields) != "["+p.Field+"]" {
		t.Fatalf("HTTP says %+v, and gRPC %v with %v", p, status.Convert(err), got)
	}
}

// millis is a duration as the HTTP API has it: rounded up.
func millis(d *durationpb.Duration) int64 {
	return (d.AsDuration() + time.Millisecond - 1).Milliseconds()
}

// seconds is an instant as the HTTP API has it: rounded up, and 0 if there is none.
func seconds(at *timestamppb.Timestamp) int64 {
	if at == nil {
		return 0
	}
	return at.AsTime().Add(time.Second - 1).Unix()
}

// wait is the same for a RetryAfter, where nothing is null, unless it is allowed.
func wait(d *durationpb.Duration, allowed bool) string {
	if d == nil && !allowed {
		return "null"
	}
	return fmt.Sprint(millis(d))
}

func pointed(ms *int64) string {
	if ms == nil {
		return "null"
	}
	return fmt.Sprint(*ms)
}

// sameAnswer fails unless both say the same, in every field.
func sameAnswer(t *rapid.T, h *httpapi.CheckAnswer, g *pb.CheckResponse) {
	line := func(values ...any) string { return fmt.Sprintln(values...) }
	dollars := func(d *httpapi.Display) string {
		if d == nil {
			d = new(httpapi.Display)
		}
		return line(d.Policy, d.Cost, d.Limit, d.Remaining, d.Reserved)
	}
	want := line(h.Allowed, h.Reason, h.Status, h.Rule, h.Code, h.Message, h.Limit, h.Remaining, h.ResetAt, h.ResetAfterMS, pointed(h.RetryAfterMS), h.DelayMS, h.Degraded, h.Version)
	want += dollars(h.Display)
	got := line(g.Allowed, strings.ToLower(strings.TrimPrefix(g.Reason.String(), "REASON_")), g.Status, g.Rule, g.Code, g.Message,
		g.Limit, g.Remaining, seconds(g.ResetAt), millis(g.ResetAfter), wait(g.RetryAfter, g.Allowed), millis(g.Delay), g.Degraded, g.Version)
	got += line(g.Display.GetPolicy(), g.Display.GetCost(), g.Display.GetLimit(), g.Display.GetRemaining(), g.Display.GetReserved())
	for _, r := range h.Results {
		want += line(r.Rule, r.Key, r.Algorithm, r.Policy, r.Allowed, r.Shadow, r.Asked, r.Cost, r.Limit, r.Remaining, r.ResetAt, r.ResetAfterMS, pointed(r.RetryAfterMS), r.DelayMS)
		want += dollars(r.Display)
		if o := r.Override; o != nil {
			want += line(o.ID, o.EndsAt)
		}
	}
	for _, r := range g.Results {
		retry := wait(r.RetryAfter, r.Allowed || !r.Asked)
		got += line(r.Rule, r.Key, r.Algorithm, r.Policy, r.Allowed, r.Shadow, r.Asked, r.Cost, r.Limit, r.Remaining, seconds(r.ResetAt), millis(r.ResetAfter), retry, millis(r.Delay))
		got += line(r.Display.GetPolicy(), r.Display.GetCost(), r.Display.GetLimit(), r.Display.GetRemaining(), r.Display.GetReserved())
		if o := r.Override; o != nil {
			got += line(o.Id, o.EndsAt.AsTime())
		}
	}
	if got != want {
		t.Fatalf("HTTP says\n%sand gRPC\n%s", want, got)
	}
}
