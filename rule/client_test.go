package rule

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func tableWith(t *testing.T, document string, o Options) *Table {
	t.Helper()
	set, problems := Parse("test.yaml", []byte(document))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := Compile(set, o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestPattern(t *testing.T) {
	many := ""
	for i := range 101 {
		many += fmt.Sprintf("/p%d, ", i)
	}
	table := tableWith(t, `
rules:
  - {id: none, key: ip, limit: 1/1s}
  - {id: one, match: {path: "/a/{id}"}, key: ip, limit: 1/1s}
  - {id: some, match: {path: ["/a/{id}", "/a/**", "/b/{x}/c"]}, key: ip, limit: 1/1s}
  - {id: many, match: {path: [`+many+`]}, key: ip, limit: 1/1s}
`, Options{IgnoreCase: true})
	for _, c := range []struct {
		rule       int
		path, want string
	}{
		{0, "/a/7", ""}, {1, "/a/7", "/a/{id}"}, {2, "/a/7", "/a/{id}"}, {2, "/a/7/8", "/a/**"}, {2, "/B/%37/./c", "/b/{x}/c"},
		{2, "/x/../a/7/8", "/a/**"}, {2, "/none", ""}, {2, "", ""}, {3, "/p7", "/p7"}, {3, "/p101", ""},
	} {
		if got := table.Rules()[c.rule].Pattern(&Request{Path: c.path}); got != c.want {
			t.Errorf("rule %d, %s: %q, want %q", c.rule, c.path, got, c.want)
		}
	}
	if got := (&Entry{Rule: &Rule{Match: Match{Paths: []string{"/a", "/b"}}}}).Pattern(&Request{Path: "/a"}); got != "" {
		t.Errorf("a rule without a table has %q", got)
	}
}

func TestAppendClient(t *testing.T) {
	table := tableWith(t, `
block: {user: [mallory, "a|b"], ip: ["2001:db8:5::/48", 198.51.100.0/24], api_key: [stolen]}
rules: []
`, Options{IPv6Bits: 56})
	four, six := netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8:5:1ff::1")
	for _, c := range []struct {
		req             Request
		client, blocked string
	}{
		{Request{}, "", ""},
		{Request{IP: four}, "ip:198.51.100.7", "ip:198.51.100.7"},
		{Request{IP: six}, "ip:2001:db8:5:100::/56", "ip:2001:db8:5:100::/56"},
		{Request{IP: netip.MustParseAddr("203.0.113.7"), User: "alice"}, "user:alice", ""},
		{Request{IP: four, User: "alice"}, "user:alice", "ip:198.51.100.7"},
		{Request{User: "a|b"}, `user:a\|b`, `user:a\|b`},
		{Request{User: "alice", OtherUsers: []string{"bob", "mallory"}}, "user:alice", "user:mallory"},
		{Request{APIKey: "mine", OtherAPIKeys: []string{"stolen"}}, "api_key:" + HashAPIKey("mine"), "api_key:" + HashAPIKey("stolen")},
		{Request{User: strings.Repeat("x", maxValue+1)}, `user:\sha256:`, ""},
	} {
		client, blocked := string(table.AppendClient(nil, &c.req)), string(table.AppendBlocked(nil, &c.req))
		if !strings.HasPrefix(client, c.client) || c.client == "" && client != "" || blocked != c.blocked || (blocked != "") != table.Blocked(&c.req) {
			t.Errorf("%+v is %q, blocked %q; want %q, %q", c.req, client, blocked, c.client, c.blocked)
		}
	}
}
