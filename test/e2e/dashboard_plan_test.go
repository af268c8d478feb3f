package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A quota of a plan is made in the form: by the month of a billing day, of each user at each
// endpoint, soft, with warnings. The page lists who is warned.
func TestDashboardPlan(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	c := client(t)
	page := b.open(p.URL, "#/rules/new")
	source := func(what string) {
		t.Helper()
		waitFor(t, what+" in the YAML", func() bool { return strings.Contains(page.value(id("source")), what) })
	}
	// Only what can be of the calendar has a zone and a start.
	calendar := func() int { return page.count(id("field-zone") + ", " + id("field-starts")) }
	page.fill(id("source"), "id: plan\nkey: user\nalgorithm: sliding_log\nlimit: 10/1h\n")
	waitFor(t, "the log", func() bool {
		return page.value(id("field-algorithm")) == "sliding_log" && page.value(id("field-limit")) == "10/1h"
	})
	if calendar() != 0 {
		t.Error("an hour of a log has a zone or a start")
	}
	page.choose(id("field-algorithm"), "token_bucket")
	waitFor(t, "a zone and a start", func() bool { return calendar() == 2 })
	page.fill(id("field-limit"), "10/1m")
	waitFor(t, "a minute without", func() bool { return calendar() == 0 })

	page.fill(id("field-path"), "/orders/{id}, /orders/**")
	page.fill(id("field-host"), "api.example.com, *.example.com")
	page.choose(id("field-mode"), "soft")
	source("mode: soft")

	// Each part of a key has an example, and a network is named before it counts.
	page.choose(id("field-key"), "user")
	page.press(id("field-key-add"))
	for _, part := range []string{"tier:pro", "method:GET", "host:api.example.com", "route:/orders/{id}"} {
		kind, _, _ := strings.Cut(part, ":")
		page.choose(id("field-key-1"), kind)
		page.see("fieldset", "user:alice|"+part)
		source("key: [user, " + kind + "]")
	}
	page.choose(id("field-key-1"), "network")
	page.waitFor(id("field-key-name-1") + ".wrong")
	for _, network := range []string{"ip/24", "ip6/48", "ip/24/48"} {
		page.fill(id("field-key-name-1"), network)
		page.see("fieldset", "user:alice|ip:203.0.113.0/24")
		source("key: [user, " + network + "]")
	}
	page.choose(id("field-key-1"), "route")

	page.fill(id("field-limit"), "10/month")
	waitFor(t, "fixed windows", func() bool { return page.value(id("field-algorithm")) == "fixed_window" })
	page.fill(id("field-zone"), "Mars/Olympus")
	page.see("fieldset", "Mars/Olympus")
	page.waitFor(id("field-zone") + ".wrong")
	page.fill(id("field-zone"), "Asia/Shanghai")
	page.fill(id("field-starts"), "32")
	page.see("fieldset", "a day of the month (1 to 31)")
	page.waitFor(id("field-starts") + ".wrong")
	day := fmt.Sprint((time.Now().Day()+13)%28 + 1) // no period ends while this runs
	page.fill(id("field-starts"), day)
	source("starts: " + day + "\n")
	page.fill(id("field-warn"), "180%")
	page.waitFor(id("field-warn") + ".wrong")
	page.fill(id("field-warn"), "80%, 95%")
	source("warn: [80%, 95%]")
	page.see(id("checked"), "No errors")
	page.press(id("save"))
	page.see(id("notice"), "Version 2 is in force.")

	const request = `{"user": "alice", "host": "api.example.com", "path": "/orders/%d"}`
	for i := range 12 {
		if a := ask(t, c, "POST", p.URL+"/v1/check", fmt.Sprintf(request, i)); !a.Allowed {
			t.Fatalf("a soft rule denies: %s", a.Text)
		}
	}
	// A limit for less than an hour warns on the page of its rule alone.
	if a := ask(t, c, "POST", p.URL+"/v1/rules", `{id: fast, match: {path: /fast}, key: user, limit: 2/1m, warn: 50%}`); a.Status != 201 {
		t.Fatal(a.Text)
	}
	ask(t, c, "POST", p.URL+"/v1/check", `{"user": "carol", "path": "/fast"}`)
	page.goTo("rules", "view", "fast")
	page.see(id("warnings"), "user:carol\t50 %\t1 of 2\t")
	page.goTo("rules")
	page.see("tr[data-rule=plan]", "soft")
	page.see("tr[data-rule=plan]", "10/month")
	page.see("tr[data-rule=plan]", "zone Asia/Shanghai starts "+day)
	page.press("tr[data-rule=plan] a")
	page.see(id("rule-facts"), "80%, 95%")
	page.see(id("warnings")+" tbody tr:nth-child(2)", "user:alice|route:/orders/{id}\t80 %\t8 of 10\t")
	page.see(id("warnings")+" tbody tr:nth-child(1)", "user:alice|route:/orders/{id}\t95 %\t10 of 10\t")
	page.goTo("alerts")
	page.see(id("warnings"), "user:alice|route:/orders/{id}\tplan 10/month\t95 %")
	if text := page.text(id("warnings")); strings.Contains(text, "carol") {
		t.Errorf("the page of alerts has %s", text)
	}
	page.press(id("warnings") + " tbody td a")
	page.see(id("standing"), "0 / 10")
}
