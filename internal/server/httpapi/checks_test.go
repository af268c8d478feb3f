package httpapi

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/middleware/httplimit"
)

// Tokens of those who check.
const (
	checkToken  = "a-check-token-of-the-tests"
	chargeToken = "a-charge-token-of-the-tests"
	loginToken  = "a-login-token-of-the-tests"
	euToken     = "a-token-for-users-in-the-eu"
	shopToken   = "a-token-of-an-application"
)

// newClosedStand is a stand that listens, where a check takes a token.
func newClosedStand(t testing.TB) *stand {
	t.Helper()
	list, err := trust.ParseTokens([]byte(strings.Join([]string{
		"alice admin " + adminToken, "bob read " + readerToken, "edge check " + checkToken, "billing charge " + chargeToken,
		"login check rules=login " + loginToken, "eu check clients=user:eu-*,ip:* charge rules=api clients=user:eu-* " + euToken,
		"shop use check " + shopToken,
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	guard, err := manage.NewGuard(manage.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tokens, log := func() *trust.List { return list }, new(bytes.Buffer)
	logger := slog.New(slog.NewTextHandler(log, nil))
	s := newStand(t, Options{
		Service: manage.Service{Tokens: tokens, Guard: guard, Checks: manage.NewChecks(tokens, guard, logger), Logger: logger},
		Authz:   httplimit.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	s.log = log
	return s.serve()
}

const victim = `{"user":"victim","path":"/api/x","cost":100000,"charge":"always"}`

// Nobody charges anybody without a token that is good for it, by whatever route.
func TestWhoMayCharge(t *testing.T) {
	s := newClosedStand(t)
	hold := `{"hold":"` + strings.Repeat("0", 32) + `"`
	for _, c := range []struct {
		what, body, token string
		want              *fault.Kind // nil is an answer
		words             string
	}{
		{"POST /v1/check", victim, "", fault.TokenRequired, "Weir-Token"},
		{"POST /v1/check", victim, "wrong-but-long-enough-for-one", fault.InvalidToken, ""},
		{"POST /v1/check", victim, readerToken, fault.Forbidden, "The token of bob has the rights read; use one with the right charge."},
		{"POST /v1/check", victim, checkToken, fault.Forbidden, "The token of edge has the rights check; use one with the right charge."},
		{"POST /v1/check", victim, euToken, fault.Forbidden, `The token of eu has the right charge, but not for the rule api and the client "user:victim"`},
		{"POST /v1/check", `{"user":"victim","path":"/api/x"}`, readerToken, fault.Forbidden, "with the right check"},
		{"POST /v1/check", `{"user":"victim","path":"/api/x"}`, euToken, fault.Forbidden, `but not for the rule api and the client "user:victim"`},
		{"POST /v1/check", `{"user":"victim","path":"/api/x"}`, loginToken, fault.Forbidden, "the right check, but not for the rule api"},
		{"POST /v1/check", `{"user":"victim","path":"/api/x","peek":true}`, euToken, fault.Forbidden, "the right check, but not for the rule api"},
		{"POST /v1/reserve", `{"user":"victim","path":"/api/x"}`, "", fault.TokenRequired, ""},
		{"POST /v1/reserve", `{"user":"victim","path":"/api/x"}`, euToken, fault.Forbidden, ""},
		{"POST /v1/settle", hold + `,"used":1}`, "", fault.TokenRequired, ""},
		{"POST /v1/settle", hold + `,"used":1}`, readerToken, fault.Forbidden, "with the right check"},
		{"POST /v1/cancel", hold + `}`, readerToken, fault.Forbidden, "with the right check"},
		{"POST /v1/extend", hold + `}`, readerToken, fault.Forbidden, "with the right check"},
		{"GET /v1/authz", "", "", fault.TokenRequired, ""},
		{"GET /v1/authz", "", readerToken, fault.Forbidden, "with the right check"},

		{"POST /v1/check", `{"user":"alice","path":"/api/x","peek":true}`, readerToken, nil, ""},
		{"POST /v1/check", `{"user":"alice","path":"/api/x"}`, checkToken, nil, ""},
		{"POST /v1/check", `{"user":"alice","path":"/api/x"}`, adminToken, nil, ""},
		{"POST /v1/check", `{"user":"alice","path":"/api/x","charge":"always"}`, adminToken, nil, ""},
		{"POST /v1/check", `{"user":"alice","path":"/api/x","charge":"always"}`, chargeToken, nil, ""},
		{"POST /v1/check", `{"user":"eu-1","path":"/api/x"}`, euToken, nil, ""},
		{"POST /v1/check", `{"user":"eu-1","path":"/api/x","charge":"always"}`, euToken, nil, ""},
		{"POST /v1/reserve", `{"user":"alice","path":"/api/x"}`, checkToken, nil, ""},
		{"POST /v1/settle", hold + `,"used":1}`, checkToken, fault.HoldUnknown, ""},
	} {
		t.Run(c.what+" "+c.token+" "+c.body, func(t *testing.T) {
			for _, header := range []string{"Authorization: Bearer ", "Weir-Token: "} {
				if strings.Contains(c.what, "authz") && header[0] == 'A' {
					continue
				}
				var headers []string
				if c.token != "" {
					headers = []string{header + c.token}
				}
				if r := s.call(c.what, c.body, headers...); c.want == nil {
					r.want(t, 200, nil)
				} else {
					r.wantProblem(t, c.want, c.words)
				}
			}
		})
	}
	var a CheckAnswer
	if s.call("POST /v1/check", `{"user":"victim","path":"/api/x","peek":true}`, as(readerToken)).want(t, 200, &a); !a.Allowed || a.Remaining != a.Limit {
		t.Errorf("the victim was charged: %+v", a)
	}
}

// A proxy sends its own token; what its client sends as Authorization is no token of weir.
func TestAuthzToken(t *testing.T) {
	s := newClosedStand(t)
	ask := func(headers ...string) *reply {
		return s.call("GET /v1/authz?deny_status=429", "", append(headers, "X-Original-Method: POST", "X-Original-URI: /api/login", "X-Forwarded-For: 198.51.100.7")...)
	}
	ask(as(adminToken)).wantProblem(t, fault.TokenRequired)
	ask("Weir-Token: "+checkToken, as("of-the-client-of-the-proxy")).want(t, 200, nil)
	ask("Weir-Token: "+loginToken).want(t, 200, nil)
	ask("Weir-Token: "+loginToken).want(t, 429, nil) // by the limit
	ask("Weir-Token: "+checkToken, "Weir-Token: "+checkToken).wantProblem(t, fault.TokenRequired)
	ask("Weir-Token: ", as(checkToken)).wantProblem(t, fault.TokenRequired)

	// Wrong tokens are the proxy's, and lock none of its clients out of the management.
	for range 20 {
		ask("Weir-Token: wrong-but-long-enough-for-one").wantProblem(t, fault.InvalidToken)
	}
	s.call("GET /v1/whoami", "", as(adminToken), "X-Forwarded-For: 198.51.100.7").want(t, 200, nil)
	if log := s.log.String(); !strings.Contains(log, `msg="check rejected" error="manage: unknown token; send one from the server's token file" holder="" client=127.0.0.1`) {
		t.Error(log)
	}

	login := func(uri string) *reply {
		return s.call("GET /v1/authz?deny_status=429", "", "Weir-Token: "+loginToken, "X-Original-URI: "+uri, "X-Tenant: acme", "X-Forwarded-For: 198.51.100.8")
	}
	login("/safe").wantProblem(t, fault.Forbidden, "the right check, but not for the rule safe")
	if r := login("/other").want(t, 200, nil); r.Header.Get("RateLimit") != "" {
		t.Errorf("a shadow rule applies that the token has no right for: %v", r.Header)
	}
}

// The log says who charges what does not fit, who settles more than was reserved, and whose
// checks are rejected; but no token, and not every line of a flood.
func TestChargeLog(t *testing.T) {
	s := newClosedStand(t)
	s.call("POST /v1/check", `{"user":"alice","path":"/api/x","charge":"always","cost":7}`, as(chargeToken)).want(t, 200, nil)
	s.call("POST /v1/check", victim, as(chargeToken)).want(t, 200, nil)
	s.call("POST /v1/check", victim, as(checkToken)).wantProblem(t, fault.Forbidden)
	var a CheckAnswer
	s.call("POST /v1/reserve", `{"user":"carol","path":"/api/x"}`, as(checkToken)).want(t, 200, &a)
	for range 10 { // which have lines of their own
		s.call("POST /v1/check", `{"user":"alice","path":"/api/x","charge":"always"}`, as(chargeToken)).want(t, 200, nil)
	}
	s.call("POST /v1/settle", `{"hold":"`+a.Hold+`","used":500}`, as(checkToken)).want(t, 200, nil)
	s.call("POST /v1/reserve", `{"user":"dora","path":"/api/x"}`, as(checkToken)).want(t, 200, &a)
	s.store.lost.Store(true)
	s.call("POST /v1/settle", `{"hold":"`+a.Hold+`","used":600}`, as(checkToken)).want(t, 202, nil)
	s.store.lost.Store(false)
	for range 40 {
		s.call("POST /v1/check", victim, as(chargeToken)).want(t, 200, nil)
		s.call("POST /v1/check", victim, as("wrong-but-long-enough-for-one")).wantProblem(t, fault.InvalidToken)
	}
	log := s.log.String()
	for _, line := range []string{
		`level=INFO msg="charged always" rules=api key=user:alice cost=7 fitted=true holder=billing client=127.0.0.1`,
		`level=INFO msg="charged always" rules=api key=user:victim cost=100000 fitted=false holder=billing client=127.0.0.1`,
		`level=INFO msg="settled more than was reserved" rule=api reserved=1 used=500 holder=edge client=127.0.0.1`,
		`level=INFO msg="settled while the store is unavailable" used=600 holder=edge client=127.0.0.1`,
		`level=WARN msg="check rejected" error="manage: The token of edge has the rights check; use one with the right charge." holder=edge client=127.0.0.1`,
		`level=WARN msg="check rejected" error="manage: unknown token; send one from the server's token file" holder="" client=127.0.0.1`,
	} {
		if !strings.Contains(log, line) {
			t.Errorf("the log lacks %s\n%s", line, log)
		}
	}
	if n := strings.Count(log, "fitted=false"); n != 10 {
		t.Errorf("%d lines of a flood", n)
	}
	if strings.Contains(log, chargeToken) || strings.Contains(log, "wrong-but") {
		t.Errorf("the log has a token: %s", log)
	}
	// Those who have tried many wrong tokens lock nobody at the same address out, and find no
	// token of an admin.
	s.call("POST /v1/check", "{}", as(checkToken)).want(t, 200, nil)
	s.call("POST /v1/check", "{}", as(shopToken)).want(t, 200, nil)
	s.call("POST /v1/check", "{}", as(adminToken)).wantProblem(t, fault.InvalidToken)
}

// Without tokens, everything is as it is on a machine of one's own; who charges is logged.
func TestOpenChecks(t *testing.T) {
	s := newStand(t, Options{}).serve()
	s.call("POST /v1/check", victim).want(t, 200, nil)
	if log := s.log.String(); !strings.Contains(log, `msg="charged always" rules=api key=user:victim cost=100000 fitted=false holder="" client=127.0.0.1`) {
		t.Error(log)
	}
}
