package e2e

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A token is asked for, kept in memory only, and who may only look sees no buttons.
func TestDashboardTokens(t *testing.T) {
	const reader, user, admin = "reader-0123456789abcdef", "user-0123456789abcdef", "admin-0123456789abcdef"
	tokens := write(t, t.TempDir(), "tokens", "grafana read "+reader+"\nshop use "+user+"\nalice admin "+admin+"\n")
	p, b, _ := dashboard(t, dashboardRules, "--admin-token-file", tokens)
	page := b.open(p.URL, "#/rules")
	// A user with the scope read never sees a button that changes something, not even
	// while the page loads.
	page.run("watch for buttons", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdppage.AddScriptToEvaluateOnNewDocument(`new MutationObserver(() => {
			window.seen ||= document.querySelector('[data-testid=new]') !== null
		}).observe(document, {childList: true, subtree: true})`).Do(ctx)
		return err
	}), chromedp.Reload())
	signIn := func(token string) {
		t.Helper()
		page.fill("dialog "+id("token"), token)
		page.press("dialog button.main")
	}
	signIn("wrong-0123456789abcdef")
	page.see("dialog", "rejected this token")
	signIn(reader)
	page.see("tr[data-rule=login]", "5/1h")
	page.see(id("readonly"), "read only")
	page.see(id("holder"), "grafana")
	var seen bool
	if err := page.eval("window.seen === true", &seen); err != nil || seen {
		t.Errorf("who may only look could make rules: %v, %v", seen, err)
	}
	page.goTo("rules", "edit", "login")
	page.see(id("editor"), "YAML")
	if n := page.count(id("save") + ", " + id("delete")); n != 0 {
		t.Errorf("who may only look has %d buttons", n)
	}
	var kept string
	if err := page.eval("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])", &kept); err != nil || strings.Contains(kept, "0123456789") {
		t.Errorf("the browser keeps %s, %v", kept, err)
	}

	page.press(id("forget"))
	page.waitFor("dialog " + id("token"))
	signIn(user)
	page.see(id("holder"), "shop")
	page.see(id("editor"), "YAML")
	if n := page.count(id("save") + ", " + id("delete")); n != 0 {
		t.Errorf("an application has %d buttons", n)
	}
	page.press(id("forget"))
	page.waitFor("dialog " + id("token"))
	signIn(admin)
	page.press(id("delete"))
	page.press("dialog " + id("sure"))
	page.see(id("notice"), "Rule login was deleted")
	history := ask(t, client(t), "GET", p.URL+"/v1/rules/history", "", "Authorization", "Bearer "+admin)
	if !strings.Contains(history.Text, `"author":"alice"`) {
		t.Errorf("the history is %s", history.Text)
	}
}

