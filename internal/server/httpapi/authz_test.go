package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}

const proxy = "From: 10.0.0.1:4000"

// Each proxy tells of the request in its own way.
func TestAuthzDialects(t *testing.T) {
	for name, told := range map[string][]string{
		"nginx":   {"X-Original-Method: POST", "X-Original-URI: /api/login?a=b", "X-Forwarded-For: 198.51.100.7"},
		"caddy":   {"X-Forwarded-Method: POST", "X-Forwarded-Uri: /api/login?a=b", "X-Forwarded-For: 198.51.100.7", "X-Forwarded-Host: shop.example.com"},
		"haproxy": {"X-Original-Method: POST", "X-Forwarded-Uri: /api/login", "Forwarded: for=198.51.100.7"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, Options{Authz: httplimit.Options{TrustedProxies: proxies}})
			ask := func() *reply { return s.call("GET /v1/authz", "", append(told, proxy)...) }
			for i := range 2 {
				r := ask().want(t, 200, nil)
				if r.Header.Get("RateLimit") != fmt.Sprintf(`"login";r=%d;t=60`, 1-i) || r.Header.Get("Cache-Control") != "no-store" || len(r.body) > 0 {
					t.Errorf("%v %s", r.Header, r.body)
				}
			}
			var d map[string]any
			r := ask().want(t, 429, &d)
			if r.Header.Get("Retry-After") != "60" || d["rule"] != "login" || d["detail"] != "too many logins" || d["code"] != 10007. {
				t.Errorf("%v %s", r.Header, r.body)
			}
			var a KeysAnswer
			s.call("GET /v1/keys?key=ip:198.51.100.7", "").want(t, 200, &a)
			if a.Results[0].Remaining != 0 {
				t.Errorf("the client is not the one whom the proxy names: %+v", a)
			}
		})
	}
}

// Clients whose connection has no address are limited, too: all of them as one client.
func TestAuthzNoAddress(t *testing.T) {
	s := newStand(t, Options{})
	ask := func() *reply {
		return s.call("GET /v1/authz", "", "X-Original-Method: POST", "X-Original-URI: /api/login", "From: pipe")
	}
	ask().want(t, 200, nil)
	ask().want(t, 200, nil)
	ask().want(t, 429, nil)
}

func TestAuthzDenyStatus(t *testing.T) {
	s := newStand(t, Options{Authz: httplimit.Options{TrustedProxies: proxies}})
	blocked := []string{proxy, "X-Forwarded-For: 203.0.113.66"}
	s.call("GET /v1/authz", "", blocked...).want(t, 403, nil)
	for _, status := range []int{401, 403, 429, 503} {
		var d struct{ Status int }
		s.call(fmt.Sprintf("GET /v1/authz?deny_status=%d", status), "", blocked...).want(t, status, &d)
		if d.Status != status {
			t.Errorf("the body says %d, the answer %d", d.Status, status)
		}
	}
	s.call("GET /v1/authz?deny_status=403", "", proxy, "X-Forwarded-For: 198.51.100.7").want(t, 200, nil)
	for _, query := range []string{"deny_status=200", "deny_status=0403", "deny_status=x", "deny_status=%zz"} {
		s.call("GET /v1/authz?"+query, "", blocked...).wantProblem(t, fault.BadField)
	}
	s.store.lost.Store(true)
	closed := []string{"X-Original-URI: /safe"}
	s.call("GET /v1/authz", "", closed...).want(t, 503, nil)
	s.call("GET /v1/authz?deny_status=403", "", closed...).want(t, 403, nil)
	if r := s.call("GET /v1/authz", "", "X-Original-URI: /open").want(t, 200, nil); r.Header.Get("X-RateLimit-Degraded") != "" {
		t.Errorf("no rule applies: %v", r.Header)
	}
}

