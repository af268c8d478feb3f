package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/middleware/httplimit"
)

const (
	own        = "X-Weir-Session: 1"
	sameOrigin = "Sec-Fetch-Site: same-origin"
	asAlice    = `{"token":"` + adminToken + `"}`
)

var sessionTried = []tried{
	{what: "GET /v1/whoami", status: 401, tokens: true, headers: []string{"Cookie: weir_session=alice|1|x", own}},
	{what: "POST /v1/session", body: `{"token":"` + adminToken + `"}`, status: 204, tokens: true, headers: []string{own}},
	{what: "POST /v1/session", body: `{}`, status: 401, tokens: true, headers: []string{own}},
	{what: "POST /v1/session", body: `{"tokn":""}`, status: 400, tokens: true, headers: []string{own}},
	{what: "POST /v1/session", body: `{"token":"` + adminToken + `"}`, status: 403, tokens: true},
	{what: "POST /v1/session", body: `{"token":"` + adminToken + `"}`, status: 404, headers: []string{own}},
	{what: "POST /v1/session", body: strings.Repeat(" ", maxSmallBody+1), status: 413, tokens: true},
	{what: "POST /v1/session", body: `{"token":"` + adminToken + `"}`, status: 429, tokens: true, tired: true, headers: []string{own},
		options: Options{Service: manage.Service{Limits: manage.GuardOptions{Calls: weir.Limit{N: 1, Period: time.Hour}}}}},
	{what: "DELETE /v1/session", status: 429, tokens: true, tired: true, headers: []string{own},
		options: Options{Service: manage.Service{Limits: manage.GuardOptions{Calls: weir.Limit{N: 1, Period: time.Hour}}}}},
	{what: "DELETE /v1/session", status: 204, tokens: true, headers: []string{own}},
	{what: "DELETE /v1/session", status: 403, tokens: true},
	{what: "DELETE /v1/session?x=1", status: 400, tokens: true},
}

// session signs somebody in and returns the cookie, as a browser would send it.
func (s *stand) session(body string, headers ...string) string {
	s.t.Helper()
	r := s.call("POST /v1/session", body, append(headers, own)...).want(s.t, 204, nil)
	cookies := r.Cookies()
	if len(cookies) != 1 || len(r.body) != 0 {
		s.t.Fatalf("%v %s", r.Header, r.body)
	}
	return "Cookie: " + cookies[0].Name + "=" + cookies[0].Value
}

func TestSession(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	r := s.call("POST /v1/session", asAlice, own).want(t, 204, nil)
	cookie := r.Cookies()[0]
	if cookie.Name != "weir_session" || cookie.Path != "/" || cookie.Domain != "" || !cookie.HttpOnly || cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.MaxAge != 12*60*60 {
		t.Errorf("the cookie is %+v", cookie)
	}
	if r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", r.Header)
	}
	alice, bob := s.session(asAlice), s.session(`{"token":" `+readerToken+`"}`)
	var who WhoAnswer
	if s.call("GET /v1/whoami", "", alice, sameOrigin).want(t, 200, &who); who != (WhoAnswer{"alice", "admin", "session", true}) {
		t.Errorf("%+v", who)
	}
	// What is changed has the name of the token.
	s.call("POST /v1/rules", small, alice, sameOrigin).want(t, 201, nil)
	if v, err := s.rules.Current(t.Context()); err != nil || v.Author != "alice" {
		t.Errorf("the author is %q, %v", v.Author, err)
	}
	s.call("GET /v1/rules", "", bob, own).want(t, 200, nil)
	s.call("DELETE /v1/rules/small", "", anyVersion, bob, own).wantProblem(t, fault.Forbidden, "bob")
	// A token that is sent as well is what counts.
	if s.call("GET /v1/whoami", "", alice, as(readerToken)).want(t, 200, &who); who != (WhoAnswer{"bob", "read", "token", false}) {
		t.Errorf("%+v", who)
	}
	s.call("GET /v1/whoami", "", alice, own, as("wrong-but-long-enough-for-one")).wantProblem(t, fault.InvalidToken)
	// What is meant for a proxy in front is none of ours.
	s.call("GET /v1/whoami", "", alice, own, "Authorization: Basic YTpi").want(t, 200, nil)

	r = s.call("DELETE /v1/session", "", alice, sameOrigin).want(t, 204, nil)
	if c := r.Cookies()[0]; c.Name != "weir_session" || c.Value != "" || c.MaxAge >= 0 || c.Path != "/" {
		t.Errorf("%+v", c)
	}
	log := s.log.String()
	if strings.Contains(log, adminToken) || strings.Contains(log, strings.TrimPrefix(alice, "Cookie: weir_session=")) || !strings.Contains(log, `route="POST /v1/session" status=204 holder=alice`) {
		t.Errorf("the log says %s", log)
	}
	newStand(t, Options{}).call("POST /v1/session", asAlice, own).wantProblem(t, fault.NotEnabled)
}

