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
	m.readRequest(p, r)
	q := p.request
	if q.IP != netip.MustParseAddr("2001:db8::7") || q.User != "alice" || q.APIKey != "secret" || q.Tier != "pro" || q.Method != "POST" ||
		q.Host != "Api.Example.com:8080" || q.Path != "/a%2Fb//c" || q.Attributes["action"] != "post" || q.Cost != 5 {
		t.Errorf("%+v", q)
	}
	if v := q.Values; one(v.Header("X-User", 0)) != "alice" || one(v.Header("X-None", 0)) != "" || one(v.Query("q", 0)) != "1" {
		t.Error("values are missing")
	}
	// A length that is not known is no cost.
	r.ContentLength = -1
	if m.readRequest(p, r); p.request.Cost != 0 {
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
		m.readRequest(p, r)
		if got := p.request.User == "alice" && p.request.Tier == "pro"; got != believed {
			t.Errorf("from %s: %+v", peer, p.request)
		}
	}
	o.TrustedProxies = nil
	if _, err := New(m.engine, o); err == nil {
		t.Error("a header is trusted from any sender")
	}
}

// By default a bearer token is no API key: it may be anything.
func TestDefaultAPIKey(t *testing.T) {
	m := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}]", Options{})
	r := from("203.0.113.7:1", "GET", "/?api_key=query")
	r.Header.Set("Authorization", "Bearer token")
	p := new(pass)
	if m.readRequest(p, r); p.request.APIKey != "" || p.request.User != "" {
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

// A client that sends several values counts as each of them, in any order. So a client
// cannot become another one with a further value.
func TestSeveralIdentities(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	for key, add := range map[string]func(r *http.Request, who string){
		"header:X-Tenant": func(r *http.Request, who string) { r.Header.Add("X-Tenant", who) },
		"cookie:session":  func(r *http.Request, who string) { r.AddCookie(&http.Cookie{Name: "session", Value: who}) },
		"cookie:lines":    func(r *http.Request, who string) { r.Header.Add("Cookie", "lines="+who) },
		"query:tenant":    func(r *http.Request, who string) { r.URL.RawQuery += "&tenant=" + who },
		"api_key":         func(r *http.Request, who string) { r.Header.Add("X-API-Key", who) },
		"user":            func(r *http.Request, who string) { r.Header.Add("X-User", who) },
	} {
		b := newBench(t, "rules: [{id: a, key: '"+key+"', algorithm: fixed_window, limit: 2/1d}]", Options{UserHeader: "X-User", TrustedProxies: proxies})
		code := func(who ...string) int {
			r := from("203.0.113.7:1", "GET", "/")
			for _, one := range who {
				add(r, one)
			}
			return b.send(r).Code
		}
		var codes []int
		for _, who := range [][]string{{"real"}, {"junk1", "real"}, {"junk2", "real"}, {"real", "junk3"}, {"", "real"}, {"junk1"}, {"junk1"}, {"same", "same"}, {"same"}, {"same"}} {
			codes = append(codes, code(who...))
		}
		// A denied request costs nothing: junk2 is fully reset.
		codes = append(codes, code("junk2"), code("junk2"), code("junk2"))
		if want := []int{200, 200, 429, 429, 429, 200, 429, 200, 200, 429, 200, 200, 429}; !slices.Equal(codes, want) {
			t.Errorf("%s: %v, want %v", key, codes, want)
		}
		if got := code("1", "2", "3", "4", "5", "6", "7", "8"); got != 200 {
			t.Errorf("%s, eight at once: %d", key, got)
		}
		if got := code("1", "2", "3", "4", "5", "6", "7", "8", "9"); got != 400 {
			t.Errorf("%s, nine at once: %d", key, got)
		}
	}
}

// Who is limited twice under a limit is told of it once.
func TestSeveralInHeaders(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: 'header:X-Tenant', algorithm: fixed_window, limits: [2/1d, 9/2d]}]", Options{})
	r := from("203.0.113.7:1", "GET", "/")
	r.Header["X-Tenant"] = []string{"x"}
	b.send(r)
	r.Header["X-Tenant"] = []string{"x", "y"}
	w := b.send(r)
	if got := w.Header().Get("RateLimit-Policy"); got != `"a:1d";q=2;w=86400, "a:2d";q=9;w=172800` || !strings.HasPrefix(w.Header().Get("RateLimit"), `"a:1d";r=0;`) {
		t.Errorf("%s, %s", got, w.Header().Get("RateLimit"))
	}
	r.Header["X-Tenant"] = []string{"y", "x", "y"}
	if w := b.send(r); w.Code != 429 || strings.Count(w.Body.String(), "a:1d") != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// With two tiers it is unknown which one is meant.
func TestTwoTiers(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: global, limit: 1/1d, tiers: {pro: unlimited}}]",
		Options{TierHeader: "X-Tier", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	for _, c := range []struct {
		tiers []string
		code  int
	}{{[]string{"pro"}, 200}, {[]string{"free"}, 200}, {[]string{"pro", "pro"}, 200}, {[]string{"free"}, 429}, {[]string{"pro", "free"}, 400}, {[]string{"free"}, 429}, {[]string{"free", "pro"}, 400}, {[]string{"", "pro"}, 400}} {
		r := from("203.0.113.7:1", "GET", "/")
		r.Header["X-Tier"] = c.tiers
		w := b.send(r)
		if w.Code != c.code {
			t.Errorf("%q: %d, want %d", c.tiers, w.Code, c.code)
		}
		for name := range w.Header() { // of the request before
			if c.code == 400 && strings.HasPrefix(strings.ToLower(name), "ratelimit") {
				t.Errorf("%q: %s: %q", c.tiers, name, w.Header()[name])
			}
		}
	}
}

