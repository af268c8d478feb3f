package rule_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"unsafe"

	"github.com/weirhq/weir/rule"
)

// What is done for every request allocates nothing.
func TestNothingAllocates(t *testing.T) {
	set := &rule.Set{
		Exempt: rule.List{IPs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Users: []string{"x"}, APIKeys: []string{"x"}},
		Block:  rule.List{IPs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Users: []string{"x"}, APIKeys: []string{"x"}},
	}
	add := func(m rule.Match, key ...rule.Source) {
		r := limited(fmt.Sprint(len(set.Rules)), m)
		if key != nil {
			r.Key = key
		}
		r.Overrides = map[string]rule.Quota{}
		set.Rules = append(set.Rules, r)
	}
	for i := range 20 {
		host := fmt.Sprintf("t%d.example.com", i)
		add(rule.Match{Paths: []string{"/api/**"}, Hosts: []string{host, "*." + host}, Methods: []string{"GET", fmt.Sprint("M", i)}})
		add(rule.Match{Attributes: map[string][]string{"action": {fmt.Sprint(i)}, "zone": nil, fmt.Sprint("a", i): nil}})
		add(rule.Match{Paths: []string{"/api/{x}/login", "/api/v1/{y}"}, Methods: []string{"GET", fmt.Sprint("M", i)}})
	}
	add(rule.Match{}, rule.Source{Kind: rule.IP})
	add(rule.Match{}, rule.Source{Kind: rule.User}, rule.Source{Kind: rule.APIKey})
	add(rule.Match{}, rule.Source{Kind: rule.Header, Name: "Authorization"}, rule.Source{Kind: rule.Header, Name: "Long"}, rule.Source{Kind: rule.Attribute, Name: "action"})
	add(rule.Match{}, rule.Source{Kind: rule.User}, rule.Source{Kind: rule.User}, rule.Source{Kind: rule.User}, rule.Source{Kind: rule.User})
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	req := &rule.Request{
		IP: netip.MustParseAddr("2001:db8::1%eth0"), User: strings.Repeat("|", 256), APIKey: strings.Repeat("k", 500), Tier: "free",
		Method: "GET", Host: "t7.example.com:8080", Path: "/api/v1/login/?x",
		Attributes: map[string]string{"action": "7", "zone": "eu", "a7": "x", "b": "y"},
		Values:     values{"header:Authorization": strings.Repeat("x", 10_000), "header:Long": strings.Repeat("x", 10_000)},
	}
	hits, identity, ends := make([]rule.Hit, 0, 100), make([]byte, 0, 4096), make([]int, 0, 8)
	found := 0
	allocs := testing.AllocsPerRun(100, func() {
		if table.Exempt(req) || table.Blocked(req) {
			t.Error("it is on a list")
		}
		hits = table.Match(hits[:0], req)
		found = 0
		for _, c := range hits {
			id, all, err := c.Identities(identity[:0], ends[:0], req)
			if err == nil && len(all) == 1 && len(c.Limits(unsafe.String(&id[0], len(id)), req.Tier)) == 1 {
				found++
			}
		}
	})
	if found != 1+1+20+4 {
		t.Errorf("%d rules apply: %v", found, idsOf(hits))
	}
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
