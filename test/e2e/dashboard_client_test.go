package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// denyLogins makes an address use up its logins, and more.
func denyLogins(t *testing.T, p *process) {
	t.Helper()
	c := client(t)
	for range 8 {
		ask(t, c, "POST", p.URL+"/v1/check", loginRequest)
	}
	if a := ask(t, c, "POST", p.URL+"/v1/check", loginRequest); a.Allowed {
		t.Fatal(a.Text)
	}
}

// From a spike to a raised limit it takes three clicks at most: the client on the overview, the
// factor, and the button.
func TestDashboardRaisesLimit(t *testing.T) {
	p, b, file := dashboard(t, dashboardRules)
	denyLogins(t, p)
	page := b.open(p.URL, "")
	page.press(`a[href^="#/clients?key=ip%3A192.0.2.1"]`)
	page.see(id("standing"), "ip:192.0.2.1")
	page.press(id("times-10"))
	page.press(id("override-set"))
	page.see(id("notice"), "ip:192.0.2.1 has the limit 50/1h under login until")
	page.see(id("overridden"), "until")
	page.see(id("remaining"), "/ 50")
	if a := ask(t, client(t), "POST", p.URL+"/v1/check", loginRequest); !a.Allowed || a.Limit != 50 {
		t.Errorf("with the limit raised: %s", a.Text)
	}
	page.see(id("overrides"), "denied under login")
	if text, err := os.ReadFile(file); err != nil || string(text) != dashboardRules {
		t.Errorf("the document is %s, %v", text, err)
	}

	// Until a date, lower, with a reason; and ended before that.
	page.fill(id("override"), "2/1h")
	page.press(id("ends-custom"))
	page.setTime(id("override-date"), time.Now().Add(48*time.Hour).Format("2006-01-02T15:04"))
	page.fill(id("override-reason"), "<b>too much</b>\u202e")
	page.press(id("override-set"))
	page.see(id("overrides")+" tr[data-state=active]", "<b>too much</b>")
	page.see(id("overrides")+" tr[data-state=replaced]", "50/1h")
	waitFor(t, "the notices to go", func() bool { return page.count(id("notice")) == 0 }) // they may cover the button
	page.press(id("end-override"))
	page.see(id("overrides")+" tr[data-state=ended]", "2/1h")
	page.see(id("remaining"), "/ 5")
	if a := ask(t, client(t), "POST", p.URL+"/v1/check", loginRequest); a.Limit != 5 {
		t.Errorf("after its end: %s", a.Text)
	}
}

