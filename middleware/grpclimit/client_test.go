package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/inbound"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

// A directory tells whose an API key is, at which levels it counts, and which keys nobody has.
func TestDirectory(t *testing.T) {
	b := newBench(t, "{levels: [org, user], rules: [{id: budget, key: levels, algorithm: fixed_window, levels: {org: 3/1h, user: 2/1h}}]}", Options{})
	directory, problems, err := rule.ReadDirectory("", strings.NewReader(`{"client": "api_key:k1", "parent": "user:ann"}
{"client": "api_key:k2", "parent": "user:ann"}
{"client": "api_key:k3", "parent": "user:bob"}
{"client": "api_key:k4", "parent": "user:eve"}
{"client": "user:ann", "parent": "org:secret"}
{"client": "user:bob", "parent": "org:secret"}
{"client": "user:eve", "parent": "org:secret", "blocked": true}
{"client": "org:secret"}`))
	testkit.OK(t, errors.Join(err, problems.Err()))
	b.engine.InstallClients(engine.Clients{Directory: directory, DenyUnknown: true})
	for i, c := range []struct {
		key  string
		want codes.Code
		says string
	}{
		{"k1", codes.OK, ""}, {"k2", codes.OK, ""}, {"k1", codes.ResourceExhausted, "user"}, {"k3", codes.OK, ""}, {"k3", codes.ResourceExhausted, "org"},
		{"k4", codes.PermissionDenied, ""}, {"invented", codes.Unauthenticated, ""}, {"user:ann", codes.Unauthenticated, ""},
	} {
		a := b.call(t.Context(), "x-api-key", c.key)
		if said := fmt.Sprint(a.err, a.header, a.trailer); status.Code(a.err) != c.want || c.says != "" && !strings.Contains(said, "of the level "+c.says) || strings.Contains(said, "secret") {
			t.Errorf("call %d with %s: %s", i+1, c.key, said)
		}
	}
	if b.served.Load() != 3 {
		t.Errorf("%d calls were served", b.served.Load())
	}
}

func TestOptions(t *testing.T) {
	says := func(key string) func(context.Context, string) string {
		return func(ctx context.Context, method string) string {
			if method != say {
				t.Errorf("method %s", method)
			}
			return first(incoming(ctx)[key])
		}
	}
	b := newBench(t, `
rules:
  - {id: user, key: user, limit: 100/1h, tiers: {pro: 1000/1h}}
  - {id: key, key: api_key, limit: 200/1h}
  - {id: tenant, key: "header:X-Tenant", limit: 300/1h}
  - {id: agent, match: {host: localhost, attributes: {action: shout}}, key: attr:action, limit: 400/1h}
  - {id: cookies, key: cookie:x, limit: 1/1h}
  - {id: queries, key: query:x, limit: 1/1h}
`, Options{
		User: says("u"), Tier: says("t"),
		Attributes: func(ctx context.Context, _ string) map[string]string {
			return map[string]string{"action": first(incoming(ctx)["a"])}
		},
		Cost: func(ctx context.Context, _ string) int64 { return int64(len(first(incoming(ctx)["c"]))) },
		Skip: func(ctx context.Context, _ string) bool { return len(incoming(ctx)["skip"]) > 0 },
	})
	for _, c := range []struct {
		pairs []string
		want  string // ratelimit
	}{
		{nil, ""},
		{[]string{"u", "alice"}, `"user";r=99;t=36`},
		{[]string{"u", "alice", "c", "12345"}, `"user";r=94;t=216`},
		{[]string{"u", "bob", "t", "pro"}, `"user";r=999;t=4`},
		{[]string{"x-api-key", "secret"}, `"key";r=199;t=18`},
		{[]string{"X-Tenant", "acme"}, `"tenant";r=299;t=12`},
		{[]string{"a", "shout"}, ""}, // the host is another
		{[]string{"u", "alice", "skip", "1"}, ""},
		{[]string{"cookie", "x=1"}, ""},
	} {
		a := b.call(t.Context(), c.pairs...)
		if got := first(a.header["ratelimit"]); a.err != nil || got != c.want {
			t.Errorf("%v: %s, want %s (%v)", c.pairs, got, c.want, a.err)
		}
	}
}

func TestHost(t *testing.T) {
	b := benchOn(t, "rules: [{id: a, match: {host: echo.example.com}, key: global, limit: 10/1h}, {id: b, key: \"header:Host\", limit: 5/1h}]", Options{Logger: quiet()}, pipe, stands)
	if a := b.call(t.Context()); first(a.header["ratelimit-policy"]) != `"a";q=10;w=3600, "b";q=5;w=3600` {
		t.Errorf("%v %v", a.header, a.err)
	}
}

