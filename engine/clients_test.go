package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

const planned = `
rules:
  - {id: api, key: user, algorithm: fixed_window, limit: 2/1h, tiers: {pro: 10/1h}, overrides: {"user:carol": 3/1h}}
  - {id: month, key: [user, route], match: {path: [/a, /b]}, limit: 100/month, tiers: {pro: 200/month}}
  - {id: keys, key: api_key, algorithm: fixed_window, limit: 50/1h}
exempt: {user: root}
block: {user: mallory}
`

const customers = `
{"client": "api_key:k-ann", "parent": "user:ann"}
{"client": "api_key:k-ann2", "parent": "user:ann", "limits": {"keys": "7/1h"}}
{"client": "user:ann", "parent": "org:acme"}
{"client": "org:acme", "tier": "pro", "starts": 15, "zone": "Europe/Berlin"}
{"client": "api_key:k-bob", "parent": "user:bob"}
{"client": "user:bob", "limits": {"api": "4/1h", "month": "unlimited"}}
{"client": "user:carol", "limits": {"api": "6/1h"}}
{"client": "api_key:k-eve", "parent": "user:eve"}
{"client": "user:eve", "parent": "org:closed"}
{"client": "org:closed", "blocked": true}
{"client": "api_key:k-root", "parent": "user:root"}
{"client": "user:root", "parent": "org:closed"}
{"client": "api_key:k-mallory", "parent": "user:mallory"}
{"client": "user:mallory"}
`

func readClients(t testing.TB, text string) *rule.Directory {
	t.Helper()
	d, problems, err := rule.ReadDirectory("clients.ndjson", strings.NewReader(text))
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return d
}

// limitsIn says what a verdict has checked.
func limitsIn(v *engine.Verdict) string {
	if v.Reason != engine.Limits {
		return v.Reason.String()
	}
	var texts []string
	for i := range v.Results {
		r := &v.Results[i]
		text := fmt.Sprintf("%s %s %s", r.Rule.ID, r.Key, r.Compiled.Limit().Rate())
		if l := r.Compiled.Limit(); l.Starts != "" {
			text += " starts " + l.Starts + " in " + l.ZoneName()
		}
		texts = append(texts, text)
	}
	return strings.ReplaceAll(strings.Join(texts, ", "), rule.HashAPIKey("k-ann2"), "k2")
}

// A request that carries only an API key has the user, tier, dates and limits that the directory says.
func TestClients(t *testing.T) {
	b := newBench(t, planned, nil)
	set := func(change func(*engine.Clients)) {
		c := engine.Clients{Directory: readClients(t, customers)}
		change(&c)
		b.InstallClients(c)
	}
	plain, deny, trust := func(*engine.Clients) {}, func(c *engine.Clients) { c.DenyUnknown = true }, func(c *engine.Clients) { c.TrustRequest = true }
	hashed := func(key string) string { return "api_key:" + rule.HashAPIKey(key) }
	for _, c := range []struct {
		name    string
		set     func(*engine.Clients)
		request rule.Request
		want    string
	}{
		{"user and tier", plain, rule.Request{APIKey: "k-ann"}, "api user:ann 10/1h, keys " + hashed("k-ann") + " 50/1h"},
		{"dates, also of a composed key", plain, rule.Request{User: "ann", Path: "/b"}, "api user:ann 10/1h, month user:ann|route:/b 200/month starts 15 in Europe/Berlin"},
		{"own limits of the key", plain, rule.Request{APIKey: "k-ann2"}, "api user:ann 10/1h, keys api_key:k2 7/1h"},
		{"own limits of the user", plain, rule.Request{APIKey: "k-bob", Path: "/a"}, "api user:bob 4/1h, keys " + hashed("k-bob") + " 50/1h"},
		{"before the rule's override", plain, rule.Request{User: "carol"}, "api user:carol 6/1h"},
		{"a client chooses neither user nor tier", plain, rule.Request{APIKey: "k-ann", User: "bob", Tier: "free"}, "api user:ann 10/1h, keys " + hashed("k-ann") + " 50/1h"},
		{"but who is trusted does", trust, rule.Request{APIKey: "k-ann", User: "dan", Tier: "free"}, "api user:dan 2/1h, keys " + hashed("k-ann") + " 50/1h"},
		{"blocked above", plain, rule.Request{APIKey: "k-eve"}, "blocked"},
		{"on the block list", plain, rule.Request{APIKey: "k-mallory"}, "blocked"},
		{"exempt wins", plain, rule.Request{APIKey: "k-root"}, "exempt"},
		{"unknown is allowed", plain, rule.Request{APIKey: "new"}, "keys " + hashed("new") + " 50/1h"},
		{"unknown is denied", deny, rule.Request{APIKey: "new"}, "unknown_client"},
		{"also beside a known key", deny, rule.Request{APIKey: "k-ann", OtherAPIKeys: []string{"new"}}, "unknown_client"},
		{"also beside a user", deny, rule.Request{APIKey: "new", User: "ann"}, "unknown_client"},
		{"who is blocked is known to be", deny, rule.Request{APIKey: "k-mallory", OtherAPIKeys: []string{"new"}}, "blocked"},
		{"nobody is unknown", deny, rule.Request{Path: "/a"}, "unknown_client"},
		{"a known one is allowed", deny, rule.Request{User: "ann"}, "api user:ann 10/1h"},
		{"exempt is never unknown", deny, rule.Request{User: "root"}, "exempt"},
	} {
		set(c.set)
		v := b.check(t, c.request)
		if got := limitsIn(v); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if d := engine.Describe(v); c.want == "unknown_client" && (d.HTTPStatus() != 401 || d.Cause != engine.ClientUnknown || v.Outcome() != engine.OutcomeUnknownClient) {
			t.Errorf("%s: status %d, %v", c.name, d.HTTPStatus(), v.Outcome())
		}
	}
	set(plain)
	b.InstallOverrides([]engine.Override{until("bob", "9/1h", time.Minute)})
	if got := limitsIn(b.check(t, rule.Request{User: "bob"})); got != "api user:bob 9/1h" {
		t.Errorf("with a temporary override: %s", got)
	}
	var v engine.Verdict
	if tier, err := b.Standing(t.Context(), "api", "user:ann", "", &v); err != nil || tier.Name != "pro" || limitsIn(&v) != "api user:ann 10/1h" {
		t.Errorf("Standing has %v %v: %s", tier, err, limitsIn(&v))
	}
	b.InstallClients(engine.Clients{})
	if got := limitsIn(b.check(t, rule.Request{APIKey: "k-eve", User: "x"})); !strings.HasPrefix(got, "api user:x 2/1h") {
		t.Errorf("without a directory: %s", got)
	}
}

