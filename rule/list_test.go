package rule_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/rule"
)

func TestLists(t *testing.T) {
	set := &rule.Set{
		Exempt: rule.List{
			IPs:   []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::ffff:192.0.2.0/120"), netip.MustParsePrefix("2001:db8::/32")},
			Users: []string{"healthcheck"},
		},
		Block: rule.List{
			IPs:     []netip.Prefix{netip.MustParsePrefix("203.0.113.99/24")},
			APIKeys: []string{"leaked", rule.HashAPIKey("hashed")},
		},
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		req             rule.Request
		exempt, blocked string
	}{
		{rule.Request{}, "", ""},
		{rule.Request{IP: netip.MustParseAddr("10.1.2.3")}, "10.1.2.3 is in 10.0.0.0/8", ""},
		{rule.Request{IP: netip.MustParseAddr("::ffff:10.1.2.3")}, "10.1.2.3 is in 10.0.0.0/8", ""},
		{rule.Request{IP: netip.MustParseAddr("192.0.2.1")}, "192.0.2.1 is in 192.0.2.0/24", ""},
		{rule.Request{IP: netip.MustParseAddr("2001:db8::1%eth0")}, "2001:db8::1 is in 2001:db8::/32", ""},
		{rule.Request{IP: netip.MustParseAddr("11.0.0.0")}, "", ""},
		{rule.Request{IP: netip.MustParseAddr("203.0.113.1")}, "", "203.0.113.1 is in 203.0.113.0/24"},
		{rule.Request{User: "healthcheck"}, "user healthcheck is on the list", ""},
		{rule.Request{User: "Healthcheck"}, "", ""},
		{rule.Request{APIKey: "leaked"}, "", "API key " + rule.HashAPIKey("leaked") + " is on the list"},
		{rule.Request{APIKey: "hashed"}, "", "API key " + rule.HashAPIKey("hashed") + " is on the list"},
		{rule.Request{APIKey: rule.HashAPIKey("hashed")}, "", ""},
	} {
		if exempt, blocked := table.Exempt(&test.req), table.Blocked(&test.req); exempt != (test.exempt != "") || blocked != (test.blocked != "") {
			t.Errorf("%+v: exempt %t, blocked %t", test.req, exempt, blocked)
		}
		if exempt, blocked := table.ExplainLists(&test.req); exempt != test.exempt || blocked != test.blocked {
			t.Errorf("%+v: exempt %q, blocked %q", test.req, exempt, blocked)
		}
	}
}

// Listed finds a client by its identity, whatever else is in it.
func TestListed(t *testing.T) {
	set := &rule.Set{
		Exempt: rule.List{Users: []string{"health|check"}, IPs: []netip.Prefix{netip.MustParsePrefix("2001:db8::/64")}},
		Block:  rule.List{IPs: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, Users: []string{"eve"}, APIKeys: []string{"leaked"}},
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for identity, want := range map[string]bool{
		"ip:203.0.113.7": true, "ip:203.0.114.7": false, "ip:2001:db8::/64": true, "ip:2001:db8::/56": false, "ip:2001:db8::7": true, "ip:": false, "ip:x": false,
		"user:eve": true, "user:evelyn": false, `user:health\|check`: true, `user:health\\check`: false, "user:health|check": false, `user:eve\`: false,
		"api_key:" + rule.HashAPIKey("leaked"): true, "api_key:leaked": false, "route:/a|user:eve": true, "ip:2001:db8::7|user:eve": true, `route:/a\|user:eve`: false, "global": false, "": false,
	} {
		if got := table.Listed(identity); got != want {
			t.Errorf("%q is listed: %t", identity, got)
		}
		if got := table.Blocks(identity); got != (want && !strings.Contains(identity, "health") && !strings.Contains(identity, "2001")) {
			t.Errorf("%q is blocked: %t", identity, got)
		}
	}
}

// Any number of networks, nested or not, answer as if they were asked one by one.
func TestNetworksAreAsNaive(t *testing.T) {
	addr := rapid.Custom(func(t *rapid.T) netip.Addr {
		b := [16]byte{10: 0xff, 11: 0xff}
		if rapid.Bool().Draw(t, "v6") {
			b = [16]byte{0x20, 1}
		}
		for i := 12; i < 16; i++ {
			b[i] = rapid.SampledFrom([]byte{0, 1, 2, 128, 255}).Draw(t, "byte")
		}
		return netip.AddrFrom16(b)
	})
	rapid.Check(t, func(t *rapid.T) {
		var networks []netip.Prefix
		for range rapid.IntRange(0, 30).Draw(t, "networks") {
			networks = append(networks, netip.PrefixFrom(addr.Draw(t, "network"), rapid.IntRange(96, 128).Draw(t, "bits")))
		}
		table, err := rule.Compile(&rule.Set{Block: rule.List{IPs: networks}}, rule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			ip := addr.Draw(t, "ip")
			want := false
			for _, n := range networks {
				want = want || n.Masked().Contains(ip)
			}
			for _, spelling := range []netip.Addr{ip, ip.Unmap()} {
				if got := table.Blocked(&rule.Request{IP: spelling}); got != want {
					t.Fatalf("%v in %v: %t", spelling, networks, got)
				}
			}
		}
	})
}

func TestLongLists(t *testing.T) {
	l := rule.List{}
	for i := range 10_000 {
		l.IPs = append(l.IPs, netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i >> 8), byte(i), 1, 1}), 24+i%9))
		l.Users = append(l.Users, fmt.Sprint("user", i))
	}
	table, err := rule.Compile(&rule.Set{Exempt: l}, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		if !table.Exempt(&rule.Request{IP: netip.AddrFrom4([4]byte{byte(i >> 8), byte(i), 1, 1})}) || !table.Exempt(&rule.Request{User: fmt.Sprint("user", i)}) {
			t.Fatalf("%d is not exempt", i)
		}
	}
	if table.Exempt(&rule.Request{IP: netip.MustParseAddr("1.1.2.1"), User: "user10000"}) {
		t.Error("somebody else is exempt")
	}
}
