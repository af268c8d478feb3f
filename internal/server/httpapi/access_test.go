package httpapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/middleware/httplimit"
)

// managed is every route of the management, with a call that would succeed.
var managed = []struct {
	what, body string
	changes    bool
}{
	{"GET /v1/rules", "", false},
	{"HEAD /v1/rules", "", false},
	{"GET /v1/rules/login", "", false},
	{"GET /v1/rules/history", "", false},
	{"GET /v1/rules/history/1", "", false},
	{"POST /v1/rules/validate", "rules: []", false},
	{"POST /v1/rules/format", `{"source":"{id: new, key: ip, limit: 5/1m}"}`, false},
	{"POST /v1/rules/try", `{"source":"{id: new, key: ip, limit: 5/1m}","request":{"user":"alice","path":"/api/x"}}`, false},
	{"POST /v1/rules/replay", `{"source":"{id: new, key: ip, limit: 5/1m}","log":"` + logLine + `"}`, false},
	{"GET /v1/keys?key=user:alice", "", false},
	{"GET /v1/now", "", false},
	{"GET /v1/leases", "", false},
	{"GET /v1/spend", "", false},
	{"GET /v1/counters/names", "", false},
	{"POST /v1/simulate", `{"limits":["10/1s"],"traffic":"boundary"}`, false},
	{"POST /v1/rules", "{id: new, key: ip, limit: 5/1m}", true},
	{"PUT /v1/rules/login", "{id: login, key: ip, limit: 5/1m}", true},
	{"DELETE /v1/rules/safe", "", true},
	{"POST /v1/rules/rollback", `{"version":1}`, true},
	{"PUT /v1/rules", "rules: []", true},
	{"DELETE /v1/keys?key=user:alice", "", true},
	{"PUT /v1/exempt?user=alice", "", true},
	{"DELETE /v1/exempt?user=healthcheck", "", true},
	{"PUT /v1/block?ip=192.0.2.1", "", true},
	{"DELETE /v1/block?ip=203.0.113.66", "", true},
	{"GET /v1/overrides", "", false},
	{"POST /v1/overrides", `{"rule":"api","key":"user:alice","limit":"500/1m","for":"2h","reason":"migration"}`, true},
	{"DELETE /v1/overrides/one", "", true},
	{"GET /v1/clients", "", false},
	{"GET /v1/clients/tiers", "", false},
	{"GET /v1/clients/export", "", false},
	{"POST /v1/clients/import", `{"client":"user:new"}`, true},
	{"GET /v1/clients/user:ann", "", false},
	{"PUT /v1/clients/user:ann", "{}", true},
	{"PATCH /v1/clients/user:ann", "{}", true},
	{"DELETE /v1/clients/user:bob", "", true},
	{"GET /v1/stats/summary", "", false},
	{"GET /v1/stats/series", "", false},
	{"GET /v1/stats/top", "", false},
	{"GET /v1/stats/rules", "", false},
	{"GET /v1/stats/clients", "", false},
	{"GET /v1/stats/client?key=user:alice", "", false},
	{"GET /v1/stats/denials", "", false},
	{"GET /v1/stats/warnings", "", false},
	{"GET /v1/stats/usage?rule=api", "", false},
	{"GET /v1/stats/holds?rule=api", "", false},
	{"GET /v1/stats/suggest?rule=api", "", false},
	{"GET /v1/stats/stream", "", false},
	{"HEAD /v1/stats/stream", "", false},
	{"GET /v1/alerts", "", false},
	{"POST /v1/alerts/silences", `{"id":"denied","for_s":60}`, true},
	{"POST /v1/alerts/test", "", true},
	{"POST /v1/queues/mail/requeue", `{"numbers":[1767225600500000]}`, true},
	{"POST /v1/queues/mail/delete", `{"numbers":[1767225600500000]}`, true},
	{"GET /rlconfig", "", false},
}

