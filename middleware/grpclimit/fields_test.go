package grpclimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"google.golang.org/grpc/metadata"
	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// Metadata say what the headers of HTTP say, whatever the rules, and are structured
// fields where they claim to be.
func TestFieldsAreHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := begin.Add(time.Duration(rapid.Int64Range(0, 5e9).Draw(t, "now")))
		clock := func() weir.Micros { return weir.MicrosOf(now) }
		e, err := engine.New(engine.Options{Store: memory.New(memory.Options{Clock: clock}), Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		set := &rule.Set{}
		for i := range rapid.IntRange(1, 20).Draw(t, "rules") {
			r := rule.Rule{
				ID: fmt.Sprint("rule-", i), Key: []rule.Source{{Kind: rule.IP}},
				Algorithm: rapid.SampledFrom([]weir.Algorithm{weir.TokenBucket, weir.FixedWindow, weir.SlidingLog, weir.LeakyBucket}).Draw(t, "algorithm"),
				Mode:      rapid.SampledFrom([]rule.Mode{rule.Enforce, rule.Enforce, rule.Shadow}).Draw(t, "mode"),
			}
			n := rapid.Int64Range(1, 1000).Draw(t, "n")
			for _, period := range []time.Duration{time.Millisecond, time.Minute, 25 * time.Hour}[:rapid.IntRange(1, 3).Draw(t, "limits")] {
				r.Quota.Rates = append(r.Quota.Rates, rule.Rate{N: n, Period: period})
			}
			if r.Algorithm == weir.TokenBucket || r.Algorithm == weir.LeakyBucket {
				r.Quota.Burst = rapid.Int64Range(0, 2000).Draw(t, "burst")
			}
			set.Rules = append(set.Rules, r)
		}
		table, err := rule.Compile(set, rule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e.Install(table, 1)
		req := rule.Request{IP: netip.MustParseAddr("203.0.113.7"), Cost: rapid.Int64Range(1, 1500).Draw(t, "cost")}
		var v engine.Verdict
		for range 2 {
			if err := e.Check(t.Context(), &req, &v); err != nil {
				return // more limits than a request may have
			}
			wait := time.Duration(0)
			if !v.Allowed {
				wait = Describe(&v).Wait()
			}
			h := make(http.Header)
			httplimit.WriteHeaders(h, &v, httplimit.AllHeaders)
			md := fieldsOf(&v, 0, wait, AllHeaders)
			same(t, h, md)
			if !v.Allowed {
				ours, theirs := Describe(&v), httplimit.Describe(&v)
				if ours.Rule != theirs.Rule || ours.RetryAfter != theirs.RetryAfter || fmt.Sprint(ours.Policies) != fmt.Sprint(theirs.Policies[:len(ours.Policies)]) {
					t.Fatalf("%+v\n%+v", ours, theirs)
				}
			}
		}
	})
}

func same(t *rapid.T, h http.Header, md metadata.MD) {
	if len(h) != len(md) {
		t.Fatalf("%v\n%v", h, md)
	}
	for name, values := range h {
		if got := md[strings.ToLower(name)]; len(got) != 1 || got[0] != values[0] {
			t.Fatalf("%s is %q, and %q over HTTP", name, got, values)
		}
	}
	for _, name := range []string{"ratelimit", "ratelimit-policy"} {
		if _, err := httpsfv.UnmarshalList(md[name]); err != nil {
			t.Fatalf("%s: %q: %v", name, md[name], err)
		}
	}
}

// However many limits there are, only so many are named, and the one that speaks is
// among them.
func TestManyPolicies(t *testing.T) {
	for _, tightest := range []int{0, 14, 15, 16, 29} {
		rules := "rules:"
		for i := range 30 {
			n := 1000 + i
			if i == tightest {
				n = 5
			}
			rules += fmt.Sprintf("\n  - {id: r%d, key: ip, limit: %d/1h}", i, n)
		}
		b := newBench(t, rules, Options{})
		a := b.call(t.Context())
		got := first(a.header["ratelimit-policy"])
		if strings.Count(got, ";q=") != front.MaxPolicies || !strings.Contains(got, fmt.Sprintf(`"r%d";q=5;`, tightest)) {
			t.Errorf("%s (%v)", got, a.err)
		}
	}
}

// A header is found whatever its length, and costs no memory.
func TestHeader(t *testing.T) {
	long := "X-" + strings.Repeat("Long-", 20) + "Name"
	v := &values{metadata.Pairs("x-tenant", "acme", "x-tenant", "second", strings.ToLower(long), "found", ":authority", "api.example.com")}
	for name, want := range map[string]string{"X-Tenant": "acme", long: "found", "X-Missing": "", "": ""} {
		if got, _ := v.Header(name, 0); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got, next := v.Header("X-Tenant", 1); got != "second" || next != 2 {
		t.Errorf("%q, %d", got, next)
	}
	if n := testing.AllocsPerRun(100, func() { v.Header("X-Tenant", 0) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
