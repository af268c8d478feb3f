package e2e

import (
	"strings"
	"testing"
)

// A client is found in the directory, shown with whom it belongs to, changed and blocked.
func TestDashboardDirectory(t *testing.T) {
	p, b, _ := dashboard(t, "rules:\n  - {id: api, key: user, limit: 5/1h, algorithm: fixed_window}\n")
	c := client(t)
	ask(t, c, "POST", p.URL+"/v1/clients/import", `{"client":"attr:org:acme","tier":"pro"}`+"\n"+`{"client":"user:ann","parent":"attr:org:acme","note":"<b>4711</b>"}`)
	check := func() string { return ask(t, c, "POST", p.URL+"/v1/check", `{"user":"ann","peek":true}`).Text }
	page := b.open(p.URL, "#/clients")
	page.see(id("directory"), "2 clients")
	page.press(`a[href="#/clients?key=user%3Aann"]`)
	page.see(id("entry")+" tr[data-client='attr:org:acme']", "pro")
	page.see(id("entry"), "<b>4711</b>")
	page.press(id("entry-edit"))
	page.fill(id("entry-limits"), "api: 50/1h")
	page.press(id("entry-save"))
	page.see(id("entry")+" tr[data-client='user:ann']", "api: 50/1h")
	if got := check(); !strings.Contains(got, `"limit":50`) {
		t.Errorf("with a limit of its own: %s", got)
	}
	page.press(id("entry-block"))
	page.see(id("entry-blocked"), "blocked")
	if got := check(); !strings.Contains(got, `"reason":"blocked"`) {
		t.Errorf("blocked: %s", got)
	}
}