func TestTokens(t *testing.T) {
	for _, c := range managed {
		t.Run(c.what, func(t *testing.T) {
			o := Options{Service: manage.Service{Tokens: tokens(t)}}
			withStats(t, &o)
			withKept(t, &o)
			withEnvoy(t, &o)
			o.Leases = someLeases
			s := newStand(t, o)
			r := s.call(c.what, c.body, "If-Match: *")
			r.wantProblem(t, fault.TokenRequired, "Authorization: Bearer")
			if got := r.Header.Get("WWW-Authenticate"); got != `Bearer realm="weir"` {
				t.Errorf("WWW-Authenticate: %s", got)
			}
			r = s.call(c.what, c.body, "If-Match: *", as("wrong-but-long-enough-for-one"))
			r.wantProblem(t, fault.InvalidToken)
			if got := r.Header.Get("WWW-Authenticate"); !strings.Contains(got, "invalid_token") {
				t.Errorf("WWW-Authenticate: %s", got)
			}
			r = s.call(c.what, c.body, "If-Match: *", as(readerToken))
			if c.changes {
				r.wantProblem(t, fault.Forbidden, "bob")
				if got := r.Header.Get("WWW-Authenticate"); !strings.Contains(got, "insufficient_scope") {
					t.Errorf("WWW-Authenticate: %s", got)
				}
			} else if r.StatusCode != 200 {
				t.Errorf("a reader got %d %s", r.StatusCode, r.body)
			}
			// The server's name does not matter to who has a token, nor where a page is from.
			r = s.call(c.what, c.body, "If-Match: *", as(adminToken), "Host: weir.example.com", "Sec-Fetch-Site: cross-site")
			if r.StatusCode > 204 {
				t.Errorf("an admin got %d %s", r.StatusCode, r.body)
			}
			if got := r.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control: %s", got)
			}
			level := "level=DEBUG"
			if c.changes {
				level = "level=INFO"
			}
			if log := s.log.String(); !strings.Contains(log, level+` msg="management call"`) {
				t.Errorf("the log says %s", log)
			}
			if log := s.log.String(); strings.Contains(log, adminToken) || strings.Contains(log, "wrong-but") || !strings.Contains(log, "holder=alice") {
				t.Errorf("the log says %s", log)
			}
		})
	}
	// Open checks need no token.
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	for _, what := range []string{"POST /v1/check", "GET /v1/authz", "GET /v1/openapi.yaml", "GET /healthz", "GET /readyz", "GET /"} {
		s.call(what, "{}", "Host: weir.example.com").want(t, 200, nil)
	}
}

func TestManagedIsComplete(t *testing.T) {
	for _, r := range routes() {
		if r.needs < reading {
			continue
		}
		h := &Handler{}
		h.mount(routes())
		found := false
		for _, c := range managed {
			method, target, _ := strings.Cut(c.what, " ")
			path, _, _ := strings.Cut(target, "?")
			m, _, _ := h.findRoute(method, path)
			found = found || m != nil && m.name == r.pattern()
		}
		if !found {
			t.Errorf("%s is not tried without a token; add it to the list", r.pattern())
		}
	}
}

func TestBearer(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{[]string{"Authorization: bearer " + adminToken}, 200},
		{[]string{"Authorization: Bearer   " + adminToken}, 200},
		{[]string{"Authorization: Basic " + adminToken}, 401},
		{[]string{"Authorization: Bearer"}, 401},
		{[]string{"Authorization: " + adminToken}, 401},
		{[]string{as(adminToken), as(adminToken)}, 401},
		{[]string{as(adminToken + "x")}, 401},
	} {
		s.call("GET /v1/rules", "", c.headers...).want(t, c.status, nil)
	}
}