func TestSpoof(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for _, c := range []struct {
		name    string
		options Options
		pair    func(i int) (string, string)
		want    int // how many of five pass a limit of one
	}{
		{"x-forwarded-for", Options{}, func(i int) (string, string) { return "x-forwarded-for", fmt.Sprint("192.0.2.", i) }, 1},
		{"forwarded", Options{}, func(i int) (string, string) { return "forwarded", fmt.Sprint("for=192.0.2.", i) }, 1},
		{"x-real-ip", Options{TrustedProxies: trusted}, func(i int) (string, string) { return "x-real-ip", fmt.Sprint("192.0.2.", i) }, 1},
		{"behind a proxy", Options{TrustedProxies: trusted}, func(i int) (string, string) { return "x-forwarded-for", fmt.Sprintf("192.0.2.%d, 203.0.113.7", i) }, 1},
		{"by the proxy", Options{TrustedProxies: trusted}, func(i int) (string, string) { return "X-Forwarded-For", fmt.Sprint("192.0.2.", i) }, 5},
		{"by the proxy, forwarded", Options{TrustedProxies: trusted}, func(i int) (string, string) { return "forwarded", fmt.Sprintf(`for="[2001:db8:%d::1]"`, i) }, 5},
		{"the wrong header", Options{TrustedProxies: trusted, ProxyHeader: Forwarded}, func(i int) (string, string) { return "x-forwarded-for", fmt.Sprint("192.0.2.", i) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Logger = quiet()
			b := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}]", c.options)
			passed := 0
			for i := range 5 {
				name, value := c.pair(i)
				if b.call(t.Context(), name, value).err == nil {
					passed++
				}
			}
			if passed != c.want {
				t.Errorf("%d passed, want %d", passed, c.want)
			}
		})
	}
}

func TestNoAddress(t *testing.T) {
	b := benchOn(t, "rules: [{id: a, key: global, limit: 1/1h}]\nexempt: {ip: [127.0.0.1]}",
		Options{Logger: quiet(), TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, pipe, stands)
	b.call(t.Context())
	if a := b.call(t.Context(), "x-forwarded-for", "127.0.0.1"); status.Code(a.err) != codes.ResourceExhausted {
		t.Errorf("%v", a.err)
	}
	b = benchOn(t, "rules: [{id: a, key: ip, limit: 1/1h}]", Options{Logger: quiet()}, pipe, stands)
	b.call(t.Context())
	if a := b.call(t.Context()); status.Code(a.err) != codes.ResourceExhausted {
		t.Errorf("calls without an address are not one client: %v", a.err)
	}
	if got := inbound.RemoteOf(t.Context()); got != "unknown" {
		t.Errorf("a context without a peer is %s", got)
	}
}

func TestUnixSocket(t *testing.T) {
	b := benchOn(t, "rules: [{id: a, key: ip, limit: 1/1h}]",
		Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, unix, stands)
	for i := range 3 {
		if a := b.call(t.Context(), "x-forwarded-for", fmt.Sprint("192.0.2.", i)); a.err != nil {
			t.Error(a.err)
		}
	}
	if a := b.call(t.Context(), "x-forwarded-for", "192.0.2.0"); status.Code(a.err) != codes.ResourceExhausted {
		t.Errorf("%v", a.err)
	}
	named := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.UnixAddr{Name: "client", Net: "unix"}})
	if got := inbound.RemoteOf(named); got != "@" {
		t.Errorf("a client with a name is %s", got)
	}
}

func TestNothingIsLeft(t *testing.T) {
	const byUser = "rules: [{id: a, key: user, limit: 1/1h}, {id: b, key: attr:x, limit: 1/1h}]"
	known := newBench(t, byUser, Options{
		User: func(context.Context, string) string { return fmt.Sprint(time.Now().UnixNano()) },
		Cost: func(context.Context, string) int64 { return 5 },
	})
	unknown := newBench(t, byUser, Options{})
	for range 100 {
		known.call(t.Context())
		if a := unknown.call(t.Context()); a.err != nil || limits(a.header) != "" {
			t.Fatalf("somebody else's limits: %v %v", a.header, a.err)
		}
	}
}

// A client that sends several values counts as each of them.
func TestSeveralIdentities(t *testing.T) {
	for key, name := range map[string]string{"api_key": "x-api-key", "header:X-Tenant": "x-tenant"} {
		b := newBench(t, "rules: [{id: few, key: '"+key+"', algorithm: fixed_window, limit: 2/1d}]", Options{})
		for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
			if a := b.call(t.Context(), name, fmt.Sprint("junk", i), name, "real"); status.Code(a.err) != want {
				t.Errorf("%s, call %d: %v, want %v", key, i, a.err, want)
			}
		}
		var pairs []string
		for i := range 9 {
			pairs = append(pairs, name, fmt.Sprint(i))
		}
		if a := b.call(t.Context(), pairs...); status.Code(a.err) != codes.InvalidArgument {
			t.Errorf("%s, nine at once: %v", key, a.err)
		}
	}
}
