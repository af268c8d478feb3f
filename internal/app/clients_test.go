package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

const plannedRules = "rules: [{id: api, key: user, limit: 5/1h, algorithm: fixed_window, tiers: {pro: 50/1h}}]"

// A file of clients is followed: what it says is in force, and what cannot be used changes nothing and is told.
func TestClientsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients.ndjson")
	write := func(text string) { // in one step
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"client": "api_key:k", "parent": "user:ann"}` + "\n" + `{"client": "user:ann"}`)
	o, log := prepared(t, Options{Clients: Clients{File: path, DenyUnknown: true}}, plannedRules)
	a := started(t, o)
	check := func(key string) string {
		t.Helper()
		_, body := ask(t, nil, "POST", "http://"+a.Addrs().HTTP.String()+"/v1/check", fmt.Sprintf(`{"api_key": %q, "tier": "pro", "user": "bob", "peek": true}`, key))
		return body
	}
	if got := check("k"); !strings.Contains(got, `"limit":50`) { // of its own file, no tier
		t.Errorf("the check is %s", got)
	}
	if got := check("new"); !strings.Contains(got, `"allowed":false`) || !strings.Contains(got, `"status":401`) {
		t.Errorf("the check of an unknown key is %s", got)
	}
	write(`{"client": "api_key:k", "parent": "user:ann"}` + "\n" + `{"client": "user:ann", "tier": "free"}`)
	waitFor(t, "the file", func() bool { return strings.Contains(check("k"), `"limit":5,`) })
	waitFor(t, "the warning of a tier that no rule has", func() bool { return strings.Contains(log.String(), "no effect") })
	write(`{"client": "api_key:k", "parent": "user:nobody"}`)
	waitFor(t, "the file", func() bool { return a.clients.trouble() != nil })
	if got := check("k"); !strings.Contains(got, `"limit":5,`) {
		t.Errorf("with a bad file, the check is %s", got)
	}
	waitFor(t, "the log of it", func() bool { return strings.Contains(log.String(), `is not in the file`) })
	write(`{"client": "user:nobody"}` + "\n" + `{"client": "api_key:k", "parent": "user:nobody", "blocked": true}`)
	waitFor(t, "the file", func() bool { return a.clients.trouble() == nil })
	if got := check("k"); !strings.Contains(got, `"reason":"blocked"`) {
		t.Errorf("the check of a blocked key is %s", got)
	}
	write(`{`)
	if err := a.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "invalid JSON") {
		t.Errorf("Reload: %v", err)
	}
}

// Clients that cannot be used keep weir from starting.
func TestBrokenClients(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients.ndjson")
	if err := os.WriteFile(path, []byte("{\"client\": \"user:a\", \"teir\": 1}\n{\"client\": 5}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, _ := prepared(t, Options{Clients: Clients{File: path}}, plannedRules)
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "clients.ndjson:1:") || !strings.Contains(err.Error(), "clients.ndjson:2:") {
		t.Errorf("it starts: %v", err)
	}
}

// Clients that are written while weir runs are in force at once, and again after a restart, without a file of clients.
func TestClientsOfStore(t *testing.T) {
	for name, more := range map[string]Options{"journal": {Data: t.TempDir()}, "redis": {Store: "redis://" + testredis.Start(t).Addr}} {
		t.Run(name, func(t *testing.T) {
			more.Clients.DenyUnknown = true
			o, log := prepared(t, more, plannedRules)
			a := started(t, o)
			check := func(a *App) string {
				_, body := ask(t, nil, "POST", "http://"+a.Addrs().HTTP.String()+"/v1/check", `{"api_key": "k", "peek": true}`)
				return body
			}
			if got := check(a); !strings.Contains(got, `"status":401`) || !strings.Contains(log.String(), "there are no clients") {
				t.Errorf("the check of an unknown key is %s; %s", got, log)
			}
			status, body := ask(t, nil, "POST", "http://"+a.Addrs().HTTP.String()+"/v1/clients/import", `{"client": "api_key:k", "parent": "user:ann"}`+"\n"+`{"client": "user:ann", "tier": "pro"}`)
			if status != 200 || !strings.Contains(body, `"added":2,`) {
				t.Fatal(status, body)
			}
			if got := check(a); !strings.Contains(got, `"limit":50`) {
				t.Errorf("the check is %s", got)
			}
			if err := a.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := check(started(t, o)); !strings.Contains(got, `"limit":50`) {
				t.Errorf("after a restart, the check is %s", got)
			}
		})
	}
}

// Without Redis, weir starts. Until the clients were read, an unknown one is unavailable, not unknown; they come when Redis does. What
// Redis loses later stays in force where it is known.
func TestClientsWithoutRedis(t *testing.T) {
	server := testredis.Start(t)
	proxy := testredis.NewProxy(t, server)
	o, _ := prepared(t, Options{Store: "redis://" + proxy.Addr, Clients: Clients{DenyUnknown: true}}, plannedRules)
	call := func(a *App, method, path, body string) string {
		t.Helper()
		_, answer := ask(t, nil, method, "http://"+a.Addrs().HTTP.String()+path, body)
		return answer
	}
	check := func(a *App, key string) string {
		t.Helper()
		return call(a, "POST", "/v1/check", fmt.Sprintf(`{"api_key": %q, "peek": true}`, key))
	}
	unread := func(a *App) {
		t.Helper()
		if got := check(a, "k"); !strings.Contains(got, `"status":503`) || !strings.Contains(got, `"degraded":true`) {
			t.Errorf("the check is %s", got)
		}
		if got := call(a, "GET", "/readyz", ""); !strings.Contains(got, "clients: they could not be read since") || !strings.Contains(got, "none is known") {
			t.Errorf("/readyz says %s", got)
		}
		if got := call(a, "GET", "/v1/clients", ""); !strings.Contains(got, `"code":"clients-unavailable"`) {
			t.Errorf("the clients are %s", got)
		}
	}
	first := started(t, o)
	if got := call(first, "POST", "/v1/clients/import", `{"client": "api_key:k", "parent": "user:ann"}`+"\n"+`{"client": "user:ann", "tier": "pro"}`); !strings.Contains(got, `"added":2,`) {
		t.Fatal(got)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	a := started(t, o)
	unread(a)
	proxy.Heal()
	waitFor(t, "the clients", func() bool { return strings.Contains(check(a, "k"), `"limit":50`) })
	if got := check(a, "new"); !strings.Contains(got, `"status":401`) {
		t.Errorf("the check of an unknown key is %s", got)
	}
	if got := call(a, "GET", "/metrics", ""); !strings.Contains(got, "weir_rules_last_reload_successful 1") || !strings.Contains(got, "weir_rules_reload_failures_total 0") {
		t.Error("in the metrics, an outage is an error in the clients")
	}
	if got := call(a, "GET", "/readyz", ""); strings.Contains(got, "clients:") {
		t.Errorf("/readyz says %s", got)
	}
	server.Do("UNLINK", "weir:{clients}:entries")
	waitFor(t, "the loss", func() bool { return strings.Contains(call(a, "GET", "/readyz", ""), "redis has lost clients") })
	if got := call(a, "GET", "/metrics", ""); !strings.Contains(got, "weir_rules_last_reload_successful 0") {
		t.Error("the metrics do not tell of the loss")
	}
	if got := check(a, "k"); !strings.Contains(got, `"limit":50`) {
		t.Errorf("after the loss, the check is %s", got)
	}
	unread(started(t, o))
}

// Until the clients were read, also what no limit says of a client is marked as degraded, because it may be blocked.
func TestUnreadClientsAreDegraded(t *testing.T) {
	proxy := testredis.NewProxy(t, testredis.Start(t))
	proxy.Cut()
	o, _ := prepared(t, Options{Store: "redis://" + proxy.Addr}, plannedRules)
	a := started(t, o)
	check := func() string {
		_, body := ask(t, nil, "POST", "http://"+a.Addrs().HTTP.String()+"/v1/check", `{"api_key": "k"}`)
		return body
	}
	if got := check(); !strings.Contains(got, `"allowed":true`) || !strings.Contains(got, `"degraded":true`) {
		t.Errorf("the check is %s", got)
	}
	if got := a.store.late.checks.Load(); got != 0 {
		t.Errorf("%d checks of which the store was not asked count as late", got)
	}
	proxy.Heal()
	waitFor(t, "the clients", func() bool { return strings.Contains(check(), `"degraded":false`) })
}
