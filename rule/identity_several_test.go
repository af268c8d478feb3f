package rule_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// lists finds several values of a name, in headers, cookies and the query alike.
type lists map[string][]string

func (v lists) Header(name string, from int) (string, int) { return rule.NextValue(v[name], from) }
func (v lists) Cookie(name string, from int) (string, int) { return rule.NextValue(v[name], from) }
func (v lists) Query(name string, from int) (string, int)  { return rule.NextValue(v[name], from) }

// identitiesOf are all of them, behind something else in the same room.
func identitiesOf(c *rule.Entry, req *rule.Request) ([]string, error) {
	dst, ends, err := rule.Hit{Entry: c}.Identities([]byte("before"), []int{6}, req)
	if len(ends) == 0 || ends[0] != 6 || string(dst[:6]) != "before" || ends[len(ends)-1] != len(dst) {
		return nil, errors.New("what was there before is gone")
	}
	var all []string
	for i := range ends[1:] {
		all = append(all, string(dst[ends[i]:ends[i+1]]))
	}
	return all, err
}

// A request is everybody whom it says it is, each once.
func TestSeveralValues(t *testing.T) {
	tenant := rule.Source{Kind: rule.Header, Name: "X-Tenant"}
	zone := rule.Source{Kind: rule.Header, Name: "X-Zone"}
	user, key, ip := rule.Source{Kind: rule.User}, rule.Source{Kind: rule.APIKey}, rule.Source{Kind: rule.IP}
	nine := strings.Split("a b c d e f g h i", " ")
	for _, c := range []struct {
		name string
		key  []rule.Source
		req  rule.Request
		want string // "too many" is an error
	}{
		{"nobody", []rule.Source{tenant}, rule.Request{}, ""},
		{"one", []rule.Source{tenant}, rule.Request{Values: lists{"X-Tenant": {"a"}}}, "header:X-Tenant:a"},
		{"two", []rule.Source{tenant}, rule.Request{Values: lists{"X-Tenant": {"a", "b"}}}, "header:X-Tenant:a header:X-Tenant:b"},
		{"one twice", []rule.Source{tenant}, rule.Request{Values: lists{"X-Tenant": {"a", "b", "a", "b"}}}, "header:X-Tenant:a header:X-Tenant:b"},
		{"an empty one first", []rule.Source{tenant}, rule.Request{Values: lists{"X-Tenant": {"", "a", ""}}}, "header:X-Tenant:a"},
		{"empty ones only", []rule.Source{tenant}, rule.Request{Values: lists{"X-Tenant": {"", ""}}}, ""},
		{"all that are allowed", []rule.Source{tenant}, rule.Request{Values: lists{"X-Tenant": nine[:8]}}, "header:X-Tenant:" + strings.Join(nine[:8], " header:X-Tenant:")},
		{"one more", []rule.Source{tenant}, rule.Request{Values: lists{"X-Tenant": nine}}, "too many"},
		{"one more of the same", []rule.Source{tenant}, rule.Request{Values: lists{"X-Tenant": slices.Repeat([]string{"a"}, 9)}}, "too many"},
		{"combinations", []rule.Source{tenant, user, zone}, rule.Request{User: "u", Values: lists{"X-Tenant": {"a", "b"}, "X-Zone": {"1", "2"}}},
			"header:X-Tenant:a|user:u|header:X-Zone:1 header:X-Tenant:a|user:u|header:X-Zone:2 header:X-Tenant:b|user:u|header:X-Zone:1 header:X-Tenant:b|user:u|header:X-Zone:2"},
		{"too many combinations", []rule.Source{tenant, zone}, rule.Request{Values: lists{"X-Tenant": nine[:3], "X-Zone": nine[:3]}}, "too many"},
		{"a part that is missing", []rule.Source{tenant, user}, rule.Request{Values: lists{"X-Tenant": {"a", "b"}}}, ""},
		{"users", []rule.Source{user}, rule.Request{User: "a", OtherUsers: []string{"b", "", "c"}}, "user:a user:b user:c"},
		{"users, an empty one first", []rule.Source{user}, rule.Request{OtherUsers: []string{"b"}}, "user:b"},
		{"API keys", []rule.Source{key}, rule.Request{APIKey: "a", OtherAPIKeys: []string{"b"}}, "api_key:" + rule.HashAPIKey("a") + " api_key:" + rule.HashAPIKey("b")},
		{"an address", []rule.Source{ip, tenant}, rule.Request{IP: netip.MustParseAddr("192.0.2.1"), Values: lists{"X-Tenant": {"a", "b"}}}, "ip:192.0.2.1|header:X-Tenant:a ip:192.0.2.1|header:X-Tenant:b"},
		{"many parts", []rule.Source{user, user, user, user, tenant}, rule.Request{User: "u", Values: lists{"X-Tenant": {"a", "b"}}},
			"user:u|user:u|user:u|user:u|header:X-Tenant:a user:u|user:u|user:u|user:u|header:X-Tenant:b"},
		{"the host", []rule.Source{{Kind: rule.Header, Name: "host"}}, rule.Request{Host: "A.Example.com.:80:80", Values: lists{"Host": {"other"}}}, "header:Host:a.example.com"},
		{"the host as a header", []rule.Source{{Kind: rule.Header, Name: "host"}}, rule.Request{Values: lists{"Host": {"other"}}}, "header:Host:other"},
	} {
		got, err := identitiesOf(keyed(t, rule.Options{}, c.key...), &c.req)
		var values *rule.ValuesError
		switch {
		case c.want == "too many":
			if !errors.As(err, &values) || values.What == "" || got != nil {
				t.Errorf("%s: %v, %v", c.name, got, err)
			}
		case err != nil || strings.Join(got, " ") != c.want:
			t.Errorf("%s: %v, %v, want %s", c.name, got, err, c.want)
		}
	}
}

