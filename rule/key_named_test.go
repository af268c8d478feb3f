package rule_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

const byEndpoint = `
rules:
  - id: endpoint
    match:
      method: [GET, POST, "*"]
      host: [api.example.com, "*.example.com", "*"]
      path: [/orders, "/orders/{id}", /a|b, /**]
    key: [user, tier, host, method, route]
    limit: 10/1m
    tiers: {pro: 100/1m, free: 5/1m}
  - {id: network, key: ip/24/48, limit: 9/1m}
  - {id: four, key: ip/16, limit: 8/1m}
  - {id: six, key: ip6/32, limit: 7/1m}
`

func usable(t testing.TB, document string) *rule.Table {
	t.Helper()
	set, err := rule.Usable("test.yaml", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, rule.Options{}, set.Rules...)
}

// These are keys in stores, as in TestIdentity.
func TestNamedParts(t *testing.T) {
	c := usable(t, byEndpoint).Find("endpoint")
	for _, test := range []struct {
		req  rule.Request
		want string
	}{
		{rule.Request{}, "user:alice|tier:*|host:*|method:*|route:/**"},
		{rule.Request{Tier: "pro", Host: "API.example.com:80", Method: "get", Path: "/orders/17"}, "user:alice|tier:pro|host:api.example.com|method:GET|route:/orders/{id}"},
		{rule.Request{Tier: "gold", Host: "x.example.com", Method: "PUT", Path: "/a%7Cb"}, `user:alice|tier:*|host:*.example.com|method:*|route:/a\|b`},
		{rule.Request{Tier: "free", Host: "evil", Method: "POST", Path: "/x/y"}, "user:alice|tier:free|host:*|method:POST|route:/**"},
	} {
		test.req.User = "alice"
		if got := identityOf(c, test.req); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if tier, ok := c.TierOf(test.want); !ok || tier != test.req.Tier && tier != "" {
			t.Errorf("the tier of %q is %q, %t", test.want, tier, ok)
		}
	}
	if _, ok := usable(t, byEndpoint).Find("network").TierOf("ip:203.0.113.0/24"); ok {
		t.Error("a key without a tier has one")
	}
}

func TestPrefixes(t *testing.T) {
	table := usable(t, byEndpoint)
	four, six := netip.MustParseAddr("::ffff:203.0.113.7"), netip.MustParseAddr("2001:db8:1:2:3::1%eth0")
	for id, want := range map[string][2]string{
		"network": {"ip:203.0.113.0/24", "ip:2001:db8:1::/48"},
		"four":    {"ip:203.0.0.0/16", "ip:2001:db8:1:2::/64"},
		"six":     {"ip:203.0.113.7", "ip:2001:db8::/32"},
	} {
		c := table.Find(id)
		if got := [2]string{identityOf(c, rule.Request{IP: four}), identityOf(c, rule.Request{IP: six})}; got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
		for _, ip := range []netip.Addr{four, six} {
			whole := identityOf(c, rule.Request{IP: ip})
			for _, text := range []string{"ip:" + ip.Unmap().WithZone("").String(), whole} {
				if got, err := c.ParseIdentity(text); err != nil || got != whole {
					t.Errorf("%s: %s is %q: %v", id, text, got, err)
				}
			}
		}
	}
	if got, err := table.Find("network").ParseIdentity("ip:203.0.0.0/16"); err == nil {
		t.Errorf("a network of many clients is %q", got)
	}
}

// A client cannot get a new key with a method, host, path or tier that it invents: however
// many it tries, there are as many keys as the rule has names.
func TestNobodyInventsKeys(t *testing.T) {
	table := usable(t, byEndpoint)
	seen := map[string]bool{}
	var hits []rule.Hit
	var dst []byte
	var ends []int
	const most = 1 * 2 * 1 * 3 // no tier, two hosts, no method, three routes
	attempts := 1_000_000
	if testkit.Race {
		attempts /= 50
	}
	for i := range attempts {
		n := strconv.Itoa(i)
		req := rule.Request{User: "mallory", Tier: n, Host: n + ".example.com", Method: n, Path: "/orders/" + n}
		switch i % 40 {
		case 1:
			req.Path = "/" + n + "/orders"
		case 2:
			req.Host, req.Path = "evil"+n, "/orders/..%2F"+n
		case 3:
			req.Path = "/orders;" + n + "/./" + n
		}
		hits = table.Match(hits[:0], &req)
		at := slices.IndexFunc(hits, func(h rule.Hit) bool { return h.ID == "endpoint" })
		if at < 0 {
			t.Fatalf("%+v escapes", req)
		}
		var err error
		if dst, ends, err = hits[at].Identities(dst[:0], ends[:0], &req); err != nil || len(ends) == 0 {
			t.Fatalf("%+v is nobody: %v", req, err)
		}
		start := 0
		for _, end := range ends {
			if key := dst[start:end]; !seen[string(key)] {
				seen[string(key)] = true
			}
			start = end
		}
	}
	if len(seen) > most {
		t.Errorf("%d keys, more than %d", len(seen), most)
	}
}

