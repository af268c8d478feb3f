package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A new form has nothing wrong with it before something was typed, and cannot be saved without
// an id.
func TestDashboardNewForm(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	page := b.open(p.URL, "#/rules/new")
	page.waitFor(id("field-id"))
	waitFor(t, "the answer of the server", func() bool {
		return !strings.Contains(page.text(id("checked")), "Checking") && page.count("fieldset:disabled") == 0
	})
	if n := page.count(".wrong, .error, " + id("problems")); n != 0 {
		t.Errorf("an empty form shows %d errors", n)
	}
	var apart float64
	if err := page.eval(`(([a, b]) => a.bottom - b.bottom)(['key', 'limit'].map(name => document.querySelector('[data-testid=field-' + name + ']').getBoundingClientRect()))`, &apart); err != nil || apart < -1 || apart > 1 {
		t.Errorf("two boxes of a line are %v pixels apart, %v", apart, err)
	}
	page.fill(id("field-limit"), "5/1x")
	page.see(id("problems"), "E013")
	if text := page.text(id("problems")); strings.Contains(text, "id:") {
		t.Errorf("what was not touched is wrong: %s", text)
	}
	page.see(id("unnamed"), "Enter an ID")
	if n := page.count(id("save") + ":disabled"); n != 1 {
		t.Error("a rule without an id can be saved")
	}
	page.fill(id("field-id"), "fresh")
	page.press(id("save"))
	page.see(id("problems"), "E013")
	page.fill(id("field-limit"), "5/1m")

	// What it counts by is picked, with an example of a client.
	page.see("fieldset", "user:alice")
	page.choose(id("field-key"), "header")
	page.fill(id("field-key-name"), "X-Tenant")
	page.see("fieldset", "header:X-Tenant:acme")
	page.press(id("field-key-add"))
	page.choose(id("field-key-1"), "ip")
	waitFor(t, "the key in the YAML", func() bool {
		return strings.Contains(page.value(id("source")), `key: ["header:X-Tenant", ip]`) || strings.Contains(page.value(id("source")), "key: [header:X-Tenant, ip]")
	})
	page.see(id("checked"), "No errors")

	// The other way round, and with comments, which stay.
	page.fill(id("source"), "id: fresh # mine\nkey: ip\nlimit: 7/1m\n")
	waitFor(t, "the limit in the form", func() bool { return page.value(id("field-limit")) == "7/1m" && page.value(id("field-key")) == "ip" })
	page.fill(id("field-limit"), "8/1m")
	waitFor(t, "the limit in the text", func() bool { return page.value(id("source")) == "id: fresh # mine\nkey: ip\nlimit: 8/1m\n" })
	page.fill(id("source"), "id: [")
	page.see("main", "cannot be parsed")
	page.fill(id("source"), "id: fresh # mine\nkey: ip\nlimit: 9/1m\n")
	page.see(id("checked"), "No errors")
	page.press(id("save"))
	page.see(id("notice"), "Version 2 is in force.")
}

// The draft is tried beside the rules in force, and a log is replayed against both. Neither is
// saved.
func TestDashboardTriesDraft(t *testing.T) {
	p, b, file := dashboard(t, dashboardRules)
	page := b.open(p.URL, "#/rules/edit/login")
	page.see(id("checked"), "No errors")
	page.fill(id("field-limit"), "1/1h")
	page.see(id("checked"), "No errors")
	for range 2 {
		ask(t, client(t), "POST", p.URL+"/v1/check", loginRequest)
	}
	page.fill(id("try-method"), "POST")
	page.fill(id("try-path"), "/api/login")
	page.fill(id("try-ip"), "192.0.2.1")
	page.press(id("try"))
	page.see(id("try-draft"), "Denied")
	page.see(id("try-in-force"), "Allowed")
	page.fill(id("field-limit"), "20/1h") // another draft is judged without a click
	page.see(id("try-draft"), "Allowed")

	page.fill(id("field-limit"), "2/1h")
	page.see(id("checked"), "No errors")
	var log strings.Builder
	for range 10 {
		log.WriteString(`192.0.2.9 - - [01/Nov/2026:10:00:00 +0000] "POST /api/login HTTP/1.1" 200 5 "-" "-"` + "\n")
	}
	page.fill(id("replay-log"), log.String())
	page.press(id("replay-run"))
	page.see(id("replay-answer")+" [data-side=draft]", "8")
	page.see(id("replay-answer")+" [data-side=in-force]", "5")
	page.see(id("replay-answer"), "ip:192.0.2.9")
	if text := ask(t, client(t), "GET", p.URL+"/v1/rules?format=yaml", "").Text; text != dashboardRules {
		t.Errorf("%s is %s", file, text)
	}
	page.fill(id("field-limit"), "5/1h") // as it was: nothing is left unsaved
	page.see(id("checked"), "No errors")
	page.see("main h1", "Edit login")
	page.press(id("cancel"))
	page.waitFor(id("rule-facts"))
}

// On a slow connection the form does not wait for the server, and nothing that was typed is lost.
func TestDashboardSlowEditor(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	page := b.open(p.URL, "#/rules/edit/login")
	page.see(id("checked"), "No errors")
	page.run("slow down", chromedp.Evaluate("{const real = fetch; window.fetch = (...call) => new Promise(go => setTimeout(go, 1500)).then(() => real(...call))}", nil))
	page.fill(id("field-limit"), "6/1h")
	page.fill(id("field-description"), "slow")
	page.fill(id("field-method"), "PUT")
	if got := page.value(id("field-limit")) + page.value(id("field-description")) + page.value(id("field-method")); got != "6/1hslowPUT" {
		t.Errorf("the form has %q", got)
	}
	page.press(id("save")) // at once
	page.see(id("notice"), "Version 2 is in force.")
	if a := ask(t, client(t), "GET", p.URL+"/v1/rules/login", ""); !strings.Contains(a.Text, "6/1h") || !strings.Contains(a.Text, "slow") || !strings.Contains(a.Text, "PUT") {
		t.Errorf("a change is lost: %s", a.Text)
	}
}