// A client that writes the headers itself gets nowhere.
func TestAuthzForged(t *testing.T) {
	s := newStand(t, Options{Authz: httplimit.Options{TrustedProxies: proxies, UserHeader: "X-User", TierHeader: "X-Tier"}})
	for _, headers := range [][]string{
		{"X-Original-URI: /harmless", "X-Forwarded-Uri: /api/login"},
		{"X-Forwarded-Uri: /harmless", "X-Forwarded-Uri: /api/login"},
		{"X-Original-Method: GET", "X-Forwarded-Method: POST", "X-Original-URI: /api/login"},
		{"X-Original-Host: a.example.com", "X-Forwarded-Host: b.example.com"},
	} {
		s.call("GET /v1/authz", "", append(headers, proxy)...).wantProblem(t, fault.ConflictingHeaders, "remove the other")
	}
	s.call("GET /v1/authz", "", "X-Original-URI: /api/login", "X-Forwarded-Uri: /api/login", proxy).want(t, 200, nil)
	for _, uri := range []string{"login", "%zz", "/%zz", strings.Repeat("/x", maxURI)} {
		s.call("GET /v1/authz", "", "X-Original-URI: "+uri, proxy).wantProblem(t, fault.BadField)
	}
	// A fragment does not make another path of it.
	for i, want := range []int{200, 200, 429} {
		s.call("GET /v1/authz", "", proxy, "X-Forwarded-For: 198.51.100.40", "X-Original-Method: POST",
			fmt.Sprintf("X-Original-URI: /api/login#%d?x", i)).want(t, want, nil)
	}
	// An address that is not a trusted proxy cannot name another client.
	forged := []string{"From: 192.0.2.9:1", "X-Forwarded-For: 198.51.100.1", "X-Real-Ip: 198.51.100.1", "X-Original-Method: POST", "X-Original-URI: /api/login"}
	for i, want := range []int{200, 200, 429} {
		forged[1] = fmt.Sprintf("X-Forwarded-For: 198.51.100.%d", i)
		s.call("GET /v1/authz", "", forged...).want(t, want, nil)
	}
}

func TestAuthzUserAndTier(t *testing.T) {
	s := newStand(t, Options{Authz: httplimit.Options{TrustedProxies: proxies, UserHeader: "X-User", TierHeader: "X-Tier"}})
	for _, c := range []struct {
		from, limit string
	}{
		{"10.0.0.1:1", "1000"}, {"[::ffff:10.0.0.1]:1", "1000"}, {"192.0.2.1:1", ""}, {"nonsense", ""}, {"@", ""},
	} {
		r := s.call("GET /v1/authz", "", "From: "+c.from, "X-Original-URI: /api/x", "X-User: alice", "X-Tier: pro").want(t, 200, nil)
		if got := r.Header.Get("X-RateLimit-Limit"); got != c.limit {
			t.Errorf("from %s the limit is %q, want %q", c.from, got, c.limit)
		}
	}
	// These headers are not configured as trusted.
	s = newStand(t, Options{Authz: httplimit.Options{TrustedProxies: proxies}})
	if r := s.call("GET /v1/authz", "", proxy, "X-Original-URI: /api/x", "X-User: alice").want(t, 200, nil); r.Header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("%v", r.Header)
	}
}

// Rules see the headers, cookies and the query of the request that is asked about.
func TestAuthzValues(t *testing.T) {
	s := newStand(t, Options{Hosts: []string{"shop.example.com"}, Service: manage.Service{Rules: openRules(t, `
rules:
  - {id: header, key: "header:X-Tenant", limit: 10/1m}
  - {id: cookie, key: "cookie:sid", limit: 11/1m}
  - {id: query, key: "query:q", limit: 12/1m}
  - {id: host, match: {host: shop.example.com}, key: global, limit: 13/1m}
  - {id: key, key: api_key, limit: 14/1m}
`)}})
	for header, want := range map[string]string{
		"X-Tenant: acme": "10", "Cookie: a=b; sid=1": "11", "X-Original-URI: /x?q=1": "12", "X-Forwarded-Host: Shop.example.com:443": "13", "Host: shop.example.com": "13", "X-API-Key: k": "14",
	} {
		if r := s.call("POST /v1/authz?q=1", "", header); r.Header.Get("X-RateLimit-Limit") != want {
			t.Errorf("%s: the limit is %q, want %s", header, r.Header.Get("X-RateLimit-Limit"), want)
		}
	}
}