// An attribute is a client like others: it is had from the directory, which a request cannot contradict unless it is trusted.
func TestClientsAttributes(t *testing.T) {
	b := newBench(t, `rules: [{id: customers, key: "attr:customer", limit: 5/1h}]`, nil)
	for _, c := range []struct {
		trust   bool
		request rule.Request
		want    string
	}{
		{false, rule.Request{APIKey: "k"}, "customers attr:customer:a|b 9/1h"},
		{false, rule.Request{APIKey: "k", Attributes: map[string]string{"customer": "other"}}, "customers attr:customer:a|b 9/1h"},
		{true, rule.Request{APIKey: "k", Attributes: map[string]string{"customer": "other"}}, "customers attr:customer:other 5/1h"},
		{false, rule.Request{Attributes: map[string]string{"customer": "other"}}, "customers attr:customer:other 5/1h"},
		{false, rule.Request{APIKey: "unknown"}, ""},
	} {
		b.InstallClients(engine.Clients{TrustRequest: c.trust, Directory: readClients(t, `{"client": "api_key:k", "parent": "attr:customer:a\\|b"}
{"client": "attr:customer:a\\|b", "limits": {"customers": "9/1h"}}`)})
		if got := strings.ReplaceAll(limitsIn(b.check(t, c.request)), `\|`, "|"); got != c.want {
			t.Errorf("%+v: %s, want %s", c.request, got, c.want)
		}
	}
}

// Two tiers that share a limit do not share their dates.
func TestClientsDates(t *testing.T) {
	b := newBench(t, `rules: [{id: api, key: user, limits: [9/1h, 1000/month], tiers: {pro: {limits: [9/1h, 5000/month]}}}]`, nil)
	b.InstallClients(engine.Clients{Directory: readClients(t, `{"client": "user:a", "starts": 3}
{"client": "user:b", "starts": 3, "tier": "pro"}`)})
	for user, want := range map[string]string{"a": "1000/month starts 3", "b": "5000/month starts 3"} {
		if got := limitsIn(b.check(t, rule.Request{User: user})); !strings.Contains(got, want) {
			t.Errorf("%s has %s, want %s", user, got, want)
		}
	}
}