// A session is of no use to whom it was not given.
func TestSessionsAttacked(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	alice := s.session(asAlice)
	for _, from := range [][]string{
		{},                             // a form, an image or a link, in a browser that says nothing
		{"Sec-Fetch-Site: cross-site"}, // the same, in one that does
		{"Sec-Fetch-Site: same-site"},  // from another port or a subdomain
		{"Sec-Fetch-Site: none"},       // from an e-mail, by the address bar
		{"Sec-Fetch-Site: cross-site", own},
		{"Sec-Fetch-Site: same-site", own, "Origin: http://127.0.0.1:8080"},
		{own, "Origin: https://evil.example.com"},
		{own, "Origin: null"},
		{own, "Origin: http://127.0.0.1:9999"},
		{"Origin: http://127.0.0.1:8080"},
	} {
		for _, what := range []string{"GET /v1/rules", "GET /v1/whoami", "GET /v1/stats/stream", "POST /v1/rules", "DELETE /v1/keys?key=user:alice"} {
			if r := s.call(what, small, append(from, alice)...); r.StatusCode != 403 || !strings.Contains(string(r.body), "foreign-origin") {
				t.Errorf("%s from %v: %d %s", what, from, r.StatusCode, r.body)
			}
		}
		// Nor can somebody be signed in with a token of the attacker's, or out.
		for _, what := range []string{"POST /v1/session", "DELETE /v1/session"} {
			body := ""
			if what == "POST /v1/session" {
				body = asAlice
			}
			if r := s.call(what, body, from...); r.StatusCode != 403 || len(r.Cookies()) != 0 {
				t.Errorf("%s from %v: %d %v", what, from, r.StatusCode, r.Header)
			}
		}
	}
	if v, err := s.rules.Current(t.Context()); err != nil || v.Number != 2 {
		t.Errorf("something was changed: %+v, %v", v, err)
	}
	// A browser asks before it lets a page of another site send the header.
	r := s.call("OPTIONS /v1/rules", "", "Origin: https://evil.example.com", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: x-weir-session")
	if r.StatusCode != 405 || r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	// The page of this server is welcome, whatever its browser says.
	for _, from := range [][]string{{sameOrigin}, {own}, {own, "Origin: http://127.0.0.1:8080"}, {sameOrigin, "Origin: https://weir.example.com"}} {
		s.call("GET /v1/rules", "", append(from, alice)...).want(t, 200, nil)
	}
	// One that somebody else has set beside it makes both worthless.
	mallory := s.session(`{"token":"` + readerToken + `"}`)
	s.call("GET /v1/rules", "", alice, mallory, own).wantProblem(t, fault.TokenRequired)
	s.call("GET /v1/rules", "", alice+"; "+strings.TrimPrefix(mallory, "Cookie: "), own).wantProblem(t, fault.TokenRequired)
}

// A session ends with its time or its token, and the browser is told to forget it.
func TestSessionsEnd(t *testing.T) {
	var list atomic.Pointer[trust.List]
	list.Store(tokens(t)())
	s := newStand(t, Options{Service: manage.Service{Tokens: list.Load}})
	alice := s.session(asAlice)
	ended := func(cookie string) {
		t.Helper()
		r := s.call("GET /v1/rules", "", cookie, own)
		r.wantProblem(t, fault.TokenRequired, "sign in again")
		if c := r.Cookies(); len(c) != 1 || c[0].Name != "weir_session" || c[0].MaxAge >= 0 {
			t.Errorf("%v", r.Header)
		}
	}
	s.now.Add((12*time.Hour - time.Second).Microseconds())
	s.call("GET /v1/rules", "", alice, own).want(t, 200, nil)
	s.now.Add(time.Second.Microseconds())
	for range 20 { // which is no try
		ended(alice)
	}
	alice = s.session(asAlice)
	others, err := trust.ParseTokens([]byte("bob read " + readerToken))
	if err != nil {
		t.Fatal(err)
	}
	list.Store(others)
	ended(alice)
	replaced, err := trust.ParseTokens([]byte("alice admin another-token-for-alice"))
	if err != nil {
		t.Fatal(err)
	}
	list.Store(replaced)
	ended(alice)
	// Any instance with the same file knows it.
	list.Store(tokens(t)())
	other := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	other.now.Store(s.now.Load())
	other.call("GET /v1/rules", "", alice, own).want(t, 200, nil)
}

// Tokens cannot be tried by signing in more often than otherwise, nor by making sessions
// from them.
func TestSessionTriesAreLimited(t *testing.T) {
	s := newStand(t, Options{
		Service: manage.Service{Tokens: tokens(t), Limits: manage.GuardOptions{Failures: weir.Limit{Algorithm: weir.SlidingLog, N: 3, Period: time.Minute}}},
	})
	for i := range 3 {
		s.call("POST /v1/session", fmt.Sprintf(`{"token":"wrong-but-long-enough-%d"}`, i), own).wantProblem(t, fault.InvalidToken)
	}
	s.call("POST /v1/session", asAlice, own).want(t, 429, nil)
	s.call("GET /v1/rules", "", as(adminToken)).want(t, 429, nil)
	s.now.Add(time.Minute.Microseconds())

	alice := s.session(asAlice)
	for i := range 3 {
		guessed, err := trust.ParseTokens([]byte(fmt.Sprintf("alice admin wrong-but-long-enough-%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		forged, _ := guessed.Session(fmt.Sprintf("wrong-but-long-enough-%d", i), time.UnixMicro(s.now.Load()).Add(time.Hour))
		s.call("GET /v1/rules", "", "Cookie: weir_session="+forged, own).wantProblem(t, fault.TokenRequired)
	}
	r := s.call("GET /v1/rules", "", alice, own).want(t, 429, nil)
	if !strings.Contains(string(r.body), "invalid sessions") {
		t.Errorf("%s", r.body)
	}
	// Clients with a token still have access, and other clients are not affected.
	s.call("POST /v1/session", asAlice, own).want(t, 204, nil)
	s.call("GET /v1/rules", "", alice, own, "From: 192.0.2.2:1").want(t, 200, nil)
	s.now.Add(time.Minute.Microseconds())
	s.call("GET /v1/rules", "", alice, own).want(t, 200, nil)
}

// Over HTTPS, here or at a proxy that is believed, the cookie is one that no other host can
// set and that is never sent in the clear.
func TestSessionsOverHTTPS(t *testing.T) {
	s := newStand(t, Options{
		Service: manage.Service{Tokens: tokens(t)},
		Authz:   httplimit.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	})
	server := httptest.NewTLSServer(s)
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil)
	do := func(method, path, body string, status int) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if text, _ := io.ReadAll(answer.Body); answer.StatusCode != status {
			t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, text)
		}
		return answer
	}
	do("GET", "/v1/rules", "", 401)
	cookie := do("POST", "/v1/session", asAlice, 204).Cookies()[0]
	if cookie.Name != "__Host-weir_session" || !cookie.Secure || !cookie.HttpOnly || cookie.Path != "/" || cookie.Domain != "" || cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("%+v", cookie)
	}
	do("GET", "/v1/rules", "", 200)
	do("DELETE", "/v1/session", "", 204)
	do("GET", "/v1/rules", "", 401)

	const proxied, https = "From: 10.0.0.1:1", "X-Forwarded-Proto: https"
	secure := s.session(asAlice, proxied, https)
	if !strings.HasPrefix(secure, "Cookie: __Host-weir_session=") {
		t.Error(secure)
	}
	s.call("GET /v1/rules", "", secure, own, proxied, https).want(t, 200, nil)
	plain := strings.Replace(secure, "__Host-", "", 1)
	s.call("GET /v1/rules", "", plain, own, proxied, https).wantProblem(t, fault.TokenRequired) // a plain page may have set it
	// Other senders are not trusted.
	if plain := s.session(asAlice, https); !strings.HasPrefix(plain, "Cookie: weir_session=") {
		t.Error(plain)
	}
}

// Calls without a token that the server rejects are counted, too, and then not logged: who
// may not call cannot fill the log.
func TestSessionCallsAreCounted(t *testing.T) {
	for name, c := range map[string]struct{ what, body, header string }{
		"sign in from elsewhere":  {"POST /v1/session", asAlice, "Sec-Fetch-Site: cross-site"},
		"sign in with nonsense":   {"POST /v1/session", "junk", own},
		"sign out":                {"DELETE /v1/session", "", own},
		"a session from anywhere": {"GET /v1/rules", "", "Cookie: weir_session=x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t), Limits: manage.GuardOptions{Calls: weir.Limit{N: 3, Period: time.Hour}}}})
			for i := range 20 {
				if r := s.call(c.what, c.body, c.header); (r.StatusCode == 429) != (i >= 3) {
					t.Fatalf("call %d: %d", i, r.StatusCode)
				}
			}
			if n := strings.Count(s.log.String(), "management call"); n > 3 {
				t.Errorf("%d calls were logged", n)
			}
		})
	}
}
