package rule_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

func TestExplain(t *testing.T) {
	login := limited("login", rule.Match{
		Methods: []string{"POST"}, Hosts: []string{"a.com", "b.com", "c.com"}, Paths: []string{"/api/login"},
		Attributes: map[string][]string{"action": {"login"}, "zone": nil},
	})
	login.Key = []rule.Source{{Kind: rule.IP}, {Kind: rule.Header, Name: "X-Tenant"}}
	api := limited("api", rule.Match{Paths: []string{"/api/**"}})
	api.Key = []rule.Source{{Kind: rule.User}}
	api.Tiers = map[string]rule.Quota{"pro": perMinute(7), "max": {Unlimited: true}}
	api.Overrides = map[string]rule.Quota{"user:alice": perMinute(9)}
	off := limited("off", rule.Match{})
	off.Mode = rule.Off
	table := compile(t, rule.Options{}, login, api, off)

	for _, test := range []struct {
		req  rule.Request
		want string
	}{
		{rule.Request{Method: "get", Host: "D.com:80", Path: "/api//logout/", User: "bob", Attributes: map[string]string{"action": "x"}}, `
login: method is GET, the rule wants POST; host is d.com, the rule wants a.com, b.com or c.com; path is /api/logout, the rule wants /api/login; attribute action is x, the rule wants login; attribute zone is not known, the rule wants any value; the request has no IP address, which the rule's key needs; the request has no header X-Tenant, which the rule's key needs
api matches: applies to user:bob by default: 100/1m
off matches: the rule is off`},
		{rule.Request{
			Method: "POST", Host: "a.com", Path: "/api/login", Tier: "pro", User: "eve", IP: netip.MustParseAddr("2001:db8::1"),
			Attributes: map[string]string{"action": "login", "zone": "eu"}, Values: values{"header:X-Tenant": "acme"},
		}, `
login matches: applies to ip:2001:db8::/64|header:X-Tenant:acme by default: 100/1m
api matches: applies to user:eve by tier pro: 7/1m
off matches: the rule is off`},
		{rule.Request{Path: "/api", User: "alice", Tier: "pro"}, `
login: method is not known, the rule wants POST; host is not known, the rule wants a.com, b.com or c.com; path is /api, the rule wants /api/login; attribute action is not known, the rule wants login; attribute zone is not known, the rule wants any value; the request has no IP address, which the rule's key needs; the request has no header X-Tenant, which the rule's key needs
api matches: applies to user:alice by override: 9/1m
off matches: the rule is off`},
		{rule.Request{Path: "/api", User: "eve", Tier: "max", Method: "POST", Host: "a.com", Attributes: map[string]string{"action": "login", "zone": "x"}, IP: netip.MustParseAddr("::1")}, `
login: path is /api, the rule wants /api/login; the request has no header X-Tenant, which the rule's key needs
api matches: applies to user:eve by tier max: unlimited
off matches: the rule is off`},
	} {
		if got := tell(table.Explain(&test.req)); got != test.want {
			t.Errorf("%+v:%s\nwant%s", test.req, got, test.want)
		}
	}
}

func tell(all []rule.Explanation) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "\n%s", e.Rule.ID)
		if e.Matches {
			b.WriteString(" matches")
		}
		b.WriteString(": " + strings.Join(e.Why, "; "))
		if e.Applies {
			limits := "unlimited"
			if len(e.Limits) > 0 {
				limits = e.Limits[0].Limit().Rate()
			}
			fmt.Fprintf(&b, "applies to %s by %s: %s", e.Identity, e.Quota, limits)
		}
	}
	return b.String()
}

func TestExplainLongLists(t *testing.T) {
	table := compile(t, rule.Options{}, limited("r", rule.Match{Methods: []string{"A", "B", "C", "D", "E", "F", "G"}}))
	want := "method is X, the rule wants A, B, C, D, E or one of 2 others"
	if got := table.Explain(&rule.Request{Method: "X"})[0].Why; len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestExplainNamesWhatIsMissing(t *testing.T) {
	r := limited("r", rule.Match{})
	r.Key = sources
	why := strings.Join(compile(t, rule.Options{}, r).Explain(&rule.Request{})[0].Why, "\n")
	for _, want := range []string{"no user,", "no API key,", "no header X,", "no cookie X,", "no query parameter a:b,", "no attribute X,"} {
		if !strings.Contains(why, want) {
			t.Errorf("%q is not in\n%s", want, why)
		}
	}
}

// A path that servers read in several ways counts for several routes, each of which is told.
func TestExplainRoutes(t *testing.T) {
	routes := limited("routes", rule.Match{Paths: []string{"/orders/**", "/admin"}})
	routes.Key = []rule.Source{{Kind: rule.User}, {Kind: rule.Route}}
	routes.Overrides = map[string]rule.Quota{"user:eve|route:/admin": perMinute(2)}
	cookie := limited("cookie", rule.Match{})
	cookie.Key = []rule.Source{{Kind: rule.User}}
	table := compile(t, rule.Options{}, routes, cookie)
	if got, want := tell(table.Explain(&rule.Request{Path: "/orders/..;/../admin", User: "eve", OtherUsers: []string{"bob"}})), `
routes matches: applies to user:eve|route:/orders/** by default: 100/1m
routes matches: applies to user:eve|route:/admin by override: 2/1m
routes matches: applies to user:bob|route:/orders/** by default: 100/1m
routes matches: applies to user:bob|route:/admin by default: 100/1m
cookie matches: applies to user:eve by default: 100/1m
cookie matches: applies to user:bob by default: 100/1m`; got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
	many := make([]string, rule.MaxIdentities)
	for i := range many {
		many[i] = fmt.Sprint("u", i)
	}
	if got, want := tell(table.Explain(&rule.Request{Path: "/admin", User: "eve", OtherUsers: many})), `
routes matches: the request has too many values for user
cookie matches: the request has too many values for user`; got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
}
