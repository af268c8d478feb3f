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
	if !strings.Contains(log.String(), "no effect") {
		t.Errorf("a tier that no rule has is not told: %s", log)
	}
	write(`{"client": "api_key:k", "parent": "user:nobody"}`)
	waitFor(t, "the file", func() bool { return a.clients.trouble() != nil })
	if got := check("k"); !strings.Contains(got, `"limit":5,`) {
		t.Errorf("with a bad file, the check is %s", got)
	}
	if !strings.Contains(log.String(), `is not in the file`) {
		t.Errorf("the log is %s", log)
	}
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

// While nothing is known of any client, an unknown one is unavailable, not unknown.
func TestClientsUnread(t *testing.T) {
	server := testredis.Start(t)
	server.Kill()
	o, _ := prepared(t, Options{Store: "redis://" + server.Addr, Clients: Clients{DenyUnknown: true}}, plannedRules)
	a := started(t, o)
	check := func() string {
		_, body := ask(t, nil, "POST", "http://"+a.Addrs().HTTP.String()+"/v1/check", `{"api_key": "k", "peek": true}`)
		return body
	}
	if got := check(); !strings.Contains(got, `"status":503`) || !strings.Contains(got, `"degraded":true`) {
		t.Errorf("the check is %s", got)
	}
	if _, body := ask(t, nil, "GET", "http://"+a.Addrs().HTTP.String()+"/readyz", ""); !strings.Contains(body, "none is known") {
		t.Errorf("/readyz says %s", body)
	}
	server.Restart()
	waitFor(t, "the clients", func() bool { return strings.Contains(check(), `"status":401`) })
	if err := a.clientsTrouble(); err != nil {
		t.Error(err)
	}
}
