package httplimit

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// What a rule can ask of a request.
func TestRead(t *testing.T) {
	m := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}]", Options{
		User:       func(r *http.Request) string { return r.Header.Get("X-User") },
		Tier:       func(r *http.Request) string { return "pro" },
		Attributes: func(r *http.Request) map[string]string { return map[string]string{"action": "post"} },
		Cost:       func(r *http.Request) int64 { return r.ContentLength },
	})
	r := httptest.NewRequest("POST", "http://Api.Example.com:8080/a%2Fb//c?q=1", strings.NewReader("12345"))
	r.RemoteAddr = "[2001:db8::7%eth0]:1234"
	r.Header.Set("X-User", "alice")
	r.Header.Set("X-API-Key", "secret")
	p := new(pass)
	m.read(p, r)
	q := p.request
	if q.IP != netip.MustParseAddr("2001:db8::7") || q.User != "alice" || q.APIKey != "secret" || q.Tier != "pro" || q.Method != "POST" ||
		q.Host != "Api.Example.com:8080" || q.Path != "/a%2Fb//c" || q.Attributes["action"] != "post" || q.Cost != 5 {
		t.Errorf("%+v", q)
	}
	if v := q.Values; v.Header("X-User") != "alice" || v.Header("Host") != r.Host || v.Header("X-None") != "" || v.Query("q") != "1" {
		t.Error("values are missing")
	}
	// A length that is not known is no cost.
	r.ContentLength = -1
	if m.read(p, r); p.request.Cost != 0 {
		t.Errorf("cost %d", p.request.Cost)
	}
	p.release()
	if p.request.Values != nil || p.request.APIKey != "" || p.values.r != nil {
		t.Error("a pass keeps what it has seen")
	}
}

// Who the user is, a proxy may write; anybody else may write what they like.
func TestUserHeader(t *testing.T) {
	o := Options{UserHeader: "x-user", TierHeader: "X-Tier", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	m := newBench(t, "rules: [{id: a, key: user, limit: 1/1h}]", o)
	for peer, believed := range map[string]bool{"10.1.2.3:1": true, "[::ffff:10.1.2.3]:1": true, "203.0.113.7:1": false, "@": false} {
		r := from(peer, "GET", "/")
		r.Header.Set("X-User", "alice")
		r.Header.Set("X-Tier", "pro")
		p := new(pass)
		m.read(p, r)
		if got := p.request.User == "alice" && p.request.Tier == "pro"; got != believed {
			t.Errorf("from %s: %+v", peer, p.request)
		}
	}
	o.TrustedProxies = nil
	if _, err := New(m.engine, o); err == nil {
		t.Error("a header is believed from nobody in particular")
	}
}

// By default a bearer token is no API key: it may be anything.
func TestDefaultAPIKey(t *testing.T) {
	m := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}]", Options{})
	r := from("203.0.113.7:1", "GET", "/?api_key=query")
	r.Header.Set("Authorization", "Bearer token")
	p := new(pass)
	if m.read(p, r); p.request.APIKey != "" || p.request.User != "" {
		t.Errorf("%+v", p.request)
	}
}

func TestPathOf(t *testing.T) {
	for target, want := range map[string]string{
		"/": "/", "/a%2fb": "/a%2fb", "//a/../b": "//a/../b", "http://x": "/", "*": "", "/a?b": "/a", "/%": "", "/a b": "/a%20b",
	} {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			if want != "" {
				t.Errorf("%q: %v", target, err)
			}
			continue
		}
		if got := pathOf(&http.Request{URL: u}); got != want {
			t.Errorf("%q: %q, want %q", target, got, want)
		}
	}
}

// Rules by all kinds of keys, through a server.
func TestKeys(t *testing.T) {
	for _, key := range []string{"header:X-Tenant", "cookie:session", "query:tenant", "api_key", "user", "attr:tenant"} {
		b := newBench(t, "rules: [{id: a, key: '"+key+"', limit: 1/1h}]", Options{
			User:       func(r *http.Request) string { return r.Header.Get("X-Tenant") },
			Attributes: func(r *http.Request) map[string]string { return map[string]string{"tenant": r.Header.Get("X-Tenant")} },
		})
		request := func(who string) *http.Request {
			r := from("203.0.113.7:1", "GET", "/?tenant="+who)
			r.Header.Set("X-Tenant", who)
			r.Header.Set("X-API-Key", who)
			r.AddCookie(&http.Cookie{Name: "session", Value: who})
			return r
		}
		codes := []int{b.send(request("a")).Code, b.send(request("b")).Code, b.send(request("a")).Code, b.ask().Code, b.ask().Code}
		if want := []int{200, 200, 429, 200, 200}; !slices.Equal(codes, want) {
			t.Errorf("%s: %v, want %v", key, codes, want)
		}
	}
}

// A cookie and a query parameter are what net/http says they are.
func FuzzValues(f *testing.F) {
	for _, s := range []string{
		"a=1", "b=2; a=1", `a="1"`, `a="`, "a", "a=", " a = 1 ;a=2", "a=\x00;a=2", "a=1&a=2", "%61=1", "a=%31", "a=%", "%=1&a=2",
		"b=1;a=2&a=3", "a+b=1", "a=1+2", "&&a=1", "=1", "a==1", ";", "A=1",
	} {
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		r := &http.Request{URL: &url.URL{RawQuery: text}, Header: http.Header{"Cookie": {text, "a=last"}}}
		v := values{r}
		if got, want := v.Query(name), r.URL.Query().Get(name); got != want && strings.Count(text, "&") < 1000 {
			t.Errorf("query %q of %q: %q, want %q", name, text, got, want)
		}
		want := ""
		if c, err := r.Cookie(name); err == nil {
			want = c.Value
		}
		if got := v.Cookie(name); got != want && isToken(name) && strings.Count(text, ";") < 1000 {
			t.Errorf("cookie %q of %q: %q, want %q", name, text, got, want)
		}
	})
}

// isToken reports whether a name can be a cookie's.
func isToken(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == ""
}

var _ rule.Values = new(values)
