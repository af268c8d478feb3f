package envoyrls

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirhq/weir/internal/envoy/envoyconfig"
)

const file = `
domain: d
descriptors:
  - {key: two, rate_limit: {unit: minute, requests_per_unit: 2, name: pair}}
  - {key: three, rate_limit: {unit: hour, requests_per_unit: 3}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: quota, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: quota2, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: listed}
  - {key: none, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: better, rate_limit: {unit: day, requests_per_unit: 9, replaces: [{name: pair}]}}
  - {key: freed, rate_limit: {unlimited: true, replaces: [{name: pair}]}}
  - {key: odd, rate_limit: {unit: 10s, requests_per_unit: 4}}
  - key: both
    rate_limits:
      - {unit: minute, requests_per_unit: 2, name: minute}
      - {unit: day, requests_per_unit: 3, algorithm: sliding_log, name: log}
  - {key: bucket, rate_limit: {unit: minute, requests_per_unit: 6, algorithm: token_bucket, burst: 2}}
`

func TestAnswers(t *testing.T) {
	for name, steps := range map[string][]step{
		"one limit": {
			{request("two=a"), "ok | ok 1 of 2/minute pair in 59s"},
			{request("two=b"), "ok | ok 1 of 2/minute pair in 59s"},
			{request("two=a"), "ok | ok 0 of 2/minute pair in 59s"},
			{request("two=a"), "over | over 0 of 2/minute pair in 59s"},
		},
		"all or none": {
			{request("two=a x2"), "ok | ok 0 of 2/minute pair in 59s"},
			{request("three=a", "two=a"), "over | ok 3 of 3/hour in 3599s | over 0 of 2/minute pair in 59s"},
			{request("three=a"), "ok | ok 2 of 3/hour in 3599s"},
		},
		"no limit": {
			{request("other=a"), "ok | ok 0"},
			{request("listed=a"), "ok | ok 0"},
			{request("two=a,three=b"), "ok | ok 0"},
			{request("free=a"), "ok | ok 4294967295"},
			{&pb.RateLimitRequest{Domain: "e", Descriptors: request("two=a").Descriptors}, "ok | ok 0"},
			{&pb.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{}}}, "ok | ok 0"},
		},
		"hits": {
			{&pb.RateLimitRequest{Domain: "d", HitsAddend: 2, Descriptors: request("three=a", "three=b x1", "three=c x0").Descriptors},
				"ok | ok 1 of 3/hour in 3599s | ok 2 of 3/hour in 3599s | ok 3 of 3/hour in 3599s"},
			{request("three=a x18446744073709551615"), "over | over 0 of 3/hour in 3599s"},
			{request("three=a x1"), "ok | ok 0 of 3/hour in 3599s"},
			{request("three=a x0"), "over | over 0 of 3/hour in 3599s"},
			{request("three=d", "three=d", "three=d"), "ok | ok 2 of 3/hour in 3599s | ok 1 of 3/hour in 3599s | ok 0 of 3/hour in 3599s"},
		},
		"shadow": {
			{request("shadow=a", "three=a"), "ok | ok 0 of 1/day in 86399s | ok 2 of 3/hour in 3599s"},
			{request("shadow=a", "three=a"), "ok | ok 0 of 1/day in 86399s | ok 1 of 3/hour in 3599s"},
		},
		"quota": {
			{request("quota=a", "quota2=b x0"), "ok | ok 0 of 1/day in 86399s | ok 1 of 1/day in 86399s"},
			{request("quota=a", "quota2=b"), "ok | over 0 of 1/day in 86399s | ok 0 of 1/day in 86399s"},
			{request("quota=a", "quota2=b", "three=a"), "over | over 0 of 1/day in 86399s | over 0 of 1/day in 86399s | ok 2 of 3/hour in 3599s"},
			{request("three=a"), "ok | ok 2 of 3/hour in 3599s"}, // it was given back
			{request("quota=a", "two=a x3"), "over | over 0 of 1/day in 86399s | over 0 of 2/minute pair in 59s"},
		},
		"a limit of nothing": {
			{request("none=a", "three=a"), "over | over 0 of 0/day in 86399s | ok 3 of 3/hour in 3599s"},
			{request("three=a"), "ok | ok 2 of 3/hour in 3599s"},
		},
		"replaced": {
			{request("two=a", "better=a"), "ok | ok 0 | ok 8 of 9/day in 86399s"},
			{request("freed=a", "two=a"), "ok | ok 4294967295 | ok 0"},
			{request("two=a"), "ok | ok 1 of 2/minute pair in 59s"},
		},
		"brought by the request": {
			{request("two=a 5/minute"), "ok | ok 4 of 5/minute in 59s"},
			{request("two=a"), "ok | ok 0 of 2/minute pair in 59s"}, // the same counter
			{request("two=a 5/hour"), "ok | ok 4 of 5/hour in 3599s"},
			{request("unheard,of=x 1/day"), "ok | ok 0 of 1/day in 86399s"},
			{request("shadow=a 1/day"), "ok | ok 0 of 1/day in 86399s"},
			{request("shadow=a 1/day"), "over | over 0 of 1/day in 86399s"}, // it is no shadow then
			{request("two=a 0/day"), "over | over 0 of 0/day in 86399s"},
			{request("two=a 5/unknown"), "InvalidArgument"},
		},
		"a unit without a name": {
			{request("odd=a"), "ok | ok 3 of 4/unknown in 9s"},
		},
		"several limits": {
			{request("both=a"), "ok | ok 1 of 2/minute minute in 59s"},
			{request("both=a"), "ok | ok 0 of 2/minute minute in 59s"},
			{request("both=a"), "over | over 0 of 2/minute minute in 59s"},
			{request("both=a x4"), "over | over 0 of 2/minute minute in 59s"},
		},
		"a bucket": {
			{request("bucket=a"), "ok | ok 1 of 6/minute in 10s"},
			{request("bucket=a"), "ok | ok 0 of 6/minute in 20s"},
			{request("bucket=a"), "over | over 0 of 6/minute in 10s"},    // until there is room
			{request("bucket=a x3"), "over | over 0 of 6/minute in 60s"}, // never
		},
	} {
		t.Run(name, func(t *testing.T) { newBench(t, file, Options{}).run(t, steps...) })
	}
}

