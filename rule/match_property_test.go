package rule_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Match finds what the naive matcher finds, and Explain agrees with both.
func TestMatchIsAsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := naive{ignoreCase: rapid.Bool().Draw(t, "ignore case")}
		var rules []rule.Rule
		for i := range rapid.IntRange(0, 60).Draw(t, "rules") {
			r := limited(fmt.Sprint(i), drawMatch(t))
			r.Mode = rapid.SampledFrom([]rule.Mode{rule.Enforce, rule.Shadow, rule.Enforce, rule.Off}).Draw(t, "mode")
			rules = append(rules, r)
		}
		table, err := rule.Compile(&rule.Set{Rules: rules}, rule.Options{IgnoreCase: n.ignoreCase})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			req := drawRequest(t)
			want := []string{}
			explained := table.Explain(&req)
			for i, r := range rules {
				matches := n.matches(r.Match, &req)
				if matches && r.Mode != rule.Off {
					want = append(want, r.ID)
				}
				if e := explained[i]; e.Matches != matches || e.Applies != (matches && r.Mode != rule.Off) {
					t.Fatalf("%+v of %+v: %+v", r.Match, req, e)
				}
			}
			if got := idsOf(table.Match(nil, &req)); !slices.Equal(got, want) {
				t.Fatalf("%+v: %v, want %v", req, got, want)
			}
		}
	})
}

func drawMatch(t *rapid.T) (m rule.Match) {
	m.Methods = drawSome(t, 4, rapid.SampledFrom([]string{"GET", "POST", "PUT", "HEAD", "PURGE"}), "method")
	m.Hosts = drawSome(t, 4, rapid.SampledFrom([]string{"a.com", "www.a.com", "x.www.a.com", "b.org", "*.a.com", "*.com", "*.www.a.com", "c"}), "host")
	m.Paths = drawSome(t, rapid.SampledFrom([]int{2, 4, 30}).Draw(t, "most"), rapid.Custom(drawPattern), "path")
	for _, name := range []string{"action", "resource", "zone"} {
		switch rapid.IntRange(0, 5).Draw(t, name) {
		case 0:
			m.Attributes = set(m.Attributes, name, nil)
		case 1, 2:
			m.Attributes = set(m.Attributes, name, rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 1, 3).Draw(t, "values"))
		}
	}
	return m
}

func set[T any](m map[string]T, name string, value T) map[string]T {
	if m == nil {
		m = map[string]T{}
	}
	m[name] = value
	return m
}

// drawSome is nothing in half of the cases.
func drawSome(t *rapid.T, most int, one *rapid.Generator[string], label string) []string {
	if rapid.Bool().Draw(t, "no "+label) {
		return nil
	}
	return rapid.SliceOfN(one, 1, most).Draw(t, label)
}

func drawPattern(t *rapid.T) string {
	segment := rapid.SampledFrom([]string{"a", "b", "A", "api", "{x}", "{y}", "é", "a%2Fb", "x;v=1", "%6C", "..."})
	p := "/" + strings.Join(rapid.SliceOfN(segment, 0, 4).Draw(t, "segments"), "/")
	return p + rapid.SampledFrom([]string{"", "", "/", "/**"}).Draw(t, "end")
}

func drawRequest(t *rapid.T) rule.Request {
	segment := rapid.SampledFrom([]string{
		"a", "b", "a", "b", "A", "api", "é", "%C3%a9", "", ".", "..", "%2e", ".%2E", "%61", "%2f", "a%2Fb", `a\b`, "%5c..", "x;v=1", "x", ";", "..;", "l", "%6c", "%", "%zz", "%2", "...", "%00", "a.", "a%20", "%20", "b .",
	})
	path := strings.Join(rapid.SliceOfN(segment, 0, 6).Draw(t, "path"), "/")
	req := rule.Request{
		Method: rapid.SampledFrom([]string{"GET", "POST", "PUT", "HEAD", "PURGE", "post", "TRACE", ""}).Draw(t, "method"),
		Host:   rapid.SampledFrom([]string{"", "a.com", "www.a.com", "WWW.a.com:80", "x.www.a.com.", "y.x.www.a.com", "b.org", "c", "c:1", ".a.com", "a.com.."}).Draw(t, "host"),
		Path:   rapid.SampledFrom([]string{"/", "/", "/", "", "//"}).Draw(t, "slash") + path + rapid.SampledFrom([]string{"", "", "/", "?", "/?/a/.."}).Draw(t, "end"),
	}
	for _, name := range []string{"action", "resource", "zone", "other", "another"} {
		if v := rapid.SampledFrom([]string{"", "x", "y", "z", "none"}).Draw(t, name); v != "none" {
			req.Attributes = set(req.Attributes, name, v)
		}
	}
	return req
}

