package httpapi

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/middleware/httplimit"
)

func signInStand(t *testing.T, in SignIn) *stand {
	t.Helper()
	return newStand(t, Options{
		Service: manage.Service{Tokens: tokens(t)}, SignIn: in,
		Authz: httplimit.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	})
}

func TestSignInByProxy(t *testing.T) {
	s := signInStand(t, SignIn{Header: "x-forwarded-user"})
	const from, carol = "From: 10.0.0.1:1", "X-Forwarded-User: carol@example.com"
	var who WhoAnswer
	if s.call("GET /v1/whoami", "", from, carol, sameOrigin).want(t, 200, &who); who != (WhoAnswer{"carol@example.com", "read", "proxy", false}) {
		t.Errorf("%+v", who)
	}
	s.call("POST /v1/rules", small, from, carol, sameOrigin).wantProblem(t, fault.Forbidden, "carol@example.com")
	// Tokens and sessions go before it.
	for _, own := range []string{as(adminToken), s.session(asAlice)} {
		if s.call("GET /v1/whoami", "", from, carol, sameOrigin, own).want(t, 200, &who); who.Name != "alice" || who.Scope != "admin" {
			t.Errorf("%+v", who)
		}
	}
	s.call("GET /v1/whoami", "", from, carol, sameOrigin, as("wrong-but-long-enough-for-one")).wantProblem(t, fault.InvalidToken)
	s.call("GET /v1/whoami", "", from, carol, sameOrigin, "Cookie: weir_session=alice|1|x").wantProblem(t, fault.TokenRequired)
	// The proxy has a password of its own to check.
	s.call("GET /v1/whoami", "", from, carol, sameOrigin, "Authorization: Basic YTpi").want(t, 200, nil)

	admins := signInStand(t, SignIn{Header: "X-Forwarded-User", Scope: trust.Admin})
	admins.call("POST /v1/rules", small, from, carol, sameOrigin).want(t, 201, nil)
	if v, err := admins.rules.Current(t.Context()); err != nil || v.Author != "carol@example.com" {
		t.Errorf("the author is %q, %v", v.Author, err)
	}
	if log := admins.log.String(); !strings.Contains(log, "holder=carol@example.com via=proxy") {
		t.Errorf("the log says %s", log)
	}
}

func TestSignInAttacked(t *testing.T) {
	s := signInStand(t, SignIn{Header: "X-Forwarded-User", Scope: trust.Admin})
	const proxy, carol = "From: 10.0.0.1:1", "X-Forwarded-User: carol"
	// From anywhere else the header is worth nothing, whatever else is claimed.
	for _, from := range []string{"From: 192.0.2.1:1", "From: 127.0.0.1:1", "From: [::1]:1", "From: 11.0.0.1:1"} {
		for _, more := range []string{sameOrigin, "X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1"} {
			s.call("POST /v1/rules", small, from, carol, own, sameOrigin, more).wantProblem(t, fault.TokenRequired)
		}
	}
	// Nobody is signed in: the proxy has let somebody pass, or removed what they sent.
	s.call("GET /v1/rules", "", proxy, sameOrigin).wantProblem(t, fault.TokenRequired)
	s.call("GET /v1/rules", "", proxy, "X-Forwarded-User: ", sameOrigin).wantProblem(t, fault.TokenRequired)
	s.call("GET /v1/rules", "", proxy, "X-User: carol", sameOrigin).wantProblem(t, fault.TokenRequired)
	// The proxy has added a name to one that the client sent.
	for _, names := range [][]string{
		{carol, "X-Forwarded-User: alice"}, {"X-Forwarded-User: a\x00b"}, {"X-Forwarded-User: a\u202eb"}, {"X-Forwarded-User: \xff"}, {"X-Forwarded-User: " + strings.Repeat("x", maxUser+1)},
	} {
		if p := s.call("GET /v1/rules", "", append(names, proxy, sameOrigin)...).wantProblem(t, fault.BadField); p.Field != "X-Forwarded-User" {
			t.Errorf("%+v", p)
		}
	}
	// A page of another site makes the browser of somebody who is signed in call.
	for _, site := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: none", "Origin: https://evil.example.com"} {
		for _, what := range []string{"GET /v1/rules", "POST /v1/rules", "DELETE /v1/keys?key=user:alice"} {
			s.call(what, small, proxy, carol, site).wantProblem(t, fault.ForeignOrigin)
		}
	}
	if v, err := s.rules.Current(t.Context()); err != nil || v.Number != 2 {
		t.Errorf("something was changed: %+v, %v", v, err)
	}
	// Off by default.
	off := signInStand(t, SignIn{Scope: trust.Admin})
	off.call("GET /v1/rules", "", proxy, carol, sameOrigin).wantProblem(t, fault.TokenRequired)
	// Whoever only asks is not concerned.
	s.call("POST /v1/check", "{}", "From: 192.0.2.1:1", carol).want(t, 200, nil)
}

func TestSignInOptions(t *testing.T) {
	s := newStand(t, Options{})
	service := manage.Service{Engine: s.engine, Rules: s.rules}
	proxies := httplimit.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Service: service, SignIn: SignIn{Header: "X-Forwarded-User"}}, "SignIn requires TrustedProxies"},
		{Options{Service: service, Authz: proxies, SignIn: SignIn{Header: "cookie"}}, "has another meaning, or is invalid"},
		{Options{Service: service, Authz: proxies, SignIn: SignIn{Header: "X-Forwarded-For"}}, "has another meaning, or is invalid"},
		{Options{Service: service, Authz: proxies, SignIn: SignIn{Header: "X User"}}, "has another meaning, or is invalid"},
	} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