// A client that tries tokens is stopped, and then even a valid token is rejected. Other
// clients are not affected.
func TestWrongTokensAreLimited(t *testing.T) {
	s := newStand(t, Options{
		Service: manage.Service{Tokens: tokens(t), Limits: manage.GuardOptions{Failures: weir.Limit{Algorithm: weir.SlidingLog, N: 3, Period: time.Minute}}},
	})
	try := func(from, bearer string) *reply { return s.call("GET /v1/rules", "", "From: "+from, as(bearer)) }
	const guesser, other = "192.0.2.1:1", "192.0.2.2:1"
	for range 5 {
		s.call("GET /v1/rules", "", "From: "+guesser).wantProblem(t, fault.TokenRequired) // is no try
	}
	for i := range 3 {
		try(guesser, fmt.Sprintf("wrong-but-long-enough-%d", i)).wantProblem(t, fault.InvalidToken)
	}
	lines := strings.Count(s.log.String(), "\n")
	for _, bearer := range []string{"wrong-but-long-enough-3", adminToken} {
		r := try(guesser, bearer).want(t, 429, nil)
		if r.Header.Get("Retry-After") != "60" || r.Header.Get("RateLimit") != `"wrong-tokens";r=0;t=60` || r.Header.Get("X-RateLimit-Remaining") != "0" {
			t.Errorf("the headers are %v", r.Header)
		}
		if !strings.Contains(string(r.body), "too many calls with invalid tokens") || r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("the body is %s", r.body)
		}
	}
	if strings.Count(s.log.String(), "\n") != lines {
		t.Error("a flood of calls floods the log, too")
	}
	try(other, adminToken).want(t, 200, nil)
	s.now.Add(time.Minute.Microseconds())
	try(guesser, adminToken).want(t, 200, nil)
	// Right ones are never counted.
	for range 10 {
		try(guesser, adminToken).want(t, 200, nil)
	}
}

func TestCallsAreLimited(t *testing.T) {
	s := newStand(t, Options{
		Authz:   httplimit.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Service: manage.Service{Limits: manage.GuardOptions{Calls: weir.Limit{N: 2, Period: time.Second}}},
	})
	ask := func(headers ...string) int { return s.call("GET /v1/rules", "", headers...).StatusCode }
	for i, want := range []int{200, 200, 429, 429} {
		if got := ask("From: 192.0.2.1:1", fmt.Sprintf("X-Forwarded-For: 198.51.100.%d", i)); got != want {
			t.Errorf("call %d from an untrusted address: %d, want %d", i, got, want)
		}
		if got := ask("From: [2001:db8::"+fmt.Sprint(i+1)+"]:1", ""); got != want {
			t.Errorf("call %d from a customer's network: %d, want %d", i, got, want)
		}
		if got := ask("From: 10.0.0.1:1", fmt.Sprintf("X-Forwarded-For: 198.51.100.%d", i)); got != 200 {
			t.Errorf("call %d of another client through a proxy: %d", i, got)
		}
	}
	s.call("POST /v1/check", "{}", "From: 192.0.2.1:1").want(t, 200, nil) // is no management
}

// Without tokens a page in the operator's browser gets nowhere.
func TestBrowsersAtHome(t *testing.T) {
	s := newStand(t, Options{Hosts: []string{"weir.internal"}, Service: manage.Service{Limits: manage.GuardOptions{Calls: weir.Limit{N: 1000, Period: time.Second}}}})
	calls := append(managed[:len(managed):len(managed)], struct {
		what, body string
		changes    bool
	}{"POST /v1/check", "{}", true})
	for _, c := range calls {
		for _, host := range []string{"evil.example.com", "evil.example.com:8080", "localhost.evil.com", "127.0.0.1.evil.com", "xlocalhost", "[::1", "127.0.0.1:80:80"} {
			s.call(c.what, c.body, "If-Match: *", "Host: "+host).wantProblem(t, fault.ForeignHost)
		}
		if c.what == "POST /v1/rules/validate" || c.changes {
			for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example.com", "Origin: null"} {
				s.call(c.what, c.body, "If-Match: *", header).wantProblem(t, fault.ForeignOrigin)
			}
		}
	}
	for _, host := range []string{"localhost", "LocalHost.:8080", "127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "[::1]", "10.1.2.3:80", "weir.internal:80", "WEIR.internal."} {
		s.call("POST /v1/check", "{}", "Host: "+host).want(t, 200, nil)
		s.call("POST /v1/check", "{}", "Host: "+host, "Origin: http://"+host, "Sec-Fetch-Site: same-origin").want(t, 200, nil)
	}
	if s.local("") != true {
		t.Error("HTTP/1.0 has no Host header")
	}
	// Probes give nothing away and change nothing.
	for _, what := range []string{"GET /healthz", "GET /v1/openapi.yaml"} {
		s.call(what, "", "Host: shop.example.com", "Sec-Fetch-Site: cross-site").want(t, 200, nil)
	}
}