// What others chose is shown as text, wherever it turns up.
func TestDashboardHostileText(t *testing.T) {
	const markup = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>{@html 1}`
	const turned = "alice\u202egnp.exe"
	p, b, _ := dashboard(t, dashboardRules)
	c := client(t)
	hostile, err := json.Marshal(map[string]any{
		"id": "__proto__", "description": markup + turned, "key": "user", "limit": "1/1h",
		"match": map[string]any{"path": "/hostile"}, "deny": map[string]any{"message": markup + turned},
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := ask(t, c, "POST", p.URL+"/v1/rules?summary="+strings.ReplaceAll("%3Cimg src=x onerror=window.pwned=1%3E", " ", "+"), string(hostile)); a.Status != 201 {
		t.Fatal(a.Text)
	}
	who, err := json.Marshal(map[string]string{"user": markup + turned, "path": "/hostile"})
	if err != nil {
		t.Fatal(err)
	}
	var checked struct{ Results []struct{ Key string } }
	for range 2 {
		if err := json.Unmarshal([]byte(ask(t, c, "POST", p.URL+"/v1/check", string(who)).Text), &checked); err != nil {
			t.Fatal(err)
		}
	}
	override, err := json.Marshal(map[string]string{"rule": "__proto__", "key": checked.Results[0].Key, "limit": "1/1h", "for": "1h", "reason": markup + turned})
	if err != nil {
		t.Fatal(err)
	}
	if a := ask(t, c, "POST", p.URL+"/v1/overrides", string(override)); a.Status != 201 {
		t.Fatal(a.Text)
	}
	page := b.open(p.URL, "#/rules")
	page.see(id("now-denied"), "⟨202E⟩gnp.exe")
	page.see("tr[data-rule=__proto__]", "<img src=x")
	page.see("tr[data-rule=__proto__]", "alice⟨202E⟩gnp.exe")
	page.goTo("rules", "edit", "__proto__")
	waitFor(t, "the YAML", func() bool { return strings.Contains(page.value(id("source")), "<img src=x") })
	page.fill(id("try-path"), "/hostile")
	page.fill(id("try-user"), markup+turned)
	page.press(id("try"))
	page.see(id("try-answer"), "onerror=")
	page.see(id("try-answer"), "⟨202E⟩")
	page.goTo("rules", "history", "2")
	page.see(id("versions"), "<img src=x")
	page.see("table.diff", "⟨202E⟩")
	page.goTo("clients")
	page.choose(id("client-kind"), "user")
	page.fill(id("client-value"), markup+turned)
	page.press(id("look"))
	page.see(id("standing"), "⟨202E⟩")
	page.see(id("standing"), "0 / 1")
	page.see(id("hot-denied"), "⟨202E⟩gnp.exe")
	page.see(id("overrides"), "<img src=x")
	page.see(id("overrides"), "alice gnp.exe") // of a reason, the server itself takes out what cannot be seen
	page.see(id("denials"), "__proto__")
	page.see(id("behind"), "__proto__")
	page.goTo("rules", "view", "__proto__")
	page.see(id("rule-facts"), "<img src=x")
	page.see(id("rule-top"), "⟨202E⟩gnp.exe")
	page.goTo("overview")
	page.see(id("marks"), "<img src=x")
	page.see(id("denied-clients"), "⟨202E⟩gnp.exe")
	page.run("search", chromedp.Focus(id("search"), chromedp.ByQuery), chromedp.KeyEvent("user:<img"))
	page.see(id("found"), "user:<img")
	page.run("leave", chromedp.KeyEvent(kb.Escape))
	// What is in a link that somebody was sent is no better.
	link := url.Values{"rule": {markup + turned}, "key": {"javascript:window.pwned=1"}, "tier": {markup}}.Encode()
	page.run("follow a link", chromedp.Evaluate("location.hash = "+literal("#/overview?"+link), nil))
	page.see(id("filter-rule"), "<img src=x")
	page.see(id("filter-key"), "javascript:")
	page.run("follow a link", chromedp.Evaluate("location.hash = "+literal("#/clients?"+link), nil))
	page.waitFor(id("client-wrong") + "," + id("standing"))
	page.goTo("rules", "view", markup)
	page.see("main", "<img src=x")
	var scripts int
	if err := page.eval("document.querySelectorAll('a[href]:not([href^=\"#\"])').length", &scripts); err != nil || scripts != 0 {
		t.Errorf("%d links lead elsewhere: %v", scripts, err)
	}
	var pwned bool
	if err := page.eval("window.pwned === 1 || document.querySelector('img[src=x]') !== null", &pwned); err != nil || pwned {
		t.Errorf("markup has come alive: %v", err)
	}
}

// Every page fits a phone, by day and by night, in both languages, and can be walked
// through with the keyboard.
func TestDashboardLooks(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	page := b.open(p.URL, "")
	places := map[string]string{
		"overview": "总览", "rules": "规则", "clients": "客户端", "counters": "计数", "alerts": "告警", "playground": "演练场",
	}
	for _, scheme := range []string{"light", "dark"} {
		page.look(360, 740, scheme)
		for place, title := range places {
			page.choose(id("language"), "en")
			page.goTo(place)
			waitFor(t, place, func() bool { return strings.EqualFold(page.text("main h1"), place) })
			page.choose(id("language"), "zh")
			page.see("main h1", title)
			var over int
			if err := page.eval("document.documentElement.scrollWidth - innerWidth", &over); err != nil || over > 0 {
				t.Errorf("%s is %d pixels wider than a phone, %v", place, over, err)
			}
		}
		for _, place := range []string{"new", "edit/login"} {
			page.goTo("rules", "x") // whatever is not there is the list
			page.goTo(append([]string{"rules"}, strings.Split(place, "/")...)...)
			page.waitFor(id("editor"))
			var over int
			if err := page.eval("document.documentElement.scrollWidth - innerWidth", &over); err != nil || over > 0 {
				t.Errorf("rules/%s is %d pixels wider than a phone, %v", place, over, err)
			}
		}
		var back string
		if err := page.eval("getComputedStyle(document.documentElement).backgroundColor", &back); err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"light": "rgb(244, 246, 248)", "dark": "rgb(14, 20, 24)"}[scheme]; back != want {
			t.Errorf("by %s the page is %s, want %s", scheme, back, want)
		}
	}
	var unnamed string
	page.eval(`[...document.querySelectorAll('input, select, textarea, button')].filter(e =>
		!(e.labels?.length || e.getAttribute('aria-label') || e.innerText?.trim())).map(e => e.outerHTML).join('\n')`, &unnamed)
	if unnamed != "" {
		t.Errorf("these have no name for who cannot see them:\n%s", unnamed)
	}
}
