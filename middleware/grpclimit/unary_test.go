package grpclimit

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// limits are the metadata about limits, in one line.
func limits(md metadata.MD) string {
	var all []string
	for _, name := range []string{"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-ratelimit-degraded", "ratelimit-policy", "ratelimit", "retry-after"} {
		for _, value := range md[name] {
			all = append(all, name+": "+value)
		}
	}
	return strings.Join(all, "; ")
}

// details are what a status says besides, in one line.
func details(err error) string {
	var all []string
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			all = append(all, fmt.Sprint(d.Reason, " ", d.Domain, " ", d.Metadata))
		case *errdetails.RetryInfo:
			all = append(all, fmt.Sprint("retry ", d.RetryDelay.AsDuration()))
		case *errdetails.QuotaFailure:
			for _, v := range d.Violations {
				all = append(all, fmt.Sprint("quota ", v.Subject, " ", v.QuotaId, ": ", v.Description))
			}
		default:
			all = append(all, fmt.Sprintf("%T", d))
		}
	}
	return strings.Join(all, "; ")
}

// An allowed call has metadata in front and behind, a denied one a full status.
func TestUnary(t *testing.T) {
	b := newBench(t, `
rules:
  - id: say
    match: {method: POST, path: /test.v1.Echo/Say}
    key: ip
    algorithm: fixed_window
    limits: [2/1h, 100/1d]
    deny: {status: 403, code: 10007, message: too many words}
  - {id: other, match: {path: /test.v1.Echo/Chat}, key: ip, limit: 1/1h}
`, Options{})
	policies := `ratelimit-policy: "say:1h";q=2;w=3600, "say:1d";q=100;w=86400`
	for i := range 2 {
		a := b.call(t.Context())
		if a.err != nil {
			t.Fatal(a.err)
		}
		want := fmt.Sprintf(`x-ratelimit-limit: 2; x-ratelimit-remaining: %d; x-ratelimit-reset: 1767229200; %s; ratelimit: "say:1h";r=%d;t=3600`, 1-i, policies, 1-i)
		if limits(a.header) != want || limits(a.trailer) != want {
			t.Errorf("header  %s\ntrailer %s\nwant    %s", limits(a.header), limits(a.trailer), want)
		}
	}
	a := b.call(t.Context())
	if s := status.Convert(a.err); s.Code() != codes.ResourceExhausted || s.Message() != "too many words" {
		t.Errorf("%v", a.err)
	}
	want := `x-ratelimit-limit: 2; x-ratelimit-remaining: 0; x-ratelimit-reset: 1767229200; ` + policies + `; ratelimit: "say:1h";r=0;t=3600; retry-after: 3600`
	if limits(a.header) != "" || limits(a.trailer) != want {
		t.Errorf("header  %s\ntrailer %s\nwant    %s", limits(a.header), limits(a.trailer), want)
	}
	if got, want := details(a.err), "QUOTA_EXCEEDED weir map[code:10007 rule:say]; retry 59m59.5s; quota limit:say:1h say:1h: too many words"; got != want {
		t.Errorf("details %s\nwant    %s", got, want)
	}
	if b.served.Load() != 2 {
		t.Errorf("%d were served", b.served.Load())
	}
}

// What a denied client is told, for each reason.
func TestDenials(t *testing.T) {
	for _, c := range []struct {
		name, rules string
		lost        bool
		cost        int64
		code        codes.Code
		message     string
		details     string
		limits      string
	}{
		{"a limit", "rules: [{id: all, key: global, algorithm: fixed_window, limit: 1/1h}]", false, 1,
			codes.ResourceExhausted, "The limit all is used up; try again in 3600 s.",
			"QUOTA_EXCEEDED weir map[rule:all]; retry 59m59.5s; quota limit:all all: The limit all is used up; try again in 3600 s.",
			`x-ratelimit-limit: 1; x-ratelimit-remaining: 0; x-ratelimit-reset: 1767229200; ratelimit-policy: "all";q=1;w=3600; ratelimit: "all";r=0;t=3600; retry-after: 3600`},
		{"more than there ever is", "rules: [{id: all, key: global, algorithm: fixed_window, limit: 1/1h}]", false, 5,
			codes.ResourceExhausted, "The request costs more than the limit all allows at once.",
			"QUOTA_EXCEEDED weir map[rule:all]; quota limit:all all: The request costs more than the limit all allows at once.",
			`x-ratelimit-limit: 1; x-ratelimit-remaining: 1; x-ratelimit-reset: 1767225601; ratelimit-policy: "all";q=1;w=3600; ratelimit: "all";r=1;t=0`},
		{"the block list", "rules: [{id: all, key: global, limit: 1/1h}]\nblock: {ip: [127.0.0.1]}", false, 1,
			codes.PermissionDenied, "This client is blocked.", "BLOCKED weir map[]", ""},
		{"the store is unavailable", "rules: [{id: all, key: global, limit: 1/1h, on_failure: closed}]", true, 1,
			codes.Unavailable, "The rate limiter is unavailable; try again soon.",
			"TEMPORARY_REDUCED_CAPACITY weir map[rule:all]; retry 5s", "x-ratelimit-degraded: 1; retry-after: 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.rules, Options{Cost: func(context.Context, string) int64 { return c.cost }})
			b.store.lost.Store(c.lost)
			a := b.call(t.Context())
			if a.err == nil { // the first one of the limit
				a = b.call(t.Context())
			}
			s := status.Convert(a.err)
			if s.Code() != c.code || s.Message() != c.message {
				t.Errorf("%v", a.err)
			}
			if got := details(a.err); got != c.details {
				t.Errorf("details %s\nwant    %s", got, c.details)
			}
			if got := limits(a.trailer); got != c.limits {
				t.Errorf("trailer %s\nwant    %s", got, c.limits)
			}
		})
	}
}