// Nor does it where checks take no token, although the management does. Programs may call the server
// by any name.
func TestBrowsersAtOpenChecks(t *testing.T) {
	for name, list := range map[string]*trust.List{"tokens": tokens(t)(), "people whom a proxy signs in": new(trust.List)} {
		s := newStand(t, Options{
			Home:    http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }),
			Service: manage.Service{Tokens: func() *trust.List { return list }},
		})
		for _, what := range []string{"POST /v1/check", "POST /v1/reserve", "GET /v1/authz", "POST /json"} {
			for _, header := range []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example.com"} {
				if r := s.call(what, "{}", header); r.StatusCode != fault.ForeignOrigin.Status {
					t.Errorf("with %s, %s with %s: %d", name, what, header, r.StatusCode)
				}
			}
			s.call(what, "{}", "Host: weir.internal").want(t, 200, nil)
		}
	}
}

// Nor does it where proxies and collectors ask, who pass on what end users sent them.
func TestBrowsersAtAuthz(t *testing.T) {
	answering := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })
	o := Options{Hosts: []string{"weir.internal"}, Authz: httplimit.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Metrics: answering, Home: answering}
	s := newStand(t, o)
	asked := []string{"GET /v1/authz", "POST /v1/authz", "OPTIONS /v1/authz", "GET /metrics", "POST /json"} // the last is one of Home's
	for _, what := range asked {
		// A page whose name was pointed at the loopback can write any of these.
		for _, host := range []string{"evil.example.com", "evil.example.com:8080", "weir"} {
			s.call(what, "", "Host: "+host, "Origin: http://"+host, "Sec-Fetch-Site: same-origin", "X-Original-URI: /login", "X-Forwarded-For: 203.0.113.7").wantProblem(t, fault.ForeignHost)
		}
		for _, host := range []string{"127.0.0.1:8080", "localhost", "[::1]:8080", "weir.internal"} {
			s.call(what, "", "Host: "+host).want(t, 200, nil)
		}
	}
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example.com", "Origin: null"} {
		for _, what := range []string{"GET /v1/authz", "HEAD /v1/authz", "POST /v1/authz", "OPTIONS /v1/authz", "POST /json"} {
			if r := s.call(what, "", header); r.StatusCode != fault.ForeignOrigin.Status {
				t.Errorf("%s with %s: %d", what, header, r.StatusCode)
			}
		}
		// A page of another site cannot write these, so the origin is of a request to the proxy.
		for _, told := range []string{"X-Original-URI: /login", "X-Forwarded-Uri: /login", "X-Forwarded-For: 203.0.113.7"} {
			for _, what := range []string{"GET /v1/authz", "POST /v1/authz"} {
				s.call(what, "", header, told).want(t, 200, nil)
			}
		}
	}
	if n := strings.Count(s.log.String(), "evil.example.com"); n != 1 {
		t.Errorf("the log names the host %d times:\n%s", n, s.log.String())
	}
	// With tokens, others may reach it, by whatever name it has.
	o.Tokens = tokens(t)
	s = newStand(t, o)
	for _, what := range asked {
		s.call(what, "", "Host: shop.example.com").want(t, 200, nil)
	}
}

func TestNewRejects(t *testing.T) {
	s := newStand(t, Options{})
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Service: manage.Service{Rules: s.rules}}, "Options.Engine is required"},
		{Options{Service: manage.Service{Engine: s.engine}}, "Options.Rules is required"},
		{Options{Service: manage.Service{Engine: s.engine, Rules: s.rules}, Authz: httplimit.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}}, "TrustedProxies"},
		{Options{Service: manage.Service{Engine: s.engine, Rules: s.rules, Limits: manage.GuardOptions{Calls: weir.Limit{N: 1}}}}, "Options.Limits"},
		{Options{Service: manage.Service{Engine: s.engine, Rules: s.rules}, Authz: httplimit.Options{MaxDelayed: -1}}, "MaxDelayed"},
	} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if h, err := New(Options{Service: manage.Service{Engine: s.engine, Rules: s.rules}}); err != nil || direct(h, "GET", "/healthz", "").StatusCode != http.StatusOK {
		t.Errorf("with the defaults: %v", err)
	}
}
