package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

const overridable = "rules: [{id: api, key: user, limit: 10/1h, on_failure: local}]"

// overridden is an override, as the API answers it.
type overridden struct {
	ID, Key, State string
	Limits         []string
	EndsAt         time.Time `json:"ends_at"`
	EndedAt        time.Time `json:"ended_at"`
}

// override adds one for a user.
func override(t *testing.T, p *process, user, limit, lasts string) (made overridden) {
	t.Helper()
	body := fmt.Sprintf(`{"rule": "api", "key": "user:%s", "limit": "%s", "for": "%s", "reason": "test"}`, user, limit, lasts)
	a := ask(t, client(t), "POST", p.URL+"/v1/overrides", body)
	if err := json.Unmarshal([]byte(a.Text), &made); err != nil || made.State != "active" {
		t.Fatalf("%s", a.Text)
	}
	return made
}

// limitOf returns the limit that applies to a user.
func limitOf(t *testing.T, p *process, user string) string {
	t.Helper()
	a := ask(t, client(t), "POST", p.URL+"/v1/check", fmt.Sprintf(`{"user": "%s", "peek": true}`, user))
	var got struct{ Results []struct{ Policy string } }
	if err := json.Unmarshal([]byte(a.Text), &got); err != nil || len(got.Results) != 1 {
		t.Fatalf("%s", a.Text)
	}
	return got.Results[0].Policy
}

// states are the overrides of a process, the newest first.
func states(t *testing.T, p *process) string {
	t.Helper()
	var all struct{ Overrides []overridden }
	if err := json.Unmarshal([]byte(p.says(t, "/v1/overrides?state=all")), &all); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, o := range all.Overrides {
		texts = append(texts, strings.TrimPrefix(o.Key, "user:")+" "+o.State)
	}
	return strings.Join(texts, ", ")
}

// Two instances share their overrides, although each has rules of its own. They end on both,
// also while Redis is unavailable, and survive its loss of data.
func TestOverridesOfTwoInstances(t *testing.T) {
	redis := testredis.Start(t)
	var both [2]*process
	var dirs [2]string
	begin := func(i int) {
		both[i] = start(t, dirs[i], "serve", "--http", "127.0.0.1:0", "--rules", "rules.yaml", "--data", "data", "--store", "redis://"+redis.Addr+"?timeout=5s")
	}
	for i := range both {
		dirs[i] = t.TempDir()
		write(t, dirs[i], "rules.yaml", overridable)
		begin(i)
	}
	a, b := both[0], both[1]
	wait := func(what, user, limit string) {
		t.Helper()
		for i, p := range both {
			waitFor(t, fmt.Sprintf("%s on instance %d", what, i), func() bool { return limitOf(t, p, user) == limit })
		}
	}
	known := func(user, limit string, until time.Time) bool {
		t.Helper()
		for _, p := range both {
			for ; limitOf(t, p, user) != limit; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(until) {
					return false
				}
			}
		}
		return true
	}
	short := override(t, a, "alice", "500/1h", "3s")
	if got := limitOf(t, a, "alice"); got != "500/1h" && time.Now().Before(short.EndsAt) {
		t.Errorf("who has added it has %s", got)
	}
	override(t, b, "bob", "700/1h", "1h")
	wait("bob's", "bob", "700/1h")
	wait("the end of alice's", "alice", "10/1h")
	if now := time.Now(); now.Before(short.EndsAt) {
		t.Errorf("it ended %v before its time", short.EndsAt.Sub(now))
	}
	for _, p := range both {
		if got := states(t, p); got != "bob active, alice expired" {
			t.Errorf("the list is %s", got)
		}
	}

	// Without Redis, and without its data.
	long := override(t, a, "carol", "300/1h", "10s")
	for lasts := 30; !known("carol", "300/1h", long.EndsAt); lasts *= 2 { // both were too slow
		long = override(t, a, "carol", "300/1h", fmt.Sprint(lasts, "s"))
	}
	redis.Kill()
	waitFor(t, "the outage", func() bool { return ask(t, client(t), "POST", b.URL+"/v1/check", `{"user": "dave"}`).Degraded })
	for _, p := range both {
		if got := limitOf(t, p, "bob"); got != "700/1h" {
			t.Errorf("without Redis bob has %s", got)
		}
		if got := limitOf(t, p, "carol"); got != "300/1h" && time.Now().Before(long.EndsAt) {
			t.Errorf("without Redis carol has %s", got)
		}
	}
	if a := ask(t, client(t), "POST", a.URL+"/v1/overrides", `{"rule": "api", "key": "user:erin", "limit": "5/1h", "for": "1h", "reason": "test"}`); a.Status != 503 {
		t.Errorf("without Redis one can be added: %s", a.Text)
	}
	wait("the end of carol's", "carol", "10/1h")
	if code := b.stop(t); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	begin(1)
	b = both[1]
	if got := limitOf(t, b, "bob"); got != "700/1h" {
		t.Errorf("after a restart without Redis bob has %s", got)
	}
	redis.Restart() // without its data
	waitFor(t, "its return", func() bool { return !ask(t, client(t), "POST", b.URL+"/v1/check", `{"user": "dave"}`).Degraded })
	waitFor(t, "the document", func() bool { return strings.Contains(redis.Do("HGET", "weir:{overrides}", "source"), "user:bob") })
	wait("bob's", "bob", "700/1h")
}

// Without Redis they are beside the history of the rules, and end also if weir is down.
func TestOverridesInAFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "rules.yaml", overridable)
	begin := func() *process { return start(t, dir, "serve", "--http", "127.0.0.1:0", "--rules", "rules.yaml") }
	p := begin()
	short := override(t, p, "alice", "500/1h", "2s")
	override(t, p, "bob", "700/1h", "1h")
	ended := override(t, p, "carol", "700/1h", "1h")
	ask(t, client(t), "DELETE", p.URL+"/v1/overrides/"+ended.ID, "")
	p.kill()
	waitFor(t, "its end", func() bool { return time.Now().After(short.EndsAt) })
	p = begin()
	if got := states(t, p); got != "carol ended, bob active, alice expired" {
		t.Errorf("the list is %s", got)
	}
	for user, want := range map[string]string{"alice": "10/1h", "bob": "700/1h", "carol": "10/1h"} {
		if got := limitOf(t, p, user); got != want {
			t.Errorf("%s has %s, want %s", user, got, want)
		}
	}
}
