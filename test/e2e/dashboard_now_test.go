package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

const limitedRules = `rules:
  - {id: login, match: {method: POST, path: /api/login}, key: ip, algorithm: sliding_log, limit: 5/1h}
  - {id: api, match: {path: "/api/users/{id}"}, key: user, algorithm: sliding_log, limit: 10/1h}
`

// pagesToSee are the pages that have the strip, which are all.
var pagesToSee = []string{"overview", "rules", "clients", "alerts", "playground", "counters"}

// A rules file that breaks shows in the strip of every page, with since when and why. When it is
// mended, the strip is one calm line again.
func TestDashboardNowBrokenRules(t *testing.T) {
	p, b, file := dashboard(t, limitedRules)
	page := b.open(p.URL, "")
	page.see(id("now-calm"), "Nothing is wrong.")
	page.see(id("now-calm"), "2 rules in force (version 1, since ")
	page.see(id("now-calm"), "store: memory · no active alerts · no client denied in the last 5 min")
	if err := os.WriteFile(file, []byte("rules:\n  - {id: login, kay: ip}\n  - {id: next}\n  - {id: last, key: ip, limit: 3/x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range pagesToSee {
		page.goTo(name)
		page.waitFor(`nav a[aria-current][href="#/` + name + `"]`)
		page.see(id("now")+" "+id("outage"), "The stored rules have failed to load since ")
		page.see(id("now")+" "+id("outage"), "rules.yaml:2:")
	}
	if n := page.count(id("now-calm")); n != 0 {
		t.Error("the strip is calm")
	}
	// All errors can be read, and where to fix them.
	page.press(id("outage-more") + " summary")
	page.see(id("outage-more"), "rules.yaml:4:")
	page.see(id("outage-more"), `bad duration "x"`)
	page.see(id("outage-mend"), "Fix rules.yaml; weir reloads it")
	page.press(id("outage") + " a")
	page.waitFor(`nav a[aria-current][href="#/rules"]`)
	if err := os.WriteFile(file, []byte(limitedRules+"# mended\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	page.see(id("now-calm"), "(version 2, since ")
	// Without rules, nothing is limited.
	if err := os.WriteFile(file, []byte("rules: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	page.see(id("now-empty"), "There are no rules yet. Every request is allowed.")
}

// A client that is denied during an attack is in the strip with its rule and endpoint, and so is that
// most requests are denied. One click opens its page, which tells from where it came; another begins
// with its limit; a third blocks it. In an attack on an account, it is the address that attacks.
func TestDashboardNowAttack(t *testing.T) {
	const reader, admin = "reader-0123456789abcdef", "admin-0123456789abcdef"
	tokens := write(t, t.TempDir(), "tokens", "grafana read "+reader+"\nalice admin "+admin+"\n")
	p, b, _ := dashboard(t, limitedRules+`  - {id: login-account, match: {method: POST, path: /api/login}, key: "attr:account", algorithm: sliding_log, limit: 5/1h}
`, "--admin-token-file", tokens, "--open-checks")
	c := client(t)
	check := func(request string) answer {
		t.Helper()
		return ask(t, c, "POST", p.URL+"/v1/check", request)
	}
	for n := range 40 { // one user from several addresses
		check(fmt.Sprintf(`{"user": "bob", "method": "PUT", "path": "/api/users/secret", "ip": "198.51.100.%d"}`, 1+n%2))
	}
	signedIn := func(b *browser, token, place string) *tab {
		t.Helper()
		page := b.open(p.URL, place)
		page.fill("dialog "+id("token"), token)
		page.press("dialog button.main")
		return page
	}
	page := signedIn(b, admin, "#/playground")
	page.see(id("now-denied"), "Most denied in the last 5 min: user:bob, 30 denials, rule api, PUT /api/users/{id}")
	page.see(id("now-high"), "75 % of requests were denied in the last 5 min (30 of 40). Most of them by the rule api")
	if n := page.count(id("now-calm")); n != 0 {
		t.Error("the strip says that nothing is wrong")
	}
	page.press(id("now-open"))
	page.see("main h1", "user:bob")
	page.waitFor(id("client-recent") + " [data-points]")
	page.see(id("behind"), "PUT /api/users/{id}\tapi\t100 %")
	page.see(id("behind"), "198.51.100.1\t")
	page.see(id("behind"), "198.51.100.2\t")
	if text := page.text("main"); strings.Contains(text, "secret") {
		t.Errorf("the page shows the path that the client sent: %s", text)
	}
	page.press(id("now-limit"))
	var focused bool
	waitFor(t, "the field with the limit", func() bool {
		return page.eval("document.activeElement?.dataset.testid === 'override'", &focused) == nil && focused
	})

	for range 80 { // now another attack is worse
		check(`{"ip": "192.0.2.66", "method": "POST", "path": "/api/login", "attributes": {"account": "alice"}}`)
	}
	page.see(id("now-denied"), "ip:192.0.2.66, 75 denials, rule login, POST /api/login")
	page.goTo("overview")
	page.see(id("denied-rules")+" "+id("chart-note"), "A request that several rules deny counts for each of them.")
	for key, rule := range map[string]string{"ip:192.0.2.66": "login", "attr:account:alice": "login-account"} {
		row := id("denied-clients") + ` tr[data-denied="` + key + `"]`
		page.see(row, "75")
		if got := page.text(row + " .rules"); got != rule {
			t.Errorf("%s was denied by %q", key, got)
		}
	}
	reading := signedIn(openBrowser(t), reader, "#/rules")
	reading.see(id("readonly"), "read only")
	reading.see(id("now-denied"), "ip:192.0.2.66")
	reading.waitFor(id("now-open"))
	if n := reading.count(id("now-block") + ", " + id("now-limit")); n != 0 {
		t.Errorf("who may only look has %d buttons", n)
	}
	page.front()
	page.press(id("now-block"))
	page.press("dialog " + id("sure"))
	page.see(id("notice"), "192.0.2.66 is blocked")
	page.see(id("notice")+".warn", "Saved, with warnings:\nlogin: on_failure: this looks like a rule against guessing (login)")
	// Somebody has decided about this one, and with it about alice. What is left is of the other one.
	page.see(id("now-blocked"), "ip:192.0.2.66 is blocked; its requests are denied.")
	page.see(id("now-high"), "66.7 % of requests were denied in the last 5 min (30 of 45). Most of them by the rule api")
	page.see(id("now-denied"), "user:bob, 30 denials")
	page.waitFor(id("now-block"))
	for n := range 300 { // which are not denied, so the other one was not denied often
		check(fmt.Sprintf(`{"user": "guest-%d", "path": "/api/users/1"}`, n))
	}
	waitFor(t, "an end of what is to be done about the other one", func() bool { return page.count(id("now-block")) == 0 })
	page.see(id("now-denied"), "user:bob, 30 denials")
	if a := check(strings.Replace(loginRequest, "192.0.2.1", "192.0.2.66", 1)); !strings.Contains(a.Text, `"reason":"blocked"`) {
		t.Errorf("it is not blocked: %s", a.Text)
	}
}

// A store that is unavailable shows in the strip of every page, with its kind once it is available, and that
// it has lost statistics.
func TestDashboardNowStore(t *testing.T) {
	redis := testredis.Start(t)
	p, b, _ := dashboard(t, limitedRules, "--store", "redis://"+redis.Addr+"?timeout=10s")
	page := b.open(p.URL, "")
	page.see(id("now-calm"), "store: Redis, available")
	keepAsking(t, p.URL, loginRequest) // without a request, nobody notices
	page.see(id("now-high"), "of requests were denied in the last 5 min")
	redis.Kill()
	for _, name := range pagesToSee {
		page.goTo(name)
		page.waitFor(`nav a[aria-current][href="#/` + name + `"]`)
		page.see(id("now")+" "+id("outage"), "The store has been unavailable since ")
		page.see(id("now")+" "+id("outage"), "Each rule now follows its on_failure setting.")
	}
	redis.Restart()
	page.see(id("now"), "store: Redis, available") // and most requests are denied, which it says, too
	waitFor(t, "the end of the outage", func() bool { return page.count(id("outage")) == 0 })
	page.see(id("now"), "are incomplete, because the store lost statistics") // Redis began again without its data
	page.goTo("overview")
	page.see(id("overview-incomplete"), "figures from before ")
}