// Rules whose lists multiply are not in the index by all of them, and are verified.
func TestLongListsAreVerified(t *testing.T) {
	names := func(i, n int, format string) (list []string) {
		for j := range n {
			list = append(list, fmt.Sprintf(format, i, j))
		}
		return list
	}
	for _, size := range [][4]int{{10, 20, 2, 2}, {2, 100, 2, 2}, {100, 2, 2, 2}, {2, 2, 20, 2}, {2, 2, 2, 100}, {70, 1, 1, 1}, {1, 70, 5, 5}} {
		var rules []rule.Rule
		for i := range 12 {
			rules = append(rules, limited(fmt.Sprint(i), rule.Match{
				Paths: names(0, size[0], "/%d-%d/**"), Hosts: names(i, size[1], "h%d-%d.com"), Methods: names(i%3, size[2], "M%d-%d"),
				Attributes: map[string][]string{"a": names(i, size[3], "%d-%d"), "b": nil},
			}))
		}
		table := compile(t, rule.Options{}, rules...)
		right := rule.Request{Path: "/0-0/x", Host: "h7-0.com", Method: "M1-0", Attributes: map[string]string{"a": "7-0", "b": "x"}}
		if got := idsOf(table.Match(nil, &right)); !slices.Equal(got, []string{"7"}) {
			t.Errorf("%v: %v", size, got)
		}
		for what, spoil := range map[string]func(*rule.Request){
			"path":   func(r *rule.Request) { r.Path = "/1-0" },
			"host":   func(r *rule.Request) { r.Host = "h8-0.com" },
			"method": func(r *rule.Request) { r.Method = "M2-0" },
			"a":      func(r *rule.Request) { r.Attributes = map[string]string{"a": "8-0", "b": "x"} },
			"b":      func(r *rule.Request) { r.Attributes = map[string]string{"a": "7-0"} },
		} {
			wrong := right
			spoil(&wrong)
			if got := idsOf(table.Match(nil, &wrong)); len(got) != 0 {
				t.Errorf("%v: %v in spite of another %s", size, got, what)
			}
		}
	}
}

// Two rules that match the same request are not said to have nothing in common.
func TestEarlierRulesAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.Custom(func(t *rapid.T) string {
			p := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"/a", "/b", "/A", "/{x}", "/%61"}), 0, 3).Draw(t, "segments"), "")
			return cmp.Or(p+rapid.SampledFrom([]string{"", "/**"}).Draw(t, "end"), "/")
		})
		narrow := func() rule.Match {
			m := drawMatch(t)
			m.Methods, m.Hosts = m.Methods[:min(1, len(m.Methods))], m.Hosts[:min(1, len(m.Hosts))]
			m.Paths = []string{pattern.Draw(t, "path")}
			return m
		}
		first, second := limited("first", narrow()), limited("second", narrow())
		second.Algorithm, second.CountDenied, second.UnlessDeniedEarlier = weir.SlidingLog, true, true
		problems := rule.Validate("", &rule.Set{Rules: []rule.Rule{first, second}})
		warned := slices.ContainsFunc(problems, func(p rule.Problem) bool { return p.Code == "W019" })
		if problems.Err() != nil || !warned {
			return
		}
		n := naive{ignoreCase: rapid.Bool().Draw(t, "ignore case")}
		for range 20 {
			req := drawRequest(t)
			req.Path = "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "A"}), 0, 4).Draw(t, "plain"), "/")
			if n.matches(first.Match, &req) && n.matches(second.Match, &req) {
				t.Fatalf("%+v and %+v both match %+v", first.Match, second.Match, req)
			}
		}
	})
}
