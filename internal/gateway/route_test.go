package gateway

import (
	"net/url"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/match"
	"pgregory.net/rapid"
)

func TestParseRoute(t *testing.T) {
	for _, c := range []struct{ text, host, path, first, written string }{
		{"http://127.0.0.1:9000", "", "", "http://127.0.0.1:9000", ""},
		{"/api=http://a:1", "", "/api", "http://a:1", ""},
		{"/=http://a:1", "", "", "http://a:1", "http://a:1"},
		{"api.example.com/v1=https://a", "api.example.com", "/v1", "https://a", ""},
		{"api.example.com=http://a", "api.example.com", "", "http://a", ""},
		{"API.Example.com/V1=http://A:1/Base", "api.example.com", "/V1", "http://a:1/Base", "api.example.com/V1=http://a:1/Base"},
		{"*.example.com=h2c://a:1", "*.example.com", "", "h2c://a:1", ""},
		{"http://a/x=y", "", "", "http://a/x=y", ""},
		{"/a/b=http://a/x=y", "", "/a/b", "http://a/x=y", ""},
		{"http://a:1, http://b:1", "", "", "http://a:1", "http://a:1,http://b:1"},
		{"http://[::1]:9000", "", "", "http://[::1]:9000", ""},
	} {
		r, err := ParseRoute(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if r.Host != c.host || r.Path != c.path || r.Upstreams[0].String() != c.first {
			t.Errorf("%s: %q %q %s", c.text, r.Host, r.Path, r.Upstreams[0])
		}
		want := c.written
		if want == "" {
			want = c.text
		}
		if r.String() != want {
			t.Errorf("%s: written as %s, want %s", c.text, r, want)
		}
	}
}

func TestParseRouteErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "does not begin with http://",
		"127.0.0.1:9000":                       "is not a URL",
		"localhost:9000":                       "does not begin with http://",
		"ftp://a":                              "does not begin with http://",
		"http://":                              "has no host",
		"http:a":                               "has no host",
		"http://a?x=1":                         "query",
		"http://a#x":                           "fragment",
		"http://user:secret@a":                 "has a user",
		"http://user:secret@a:x":               "is not a URL",
		"=http://a":                            "nothing before the =",
		"/a/=http://a":                         `write "/a"`,
		"/a//b=http://a":                       `write "/a/b"`,
		"/a/../b=http://a":                     `write "/b"`,
		"/%61pi=http://a":                      `write "/api"`,
		"/a/**=http://a":                       "remove stars",
		"a b=http://a":                         "is not a host name",
		"example.com:80/v1=http://a":           "without a port",
		"*=http://a":                           "is not a host name",
		"a.*.b=http://a":                       "is not a host name",
		"http://a,http://a":                    "twice",
		"http://a,":                            "does not begin with http://",
		strings.Repeat("a", 300) + "=http://a": "is not a host name",
		"http://a" + strings.Repeat(",http://b", 1) + ",http://b":        "twice",
		"/x=" + strings.TrimSuffix(strings.Repeat("http://a,", 65), ","): "65 upstreams",
	} {
		_, err := ParseRoute(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", clip(text), err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the password is in the error: %v", text, err)
		}
	}
}

func TestFind(t *testing.T) {
	tab := tableFor(t,
		"http://any", "/api=http://any-api", "/api/v2=http://any-api-v2",
		"example.com=http://example", "example.com/shop=http://example-shop",
		"*.example.com=http://below", "*.eu.example.com/api=http://below-eu-api",
		"only.example.org/x=http://only-x",
	)
	for _, c := range []struct{ host, path, want string }{
		{"", "/", "/"}, {"else.org", "/x", "/"}, {"else.org", "/api", "/api"}, {"else.org", "/api/x", "/api"},
		{"else.org", "/apis", "/"}, {"else.org", "/api/v2/x", "/api/v2"}, {"else.org", "/api/v20", "/api"},
		{"example.com", "/", "example.com"}, {"EXAMPLE.com:8080", "/shop/x", "example.com/shop"}, {"example.com.", "/shops", "example.com"},
		{"example.com", "/api", "example.com"}, // the longest host goes before the longest path
		{"a.example.com", "/api", "*.example.com"}, {"a.b.example.com", "/", "*.example.com"}, {"notexample.com", "/", "/"},
		{"a.eu.example.com", "/api/x", "*.eu.example.com/api"}, {"a.eu.example.com", "/", "*.example.com"},
		{"eu.example.com", "/api", "*.example.com"},
		{"only.example.org", "/x/y", "only.example.org/x"}, {"only.example.org", "/y", "/"}, {"only.example.org", "/api", "/api"},
		{"[::1]:80", "/", "/"}, {strings.Repeat("a.", 4000) + "example.com", "/", "/"},
		// A path is what rules take it for.
		{"else.org", "/%61pi/x", "/api"}, {"else.org", "//api//v2", "/api/v2"}, {"else.org", "/x/../api", "/api"},
		{"else.org", "/api%2Fv2", "/"}, {"else.org", "/API", "/"},
	} {
		if r := tab.findRoute(c.host, match.CanonicalPath(c.path)); r == nil || r.name != c.want {
			t.Errorf("%s%s: %v, want %s", clip(c.host), c.path, r, c.want)
		}
	}
	if r := tableFor(t, "example.com/a=http://x").findRoute("example.com", "/b"); r != nil {
		t.Errorf("a path without a route has %s", r.name)
	}
}