func TestLookUpByParts(t *testing.T) {
	c := usable(t, byEndpoint).Find("endpoint")
	for text, want := range map[string]string{
		"user:bob|tier:pro|host:*|method:GET|route:/orders/{id}":  "",
		`user:bob|tier:*|host:*.example.com|method:*|route:/a\|b`: "",
		"user:bob|tier:gold|host:*|method:GET|route:/**":          `the rule counts by no tier "gold", but by free, pro, *`,
		"user:bob|tier:*|host:evil|method:GET|route:/**":          `the rule counts by no host "evil", but by api.example.com, *.example.com, *`,
		"user:bob|tier:*|host:*|method:PUT|route:/**":             `the rule counts by no method "PUT", but by GET, POST, *`,
		"user:bob|tier:*|host:*|method:GET|route:/orders/17":      `the rule counts by no route "/orders/17", but by /a|b, /orders/{id}, /orders, /**`,
		"user:bob|tier:*|host:*|method:GET":                       "it has 4 parts and the key has 5",
		"user:bob|route:/**|host:*|method:GET|tier:*":             "this is not part of the rule's key",
	} {
		got, err := c.ParseIdentity(text)
		if want == "" && (err != nil || got != text) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
}

// A support engineer knows the user, and asks for all that is counted for it.
func TestLookUpWithoutNamedParts(t *testing.T) {
	table := usable(t, byEndpoint)
	c := table.Find("endpoint")
	for text, want := range map[string]int{
		"user:bob": 3 * 3 * 3 * 4, "user:bob|route:/orders": 3 * 3 * 3, "user:bob|tier:pro|method:GET": 3 * 4, `user:a\|b|tier:pro|host:*|method:GET|route:/**`: 1,
		"user:bob|route:/orders/17": 0, "user:bob|tier:gold": 0, "ip:203.0.113.7": 0, "route:/orders": 0, "user:bob|header:X:y": 0, "": 0, "user:": 0, "user:bob|user:eve": 0,
		"user:bob|route:/orders|method:GET": 0, // not in the order of the key
	} {
		got, err := c.ParseIdentities(text)
		if len(got) != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %d, want %d: %v", text, len(got), want, err)
		}
		slices.Sort(got)
		if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
			t.Errorf("%s: %d of %d are twice there", text, len(got)-n, len(got))
		}
		for _, identity := range got {
			if same, err := c.ParseIdentity(identity); same != identity {
				t.Errorf("%s becomes %s: %v", identity, same, err)
			}
		}
	}
	if got, err := table.Find("network").ParseIdentities("ip:203.0.113.7"); err != nil || !slices.Equal(got, []string{"ip:203.0.113.0/24"}) {
		t.Errorf("%q: %v", got, err)
	}
	r := limited("many", rule.Match{})
	for i := range rule.MaxLookup + 1 {
		r.Match.Paths = append(r.Match.Paths, fmt.Sprint("/", i))
	}
	r.Key = []rule.Source{{Kind: rule.User}, {Kind: rule.Route}}
	if got, err := compile(t, rule.Options{}, r).Rules()[0].ParseIdentities("user:bob"); err == nil {
		t.Errorf("%d clients at once", len(got))
	}
}

func BenchmarkRoute(b *testing.B) {
	for _, n := range []int{2, 100, 10_000} {
		paths := []string{"/**"}
		for i := range n - 1 {
			paths = append(paths, fmt.Sprintf("/shops/%d/orders/{id}", i))
		}
		r := limited("r", rule.Match{Paths: paths})
		r.Key = []rule.Source{{Kind: rule.User}, {Kind: rule.Route}}
		c := compile(b, rule.Options{}, r).Rules()[0]
		req := rule.Request{User: "alice", Path: "/shops/0/orders/17"}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for range b.N {
				dst, _ = c.Identity(dst[:0], &req)
			}
		})
	}
}