// A client is looked up, reset, blocked, exempt, and given a limit for good.
func TestDashboardClients(t *testing.T) {
	p, b, file := dashboard(t, dashboardRules)
	c := client(t)
	check := func() answer { return ask(t, c, "POST", p.URL+"/v1/check", loginRequest) }
	denyLogins(t, p)
	for range 6 {
		ask(t, c, "POST", p.URL+"/v1/check", strings.Replace(loginRequest, "192.0.2.1", "192.0.2.2", 1))
	}
	page := b.open(p.URL, "#/clients")
	// One denial is not drawn as high as four.
	waitFor(t, "lines on one scale", func() bool {
		var tops []float64
		err := page.eval(`[...document.querySelectorAll('[data-testid=hot-denied] svg[style*="--denied"] path')].map(path => Math.min(...path.getAttribute('d').split(/[ML]/).slice(1).map(p => +p.split(' ')[1])))`, &tops)
		return err == nil && len(tops) == 2 && tops[0]+5 < tops[1]
	})
	page.fill(id("client-value"), "192.0.2.1")
	page.press(id("look"))
	page.see(id("standing"), "ip:192.0.2.1")
	page.see(id("remaining"), "0 / 5")
	page.see("main h1", "ip:192.0.2.1")
	page.see(id("denials"), "POST /api/login")
	if head := page.text(id("denials") + " thead"); strings.Contains(head, "Tier") {
		t.Errorf("nobody has a tier, and the denials have %q", head)
	}
	page.waitFor(id("client-chart") + " [data-points]")
	page.see(id("client-chart")+" "+id("legend"), "last value, since")
	page.press(id("reset"))
	page.see(id("notice"), "Usage of ip:192.0.2.1 was reset under login.")
	page.see(id("remaining"), "5 / 5")
	if a := check(); !a.Allowed {
		t.Fatalf("after it was reset: %s", a.Text)
	}

	for _, list := range []struct{ name, badge, reason string }{{"block", "blocked", "blocked"}, {"exempt", "exempt", "exempt"}} {
		page.press(id(list.name))
		page.press("dialog " + id("sure"))
		page.see(id("is"+list.badge), list.badge)
		if a := check(); !strings.Contains(a.Text, `"reason":"`+list.reason+`"`) {
			t.Errorf("on the list %s: %s", list.name, a.Text)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != dashboardRules+list.name+":\n  ip: [192.0.2.1]\n" {
			t.Errorf("the file is %s, %v", text, err)
		}
		page.press(id("un" + list.name))
		page.waitFor(id(list.name))
		if a := check(); !strings.Contains(a.Text, `"reason":"limits"`) {
			t.Errorf("taken off the list %s: %s", list.name, a.Text)
		}
	}

	page.press(id("ends-never"))
	page.fill(id("override"), "1000/1h")
	page.press(id("override-set"))
	page.see(id("override-now"), "1000/1h")
	page.see(id("remaining"), "/ 1,000")
	if a := check(); a.Limit != 1000 {
		t.Errorf("with a limit of its own: %s", a.Text)
	}
	page.press(id("override-now") + " button")
	page.see(id("remaining"), "/ 5")
	page.fill(id("client-value"), "nobody")
	page.press(id("look"))
	page.see(id("client-wrong"), "key: No rule counts by such keys")
}

// A user is looked up with every key that a rule counts for it, and one of them is reset.
func TestDashboardComposedKeys(t *testing.T) {
	p, b, _ := dashboard(t, `rules:
  - {id: user, key: user, limit: 100/1h}
  - {id: endpoints, match: {path: ["/api/orders/{id}", /api/search]}, key: [user, route], limit: 5/1h}
`)
	c := client(t)
	for _, path := range []string{"/api/orders/17", "/api/orders/18", "/api/search"} {
		ask(t, c, "POST", p.URL+"/v1/check", `{"user": "alice", "path": "`+path+`"}`)
	}
	page := b.open(p.URL, "#/clients?key=user%3Aalice")
	orders, search := id("standing")+" tbody tr:nth-child(2)", id("standing")+" tbody tr:nth-child(3)"
	page.see(orders, "route /api/orders/{id}")
	page.see(orders, "3 / 5")
	page.see(search, "route /api/search")
	page.press(search + " button")
	page.see(id("notice"), "Usage of user:alice|route:/api/search was reset under endpoints.")
	page.see(search, "5 / 5")
	page.see(orders, "3 / 5")
	page.press(orders + " " + id("composed"))
	page.see("main h1", "user:alice|route:/api/orders/{id}")
	waitFor(t, "one limit", func() bool { return page.count(id("remaining")) == 1 })
	page.press(id("reset"))
	page.see(id("remaining"), "5 / 5")
}

// Clients are found by how they begin, and the address of one can be shared.
func TestDashboardFindsClients(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	c := client(t)
	for i := range 30 {
		ask(t, c, "POST", p.URL+"/v1/check", fmt.Sprintf(`{"user": "team-%02d", "path": "/api/x"}`, i))
	}
	ask(t, c, "POST", p.URL+"/v1/check", `{"user": "alice", "path": "/api/x"}`)
	page := b.open(p.URL, "#/clients")
	page.choose(id("client-kind"), "user")
	page.fill(id("client-value"), "team-1")
	waitFor(t, "those that begin like it", func() bool { return page.count(id("matches")+" li") == 10 })
	if found := page.text(id("matches")); strings.Contains(found, "alice") || strings.Contains(found, "team-2") {
		t.Errorf("found %s", found)
	}
	page.press(id("matches") + ` a[href="#/clients?key=user%3Ateam-17"]`)
	page.see(id("standing"), "user:team-17")
	page.see(id("remaining"), "/ 100")
	page.run("back", chromedpBack())
	waitFor(t, "the search", func() bool { return page.count(id("standing")) == 0 })
}