// A client that moves leaves what it used with those that it belonged to.
func TestClientsMove(t *testing.T) {
	b := newBench(t, planned, nil)
	owner := func(user string) {
		b.InstallClients(engine.Clients{Directory: readClients(t, `{"client": "api_key:k", "parent": "user:`+user+`"}`+"\n"+`{"client": "user:`+user+`"}`)})
	}
	owner("old")
	b.check(t, rule.Request{APIKey: "k"})
	owner("new")
	b.check(t, rule.Request{APIKey: "k"})
	for _, user := range []string{"old", "new"} {
		var v engine.Verdict
		if _, err := b.Standing(t.Context(), "api", "user:"+user, "", &v); err != nil || v.Results[0].Remaining != 1 {
			t.Errorf("%s has %d left, %v", user, v.Results[0].Remaining, err)
		}
	}
}

// What has no effect is told, and follows the rules; the limits of the rule apply then.
func TestIdleClients(t *testing.T) {
	b := newBench(t, planned, nil)
	b.InstallClients(engine.Clients{Directory: readClients(t, `{"client": "user:a", "tier": "prol", "limits": {"apii": "5/1h", "api": "7/1h"}}
{"client": "user:b", "limits": {"keys": "5/1h"}}
{"client": "user:c", "limits": {"cost": "1/1h"}}`)})
	_, err := b.Clients()
	if err == nil || len(err.(*engine.IdleError).What) != 4 {
		t.Fatalf("it has no effect: %v", err)
	}
	b.Install(table(t, strings.Replace(planned, "rules:", "rules:\n  - {id: apii, key: user, limit: 1/1h, tiers: {prol: 2/1h}}\n  - {id: cost, key: user, limit: 20/1h, cost: 2}", 1)), 2)
	_, err = b.Clients()
	if idle := err.(*engine.IdleError).What; len(idle) != 2 || !strings.Contains(strings.Join(idle, ";"), "a request costs 2") {
		t.Fatalf("it has no effect: %v", idle)
	}
	if got := limitsIn(b.check(t, rule.Request{User: "c"})); !strings.Contains(got, "cost user:c 20/1h") {
		t.Errorf("the limit that does not fit made %s", got)
	}
}

// The example of the guide: two keys of one user share what the plan of their organization gives them.
func TestClientsExample(t *testing.T) {
	rules := string(testkit.Must(os.ReadFile("../examples/rules/clients.yaml"))(t))
	b := newBench(t, rules, nil)
	b.InstallClients(engine.Clients{Directory: readClients(t, string(testkit.Must(os.ReadFile("../examples/clients.ndjson"))(t)))})
	if _, idle := b.Clients(); idle != nil {
		t.Error(idle)
	}
	allowed := 0
	for i := range 150 {
		if b.check(t, rule.Request{APIKey: fmt.Sprintf("ann-key-%d", i%2+1), Path: "/v1/x"}).Allowed {
			allowed++
		}
	}
	if allowed != 100 {
		t.Errorf("%d are allowed", allowed)
	}
	if got := limitsIn(b.check(t, rule.Request{User: "bob", Path: "/v1/reports/q"})); got != "api user:bob 100/1m, api user:bob 100000/month starts 15 in Europe/Berlin, reports user:bob 50/1h" {
		t.Errorf("bob has %s", got)
	}
}

// What is decided before the clients were read is marked, and all else is as always: limits count, shadow rules too.
func TestUnreadClients(t *testing.T) {
	b := newBench(t, strings.Replace(planned, "rules:", "rules:\n  - {id: trial, key: user, algorithm: fixed_window, limit: 1/1h, mode: shadow}", 1), nil)
	unread := engine.Clients{Directory: rule.NewDirectory(), Unread: true}
	b.InstallClients(unread)
	for i, want := range []engine.Outcome{engine.OutcomeDegradedAllowed, engine.OutcomeDegradedAllowed, engine.OutcomeDenied} {
		v := b.check(t, rule.Request{User: "ann"})
		if v.Outcome() != want || v.Degraded != engine.ErrNoClients || len(v.Results) != 2 || !v.Results[1].Asked || v.Results[1].Allowed != (i == 0) {
			t.Errorf("%d: %v, %v", i, v.Outcome(), v.Degraded)
		}
	}
	if v := b.check(t, rule.Request{APIKey: "k"}); !v.Allowed || v.Degraded != engine.ErrNoClients {
		t.Errorf("%v, %v", v.Reason, v.Degraded)
	}
	for user, want := range map[string]engine.Reason{"root": engine.Exempt, "mallory": engine.Blocked} {
		if v := b.check(t, rule.Request{User: user}); v.Reason != want || v.Degraded != nil {
			t.Errorf("%s: %v, %v", user, v.Reason, v.Degraded)
		}
	}
	unread.DenyUnknown = true
	b.InstallClients(unread)
	if v := b.check(t, rule.Request{User: "ann"}); v.Allowed || v.Reason != engine.Unavailable || v.Degraded != engine.ErrNoClients {
		t.Errorf("%v, %v", v.Reason, v.Degraded)
	}
}