// A lost store is no error where the rules do not want it to be.
func TestStoreAway(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}, {id: b, key: ip, algorithm: sliding_log, limit: 3/1h, on_failure: local}]", Options{})
	b.store.lost.Store(true)
	for i := range 4 {
		a := b.call(t.Context())
		if (a.err == nil) != (i < 3) || a.trailer.Get("x-ratelimit-degraded")[0] != "1" {
			t.Errorf("call %d: %v %v", i, a.err, a.trailer)
		}
	}
}

// The functions of the options say who it is, and what it costs.
// A call is to the host that the client named.
// A Deny function has the last word, but cannot allow.
func TestDeny(t *testing.T) {
	for name, c := range map[string]struct {
		deny func(context.Context, string, *Denial) error
		want codes.Code
		text string
	}{
		"another error":  {func(context.Context, string, *Denial) error { return status.Error(codes.Aborted, "no") }, codes.Aborted, "no"},
		"another detail": {func(_ context.Context, method string, d *Denial) error { d.Detail = method; return d.Err() }, codes.ResourceExhausted, say},
		"nothing":        {func(context.Context, string, *Denial) error { return nil }, codes.ResourceExhausted, "The limit a is used up; try again in 3600 s."},
		"all is well":    {func(_ context.Context, _ string, d *Denial) error { d.Status = codes.OK; return d.Err() }, codes.ResourceExhausted, "The limit a is used up; try again in 3600 s."},
		"no text":        {func(_ context.Context, _ string, d *Denial) error { d.Policies = []string{"\xff"}; return d.Err() }, codes.ResourceExhausted, "The limit a is used up; try again in 3600 s."},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "rules: [{id: a, key: ip, algorithm: sliding_log, limit: 1/1h}]", Options{Deny: c.deny})
			b.call(t.Context())
			a := b.call(t.Context())
			if s := status.Convert(a.err); s.Code() != c.want || s.Message() != c.text || b.served.Load() != 1 {
				t.Errorf("%v, %d served", a.err, b.served.Load())
			}
			if first(a.trailer["retry-after"]) != "3600" {
				t.Errorf("%v", a.trailer)
			}
		})
	}
}

// A client cannot choose its address, unless it is a proxy that is trusted. A client
// without an address is not this machine, and so neither a trusted proxy nor exempt. A
// Unix socket counts as this machine, however the client's end is called. Limiters
// share memory between calls, but not who the last client was. A call whose deadline
// passes while it is checked gets that error, and the store does not count as
// unavailable.
func TestEndsWhileJudged(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: global, limit: 1/1h, on_failure: closed}]", Options{Logger: quiet()})
	b.store.hangs.Store(true)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for want, ctx := range map[codes.Code]context.Context{codes.Canceled: canceled, codes.DeadlineExceeded: late} {
		_, err := b.Unary()(ctx, nil, &grpc.UnaryServerInfo{FullMethod: say}, func(context.Context, any) (any, error) {
			t.Error("it was served")
			return nil, nil
		})
		if status.Code(err) != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// What a handler answers is passed on, with the metadata about limits.
func TestHandlerFails(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 5/1h}]", Options{})
	b.onCall = func(context.Context) error { return status.Error(codes.NotFound, "there is none") }
	if a := b.call(t.Context()); status.Code(a.err) != codes.NotFound || first(a.trailer["x-ratelimit-remaining"]) != "4" {
		t.Errorf("%v %v", a.err, a.trailer)
	}
}

