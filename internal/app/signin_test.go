package app

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/middleware/httplimit"
)

// callAsPage calls a server as its own page would, and returns the status.
func callAsPage(t *testing.T, a *App, method, path, body string, into any, header ...string) (int, []*http.Cookie) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.Addrs().HTTP.String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	if into != nil && answer.StatusCode == http.StatusOK {
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	return answer.StatusCode, answer.Cookies()
}

// Where a proxy signs people in, nobody else gets in, although there are no tokens.
func TestSignIn(t *testing.T) {
	o, _ := prepared(t, Options{
		Limits: httplimit.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, SignInHeader: "X-Forwarded-User", SignInScope: trust.Admin,
	}, "rules: []\n")
	a := started(t, o)
	if status, _ := callAsPage(t, a, "GET", "/v1/rules", "", nil); status != 401 {
		t.Errorf("without a name: %d", status)
	}
	if status, _ := callAsPage(t, a, "POST", "/v1/rules", "{id: a, key: ip, limit: 1/1s}", nil, "X-Forwarded-User", "carol"); status != 201 {
		t.Errorf("with a name: %d", status)
	}
	var history struct{ Versions []struct{ Author string } }
	if status, _ := callAsPage(t, a, "GET", "/v1/rules/history", "", &history, "X-Forwarded-User", "carol"); status != 200 || history.Versions[0].Author != "carol" {
		t.Errorf("%d %+v", status, history)
	}
	o.Limits.TrustedProxies[0] = netip.MustParsePrefix("10.0.0.0/8")
	other := started(t, o)
	if status, _ := callAsPage(t, other, "GET", "/v1/rules", "", nil, "X-Forwarded-User", "carol", "X-Forwarded-For", "10.0.0.1"); status != 401 {
		t.Errorf("from elsewhere: %d", status)
	}
	o.Limits.TrustedProxies = nil
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "--sign-in-header requires --trusted-proxies") {
		t.Error(err)
	}
}

// A session ends on every instance soon after its token is taken out of the file.
func TestSessionEndsWithItsToken(t *testing.T) {
	const alice, bob = "alice admin a1b2c3d4e5f60718293a4b5c6d7e8f90\n", "bob read 0123456789abcdef0123456789abcdef\n"
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(alice+bob), 0o600); err != nil {
		t.Fatal(err)
	}
	o, _ := prepared(t, Options{TokenFile: file}, "rules: []\n")
	first := started(t, o)
	o.Rules = filepath.Join(t.TempDir(), "other.yaml")
	second := started(t, o)
	status, cookies := callAsPage(t, first, "POST", "/v1/session", `{"token":"a1b2c3d4e5f60718293a4b5c6d7e8f90"}`, nil)
	if status != 204 || len(cookies) != 1 {
		t.Fatalf("%d %v", status, cookies)
	}
	who := func(a *App) int {
		status, _ := callAsPage(t, a, "GET", "/v1/whoami", "", nil, "Cookie", cookies[0].Name+"="+cookies[0].Value)
		return status
	}
	if who(first) != 200 || who(second) != 200 {
		t.Fatal("the session is not known everywhere")
	}
	if err := os.WriteFile(file, []byte(bob), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, a := range []*App{first, second} {
		for begun := time.Now(); who(a) != 401; {
			if time.Since(begun) > 2*time.Minute {
				t.Fatal("the session lasts on")
			}
		}
	}
}
