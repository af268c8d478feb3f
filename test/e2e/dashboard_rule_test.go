package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

func chromedpBack() chromedp.Action { return chromedp.Evaluate("history.back()", nil) }

// The page of a rule says what it does, to whom, how full its limit gets, and since when it is
// as it is; a suggested limit is tried with one button.
func TestDashboardRule(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	c := client(t)
	if a := ask(t, c, "PUT", p.URL+"/v1/rules/login?summary=less+guessing", `{id: login, match: {method: POST, path: /api/login}, key: ip, algorithm: sliding_log, limit: 5/1h, description: "<i>exact</i>"}`, "If-Match", "*"); a.Status != 200 {
		t.Fatal(a.Text)
	}
	if a := ask(t, c, "PUT", p.URL+"/v1/rules/api?summary=not+this", `{id: api, match: {path: /api/**}, key: user, limit: 50/1m}`, "If-Match", "*"); a.Status != 200 {
		t.Fatal(a.Text)
	}
	denyLogins(t, p)
	for n, requests := range []int{4, 3} {
		for range requests {
			ask(t, c, "POST", p.URL+"/v1/check", strings.Replace(loginRequest, "192.0.2.1", fmt.Sprintf("198.51.100.%d", n+1), 1))
		}
	}
	page := b.open(p.URL, "#/rules")
	page.press(`tr[data-rule=login] a`)
	page.see("main h1", "login")
	page.see(id("rule-facts"), "POST /api/login")
	page.see(id("rule-facts"), "<i>exact</i>")
	page.see(id("rule-near"), "ip:192.0.2.1")
	page.see(id("rule-near"), "0 / 5")
	page.see(id("rule-near"), "1 / 5")
	if text := page.text(id("rule-near")); strings.Contains(text, "198.51.100.2") {
		t.Errorf("a client with 2 of 5 left is at the limit: %s", text)
	}
	page.see(id("rule-top"), "ip:192.0.2.1")
	page.see(id("rule-top")+" thead", "Denied")
	page.see(id("denials"), "POST /api/login")
	page.see(id("rule-changes"), "less guessing")
	page.see(id("rule-changes"), "HTTP API")
	if text := page.text(id("rule-changes")); strings.Contains(text, "not this") {
		t.Errorf("the changes of another rule are there: %s", text)
	}
	waitFor(t, "points", func() bool { return page.points(0) > 1 })
	page.see(id("rule-full"), "p99")
	page.see(id("full-range"), "Recorded ")
	page.see(id("full-axis"), "5 units")
	if bars := page.count(id("rule-full") + " rect"); bars != 6 { // of 0 to 5 units
		t.Errorf("%d bars for a limit of 5", bars)
	}
	page.see(id("suggestion"), "more than 5")

	page.press(id("try-shadow"))
	page.see(id("notice"), "login-trial")
	page.see("main h1", "login-trial")
	if a := ask(t, c, "GET", p.URL+"/v1/rules/login-trial", ""); !strings.Contains(a.Text, `"10/1h"`) || !strings.Contains(a.Text, "shadow") {
		t.Errorf("the copy is %s", a.Text)
	}
	// Whom it would have denied is said before it is enforced.
	c2 := strings.Replace(loginRequest, "192.0.2.1", "192.0.2.7", 1)
	for range 3 {
		ask(t, c, "DELETE", p.URL+"/v1/keys?key=ip:192.0.2.7&rule=login", "")
		for range 5 {
			ask(t, c, "POST", p.URL+"/v1/check", c2)
		}
	}
	page.see(id("rule-top"), "ip:192.0.2.7")
	page.see(id("shadow-note"), "would have denied 5 of 15")
	page.press(id("enforce"))
	page.see(id("notice"), "is in force")
	if a := ask(t, c, "GET", p.URL+"/v1/rules/login-trial", ""); strings.Contains(a.Text, "shadow") {
		t.Errorf("it is still in shadow: %s", a.Text)
	}

	// The range stands in the address.
	page.press(id("range-day"))
	var address string
	waitFor(t, "the range in the address", func() bool {
		return page.eval("location.hash", &address) == nil && strings.Contains(address, "range=1d")
	})
	other := b.open(p.URL, address)
	waitFor(t, "the same range", func() bool { return other.count(id("range-day")+"[aria-pressed=true]") == 1 })
	other.visit(place{at: "rules/view/login?from=1767225600&to=1767229200", ready: id("zoomed"), says: "Jan 1, 2026"})
	other.press(id("unzoom"))
	waitFor(t, "the hour", func() bool {
		return other.count(id("zoomed")) == 0 && other.count(id("range-hour")+"[aria-pressed=true]") == 1
	})
}