// The log denies, the window does not, and so the log speaks.
func TestSpeaker(t *testing.T) {
	b := newBench(t, file, Options{})
	b.run(t, step{request("both=a x2"), "ok | ok 0 of 2/minute minute in 59s"})
	b.wait(time.Minute)
	b.run(t,
		step{request("both=a"), "ok | ok 0 of 3/day log in 86400s"},
		step{request("both=a"), "over | over 0 of 3/day log in 86340s"})
}

// Of two that deny, the one speaks that takes longer.
func TestLongestWaitSpeaks(t *testing.T) {
	for _, list := range []string{"{unit: minute, requests_per_unit: 1}, {unit: hour, requests_per_unit: 1}", "{unit: hour, requests_per_unit: 1}, {unit: minute, requests_per_unit: 1}"} {
		newBench(t, "domain: d\ndescriptors: [{key: k, rate_limits: ["+list+"]}]", Options{CountDenied: true}).run(t,
			step{request("k=a"), "ok | ok 0 of 1/" + map[bool]string{true: "minute in 59s", false: "hour in 3599s"}[list[7] == 'm']},
			step{request("k=a"), "over | over 0 of 1/hour in 3599s"})
	}
}

// What was used for one request is empty for the next, and does not grow.
func TestWorkIsCleared(t *testing.T) {
	b := newBench(t, file, Options{})
	w := &work{}
	for range 3 {
		if err := b.gather(w, request("two=a", "better=a", "three=b")); err != nil {
			t.Fatal(err)
		}
		if len(w.items) != 3 || len(w.demands) != 2 || len(w.owners) != 2 || len(w.replaced) != 1 || len(w.keys) != len("d|two=ad|better=ad|three=b") {
			t.Fatalf("%d items, %d demands, %d owners, %d replaced, keys %s", len(w.items), len(w.demands), len(w.owners), len(w.replaced), w.keys)
		}
		w.clear()
	}
}