// If one of several values is blocked, the request is blocked; if only one is exempt,
// the request is not exempt.
func TestListsOfSeveral(t *testing.T) {
	list := rule.List{Users: []string{"a", "b"}, APIKeys: []string{"k", "l"}}
	table, err := rule.Compile(&rule.Set{Exempt: list, Block: list}, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		req             rule.Request
		exempt, blocked bool
	}{
		{rule.Request{User: "a", OtherUsers: []string{"b"}}, true, true},
		{rule.Request{User: "a", OtherUsers: []string{"x"}}, false, true},
		{rule.Request{User: "x", OtherUsers: []string{"a"}}, false, true},
		{rule.Request{OtherUsers: []string{"", "a"}}, true, true},
		{rule.Request{User: "x", OtherUsers: []string{"y"}}, false, false},
		{rule.Request{APIKey: "k", OtherAPIKeys: []string{"l", "k"}}, true, true},
		{rule.Request{APIKey: "x", OtherAPIKeys: []string{"k"}}, false, true},
		{rule.Request{User: "x", APIKey: "k"}, true, true},
	} {
		if exempt, blocked := table.Exempt(&c.req), table.Blocked(&c.req); exempt != c.exempt || blocked != c.blocked {
			t.Errorf("%+v: exempt %t, blocked %t", c.req, exempt, blocked)
		}
	}
}

// Who asks for an answer is a user, or what a rule's key has of a client.
func TestAppendAsker(t *testing.T) {
	set, problems := rule.Parse("test.yaml", []byte(`
levels: [org, team, api_key, user]
rules:
  - {id: all, key: global, limit: 1/1s}
  - {id: address, key: ip, limit: 1/1s}
  - {id: model, key: "attr:model", limit: 1/1s}
  - {id: team, key: "attr:team", limit: 1/1s}
  - {id: mixed, key: ["ip", "method", "api_key", "attr:model", "header:X-Tenant"], limit: 1/1s}
  - {id: levels, key: levels, levels: {org: 3/1s, api_key: 2/1s, user: 1/1s}}
`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mine := "api_key:" + rule.HashAPIKey("mine")
	req := rule.Request{IP: netip.MustParseAddr("198.51.100.7"), APIKey: "mine", Method: "GET", Values: lists{"X-Tenant": {"a"}},
		Attributes: map[string]string{"team": "red", "model": "m", "org": "acme"}}
	alice := req
	alice.User = "alice"
	for i, want := range []string{"", "", "", "attr:team:red", "|" + mine + "|header:X-Tenant:a", "org:acme" + mine} {
		r := table.Rules()[i]
		if got, known := r.AppendAsker(nil, &req); string(got) != want || known != (want != "") {
			t.Errorf("%s: %q, %v; want %q", r.ID, got, known, want)
		}
		if got, known := r.AppendAsker(nil, &alice); string(got) != "user:alice" || !known {
			t.Errorf("%s: %q, %v", r.ID, got, known)
		}
		if got, known := r.AppendAsker(nil, new(rule.Request)); len(got) > 0 || known {
			t.Errorf("%s: nothing is %q, %v", r.ID, got, known)
		}
	}
}
