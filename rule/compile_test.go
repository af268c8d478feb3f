package rule_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

func TestCompileLimits(t *testing.T) {
	r := rule.Rule{
		ID: "api", Key: []rule.Source{{Kind: rule.User}}, Algorithm: weir.TokenBucket,
		Quota: rule.Quota{Rates: []rule.Rate{{N: 100, Period: time.Minute}, {N: 1000, Period: time.Hour}}, Burst: 200},
		Tiers: map[string]rule.Quota{
			"free": {Rates: []rule.Rate{{N: 100, Period: time.Minute}}, Burst: 200},
			"max":  {Unlimited: true},
		},
		Overrides: map[string]rule.Quota{"user:alice": perMinute(5000), "user:bob": {Unlimited: true}},
	}
	c := compile(t, rule.Options{}, r).Rules()[0]
	usual := c.Limits("user:eve", "")
	if len(usual) != 2 || usual[0].Limit() != (weir.Limit{Name: "api", N: 100, Period: time.Minute, Burst: 200}) {
		t.Errorf("the default is %v", usual)
	}
	if free := c.Limits("user:eve", "free"); len(free) != 1 || free[0] != usual[0] {
		t.Errorf("an equal limit of a tier is another: %v", free)
	}
	for who, want := range map[[2]string]int{
		{"user:eve", "max"}: 0, {"user:bob", "free"}: 0, {"user:alice", "max"}: 1, {"user:alice", ""}: 1, {"user:eve", "unheard"}: 2,
	} {
		if got := c.Limits(who[0], who[1]); len(got) != want {
			t.Errorf("%s: %d limits, want %d", who, len(got), want)
		}
	}
	both := rule.Rule{
		ID: "b", Key: []rule.Source{{Kind: rule.User}}, Quota: rule.Quota{Rates: []rule.Rate{{N: 600, Period: time.Minute}}, Burst: 900, Concurrency: 5},
		Tiers:     map[string]rule.Quota{"rate": perMinute(6000), "places": {Concurrency: 20}, "both": {Rates: perMinute(7).Rates, Concurrency: 7}, "none": {Unlimited: true}},
		Overrides: map[string]rule.Quota{"user:bob": perMinute(9)},
	}
	c = compile(t, rule.Options{}, both).Rules()[0]
	for who, want := range map[[2]string]string{
		{"user:eve", ""}: "token_bucket 600/1m burst 900, in_flight 5/1m", {"user:eve", "rate"}: "token_bucket 6000/1m, in_flight 5/1m",
		{"user:eve", "places"}: "token_bucket 600/1m burst 900, in_flight 20/1m", {"user:eve", "both"}: "token_bucket 7/1m, in_flight 7/1m",
		{"user:eve", "none"}: "", {"user:bob", "none"}: "token_bucket 9/1m, in_flight 5/1m",
	} {
		if got := limitsText(c.Limits(who[0], who[1])); got != want {
			t.Errorf("%s: what a tier or an override does not say is not the rule's: %s, want %s", who, got, want)
		}
	}
	if temporary, err := c.Compile(rule.Quota{Concurrency: 50}); err != nil || limitsText(temporary) != "token_bucket 600/1m burst 900, in_flight 50/1m" {
		t.Errorf("a temporary override: %v, %v", limitsText(temporary), err)
	}
	window := rule.Rule{
		ID: "w", Key: []rule.Source{{Kind: rule.Global}}, Algorithm: weir.SlidingBuckets, Buckets: 10, CountDenied: true, Quota: perMinute(5),
	}
	queue := rule.Rule{ID: "q", Key: []rule.Source{{Kind: rule.Global}}, Algorithm: weir.LeakyBucket, Shape: true, Quota: perMinute(5)}
	table := compile(t, rule.Options{}, window, queue)
	for i, want := range []weir.Limit{
		{Name: "w", Algorithm: weir.SlidingBuckets, N: 5, Period: time.Minute, Buckets: 10, CountDenied: true},
		{Name: "q", Algorithm: weir.LeakyBucket, N: 5, Period: time.Minute, Shape: true},
	} {
		if got := table.Rules()[i].Limits("global", "")[0].Limit(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func limitsText(limits []*weir.Compiled) string {
	texts := make([]string, len(limits))
	for i, l := range limits {
		texts[i] = l.Limit().String()
	}
	return strings.Join(texts, ", ")
}

// Overrides may be written in any spelling of the client.
func TestOverrideSpellings(t *testing.T) {
	for _, test := range []struct {
		key  []rule.Source
		text string
		req  rule.Request
	}{
		{[]rule.Source{{Kind: rule.IP}}, "ip:203.0.113.7", rule.Request{IP: netip.MustParseAddr("203.0.113.7")}},
		{[]rule.Source{{Kind: rule.IP}}, "ip:203.0.113.7/32", rule.Request{IP: netip.MustParseAddr("203.0.113.7")}},
		{[]rule.Source{{Kind: rule.IP}}, "ip:::ffff:203.0.113.7", rule.Request{IP: netip.MustParseAddr("203.0.113.7")}},
		{[]rule.Source{{Kind: rule.IP}}, "ip:2001:DB8::1", rule.Request{IP: netip.MustParseAddr("2001:db8::2")}},
		{[]rule.Source{{Kind: rule.IP}}, "ip:2001:db8::/64", rule.Request{IP: netip.MustParseAddr("2001:db8::2")}},
		{[]rule.Source{{Kind: rule.IP}}, "ip:2001:db8::/80", rule.Request{IP: netip.MustParseAddr("2001:db8::2")}},
		{[]rule.Source{{Kind: rule.APIKey}}, "api_key:sk_live_1", rule.Request{APIKey: "sk_live_1"}},
		{[]rule.Source{{Kind: rule.APIKey}}, "api_key:" + rule.HashAPIKey("sk_live_1"), rule.Request{APIKey: "sk_live_1"}},
		{[]rule.Source{{Kind: rule.APIKey}}, `api_key:a\|b`, rule.Request{APIKey: "a|b"}},
		{[]rule.Source{{Kind: rule.APIKey}}, "api_key:sha256:abcd", rule.Request{APIKey: "sha256:abcd"}},
		{[]rule.Source{{Kind: rule.Header, Name: "X-Tenant"}}, "header:x-tenant:acme", rule.Request{Values: values{"header:X-Tenant": "acme"}}},
		{[]rule.Source{{Kind: rule.Header, Name: "Authorization"}}, "header:Authorization:Bearer x", rule.Request{Values: values{"header:Authorization": "Bearer x"}}},
		{[]rule.Source{{Kind: rule.User}}, "user:" + strings.Repeat("x", 300), rule.Request{User: strings.Repeat("x", 300)}},
		{[]rule.Source{{Kind: rule.User}, {Kind: rule.IP}}, "user:a:b|ip:10.0.0.1", rule.Request{User: "a:b", IP: netip.MustParseAddr("10.0.0.1")}},
		{[]rule.Source{{Kind: rule.Global}}, "global", rule.Request{}},
	} {
		r := limited("r", rule.Match{})
		r.Key, r.Overrides = test.key, map[string]rule.Quota{test.text: {Unlimited: true}}
		c := compile(t, rule.Options{}, r).Rules()[0]
		identity, ok := c.Identity(nil, &test.req)
		if !ok || len(c.Limits(string(identity), "")) != 0 {
			t.Errorf("%.50s does not apply to %.50s", test.text, identity)
		}
	}
}

func TestCompileDenies(t *testing.T) {
	good := func() rule.Rule { return limited("r", rule.Match{}) }
	change := func(f func(*rule.Rule)) []rule.Rule {
		r := good()
		f(&r)
		return []rule.Rule{r}
	}
	override := func(key rule.Source, text string) []rule.Rule {
		return change(func(r *rule.Rule) {
			r.Key, r.Overrides = []rule.Source{key}, map[string]rule.Quota{text: perMinute(1)}
		})
	}
	path := func(p string) []rule.Rule { return change(func(r *rule.Rule) { r.Match.Paths = []string{p} }) }
	host := func(h string) []rule.Rule { return change(func(r *rule.Rule) { r.Match.Hosts = []string{h} }) }
	var many []rule.Rule
	for i := range 65 {
		many = append(many, limited(fmt.Sprint(i), rule.Match{Methods: []string{fmt.Sprint("M", i)}}))
	}
	for want, rules := range map[string][]rule.Rule{
		"rule: r: id: another rule has the same id": {good(), good()},
		"id: required":                          change(func(r *rule.Rule) { r.ID = "" }),
		"id: it has 101 bytes":                  change(func(r *rule.Rule) { r.ID = strings.Repeat("x", 101) }),
		"rule: r: key: required":                change(func(r *rule.Rule) { r.Key = nil }),
		"source 99 is unknown":                  change(func(r *rule.Rule) { r.Key = []rule.Source{{Kind: 99}} }),
		"key: header has no name":               change(func(r *rule.Rule) { r.Key = []rule.Source{{Kind: rule.Header}} }),
		"key: the name of cookie has 300 bytes": change(func(r *rule.Rule) { r.Key = []rule.Source{{Kind: rule.Cookie, Name: strings.Repeat("x", 300)}} }),
		"rule: r: limit: required":              change(func(r *rule.Rule) { r.Quota = rule.Quota{} }),
		"unlimited cannot be combined":          change(func(r *rule.Rule) { r.Quota.Unlimited = true }),
		"rule: r: weir: limit: 0 units":         change(func(r *rule.Rule) { r.Quota = perMinute(0) }),
		"rule: r: tiers: pro: weir: burst": change(func(r *rule.Rule) {
			r.Tiers = map[string]rule.Quota{"pro": {Rates: []rule.Rate{{N: 1, Period: time.Second}}, Burst: -1}}
		}),
		"weir: burst: fixed_window has no burst":                      change(func(r *rule.Rule) { r.Algorithm, r.Quota.Burst = weir.FixedWindow, 5 }),
		"weir: algorithm: 99 is unknown":                              change(func(r *rule.Rule) { r.Algorithm = 99 }),
		"limits: two limits have the period 1m and would count":       change(func(r *rule.Rule) { r.Quota.Rates = append(r.Quota.Rates, rule.Rate{N: 5, Period: time.Minute}) }),
		"match: path \"api\" does not begin":                          path("api"),
		"continues after **":                                          path("/a/**/b"),
		"is not a name or {name}":                                     path("/a/x{id}"),
		`"*" is not a name or`:                                        path("/a/*"),
		"is resolved before":                                          path("/a/%2e%2E"),
		"has a query":                                                 path("/a?b"),
		"has 65 segments":                                             path(strings.Repeat("/x", 65)),
		"match: host: \"*\"":                                          host("*"),
		"host: \"\" is not a host name":                               host(""),
		"\"a.*.com\" has a star that is not at the start":             host("a.*.com"),
		"is longer than the maximum of 253 bytes":                     host(strings.Repeat("x.", 130) + "com"),
		"method: the value is empty":                                  change(func(r *rule.Rule) { r.Match.Methods = []string{""} }),
		"attributes: an attribute has no name":                        change(func(r *rule.Rule) { r.Match.Attributes = map[string][]string{"": nil} }),
		"attributes: a: an empty value":                               change(func(r *rule.Rule) { r.Match.Attributes = map[string][]string{"a": {"x", ""}} }),
		"rule: 64: match: method: M64 exceeds the maximum":            many,
		`overrides: "user:alice": this is not part of the rule's key`: override(rule.Source{Kind: rule.IP}, "user:alice"),
		`write it as "user:…"`:                                        override(rule.Source{Kind: rule.User}, "user:"),
		"it has 2 parts and the key has 1":                            override(rule.Source{Kind: rule.User}, "user:a|b"),
		`a "\" that escapes nothing`:                                  override(rule.Source{Kind: rule.User}, `user:a\b`),
		`"10.0.0.0/31" contains many clients`:                         override(rule.Source{Kind: rule.IP}, "ip:10.0.0.0/31"),
		`"2001:db8::/63" contains many clients`:                       override(rule.Source{Kind: rule.IP}, "ip:2001:db8::/63"),
		`"10.0.0" is not an IP address`:                               override(rule.Source{Kind: rule.IP}, "ip:10.0.0"),
		`overrides: "…": this is not part`:                            override(rule.Source{Kind: rule.APIKey}, "sk_live_1"),
		`"global:x": this is not part`:                                override(rule.Source{Kind: rule.Global}, "global:x"),
		"is given twice, in different spellings": change(func(r *rule.Rule) {
			r.Key = []rule.Source{{Kind: rule.IP}}
			r.Overrides = map[string]rule.Quota{"ip:2001:db8::1": perMinute(1), "ip:2001:db8::2": perMinute(1)}
		}),
		"rule: r: overrides: user:a: weir: limit": override0(),
	} {
		_, err := rule.Compile(&rule.Set{Rules: rules}, rule.Options{})
		switch {
		case err == nil:
			t.Errorf("%s: compiled", want)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%s\ndoes not say: %s", err, want)
		case strings.Contains(err.Error(), "sk_live"):
			t.Errorf("%s\ntells a secret", err)
		}
	}
}

func override0() []rule.Rule {
	r := limited("r", rule.Match{})
	r.Key, r.Overrides = []rule.Source{{Kind: rule.User}}, map[string]rule.Quota{"user:a": perMinute(0)}
	return []rule.Rule{r}
}

func TestCompileDeniesAllAtOnce(t *testing.T) {
	a, b := limited("a", rule.Match{Paths: []string{"x"}}), limited("b", rule.Match{Paths: []string{"y"}})
	_, err := rule.Compile(&rule.Set{Rules: []rule.Rule{a, b}, Exempt: rule.List{IPs: []netip.Prefix{{}}}, Block: rule.List{IPs: []netip.Prefix{{}}}}, rule.Options{})
	for _, want := range []string{"rule: a:", "rule: b:", "rule: exempt: ip:", "rule: block: ip:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	for _, bits := range []int{-1, 129} {
		if _, err := rule.Compile(&rule.Set{}, rule.Options{IPv6Bits: bits}); err == nil {
			t.Errorf("%d bits compile", bits)
		}
	}
}
