package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testissuer"
	"github.com/weirhq/weir/middleware/jwt"
)

const byOrg = `rules:
- {id: user, key: user, algorithm: fixed_window, limit: 2/1h, tiers: {pro: 4/1h}}
- {id: org, key: attr:org, algorithm: fixed_window, limit: 5/1h}
- {id: ip, key: ip, algorithm: fixed_window, limit: 1000/1h}
`

// The gateway and /v1/authz know the user and an attribute from the token, and the tier from the file of clients. A
// proxy that asks needs its own token beside that of its client.
func TestJWT(t *testing.T) {
	issuer := testissuer.New(t)
	clients := filepath.Join(t.TempDir(), "clients.ndjson")
	testkit.OK(t, os.WriteFile(clients, []byte(`{"client": "user:ann", "parent": "org:acme"}
{"client": "org:acme", "tier": "pro"}`), 0o600))
	seen := make(chan http.Header, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen <- r.Header; w.WriteHeader(http.StatusNoContent) }))
	defer upstream.Close()
	o, _ := prepared(t, Options{
		Clients: Clients{File: clients}, Token: "0123456789abcdef", Gateway: &Gateway{Listen: "127.0.0.1:0"},
		JWT: jwt.Options{
			Issuers:    []jwt.Issuer{{URL: issuer.URL, Audience: []string{"api"}}},
			Attributes: map[string]string{"user": "jwt.claims.sub", "org": "jwt.claims.org"},
		},
	}, byOrg)
	o.Gateway.Routes = routes(t, upstream.URL)
	a := started(t, o)
	gateway, api := "http://"+a.Addrs().Gateway.String(), "http://"+a.Addrs().HTTP.String()
	ann := issuer.Bearer(t, map[string]any{"sub": "ann", "org": "acme"})
	bob := issuer.Bearer(t, map[string]any{"sub": "bob", "org": "acme"})
	authz := func(token string) (int, string) {
		return ask(t, nil, "GET", api+"/v1/authz", "", "Authorization", token, "Weir-Token", "0123456789abcdef", "X-Original-URI", "/orders")
	}
	for range 3 {
		if status, body := ask(t, nil, "GET", gateway+"/", "", "Authorization", ann, "X-User", "eve"); status != http.StatusNoContent {
			t.Fatalf("ann: %d %s", status, body)
		}
		if h := <-seen; h.Get("Authorization") != ann {
			t.Errorf("the upstream gets %v", h)
		}
	}
	for n, c := range []struct {
		token  string
		status int
		by     string
	}{{ann, 200, ""}, {ann, 429, `"user"`}, {bob, 200, ""}, {bob, 429, `"org"`}} {
		if status, body := authz(c.token); status != c.status || !strings.Contains(body, c.by) {
			t.Errorf("question %d: %d %s", n, status, body)
		}
	}
	if status, _ := ask(t, nil, "GET", gateway+"/", "", "Authorization", "Bearer x"); status != http.StatusNoContent {
		t.Errorf("without a valid token: %d", status)
	}
	<-seen
	_, body := ask(t, nil, "GET", api+"/metrics", "")
	for result, n := range map[string]int{"valid": 7, "malformed": 1, "expired": 0} {
		if want := fmt.Sprintf("weir_tokens_total{result=%q} %d\n", result, n); !strings.Contains(body, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// weir starts without an issuer, and says so; a wrong setting keeps it from starting.
func TestIssuerIsAway(t *testing.T) {
	issuer := jwt.Issuer{URL: "http://127.0.0.1:1", Audience: []string{"api"}}
	o, log := prepared(t, Options{JWT: jwt.Options{Issuers: []jwt.Issuer{issuer}, Required: true}}, byOrg)
	a := started(t, o)
	if status, body := ask(t, nil, "GET", "http://"+a.Addrs().HTTP.String()+"/v1/authz?deny_status=403", "", "X-Original-URI", "/"); status != http.StatusUnauthorized {
		t.Errorf("no token: %d %s", status, body)
	}
	if !strings.Contains(log.String(), "could not read the keys of the issuer") {
		t.Errorf("the log is %s", log)
	}
	if status, body := ask(t, nil, "GET", "http://"+a.Addrs().HTTP.String()+"/readyz", ""); status != http.StatusOK || !strings.Contains(body, "its tokens are not valid") || strings.Contains(body, issuer.URL) {
		t.Errorf("/readyz: %d %s", status, body)
	}
	issuer.JWKS = filepath.Join(t.TempDir(), "missing")
	o, _ = prepared(t, Options{JWT: jwt.Options{Issuers: []jwt.Issuer{issuer}}}, byOrg)
	if a, err := New(o); err != nil {
		t.Fatal(err)
	} else if err := a.Start(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "--jwt: the issuer") {
		t.Errorf("it starts: %v", err)
	}
	if _, err := New(Options{JWT: jwt.Options{Required: true}}); err == nil || !strings.Contains(err.Error(), "require --jwt") {
		t.Errorf("without an issuer: %v", err)
	}
}

func TestParseIssuers(t *testing.T) {
	got, err := ParseIssuers("issuer=https://a,audience=api shop; issuer=https://b,audience=api,jwks=https://b/keys?x=y,algorithms=RS256 ES256")
	if err != nil || fmt.Sprint(got) != "[{https://a [api shop]  []} {https://b [api] https://b/keys?x=y [RS256 ES256]}]" {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"https://a":                        "write name=value",
		"audience=api":                     "write the issuer there",
		"issuer=https://a,audiences=api":   `did you mean "audience"?`,
		"issuer=https://a,audience=a,jwks": "write name=value",
	} {
		if _, err := ParseIssuers(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	all, err := ParseAttributes([]string{"org=jwt.claims.org", `staff = "a" == "a" ? "yes" : ""`})
	if err != nil || len(all) != 2 || all["staff"] != `"a" == "a" ? "yes" : ""` {
		t.Errorf("%v, %v", all, err)
	}
	for _, bad := range [][]string{{"org"}, {"=x"}, {"org="}, {"a=b", "a=c"}} {
		if _, err := ParseAttributes(bad); err == nil {
			t.Errorf("%v is valid", bad)
		}
	}
}
