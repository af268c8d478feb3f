package httplimit

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testissuer"
	"github.com/weirhq/weir/middleware/jwt"
)

// verifier is one that has the keys of an issuer.
func verifier(t testing.TB, issuer *testissuer.Issuer, required bool, attributes map[string]string) *jwt.Verifier {
	t.Helper()
	v, err := jwt.New(jwt.Options{
		Issuers: []jwt.Issuer{{URL: issuer.URL, Audience: []string{"api"}}}, Required: required, Attributes: attributes,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return v
}

// with sends a request with some headers, and returns the answer.
func (b *bench) with(headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

const byToken = `rules:
- {id: org, key: [attr:org], algorithm: fixed_window, limit: 2/1h}
- {id: user, key: [user], algorithm: fixed_window, limit: 5/1h, tiers: {gold: 100/1h}}
- {id: ip, key: [ip], algorithm: fixed_window, limit: 20/1h}
`

// The user, the tier and attributes come from the token, and from no header of the client.
func TestToken(t *testing.T) {
	issuer := testissuer.New(t)
	v := verifier(t, issuer, false, map[string]string{"user": "jwt.claims.sub", "org": "jwt.claims.org", "tier": "jwt.claims.plan"})
	b := newBench(t, byToken, Options{Token: v.Verify, UserHeader: "X-User", TierHeader: "X-Tier", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	ann := issuer.Bearer(t, map[string]any{"sub": "ann", "org": "acme"})
	for n, want := range []int{200, 200, 429} {
		if w := b.with("Authorization", ann, "X-User", "eve", "X-Tier", "gold"); w.Code != want {
			t.Fatalf("request %d: %d %s", n, w.Code, w.Body)
		}
	}
	if w := b.with("Authorization", issuer.Bearer(t, map[string]any{"sub": "bob", "org": "acme"})); w.Code != 429 || !strings.Contains(w.Body.String(), `"org"`) {
		t.Errorf("another user of the organization: %d %s", w.Code, w.Body)
	}
	gold := issuer.Bearer(t, map[string]any{"sub": "cid", "plan": "gold"})
	if w := b.with("Authorization", gold); w.Header().Get("X-RateLimit-Limit") == "" || !strings.Contains(w.Header().Get("RateLimit-Policy"), `"user";q=100`) {
		t.Errorf("a tier: %v", w.Header())
	}
	if w := b.with("X-User", "dan"); !strings.Contains(w.Header().Get("RateLimit-Policy"), `"user";q=5`) {
		t.Errorf("without a token the proxy tells: %v", w.Header())
	}
}

// Whoever has no valid token has no identity, but an address.
func TestInvalidTokenIsNoIdentity(t *testing.T) {
	issuer, other := testissuer.New(t), testissuer.New(t)
	b := newBench(t, byToken, Options{Token: verifier(t, issuer, false, nil).Verify})
	forged := other.Bearer(t, map[string]any{"iss": issuer.URL, "sub": "ann"})
	for _, header := range []string{forged, "Bearer x", "Basic YTpi", ""} {
		w := b.with("Authorization", header)
		if policy := w.Header().Get("RateLimit-Policy"); w.Code != 200 || strings.Contains(policy, "user") || !strings.Contains(policy, `"ip"`) {
			t.Errorf("%.10s: %d %s", header, w.Code, policy)
		}
	}
	good := issuer.Bearer(t, map[string]any{"sub": "ann"})
	w := b.with("Authorization", good, "Authorization", forged)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "too many values for header Authorization") || b.served.Load() != 4 {
		t.Errorf("two headers: %d %s", w.Code, w.Body)
	}
}

func TestRequiredToken(t *testing.T) {
	issuer := testissuer.New(t)
	b := newBench(t, byToken, Options{Token: verifier(t, issuer, true, nil).Verify})
	if w := b.with("Authorization", issuer.Bearer(t, map[string]any{"sub": "ann"})); w.Code != 200 {
		t.Errorf("a valid token: %d %s", w.Code, w.Body)
	}
	w := b.with()
	if w.Code != 401 || w.Header().Get("WWW-Authenticate") != "Bearer" || !strings.Contains(w.Body.String(), `"title":"Unauthorized","status":401,"detail":"An access token is required`) {
		t.Errorf("no token: %d %v %s", w.Code, w.Header(), w.Body)
	}
	w = b.with("Authorization", issuer.Bearer(t, map[string]any{"exp": 1000}))
	if want := `Bearer error="invalid_token", error_description="The access token is invalid: it has expired."`; w.Code != 401 || w.Header().Get("WWW-Authenticate") != want {
		t.Errorf("an expired token: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if b.served.Load() != 1 {
		t.Errorf("%d were served", b.served.Load())
	}
}

func BenchmarkToken(b *testing.B) {
	issuer := testissuer.New(b)
	for name, token := range map[string]bool{"with": true, "without": false} {
		b.Run(name, func(b *testing.B) {
			o := Options{User: func(*http.Request) string { return "ann" }}
			if token {
				o = Options{Token: verifier(b, issuer, false, nil).Verify}
			}
			m := newLiveBench(b, `rules: [{id: user, key: [user], limit: 1000000000/1h}]`, o)
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Authorization", issuer.Bearer(b, map[string]any{"sub": "ann", "pad": strings.Repeat("x", 570)}))
			b.ReportAllocs()
			for b.Loop() {
				m.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
