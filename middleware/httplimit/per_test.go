package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/store/memory"
)

// ask sends a request with some headers, and returns the status and the policy.
func ask(h http.Handler, headers ...string) (int, string) {
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Header().Get("RateLimit-Policy")
}

func TestPer(t *testing.T) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	user := func(r *http.Request) string { return r.Header.Get("User") }
	for name, c := range map[string]struct {
		wrap   func(http.Handler) http.Handler
		header []string
		policy string
	}{
		"ip":      {httplimit.PerIP("sliding_log 1/1h"), nil, `"per-ip";q=1;w=3600`},
		"header":  {httplimit.PerHeader("X-API-Key", "sliding_log 1/1h"), []string{"X-API-Key", "a"}, `"per-header-x-api-key";q=1;w=3600`},
		"user":    {httplimit.Per(user, "sliding_log 1/1h"), []string{"User", "a"}, `"per-user";q=1;w=3600`},
		"name":    {httplimit.Options{Name: "login"}.PerIP("sliding_log 1/1h"), nil, `"login";q=1;w=3600`},
		"options": {httplimit.Options{Headers: httplimit.NoHeaders}.PerIP("sliding_log 1/1h"), nil, ""},
	} {
		h := c.wrap(next)
		for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			if code, policy := ask(h, c.header...); code != want || policy != c.policy {
				t.Errorf("%s, request %d: %d, %q; want %d, %q", name, i+1, code, policy, want, c.policy)
			}
		}
	}
}

// Names keep those apart that share a store.
func TestPerSharesAStore(t *testing.T) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	o := httplimit.Options{Store: memory.New(memory.Options{})}
	login := httplimit.Options{Store: o.Store, Name: "login"}
	one, other, apart := o.PerIP("sliding_log 1/1h")(next), o.PerIP("sliding_log 1/1h")(next), login.PerIP("sliding_log 1/1h")(next)
	for i, c := range []struct {
		h    http.Handler
		want int
	}{{one, 200}, {other, 429}, {apart, 200}} {
		if code, _ := ask(c.h); code != c.want {
			t.Errorf("request %d: %d, want %d", i+1, code, c.want)
		}
	}
}

// Behind a trusted proxy, the client is the one that the proxy names.
func TestPerIPBehindAProxy(t *testing.T) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	o := httplimit.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	behind, alone := o.PerIP("sliding_log 1/1h")(next), httplimit.PerIP("sliding_log 1/1h")(next)
	for i, want := range []struct{ behind, alone int }{{200, 200}, {200, 429}} {
		forwarded := []string{"X-Forwarded-For", []string{"198.51.100.1", "198.51.100.2"}[i]}
		if code, _ := ask(behind, forwarded...); code != want.behind {
			t.Errorf("request %d behind a proxy: %d, want %d", i+1, code, want.behind)
		}
		if code, _ := ask(alone, forwarded...); code != want.alone {
			t.Errorf("request %d of an untrusted proxy: %d, want %d", i+1, code, want.alone)
		}
	}
}

func TestPerOfAMistake(t *testing.T) {
	for want, try := range map[string]func(){
		`httplimit: limit "100": weir: limit`: func() { httplimit.PerIP("100") },
		`httplimit: `:                         func() { httplimit.PerHeader("not a header", "1/1m") },
		"httplimit: Per requires a function":  func() { httplimit.Per(nil, "1/1m") },
		`httplimit: MaxDelayed`:               func() { httplimit.Options{MaxDelayed: -1}.PerIP("1/1m") },
	} {
		func() {
			defer func() {
				if said, _ := recover().(error); said == nil || !strings.HasPrefix(said.Error(), want) {
					t.Errorf("it said %v, want %q", said, want)
				}
			}()
			try()
		}()
	}
	e, err := engine.New(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := httplimit.New(e, httplimit.Options{Name: "x"}); err == nil {
		t.Error("a middleware with an engine takes a name")
	}
}