// With CountDenied each descriptor is counted by itself, and what is denied, too.
func TestCountDenied(t *testing.T) {
	b := newBench(t, file, Options{CountDenied: true})
	b.run(t,
		step{request("two=a x2"), "ok | ok 0 of 2/minute pair in 59s"},
		step{request("three=a", "two=a"), "over | ok 2 of 3/hour in 3599s | over 0 of 2/minute pair in 59s"},
		step{request("three=a x2"), "ok | ok 0 of 3/hour in 3599s"},
		step{request("none=a", "three=b"), "over | over 0 of 0/day in 86399s | ok 2 of 3/hour in 3599s"},
		step{request("three=b"), "ok | ok 1 of 3/hour in 3599s"},
		step{request("quota=a x2", "three=b"), "over | over 0 of 1/day in 86399s | ok 0 of 3/hour in 3599s"},
		step{request("three=b"), "over | over 0 of 3/hour in 3599s"}) // nothing is given back
}

func TestGlobalModes(t *testing.T) {
	b := newBench(t, file, Options{GlobalShadow: true})
	b.run(t,
		step{request("two=a x3", "three=a"), "ok | over 0 of 2/minute pair in 59s | ok 2 of 3/hour in 3599s"},
		step{request("none=a", "three=a"), "ok | over 0 of 0/day in 86399s | ok 1 of 3/hour in 3599s"})
	b = newBench(t, file, Options{GlobalQuota: true})
	b.run(t,
		step{request("two=a x3", "three=a"), "ok | over 0 of 2/minute pair in 59s | ok 2 of 3/hour in 3599s"},
		step{request("two=a x3"), "over | over 0 of 2/minute pair in 59s"})
}

func TestHeaders(t *testing.T) {
	b := newBench(t, file, Options{ResponseHeaders: true, HeaderNames: HeaderNames{Reset: "X-Reset"}})
	b.run(t,
		step{request("three=a", "two=a", "free=a"), "ok | ok 2 of 3/hour in 3599s | ok 1 of 2/minute pair in 59s | ok 4294967295 || RateLimit-Limit 2, RateLimit-Remaining 1, X-Reset 59"},
		step{request("two=a x2", "three=a", "none=a"), "over | over 0 of 2/minute pair in 59s | ok 2 of 3/hour in 3599s | over 0 of 0/day in 86399s || RateLimit-Limit 0, RateLimit-Remaining 0, X-Reset 86399"},
		step{request("other=a"), "ok | ok 0"},
		// A quota that is used up is named only if it has the least left.
		step{request("quota=a x2", "quota2=a", "three=b"), "ok | over 0 of 1/day in 86399s | ok 0 of 1/day in 86399s | ok 2 of 3/hour in 3599s || RateLimit-Limit 1, RateLimit-Remaining 0, X-Reset 86399"},
		step{request("two=b x3", "quota=a x2", "quota2=b"), "over | over 0 of 2/minute pair in 59s | over 0 of 1/day in 86399s | ok 1 of 1/day in 86399s || RateLimit-Limit 2, RateLimit-Remaining 0, X-Reset 59"})
}

