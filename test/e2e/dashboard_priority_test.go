package e2e

import (
	"strings"
	"testing"
)

// Priority and shares of a rule are made in the form. The overview then shows what became of the
// requests of each priority, and nothing of it as long as all are normal.
func TestDashboardPriority(t *testing.T) {
	p, b, _ := dashboard(t, "rules: [{id: all, key: user, limit: 1000/1h}]")
	c := client(t)
	check := func(body string) {
		t.Helper()
		if a := ask(t, c, "POST", p.URL+"/v1/check", body); a.Status != 200 {
			t.Fatal(a.Text)
		}
	}
	check(`{"user": "alice", "path": "/reports"}`)
	page := b.open(p.URL, "#/rules/new")
	source := func(what string) {
		t.Helper()
		waitFor(t, what+" in the YAML", func() bool { return strings.Contains(page.value(id("source")), what) })
	}
	page.fill(id("source"), "id: reports\nmatch: {path: /reports}\nkey: user\nlimit: 10/1h\n")
	waitFor(t, "the form", func() bool { return page.value(id("field-limit")) == "10/1h" })
	page.fill(id("field-priority"), "urgent")
	page.waitFor(id("field-priority") + ".wrong")
	page.fill(id("field-priority"), "low")
	source("priority: low\n")
	page.press(`button[aria-label="Add: Shares of the limits, by priority"]`)
	page.fill(`input[aria-label=Priority]`, "low")
	page.fill(`input[aria-label="Share, for example 50%"]`, "5%")
	page.see("fieldset", "these requests would always be denied")
	page.fill(`input[aria-label="Share, for example 50%"]`, "20%")
	source("low: 20%")
	page.see(id("checked"), "No errors")
	page.press(id("save"))
	page.see(id("notice"), "Version 2 is in force.")

	page.goTo("overview")
	page.see(id("tile-rate"), "per second")
	if n := page.count(id("tile-low")); n != 0 {
		t.Error("all requests are normal, and there are figures of others")
	}
	for range 4 {
		check(`{"user": "alice", "path": "/reports"}`)
	}
	check(`{"user": "alice", "path": "/other", "priority": "critical"}`)
	page.see(id("tile-low"), "50 %\n4")
	page.see(id("tile-critical"), "0 %\n1")
}
