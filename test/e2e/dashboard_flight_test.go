package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// A limit of requests in flight is made in the form, and is in the list. The page of the rule shows
// how many are in flight, and for how long; that of another rule does not.
func TestDashboardInFlight(t *testing.T) {
	p, b, _ := dashboard(t, "rules: [{id: idle, match: {path: /idle}, key: user, limit: 100/1h}]")
	c := client(t)
	page := b.open(p.URL, "#/rules/new")
	source := func(what string) {
		t.Helper()
		waitFor(t, what+" in the YAML", func() bool { return strings.Contains(page.value(id("source")), what) })
	}
	page.fill(id("source"), "id: reports\nmatch: {path: /reports}\nkey: user\nlimit: 100/1h\n")
	waitFor(t, "the form", func() bool { return page.value(id("field-limit")) == "100/1h" })
	if page.count(id("field-hold_ttl")) != 0 {
		t.Error("nothing is in flight, and expires")
	}
	page.fill(id("field-concurrency"), "none")
	page.waitFor(id("field-concurrency") + ".wrong")
	page.fill(id("field-concurrency"), "5")
	source("concurrency: 5\n")
	page.fill(id("field-hold_ttl"), "1ms")
	page.waitFor(id("field-hold_ttl") + ".wrong")
	page.fill(id("field-hold_ttl"), "30s")
	source("hold_ttl: 30s\n")
	page.fill(id("field-limit"), "")
	page.see(id("checked"), "No errors")
	page.press(id("save"))
	page.see(id("notice"), "Version 2 is in force.")
	page.goTo("rules")
	page.see("tr[data-rule=reports]", "concurrency 5")

	var holds []string
	for range 2 {
		var held struct{ Hold string }
		if err := json.Unmarshal([]byte(ask(t, c, "POST", p.URL+"/v1/reserve", `{"user": "alice", "path": "/reports"}`).Text), &held); err != nil {
			t.Fatal(err)
		}
		holds = append(holds, held.Hold)
	}
	inFlight := func(want string) {
		t.Helper()
		if text := ask(t, c, "GET", p.URL+"/metrics", "").Text; !strings.Contains(text, `weir_in_flight{rule="reports"} `+want+"\n") {
			t.Errorf("there are not %s in flight", want)
		}
	}
	inFlight("2")
	for _, hold := range holds {
		if a := ask(t, c, "POST", p.URL+"/v1/settle", `{"hold": "`+hold+`", "used": 1}`); a.Status != 200 {
			t.Fatal(a.Text)
		}
	}
	inFlight("0")
	ask(t, c, "POST", p.URL+"/v1/check", `{"user": "alice", "path": "/idle"}`)
	page.press("tr[data-rule=reports] a")
	page.see(id("rule-facts"), "concurrency 5")
	page.see(id("rule-facts"), "30s")
	page.see(id("rule-flight"), "Most of one client: 2 / 5.")
	page.see(id("rule-flight"), "Duration: p50 ")
	other := b.open(p.URL, "#/rules/view/idle")
	other.see(id("rule-facts"), "100/1h")
	waitFor(t, "the answer", func() bool {
		var answered bool
		return other.eval(`performance.getEntriesByType("resource").some((e) => e.name.includes("/v1/stats/series"))`, &answered) == nil && answered
	})
	if n := other.count(id("rule-flight")); n != 0 {
		t.Error("a rule without concurrency has a chart of it")
	}
}