func TestWrongRequests(t *testing.T) {
	b := newBench(t, file, Options{})
	many := func(n int, text string) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(text, i)
		}
		return list
	}
	for name, c := range map[string]struct {
		req  *pb.RateLimitRequest
		want string
	}{
		"no domain":             {&pb.RateLimitRequest{Descriptors: request("two=a").Descriptors}, "no domain"},
		"no descriptors":        {&pb.RateLimitRequest{Domain: "d"}, "no descriptors"},
		"nothing":               {nil, "no domain"},
		"too many descriptors":  {request(many(MaxDescriptors+1, "other=%d")...), "has 257 descriptors; the maximum is 256"},
		"too many limits":       {request(many(65, "two=%d")...), "65 limits apply"},
		"too many entries":      {request(strings.Join(many(MaxEntries+1, "a=%d"), ",")), "has 65 entries; the maximum is 64"},
		"too long a value":      {request("a=" + strings.Repeat("x", MaxText+1)), "more than 65536 bytes"},
		"a unit that is none":   {&pb.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Limit: &common.RateLimitDescriptor_RateLimitOverride{Unit: 1 << 20}}}}, "the unknown unit 255"},
		"a unit below all":      {&pb.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Limit: &common.RateLimitDescriptor_RateLimitOverride{Unit: -1}}}}, "the unknown unit 0"},
		"a period without end":  {&pb.RateLimitRequest{Domain: "d", Descriptors: []*common.RateLimitDescriptor{{Limit: &common.RateLimitDescriptor_RateLimitOverride{Unit: typev3.RateLimitUnit_YEAR, UnitMultiplier: wrapperspb.UInt32(1 << 31)}}}}, "longer than ten years"},
		"a second of the first": {request("two=a", "two=a 5/unknown"), "the unknown unit 0"},
	} {
		_, err := b.ShouldRateLimit(t.Context(), c.req)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	b.run(t, step{request("two=a"), "ok | ok 1 of 2/minute pair in 59s"}) // nothing was charged
	if got := said(b.ShouldRateLimit(t.Context(), request(many(64, "two=%d")...))); !strings.HasPrefix(got, "ok") {
		t.Error(got)
	}
}

// What Envoy's newer requests say is understood.
func TestNewFields(t *testing.T) {
	b := newBench(t, file, Options{})
	req := request("two=a 5/second")
	req.Descriptors[0].Limit.UnitMultiplier = wrapperspb.UInt32(30)
	r, err := b.ShouldRateLimit(t.Context(), req)
	if got := said(r, err); got != "ok | ok 4 of 5/second in 29s" {
		t.Error(got)
	}
	if n := r.Statuses[0].CurrentLimit.UnitMultiplier.GetValue(); n != 30 {
		t.Errorf("the multiplier is %d", n)
	}
	req = request("two=a x1")
	req.Descriptors[0].IsNegativeHits = true
	b.run(t,
		step{request("two=a"), "ok | ok 1 of 2/minute pair in 59s"},
		step{req, "ok | ok 1 of 2/minute pair in 59s"}) // not charged, at least
}

func TestNoConfiguration(t *testing.T) {
	b := newBench(t, file, Options{Config: func() *envoyconfig.Config { return nil }})
	if got := said(b.ShouldRateLimit(t.Context(), request("two=a"))); got != "Unknown" {
		t.Error(got)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("a service without an engine is made")
	}
	if _, err := New(Options{Engine: b.options.Engine}); err == nil {
		t.Error("a service without a configuration is made")
	}
}

// Who has left is told so, and no store is blamed.
func TestCanceled(t *testing.T) {
	b := newBench(t, file, Options{})
	b.lost.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := said(b.ShouldRateLimit(ctx, request("two=a"))); got != "Canceled" {
		t.Error(got)
	}
	if b.log.lines() != 0 {
		t.Error(b.log.text.String())
	}
}

// However many ask at once, as many pass as may.
func TestManyAtOnce(t *testing.T) {
	b := newBench(t, "domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 500}}, {key: l, rate_limit: {unit: day, requests_per_unit: 300}}]", Options{})
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				descriptors := []string{"k=v"}
				if i%2 == 0 {
					descriptors = append(descriptors, "l=v", fmt.Sprintf("other=%d", i))
				}
				r, err := b.ShouldRateLimit(t.Context(), request(descriptors...))
				if err != nil {
					t.Error(err)
					return
				}
				if len(r.Statuses) != len(descriptors) {
					t.Errorf("%d statuses for %d descriptors", len(r.Statuses), len(descriptors))
				}
				if r.OverallCode == pb.RateLimitResponse_OK {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := passed.Load(); n != 500 {
		t.Errorf("%d passed, want 500", n)
	}
}