// A proxy passes on what the client has sent twice.
func TestAuthzSeveralValues(t *testing.T) {
	for key, headers := range map[string][]string{
		"header:X-Tenant": {"X-Tenant: %s"}, "cookie:sid": {"Cookie: a=b; sid=%s"}, "api_key": {"X-API-Key: %s"}, "user": {"X-User: %s"},
	} {
		s := newStand(t, Options{
			Authz:   httplimit.Options{TrustedProxies: proxies, UserHeader: "X-User"},
			Service: manage.Service{Rules: openRules(t, "rules: [{id: few, key: '"+key+"', algorithm: fixed_window, limit: 2/1d}]")},
		})
		send := func(who ...string) int {
			lines := []string{proxy, "X-Original-URI: /x"}
			for _, one := range who {
				lines = append(lines, fmt.Sprintf(headers[0], one))
			}
			return s.call("GET /v1/authz", "", lines...).StatusCode
		}
		for i, want := range []int{200, 200, 429, 429} {
			if got := send(fmt.Sprint("junk", i), "real"); got != want {
				t.Errorf("%s, request %d: %d, want %d", key, i, got, want)
			}
		}
		if got := send("1", "2", "3", "4", "5", "6", "7", "8", "9"); got != 400 {
			t.Errorf("%s, nine at once: %d", key, got)
		}
	}
}

// A request that a rule shapes is held here as it would be in front of a handler.
func TestAuthzHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAuthzOf(t, "rules: [{id: queue, key: global, algorithm: leaky_bucket, limit: 1/1s, burst: 5, shape: true}]")
		ask := func(ctx context.Context) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/v1/authz", nil))
			return w
		}
		start := time.Now()
		if w := ask(t.Context()); w.Code != 200 || time.Since(start) != 0 {
			t.Errorf("the first: %d after %v", w.Code, time.Since(start))
		}
		done := make(chan int)
		go func() { done <- ask(t.Context()).Code }()
		synctest.Wait()
		if w := ask(t.Context()); w.Code != http.StatusServiceUnavailable || !json.Valid(w.Body.Bytes()) {
			t.Errorf("more than may be held: %d %s", w.Code, w.Body)
		}
		if code := <-done; code != 200 || time.Since(start) != time.Second {
			t.Errorf("the second: %d after %v", code, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- ask(ctx).Code }()
		synctest.Wait()
		cancel()
		if code := <-done; code != statusClientGone {
			t.Errorf("who has left got %d", code)
		}
	})
}

// newAuthzOf returns a server with rules, which holds one request at a time.
func newAuthzOf(t *testing.T, rules string) *Handler {
	set, problems := rule.Parse("", []byte(rules))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	e.Install(table, 1)
	h, err := New(Options{Service: manage.Service{Engine: e, Rules: &gone{}}, Authz: httplimit.Options{MaxDelayed: 1}, Hosts: []string{"example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The answer to the proxy is not the end of the request, nor its status: every request counts, and
// its place is free after hold_ttl. Nobody waits for one.
func TestAuthzDoesNotSeeTheResponse(t *testing.T) {
	for _, rules := range []string{
		"rules: [{id: guesses, key: ip, algorithm: fixed_window, limit: 1/1m, count: {status: [401]}}]",
		"rules: [{id: reports, key: ip, concurrency: 1, hold_ttl: 1m}]",
		"rules: [{id: reports, key: ip, concurrency: 1, hold_ttl: 1m, wait: 1m}]",
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newAuthzOf(t, rules)
			ask := func() int {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/v1/authz", nil))
				return w.Code
			}
			start := time.Now()
			if first, second := ask(), ask(); first != 200 || second != 429 || time.Since(start) != 0 {
				t.Errorf("%s: %d, %d after %v", rules, first, second, time.Since(start))
			}
			time.Sleep(time.Minute)
			if code := ask(); code != 200 {
				t.Errorf("%s: %d after a minute", rules, code)
			}
		})
	}
}