// The list says which rules deny too much, and which never matched; exempt and blocked clients
// are listed below.
func TestDashboardRulesMarks(t *testing.T) {
	p, b, _ := dashboard(t, `rules:
  - {id: strict, match: {path: /strict}, key: ip, limit: 1/1h, burst: 2, tiers: {pro: 50/1h}}
  - {id: idle, match: {path: /idle}, key: ip, limit: 1/1h}
  - {id: fine, match: {path: /fine}, key: ip, limit: 100/1h}
exempt: {user: [probe]}
block: {ip: [203.0.113.0/24], user: ["<b>mallory</b>"]}
`)
	c := client(t)
	for range 10 {
		ask(t, c, "POST", p.URL+"/v1/check", `{"ip": "192.0.2.1", "path": "/strict"}`)
		ask(t, c, "POST", p.URL+"/v1/check", `{"ip": "192.0.2.1", "path": "/fine"}`)
	}
	page := b.open(p.URL, "#/rules")
	page.see("tr[data-rule=strict] "+id("half"), "denies over half")
	page.see("tr[data-rule=strict] "+id("share"), "80 %")
	page.see("tr[data-rule=strict]", "burst 2")
	page.see("tr[data-rule=strict] "+id("tiers"), "pro: 50/1h")
	page.see("tr[data-rule=idle] "+id("never"), "never matched")
	page.see("tr[data-rule=fine] "+id("share"), "0 %")
	waitFor(t, "two marks", func() bool { return page.count(id("never"))+page.count(id("half")) == 2 })
	page.press(id("only-never"))
	waitFor(t, "one row", func() bool { return page.count("tr[data-rule]") == 1 && page.count("tr[data-rule=idle]") == 1 })
	page.press(id("only-never"))
	page.choose(id("order"), "denied")
	waitFor(t, "the strictest first", func() bool { return page.count("tbody tr:first-child[data-rule=strict]") == 1 })

	page.see(id("list-exempt"), "user: probe")
	page.see(id("list-block"), "<b>mallory</b>")
	page.press(id("list-block") + " li:first-child button")
	page.see(id("notice"), "203.0.113.0/24 is no longer blocked")
	waitFor(t, "one blocked", func() bool { return page.count(id("list-block")+" li") == 1 })
}

// Five thousand rules stay usable: those near the screen are drawn, and found ones at once.
func TestDashboardManyRules(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("rules:\n")
	for i := range 5000 {
		fmt.Fprintf(&rules, "  - {id: rule-%04d, match: {path: /r/%d/**}, key: user, limit: %d/1m}\n", i, i, i+1)
	}
	p, b, _ := dashboard(t, rules.String())
	page := b.open(p.URL, "#/rules")
	page.see("main", "5,000 rules")
	page.waitFor("tr[data-rule=rule-0000]")
	drawn := func() int { return page.count("tr[data-rule]") }
	if n := drawn(); n > 400 {
		t.Errorf("%d rows are drawn", n)
	}
	page.run("scroll", chromedp.Evaluate("document.querySelector('[data-testid=list-block]').scrollIntoView()", nil))
	page.waitFor("tr[data-rule=rule-4999]")
	waitFor(t, "the first ones to go", func() bool { return drawn() <= 400 && page.count("tr[data-rule=rule-0000]") == 0 })
	start := time.Now()
	page.fill("input[type=search]", "rule-2345")
	waitFor(t, "a single row", func() bool { return drawn() == 1 && page.count("tr[data-rule=rule-2345]") == 1 })
	t.Logf("found after %v", time.Since(start))
}