// How important a request is, a proxy may write; a client cannot raise it.
func TestPriorityHeader(t *testing.T) {
	o := Options{PriorityHeader: "x-priority", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	m := newBench(t, "rules: [{id: a, key: ip, limit: unlimited, priority: low}]", o)
	for _, c := range []struct {
		peer   string
		values []string
		want   rule.Priority
		code   int
	}{
		{"10.1.2.3:1", []string{"critical"}, rule.Critical, 200}, {"10.1.2.3:1", nil, 0, 200}, {"10.1.2.3:1", []string{"high", "high"}, rule.High, 200},
		{"10.1.2.3:1", []string{"high", "low"}, 0, 400}, {"10.1.2.3:1", []string{"urgent"}, 0, 400}, {"10.1.2.3:1", []string{strings.Repeat("x", 1<<16)}, 0, 400},
		{"203.0.113.7:1", []string{"critical"}, 0, 200}, {"203.0.113.7:1", []string{"nonsense", "critical"}, 0, 200},
	} {
		r := from(c.peer, "GET", "/")
		r.Header["X-Priority"] = c.values
		p := new(pass)
		if err := m.readRequest(p, r); p.request.Priority != c.want || (err == nil) != (c.code == 200) {
			t.Errorf("%.40q from %s: %v, %v", c.values, c.peer, p.request.Priority, err)
		}
		if w := m.send(r); w.Code != c.code {
			t.Errorf("%.40q from %s: %d, want %d", c.values, c.peer, w.Code, c.code)
		}
	}
	o.TrustedProxies = nil
	if _, err := New(m.engine, o); err == nil {
		t.Error("a header is trusted from any sender")
	}
	b := newBench(t, "rules: [{id: a, key: ip, limit: 2/1h, shares: {low: 50%}}]", Options{Priority: func(r *http.Request) rule.Priority {
		if r.URL.Path == "/odd" {
			return 99
		}
		return rule.Low
	}})
	codes := []int{b.send(from("203.0.113.7:1", "GET", "/")).Code, b.send(from("203.0.113.7:1", "GET", "/")).Code, b.send(from("203.0.113.7:1", "GET", "/odd")).Code}
	if want := []int{200, 429, 400}; !slices.Equal(codes, want) {
		t.Errorf("by a function: %v, want %v", codes, want)
	}
}

// A cookie is the same one however it is written.
func TestCookieSpellings(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: 'cookie:sid', limit: 1/1d}]", Options{})
	for i, cookie := range []string{"sid=x;", `sid="x"`, "sid=%78", "other=1; sid=%78 ;", `sid=%78; sid="x"`} {
		r := from("203.0.113.7:1", "GET", "/")
		r.Header.Set("Cookie", cookie)
		if w := b.send(r); w.Code != map[bool]int{true: 200, false: 429}[i == 0] {
			t.Errorf("%s: %d", cookie, w.Code)
		}
	}
}

func one(value string, _ int) string { return value }

// all are the values of a name.
func all(find func(string, int) (string, int), name string) (values []string) {
	for at := 0; ; {
		value, next := find(name, at)
		if next == 0 {
			return values
		}
		if next <= at || value == "" {
			panic("it does not go on")
		}
		values, at = append(values, value), next
	}
}

// Whatever net/http finds is found, and the first is the first.
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
		found := all(v.Query, name)
		for _, want := range r.URL.Query()[name] {
			if want != "" && !slices.Contains(found, want) {
				t.Errorf("query %q of %q: %q, want %q", name, text, found, want)
			}
		}
		if !isToken(name) {
			return
		}
		found = all(v.Cookie, name)
		for _, c := range r.CookiesNamed(name) {
			if want := cookieValue(c.Value); want != "" && !slices.Contains(found, want) {
				t.Errorf("cookie %q of %q: %q, want %q", name, text, found, want)
			}
		}
	})
}

// isToken reports whether a name can be a cookie's.
func isToken(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == ""
}

var _ rule.Values = new(values)

// Whoever has no address that can be read is limited: all of them as one client.
func TestNoAddress(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}]", Options{Logger: quiet(), TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	for _, c := range []struct {
		remote string
		want   int
	}{
		{"[192.0.2.1]:1234", 200}, {"192.0.2.1:99", 429}, {"[192.0.2.2]:1234", 200},
		{"pipe", 200}, {"another", 429}, {"[]:80", 429}, {"192.0.2.3.4:80", 429}, {"\x00", 429},
		{"", 200}, {"@", 429}, {"/run/x.sock", 429}, {"127.0.0.1:1", 429}, // Unix sockets are this machine
	} {
		r := from(c.remote, "GET", "/")
		if w := b.send(r); w.Code != c.want {
			t.Errorf("%q: %d, want %d", c.remote, w.Code, c.want)
		}
	}
	r := from("pipe", "GET", "/")
	r.Header.Set("X-Forwarded-For", "198.51.100.1")
	if w := b.send(r); w.Code != 429 {
		t.Errorf("what has no address is no trusted proxy: %d", w.Code)
	}
}

// What a request may not be charged under is denied with 403, and costs nothing.
func TestPermit(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: \"header:X-Tenant\", algorithm: fixed_window, limit: 2/1h}]", Options{
		Permit: func(*http.Request) func(rule, key string) bool {
			return func(rule, key string) bool { return rule == "api" && key == "header:X-Tenant:acme" }
		},
	})
	for tenant, want := range map[string]int{"acme": 200, "victim": 403, "": 200} {
		r := from("203.0.113.7:1234", "GET", "/")
		r.Header.Set("X-Tenant", tenant)
		if w := b.send(r); w.Code != want {
			t.Errorf("%q: %d %s", tenant, w.Code, w.Body)
		}
	}
}
