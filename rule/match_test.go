package rule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
)

// limited makes a rule of what is to be matched.
func limited(id string, m rule.Match) rule.Rule {
	return rule.Rule{ID: id, Match: m, Key: []rule.Source{{Kind: rule.Global}}, Quota: perMinute(100)}
}

func perMinute(n int64) rule.Quota {
	return rule.Quota{Rates: []rule.Rate{{N: n, Period: time.Minute}}}
}

func compile(t testing.TB, o rule.Options, rules ...rule.Rule) *rule.Table {
	t.Helper()
	table, err := rule.Compile(&rule.Set{Rules: rules}, o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func idsOf(hits []rule.Hit) []string {
	ids := []string{}
	for _, c := range hits {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestPathPatterns(t *testing.T) {
	for _, test := range []struct {
		pattern string
		yes, no []string
	}{
		{"/", []string{"/", "//", "/.", "/a/..", "/?q"}, []string{"/a", ""}},
		{"/api/login", []string{"/api/login", "/api/login/"}, []string{"/api", "/api/login/x", "/api/logins", "/Api/login", "/x/api/login"}},
		{"/api/login/", []string{"/api/login"}, []string{"/api"}},
		{"/users/{id}", []string{"/users/7", "/users/7/", "/users/a%2Fb", "/users/{id}"}, []string{"/users", "/users/", "/users/7/x", "/user/7"}},
		{"/users/{id}/posts/{post}", []string{"/users/1/posts/2"}, []string{"/users/1/posts", "/users/posts/2", "/users/1/2/posts/3"}},
		{"/{a}/{b}", []string{"/x/y"}, []string{"/x", "/x/y/z", "/"}},
		{"/api/**", []string{"/api", "/api/", "/api/x", "/api/x/y/z"}, []string{"/", "/apis", "/x/api", ""}},
		{"/**", []string{"/", "/a", "/a/b/c"}, []string{""}},
		{"/{tenant}/api/**", []string{"/t/api", "/t/api/x"}, []string{"/api", "/api/x", "/t/x/api"}},
		{"/jobs:run", []string{"/jobs:run", "/jobs%3Arun", "/jobs%3arun"}, []string{"/jobs"}},
		{"/caf\u00e9", []string{"/caf\u00e9", "/caf%C3%A9", "/caf%c3%a9"}, []string{"/cafe"}},
		{"/a%2Fb", []string{"/a%2Fb", "/a%2fb"}, []string{"/a/b", "/a"}},
		{"/a%2Bb", []string{"/a+b", "/a%2bb"}, []string{"/a%20b"}},
		{"/%7Bid%7D", []string{"/{id}", "/%7bid%7d"}, []string{"/7"}},
		{"/a;v=1/b", []string{"/a;v=1/b", "/a%3Bv=1/b"}, []string{"/a/b"}},
		{"/" + strings.Repeat("x/", 64), []string{"/" + strings.Repeat("x/", 64)}, []string{"/" + strings.Repeat("x/", 63), "/" + strings.Repeat("x/", 65)}},
		{"/" + strings.Repeat("{x}/", 64) + "**", []string{"/" + strings.Repeat("x/", 1000)}, []string{"/" + strings.Repeat("x/", 63)}},
	} {
		table := compile(t, rule.Options{}, limited("r", rule.Match{Paths: []string{test.pattern}}))
		for _, path := range test.yes {
			if len(table.Match(nil, &rule.Request{Path: path})) != 1 {
				t.Errorf("%s does not match %s", test.pattern, path)
			}
		}
		for _, path := range test.no {
			if len(table.Match(nil, &rule.Request{Path: path})) != 0 {
				t.Errorf("%s matches %s", test.pattern, path)
			}
		}
	}
}

func TestHosts(t *testing.T) {
	for _, test := range []struct {
		host    string
		yes, no []string
	}{
		{"api.example.com", []string{"api.example.com", "API.Example.COM", "api.example.com:8080", "api.example.com.", "api.example.com.:443", "api.example.com:80:80", "api.example.com:1:1", "api.example.com::", "api.example.com:"}, []string{"", "example.com", "x.api.example.com", "api.example.com.evil"}},
		{"*.example.com", []string{"a.example.com", "a.b.example.com", "A.EXAMPLE.com:1", strings.Repeat("a.", 3000) + "example.com", strings.Repeat("a", 3000) + ".example.com"}, []string{"example.com", "badexample.com", "example.com.evil", ""}},
		{"*.com", []string{"a.com", "b.a.com"}, []string{"com", "a.org"}},
		{"127.0.0.1", []string{"127.0.0.1", "127.0.0.1:80"}, []string{"127.0.0.2"}},
		{"2001:db8::1", []string{"[2001:db8::1]", "[2001:DB8::1]:443"}, []string{"[2001:db8::2]:443", "2001:db8::1"}},
		{"[2001:db8::1]", []string{"[2001:db8::1]", "[2001:DB8::1]:443"}, []string{"[2001:db8::2]:443"}},
		{"cafe", []string{"cafe", "cafe::1", "cafe:1:1"}, []string{"[cafe::1]"}},
	} {
		table := compile(t, rule.Options{}, limited("r", rule.Match{Hosts: []string{test.host}}))
		for _, host := range test.yes {
			if len(table.Match(nil, &rule.Request{Host: host})) != 1 {
				t.Errorf("%s does not match %.50s", test.host, host)
			}
		}
		for _, host := range test.no {
			if len(table.Match(nil, &rule.Request{Host: host})) != 0 {
				t.Errorf("%s matches %s", test.host, host)
			}
		}
	}
}

func TestMethodsAndAttributes(t *testing.T) {
	table := compile(t, rule.Options{},
		limited("get", rule.Match{Methods: []string{"GET"}}),
		limited("write", rule.Match{Methods: []string{"POST", "PUT"}}),
		limited("login", rule.Match{Attributes: map[string][]string{"action": {"login"}}}),
		limited("act", rule.Match{Attributes: map[string][]string{"action": nil}}),
		limited("both", rule.Match{Attributes: map[string][]string{"action": {"like", "login"}, "zone": {"eu"}}}),
	)
	for _, test := range []struct {
		req  rule.Request
		want []string
	}{
		{rule.Request{}, []string{}},
		{rule.Request{Method: "GET"}, []string{"get"}},
		{rule.Request{Method: "HEAD"}, []string{}},
		{rule.Request{Method: "post"}, []string{"write"}},
		{rule.Request{Method: "PATCH"}, []string{}},
		{rule.Request{Attributes: map[string]string{"action": "login"}}, []string{"login", "act"}},
		{rule.Request{Attributes: map[string]string{"action": "x"}}, []string{"act"}},
		{rule.Request{Attributes: map[string]string{"action": ""}}, []string{}},
		{rule.Request{Attributes: map[string]string{"action": "like", "zone": "eu"}, Method: "PUT"}, []string{"write", "act", "both"}},
	} {
		if got := idsOf(table.Match(nil, &test.req)); !slices.Equal(got, test.want) {
			t.Errorf("%+v: %v, want %v", test.req, got, test.want)
		}
	}
}

// Hits are in the order of the document, each once, behind what was there, however
// many there are.
func TestMatchOrder(t *testing.T) {
	for _, n := range []int{1, 15, 16, 17, 18, 100} {
		var rules []rule.Rule
		var want []string
		for i := range n {
			m := rule.Match{}
			switch i % 4 {
			case 0:
				m = rule.Match{Paths: []string{"/**", "/a", "/{x}", "/a/"}}
			case 1:
				m = rule.Match{Paths: []string{"/a"}, Hosts: []string{"*.com", "b.com", "*.b.com"}}
			case 2:
				m = rule.Match{Methods: []string{"GET", "POST"}}
			}
			rules = append(rules, limited(fmt.Sprint(i), m))
			want = append(want, fmt.Sprint(i))
		}
		off := limited("off", rule.Match{})
		off.Mode = rule.Off
		table := compile(t, rule.Options{}, append(rules, off)...)
		before := []rule.Hit{{Entry: table.Rules()[n]}}
		hits := table.Match(before, &rule.Request{Path: "/x/../a", Host: "b.com", Method: "GET"})
		if got := idsOf(hits); !slices.Equal(got, append([]string{"off"}, want...)) {
			t.Errorf("of %d: %v", n, got)
		}
	}
}

func TestIgnoreCase(t *testing.T) {
	rules := []rule.Rule{limited("r", rule.Match{Paths: []string{"/Api/{id}/Login"}})}
	strict, folded := compile(t, rule.Options{}, rules...), compile(t, rule.Options{IgnoreCase: true}, rules...)
	for path, want := range map[string][2]int{
		"/Api/x/Login": {1, 1}, "/api/x/login": {0, 1}, "/API/X/LOGIN/": {0, 1}, "/%41pi/x/%6cogin": {0, 1}, "/api/x/logout": {0, 0},
	} {
		req := rule.Request{Path: path}
		if got := [2]int{len(strict.Match(nil, &req)), len(folded.Match(nil, &req))}; got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
