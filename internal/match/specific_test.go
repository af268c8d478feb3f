package match_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weirhq/weir/internal/match"
)

func compiled(t *testing.T, c match.Conditions) *match.Rule {
	t.Helper()
	r, err := new(match.Compiler).Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// routes are all that a path counts for.
func routes(r *match.Rule, path string) (all []string) {
	for at := 0; ; {
		var route int
		if route, at = r.Route(path, at); at == 0 {
			return slices.Compact(all)
		}
		all = append(all, nameOf(r.Routes(), route))
	}
}

// nameOf is Any for what a rule does not name.
func nameOf(names []string, i int) string {
	if i == len(names) {
		return match.Any
	}
	return names[i]
}

func TestRoute(t *testing.T) {
	paths := []string{"/**", "/api/**", "/api/{a}", "/api/{a}/**", "/api/{b}/x", "/api/orders", "/api/orders/**", "/{z}/orders"}
	for path, want := range map[string][]string{
		"/":                 {"/**"},
		"/other":            {"/**"},
		"/other/orders":     {"/{z}/orders"},
		"/api":              {"/api/**"},
		"/api/7":            {"/api/{a}"},
		"/api/7/8":          {"/api/{a}/**"},
		"/api/7/x":          {"/api/{b}/x"},
		"/api/orders":       {"/api/orders"},
		"/api/orders/":      {"/api/orders"},
		"/api//%6Frders?q":  {"/api/orders"},
		"/api/orders/7":     {"/api/orders/**"},
		"/api/x/../orders":  {"/api/orders", "/api/{a}/**"}, // for servers that do not resolve dots
		"/api/orders;v=1":   {"/api/{a}", "/api/orders"},
		"/api%2Forders":     {"/**", "/api/orders"},
		"/api/invented/any": {"/api/{a}/**"},
	} {
		// As a list that is compared, and as one that is looked up.
		for _, more := range []int{0, 100} {
			all := slices.Clone(paths)
			for i := range more {
				all = append(all, fmt.Sprintf("/api/orders/%d/more", i), fmt.Sprintf("/more/{id}/%d/**", i))
			}
			for range 2 {
				if got := routes(compiled(t, match.Conditions{Paths: all}), path); !slices.Equal(got, want) {
					t.Errorf("%s among %d counts for %q, want %q", path, len(all), got, want)
				}
				slices.Reverse(all) // the order does not matter
			}
		}
	}
	if got := routes(compiled(t, match.Conditions{}), "/a/../b"); !slices.Equal(got, []string{match.Any}) {
		t.Errorf("without patterns it counts for %q", got)
	}
	if got := routes(compiled(t, match.Conditions{Paths: []string{"/a", "/b"}}), "/c/.."); !slices.Equal(got, []string{match.Any}) {
		t.Errorf("what matches nothing counts for %q", got)
	}
}

func TestHostAndMethod(t *testing.T) {
	named := compiled(t, match.Conditions{
		Hosts:   []string{"*", "*.example.com", "*.eu.example.com", "API.example.com", "2001:db8::1"},
		Methods: []string{"GET", "*", "purge"},
	})
	for host, want := range map[string]string{
		"api.example.com:8080": "api.example.com", "API.Example.com.": "api.example.com", "shop.example.com": "*.example.com",
		"a.b.eu.example.com": "*.eu.example.com", "example.com": "*", "evil.test": "*", "": "*", "[2001:db8::1]:80": "2001:db8::1",
		"2001:db8::1": "*", // it ends at the first colon
	} {
		if got := nameOf(named.Hosts(), named.Host(host)); got != want {
			t.Errorf("host %q is %q of %q, want %q", host, got, named.Hosts(), want)
		}
	}
	for method, want := range map[string]string{"get": "GET", "PURGE": "PURGE", "POST": "*", "": "*", "X": "*"} {
		if got := nameOf(named.Methods(), named.Method(method)); got != want {
			t.Errorf("method %q is %q of %q, want %q", method, got, named.Methods(), want)
		}
	}
	if why := named.Unmet(match.Request{Method: "INVENTED", Host: "evil.test"}); len(why) > 0 {
		t.Errorf("a star does not match everything: %q", why)
	}
	other := compiled(t, match.Conditions{})
	for _, c := range [][2]string{
		{other.Methods()[other.Method("patch")], "PATCH"}, {other.Methods()[other.Method("INVENTED")], "*"}, {other.Hosts()[other.Host("a.example")], "*"},
	} {
		if c[0] != c[1] {
			t.Errorf("a rule that names none has %q, want %q", c[0], c[1])
		}
	}
}
