package rule_test

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// hostile are values that try to look like something else.
var hostile = rapid.OneOf(
	rapid.SampledFrom([]string{
		"", "a", "b", "|", `\`, `\|`, `a|user:b`, `a\|user:b`, `|`, `\\`, ":", "user:a", "|header:X:a",
		sum("weir:user:" + strings.Repeat("x", 300)), `\` + sum("weir:user:"+strings.Repeat("x", 300)), strings.Repeat("x", 300),
		strings.Repeat("x", 256), strings.Repeat("x", 257), strings.Repeat("|", 256), strings.Repeat(`\`, 256), "\x00", "\xff",
	}),
	rapid.StringOfN(rapid.RuneFrom([]rune(`ab|\:`)), 0, 6, -1),
)

var sources = []rule.Source{
	{Kind: rule.User}, {Kind: rule.APIKey}, {Kind: rule.Global},
	{Kind: rule.Header, Name: "X"}, {Kind: rule.Header, Name: "X|Y\\"}, {Kind: rule.Header, Name: "X-Token"},
	{Kind: rule.Cookie, Name: "X"}, {Kind: rule.Query, Name: "a:b"}, {Kind: rule.Attribute, Name: "X"},
}

func drawWho(t *rapid.T) rule.Request {
	draw := func() string { return hostile.Draw(t, "value") }
	return rule.Request{
		User: draw(), APIKey: draw(), Attributes: map[string]string{"X": draw()},
		Values: values{"header:X": draw(), `header:X|Y\`: draw(), "header:X-Token": draw(), "cookie:X": draw(), "query:a:b": draw()},
	}
}

// parts are the values by which a request is told apart.
func parts(key []rule.Source, req rule.Request) (values []string) {
	for _, s := range key {
		switch s.Kind {
		case rule.User:
			values = append(values, req.User)
		case rule.APIKey:
			values = append(values, req.APIKey)
		case rule.Header:
			value, _ := req.Values.Header(s.Name, 0)
			values = append(values, value)
		case rule.Cookie:
			value, _ := req.Values.Cookie(s.Name, 0)
			values = append(values, value)
		case rule.Query:
			value, _ := req.Values.Query(s.Name, 0)
			values = append(values, value)
		case rule.Attribute:
			values = append(values, req.Attributes[s.Name])
		}
	}
	return values
}

// Two requests have the same identity exactly if they have the same values; an identity
// is never too long; and every identity can be written as an override.
func TestIdentityIsUnambiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.SampledFrom(sources), 1, 5).Draw(t, "key")
		r := limited("r", rule.Match{})
		r.Key = key
		c := compileRapid(t, r).Rules()[0]
		for range 10 {
			checkTwo(t, r, c, drawWho(t), drawWho(t))
		}
	})
}

func checkTwo(t *rapid.T, r rule.Rule, c *rule.Entry, one, two rule.Request) {
	key := r.Key
	a, known := c.Identity(nil, &one)
	b, knownToo := c.Identity(nil, &two)
	if want := !slices.Contains(parts(key, one), ""); known != want {
		t.Fatalf("%q is somebody: %t", parts(key, one), known)
	}
	if !known || !knownToo {
		return
	}
	if same := slices.Equal(parts(key, one), parts(key, two)); bytes.Equal(a, b) != same {
		t.Fatalf("%q and %q are %q and %q", parts(key, one), parts(key, two), a, b)
	}
	if len(a) > weir.MaxKeyLen {
		t.Fatalf("%q has %d bytes", a, len(a))
	}
	r.Overrides = map[string]rule.Quota{string(a): perMinute(7)}
	c = compileRapid(t, r).Rules()[0]
	if got := c.Limits(string(a), "")[0].Limit().N; got != 7 {
		t.Fatalf("an override for %q does not apply to it", a)
	}
	if got := c.Limits(string(b), "")[0].Limit().N; (got == 7) != bytes.Equal(a, b) {
		t.Fatalf("an override for %q gives %q %d", a, b, got)
	}
}

func compileRapid(t *rapid.T, r rule.Rule) *rule.Table {
	table, err := rule.Compile(&rule.Set{Rules: []rule.Rule{r}}, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func FuzzIdentity(f *testing.F) {
	key := []rule.Source{{Kind: rule.User}, {Kind: rule.Header, Name: "X"}, {Kind: rule.IP}}
	c := keyed(f, rule.Options{}, key...)
	f.Add("a|header:X:b", "c", "a", "b|header:X:c", []byte{1, 2, 3, 4})
	f.Add(`a\`, `|b`, `a\|`, `b`, []byte{15: 1})
	f.Add(strings.Repeat("x", 257), "y", sum("weir:user:"+strings.Repeat("x", 257)), "y", []byte{})
	f.Fuzz(func(t *testing.T, user, header, user2, header2 string, ip []byte) {
		addr, valid := netip.AddrFromSlice(ip)
		one, ok := c.Identity(nil, &rule.Request{User: user, Values: values{"header:X": header}, IP: addr})
		if want := user != "" && header != "" && valid; ok != want {
			t.Fatalf("%q, %q, %v is somebody: %t", user, header, addr, ok)
		}
		two, ok2 := c.Identity(nil, &rule.Request{User: user2, Values: values{"header:X": header2}, IP: addr})
		if ok && ok2 && bytes.Equal(one, two) != (user == user2 && header == header2) {
			t.Fatalf("%q, %q and %q, %q are %q and %q", user, header, user2, header2, one, two)
		}
		if len(one) > weir.MaxKeyLen {
			t.Fatalf("%q has %d bytes", one, len(one))
		}
	})
}