func TestTableErrors(t *testing.T) {
	for want, routes := range map[string][]string{
		"a route is required": nil,
		"twice":               {"/api=http://a", "/api=http://b"},
	} {
		if _, err := newTable(routesOf(t, routes...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", routes, err, want)
		}
	}
	if _, err := newTable(make([]Route, MaxRoutes+1)); err == nil || !strings.Contains(err.Error(), "1001 routes") {
		t.Errorf("too many routes: %v", err)
	}
	if _, err := newTable([]Route{{Upstreams: []*url.URL{nil}}}); err == nil || !strings.Contains(err.Error(), "required") {
		t.Errorf("no URL: %v", err)
	}
}

// Routes that name one upstream know the same about it.
func TestSharedOrigin(t *testing.T) {
	tab := tableFor(t, "/a=http://x:1/base", "/b=http://X:1", "/c=https://x:1")
	if len(tab.origins) != 2 || tab.routes[0].targets[0].origin != tab.routes[1].targets[0].origin {
		t.Errorf("%d origins", len(tab.origins))
	}
}

// The route that is found is the best of those that match, whatever the order in which
// they were given.
func TestFindIsBest(t *testing.T) {
	hosts := []string{"", "a.com", "b.a.com", "*.a.com", "*.b.a.com", "*.com"}
	paths := []string{"", "/x", "/x/y", "/xy"}
	rapid.Check(t, func(t *rapid.T) {
		var routes []Route
		seen := map[string]bool{}
		for range rapid.IntRange(1, 8).Draw(t, "routes") {
			r := Route{Host: rapid.SampledFrom(hosts).Draw(t, "host"), Path: rapid.SampledFrom(paths).Draw(t, "path"), Upstreams: []*url.URL{{Scheme: "http", Host: "u"}}}
			if !seen[r.Name()] {
				seen[r.Name()] = true
				routes = append(routes, r)
			}
		}
		tab, err := newTable(routes)
		if err != nil {
			t.Fatal(err)
		}
		host := rapid.SampledFrom([]string{"", "a.com", "b.a.com", "c.b.a.com", "x.com", "com", "a.com.org"}).Draw(t, "asked host")
		path := rapid.SampledFrom([]string{"/", "/x", "/x/y", "/x/y/z", "/xy", "/xyz", "/z"}).Draw(t, "asked path")
		matches := func(r Route) bool {
			below, wild := strings.CutPrefix(r.Host, "*")
			hostOK := r.Host == "" || r.Host == host || wild && strings.HasSuffix(host, below)
			return hostOK && (r.Path == "" || path == r.Path || strings.HasPrefix(path, r.Path+"/"))
		}
		rank := func(r Route) int { // an exact name is longer than any pattern
			n := 10 * len(r.Host)
			if r.Host != "" && r.Host[0] != '*' {
				n += 10_000
			}
			return 100*n + len(r.Path)
		}
		best, found := Route{}, false
		for _, r := range routes {
			if matches(r) && (!found || rank(r) > rank(best)) {
				best, found = r, true
			}
		}
		got := tab.findRoute(host, path)
		if found != (got != nil) || found && got.name != best.Name() {
			t.Fatalf("%s%s among %v: %v, want %v", host, path, routes, got, best)
		}
	})
}

func routesOf(t testing.TB, texts ...string) []Route {
	t.Helper()
	var out []Route
	for _, text := range texts {
		r, err := ParseRoute(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func tableFor(t testing.TB, texts ...string) *table {
	t.Helper()
	tab, err := newTable(routesOf(t, texts...))
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// What is not ASCII is no host, even if its lower case is.
func TestHosts(t *testing.T) {
	long := strings.Repeat("a", 63)
	for host, want := range map[string]bool{
		"": true, "localhost": true, "API.Example.com": true, "example.com.": true, "example.com:8080": true, "a_b-c.example": true,
		"192.0.2.1": true, "[::1]:80": true, "[::1]": true, long + ".example": true,
		"example..com": false, ".example.com": false, "example.com..": false, "exam ple.com": false, "example.com:80:80": false,
		"example.com:x": false, "[192.0.2.1]": false, "\u212aelvin.example": false, "müller.example": false, "a@b": false, ".": false,
		long + "a.example": false, strings.Repeat(long+".", 4) + "com": false,
	} {
		if wellFormed(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

// Names that become others in the environment of a program are seen as those.
func TestDashed(t *testing.T) {
	for name, want := range map[string]string{
		"X-Forwarded-For": "", "Accept": "", "x1-Z9": "", "X_Forwarded_For": "X-Forwarded-For", "x.real~ip": "X-Real-Ip", "X_\u00e9": "X--",
	} {
		if got := dashed(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