// A call that comes twice pays once.
func TestTwice(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, algorithm: sliding_log, limit: 5/1h}]", Options{Logger: quiet(), PerMessage: true})
	var log buffer
	again, err := New(b.engine, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), PerMessage: true})
	if err != nil {
		t.Fatal(err)
	}
	b.serve(t, tcp, grpc.ChainUnaryInterceptor(b.Unary(), again.Unary()), grpc.ChainStreamInterceptor(b.Stream(), again.Stream()))
	if a := b.call(t.Context()); a.err != nil || len(a.header["ratelimit"]) != 1 || first(a.header["x-ratelimit-remaining"]) != "4" {
		t.Errorf("%v %v", a.err, a.header)
	}
	s := b.open(t, t.Context())
	for range 2 {
		if err := exchange(s); err != nil {
			t.Fatal(err)
		}
	}
	end(t, s)
	if got := s.Trailer(); first(got["x-ratelimit-remaining"]) != "2" || len(got["ratelimit"]) != 1 {
		t.Errorf("%v", got)
	}
	if strings.Count(log.String(), "G002") != 2 { // in the message and the code of one line
		t.Errorf("told: %s", log.String())
	}
}

func TestNoHeaders(t *testing.T) {
	for families, want := range map[Headers]string{
		NoHeaders:  "",
		RetryAfter: "retry-after: 3600",
		RateLimit:  `ratelimit-policy: "a";q=1;w=3600; ratelimit: "a";r=0;t=3600`,
	} {
		b := newBench(t, "rules: [{id: a, key: ip, algorithm: sliding_log, limit: 1/1h}]", Options{Headers: families})
		b.call(t.Context())
		if a := b.call(t.Context()); a.err == nil || limits(a.trailer) != want {
			t.Errorf("%d: %s, want %s (%v)", families, limits(a.trailer), want, a.err)
		}
	}
}

func TestNew(t *testing.T) {
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		e *engine.Engine
		o Options
	}{
		"no engine":        {nil, Options{}},
		"a negative bound": {e, Options{MaxDelayed: -1}},
		"everybody":        {e, Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}},
		"no such header":   {e, Options{ProxyHeader: 7}},
	} {
		if _, err := New(c.e, c.o); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			t.Log(err)
		}
	}
}

// Ids that no rule file can have neither break metadata nor a status.
func TestStrangeID(t *testing.T) {
	b := newBench(t, "rules: []", Options{})
	set := &rule.Set{Rules: []rule.Rule{{
		ID: "a\"b\n\xff:ü", Key: []rule.Source{{Kind: rule.Global}}, Quota: rule.Quota{Rates: []rule.Rate{{N: 1, Period: time.Hour}}},
		Deny: rule.Deny{Message: "no\xff"},
	}}}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.engine.Install(table, 2)
	if a := b.call(t.Context()); a.err != nil || first(a.header["ratelimit"]) != `"a%22b%0A%FF%3A%C3%BC";r=0;t=3600` {
		t.Errorf("%v %v", a.err, a.header)
	}
	a := b.call(t.Context())
	if s := status.Convert(a.err); s.Code() != codes.ResourceExhausted || s.Message() != "no?" || len(s.Details()) != 3 {
		t.Errorf("%v %s", a.err, details(a.err))
	}
}

// What is only reserved is said in the details and in the trailers.
func TestDenialOfWhatIsReserved(t *testing.T) {
	e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{Clock: func() weir.Micros { return weir.MicrosOf(begin) }})}))(t)
	defer e.Close()
	e.Install(tableOf(t, "rules: [{id: budget, key: global, algorithm: fixed_window, limit: 10/1h}]"), 1)
	var v engine.Verdict
	for range 2 {
		testkit.OK(t, e.Reserve(t.Context(), &rule.Request{Cost: 6}, time.Minute, &v))
	}
	if got, want := details(Describe(&v).Err()), "QUOTA_EXCEEDED weir map[reserved:2 rule:budget]; retry 1s; quota limit:budget budget: The request lacks 2 units of the limit budget, which other requests have only reserved; try again in 1 s."; got != want {
		t.Errorf("details %s\nwant    %s", got, want)
	}
}

// The details name the level that denies, and never the client there.
func TestDenialOfALevel(t *testing.T) {
	e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{Clock: func() weir.Micros { return weir.MicrosOf(begin) }})}))(t)
	defer e.Close()
	e.Install(tableOf(t, "{levels: [org, user], rules: [{id: budget, key: levels, algorithm: fixed_window, levels: {org: 1/1h, user: 1/1h}}]}"), 1)
	var v engine.Verdict
	for _, user := range []string{"ann", "bob"} {
		testkit.OK(t, e.Check(t.Context(), &rule.Request{User: user, Attributes: map[string]string{"org": "secret"}}, &v))
	}
	if got, want := details(Describe(&v).Err()), "QUOTA_EXCEEDED weir map[level:org rule:budget]; retry 59m59.5s; quota limit:budget:org budget:org: The limit budget of the level org is used up; try again in 3600 s."; got != want {
		t.Errorf("details %s\nwant    %s", got, want)
	}
}
