package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// inFront is a server in front of weir that sees every call first.
func inFront(t *testing.T, to string, see func(w http.ResponseWriter, r *http.Request, weir http.Handler)) (base string) {
	t.Helper()
	behind, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind); r.Out.Host = behind.Host }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { see(w, r, proxy) }))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	return front.URL
}

// openWindow opens a page in a window of its own, which stays visible beside others.
func (b *browser) openWindow(base, place string) *tab {
	b.t.Helper()
	p := &tab{t: b.t, ctx: b.window(), base: base}
	chromedp.ListenTarget(p.ctx, p.watch)
	p.run("open "+place, chromedp.Navigate(base+"/"+place))
	b.t.Cleanup(p.finish)
	p.waitFor("main h1")
	return p
}

// Eight windows that all are looked at share one stream. If the one that has it is closed,
// another takes over.
func TestDashboardSharesStream(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	var streams atomic.Int64
	base := inFront(t, p.URL, func(w http.ResponseWriter, r *http.Request, weir http.Handler) {
		if r.URL.Path == "/v1/stats/stream" {
			streams.Add(1)
			defer streams.Add(-1)
		}
		weir.ServeHTTP(w, r)
	})
	var tabs []*tab
	for range 8 {
		tabs = append(tabs, b.openWindow(base, ""))
	}
	for i, page := range tabs {
		waitFor(t, fmt.Sprint("window ", i, " to be live"), func() bool { return page.count(id("live")) == 1 })
		var hidden bool
		if err := page.eval("document.hidden", &hidden); err != nil || hidden {
			t.Fatalf("window %d cannot be seen: %v", i, err)
		}
	}
	waitFor(t, "a single stream", func() bool { return streams.Load() == 1 })
	keepAsking(t, p.URL, loginRequest)
	allGoOn(t, tabs)
	tabs[0].run("leave", chromedp.Navigate("about:blank"))
	allGoOn(t, tabs[1:])
	waitFor(t, "a single stream after one was closed", func() bool { return streams.Load() == 1 })
}

// allGoOn waits until each chart has a second that none had before.
func allGoOn(t *testing.T, tabs []*tab) {
	t.Helper()
	var latest float64
	for _, page := range tabs {
		latest = max(latest, page.last(0))
	}
	for i, page := range tabs {
		waitFor(t, fmt.Sprint("another second in window ", i), func() bool { return page.last(0) > latest })
	}
}

// A slash goes to the search field, which finds rules and clients; arrows and Enter choose. A
// question mark shows the keys.
func TestDashboardSearch(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	spike(t, p.URL)
	page := b.open(p.URL, "#/alerts")
	keys := func(keys string) {
		t.Helper()
		page.run("press "+keys, chromedp.KeyEvent(keys))
	}
	// shortcut presses a key as a keyboard does: what the page prevents writes nothing.
	shortcut := func(key string) {
		t.Helper()
		page.run("leave the field", chromedp.Evaluate("document.activeElement.blur()", nil))
		page.run("press "+key, input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key), input.DispatchKeyEvent(input.KeyUp).WithKey(key))
	}
	shortcut("/")
	waitFor(t, "the focus", func() bool {
		var focused bool
		return page.eval("document.activeElement === document.querySelector("+literal(id("search"))+")", &focused) == nil && focused
	})
	keys("log")
	page.see(id("found")+" [aria-selected=true]", "login")
	keys(kb.Enter)
	waitFor(t, "the rule", func() bool {
		var hash string
		return page.eval("location.hash", &hash) == nil && hash == "#/rules/view/login"
	})
	shortcut("/")
	keys("192")
	page.see(id("found"), "ip:192.0.2.3")
	var first string
	waitFor(t, "all three", func() bool { return page.count(id("found")+" [role=option]") == 3 })
	keys(kb.ArrowDown)
	if err := page.eval("document.querySelector('#found [aria-selected=true] bdi').innerText", &first); err != nil {
		t.Fatal(err)
	}
	keys(kb.Enter)
	page.see("main h1", first)
	if got := page.query().Get("key"); got != first || !strings.HasPrefix(got, "ip:192.0.2.") {
		t.Errorf("it leads to %q, want %q", got, first)
	}
	// A client that was never seen can be looked up, and what is typed into a field is no shortcut.
	shortcut("/")
	keys("user:b/b?")
	page.see(id("found")+" [aria-selected=true]", "user:b/b?")
	if n := page.count("dialog"); n != 0 {
		t.Error("a question mark in the field opened the keys")
	}
	keys(kb.Escape)
	if text := page.value(id("search")); text != "" {
		t.Errorf("the field has %q", text)
	}
	shortcut("?")
	page.see(id("keys"), "Search rules and clients")
}

// On a phone, the navigation shows that it scrolls, no word is broken, and no label is cut.
func TestDashboardPhone(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	spike(t, p.URL)
	page := b.open(p.URL, "")
	page.look(390, 844, "light")
	page.waitFor(".nav[data-after]")
	page.run("scroll", chromedp.Evaluate("document.querySelector('nav').scrollLeft = 9999", nil))
	page.waitFor(".nav[data-before]:not([data-after])")
	page.see(id("denied-clients"), "ip:192.0.2.1")
	for _, place := range []string{"overview", "rules", "clients", "counters", "alerts", "playground"} {
		page.goTo(place)
		waitFor(t, place, func() bool { return strings.EqualFold(page.text("main h1"), place) })
		if wrong := page.misfits(); len(wrong) > 0 {
			t.Errorf("%s: %v", place, wrong)
		}
	}
}
