package rule_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// values finds the same in headers, cookies and the query.
type values map[string]string

func (v values) Header(name string, from int) (string, int) {
	return rule.OneValue(v["header:"+name], from)
}

func (v values) Cookie(name string, from int) (string, int) {
	return rule.OneValue(v["cookie:"+name], from)
}

func (v values) Query(name string, from int) (string, int) {
	return rule.OneValue(v["query:"+name], from)
}

func keyed(t testing.TB, o rule.Options, key ...rule.Source) *rule.Entry {
	t.Helper()
	r := limited("r", rule.Match{})
	r.Key = key
	return compile(t, o, r).Rules()[0]
}

func identityOf(c *rule.Entry, req rule.Request) string {
	identity, ok := c.Identity(nil, &req)
	if !ok {
		return "none"
	}
	return string(identity)
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(h[:16])
}

// These are keys in stores: a change of the format would reset all clients.
func TestIdentity(t *testing.T) {
	ip, user, key, global := rule.Source{Kind: rule.IP}, rule.Source{Kind: rule.User}, rule.Source{Kind: rule.APIKey}, rule.Source{Kind: rule.Global}
	header := func(name string) rule.Source { return rule.Source{Kind: rule.Header, Name: name} }
	req := rule.Request{
		IP: netip.MustParseAddr("203.0.113.7"), User: "alice", APIKey: "sk_live_1",
		Attributes: map[string]string{"action": "post", "empty": ""},
		Values: values{
			"header:X-Tenant": "acme", "header:Authorization": "Bearer x", "header:X-Api-Key": "k", "header:X|Y": "z", "header:Odd": `a|b\c`,
			"cookie:sid": "s", "cookie:plan": "pro", "query:q": `a|b\c`, "query:access_token": "t", "header:Long": strings.Repeat("x", 257), "header:Fits": strings.Repeat("x", 256),
		},
	}
	for _, test := range []struct {
		key  []rule.Source
		want string
	}{
		{[]rule.Source{ip}, "ip:203.0.113.7"},
		{[]rule.Source{user}, "user:alice"},
		{[]rule.Source{global}, "global"},
		{[]rule.Source{key}, "api_key:" + sum("weir:api_key:sk_live_1")},
		{[]rule.Source{key}, "api_key:" + rule.HashAPIKey("sk_live_1")},
		{[]rule.Source{header("X-Tenant")}, "header:X-Tenant:acme"},
		{[]rule.Source{header("x-tenant")}, "header:X-Tenant:acme"},
		{[]rule.Source{header("authorization")}, "header:Authorization:" + sum("weir:header:Authorization:Bearer x")},
		{[]rule.Source{header("X-API-Key")}, "header:X-Api-Key:" + sum("weir:header:X-Api-Key:k")},
		{[]rule.Source{{Kind: rule.Cookie, Name: "sid"}}, "cookie:sid:" + sum("weir:cookie:sid:s")},
		{[]rule.Source{{Kind: rule.Cookie, Name: "plan"}}, "cookie:plan:" + sum("weir:cookie:plan:pro")},
		{[]rule.Source{{Kind: rule.Query, Name: "q"}}, "query:q:" + sum(`weir:query:q:a|b\c`)},
		{[]rule.Source{header("Odd")}, `header:Odd:a\|b\\c`},
		{[]rule.Source{{Kind: rule.Query, Name: "access_token"}}, "query:access_token:" + sum("weir:query:access_token:t")},
		{[]rule.Source{{Kind: rule.Attribute, Name: "action"}}, "attr:action:post"},
		{[]rule.Source{header("Long")}, `header:Long:\` + sum("weir:header:Long:"+strings.Repeat("x", 257))},
		{[]rule.Source{header("Fits")}, "header:Fits:" + strings.Repeat("x", 256)},
		{[]rule.Source{ip, user}, "ip:203.0.113.7|user:alice"},
		{[]rule.Source{global, user, global}, "global|user:alice|global"},
		{[]rule.Source{header("Fits"), header("Fits"), header("Fits"), header("Fits")},
			`\` + sum("weir:"+strings.Repeat("|header:Fits:"+strings.Repeat("x", 256), 4)[1:])},
		{[]rule.Source{{Kind: rule.Attribute, Name: "empty"}}, "none"},
		{[]rule.Source{{Kind: rule.Attribute, Name: "other"}}, "none"},
		{[]rule.Source{header("Other")}, "none"},
		{[]rule.Source{user, header("Other")}, "none"},
	} {
		if got := identityOf(keyed(t, rule.Options{}, test.key...), req); got != test.want {
			t.Errorf("%+v: %s, want %s", test.key, got, test.want)
		}
	}
	for _, s := range []rule.Source{ip, user, key, header("X"), {Kind: rule.Cookie, Name: "x"}, {Kind: rule.Query, Name: "x"}, {Kind: rule.Attribute, Name: "x"}} {
		if got := identityOf(keyed(t, rule.Options{}, s), rule.Request{}); got != "none" {
			t.Errorf("no client is %s", got)
		}
	}
}

func TestIdentityAppends(t *testing.T) {
	c := keyed(t, rule.Options{}, rule.Source{Kind: rule.User}, rule.Source{Kind: rule.IP})
	got, ok := c.Identity([]byte("before "), &rule.Request{User: "alice"})
	if ok || string(got) != "before " {
		t.Errorf("%q, %t", got, ok)
	}
	before := strings.Repeat("x", weir.MaxKeyLen)
	if got, _ := c.Identity([]byte(before), &rule.Request{User: "alice", IP: netip.MustParseAddr("::")}); string(got) != before+"user:alice|ip:::/64" {
		t.Errorf("behind %d bytes it is %q", len(before), got[len(before):])
	}
	long := keyed(t, rule.Options{}, rule.Source{Kind: rule.User}, rule.Source{Kind: rule.User}, rule.Source{Kind: rule.User}, rule.Source{Kind: rule.User})
	req := rule.Request{User: strings.Repeat("|", 256)}
	got, ok = long.Identity([]byte("before "), &req)
	alone, _ := long.Identity(nil, &req)
	if !ok || string(got) != "before "+string(alone) || len(alone) > weir.MaxKeyLen {
		t.Errorf("%q, %q, %t", got, alone, ok)
	}
}

func TestIPs(t *testing.T) {
	for _, test := range []struct {
		bits     int
		ip, want string
	}{
		{0, "203.0.113.7", "ip:203.0.113.7"},
		{0, "::ffff:203.0.113.7", "ip:203.0.113.7"},
		{0, "::ffff:cb00:7107", "ip:203.0.113.7"},
		{0, "2001:db8:1:2:3:4:5:6", "ip:2001:db8:1:2::/64"},
		{0, "2001:db8:1:2::", "ip:2001:db8:1:2::/64"},
		{56, "2001:db8:1:2ff:3:4:5:6", "ip:2001:db8:1:200::/56"},
		{128, "2001:db8::1", "ip:2001:db8::1"},
		{1, "ff00::1", "ip:8000::/1"},
		{0, "fe80::1%eth0", "ip:fe80::/64"},
		{128, "fe80::1%eth0", "ip:fe80::1"},
		{0, "::1", "ip:::/64"},
		{32, "203.0.113.7", "ip:203.0.113.7"},
	} {
		c := keyed(t, rule.Options{IPv6Bits: test.bits}, rule.Source{Kind: rule.IP})
		if got := identityOf(c, rule.Request{IP: netip.MustParseAddr(test.ip)}); got != test.want {
			t.Errorf("%s by %d bits: %s, want %s", test.ip, test.bits, got, test.want)
		}
	}
}

func TestSecretNames(t *testing.T) {
	for name, secret := range map[string]bool{
		"authorization": true, "Proxy-Authorization": true, "Cookie": true, "X-Api-Key": true, "X-CSRF-Token": true, "client_secret": true,
		"session": true, "JSESSIONID": true, "PHPSESSID": true, "connect.sid": true, "sid": true, "password": true, "jwt": true,
		"X-Tenant": false, "plan": false, "X-Inside-Region": false, "Accept-Language": false, "q": false,
	} {
		canonical := http.CanonicalHeaderKey(name)
		req := rule.Request{
			Attributes: map[string]string{name: "clear"},
			Values:     values{"header:" + canonical: "clear", "cookie:" + name: "clear", "query:" + name: "clear"},
		}
		for kind, hides := range map[rule.SourceKind]bool{rule.Header: secret, rule.Attribute: secret, rule.Cookie: true, rule.Query: true} {
			c := keyed(t, rule.Options{}, rule.Source{Kind: kind, Name: name})
			got := identityOf(c, req)
			if hidden := !strings.Contains(got, "clear"); hidden != hides || got == "none" {
				t.Errorf("%s becomes %s", name, got)
			}
			// A client can be looked up by its clear value.
			if clear, _, _ := strings.Cut(got, "sha256:"); hides {
				if parsed, err := c.ParseIdentity(clear + "clear"); err != nil || parsed != got {
					t.Errorf("%sclear is %s, %v, want %s", clear, parsed, err, got)
				}
			}
		}
	}
}
