package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A client is found in the directory, shown with whom it belongs to, changed and blocked.
func TestDashboardDirectory(t *testing.T) {
	p, b, _ := dashboard(t, "levels: [org]\nrules:\n  - {id: api, key: user, limit: 5/1h, algorithm: fixed_window}\n  - {id: team, key: org, limit: 3/1h, algorithm: fixed_window}\n")
	c := client(t)
	ask(t, c, "POST", p.URL+"/v1/clients/import", `{"client":"org:acme","tier":"pro"}`+"\n"+`{"client":"user:ann","parent":"org:acme","note":"<b>4711</b>"}`)
	ask(t, c, "POST", p.URL+"/v1/check", `{"user":"ann"}`)
	check := func() string { return ask(t, c, "POST", p.URL+"/v1/check", `{"user":"ann","peek":true}`).Text }
	page := b.open(p.URL, "#/clients")
	page.see(id("directory"), "2 clients")
	page.press(`a[href="#/clients?key=user%3Aann"]`)
	page.see(id("entry")+" tr[data-client='org:acme']", "pro")
	page.see(id("entry"), "<b>4711</b>")
	page.see(id("entry")+" tr[data-client='org:acme'] "+id("entry-left"), "2 / 3")
	if got := page.text(id("entry-left") + " meter"); page.count(id("entry-left")+" meter[value='0.33333333333333337']") != 1 {
		t.Errorf("a third is used, and the meter says %q", got)
	}
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

// A file of clients is imported after the page has shown what it would change: one call takes it, or several.
func TestDashboardImport(t *testing.T) {
	p, b, _ := dashboard(t, "rules:\n  - {id: api, key: user, limit: 5/1h, tiers: {pro: 50/1h}}\n")
	c := client(t)
	page := b.open(p.URL, "#/clients")
	choose := func(name, text string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		page.waitFor(id("import-file"))
		page.run("choose "+name, chromedp.SetUploadFiles(id("import-file"), []string{file}, chromedp.ByQuery))
	}
	exported := func() string { return ask(t, c, "GET", p.URL+"/v1/clients/export", "").Text }

	page.see(id("directory"), "0 clients")
	page.press(id("directory-import"))
	choose("clients.yaml", "clients:\n  - {client: \"user:ann\", parent: \"attr:org:acme\", tier: pro}\n  - {client: \"attr:org:acme\", note: \"<b>4711</b>\"}\n  - {client: \"user:lost\", parent: \"user:nobody\"}\n  - {client: \"user:old\", tier: gold}\n")
	page.see(id("import-preview"), "3 added, 0 changed, 0 deleted, 0 unchanged")
	page.see(id("import-bad"), "Line 4: parent")
	page.see(id("import-warn"), "Line 5: tier")
	page.see(id("import-changes"), "note: <b>4711</b>")
	if got := exported(); got != "" {
		t.Fatalf("the preview has changed something: %s", got)
	}
	page.press(id("import-run"))
	page.see(id("import-preview"), "has made these changes: 3 added")
	page.see(id("directory"), "3 clients")

	choose("less.ndjson", `{"client":"user:ann","parent":"attr:org:acme","limits":{"api":"7/1h"}}`+"\n"+`{"client":"attr:org:acme"}`)
	page.see(id("import-changes"), "tier: pro → –")
	page.see(id("import-changes"), "limits: – → api: 7/1h")
	page.press(id("import-prune"))
	page.see(id("import-preview"), "0 added, 2 changed, 1 deleted, 0 unchanged")
	page.see(id("import-changes"), "user:old")
	page.press(id("import-run"))
	page.see(id("directory"), "2 clients")
	if got := exported(); page.count(id("import-file")) != 0 || strings.Contains(got, "old") || !strings.Contains(got, "7/1h") {
		t.Errorf("after it there are\n%s", got)
	}

	// Keys before their users, in more lines than one call takes.
	var lines strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&lines, `{"client":"attr:key:%d","parent":"user:%d"}`+"\n", i, i)
	}
	for i := range 1200 {
		fmt.Fprintf(&lines, `{"client":"user:%d","parent":"attr:org:acme"}`+"\n", i)
	}
	page.press(id("directory-import"))
	choose("many.ndjson", lines.String()+"{")
	page.see(id("import-preview"), "2,400 added, 0 changed, 0 deleted, 0 unchanged")
	page.see(id("import-bad"), "Line 2401:")
	if page.count(id("import-prune")+":disabled") != 1 {
		t.Error("many lines can be pruned")
	}
	page.press(id("import-run"))
	page.see(id("import-preview"), "has made these changes: 2,400 added")
	page.see(id("directory"), "2,402 clients")
	choose("wrong.yaml", "users: []")
	page.see(id("import-wrong"), "only the list of clients")
}
