package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// A token is asked for once: not after a reload, and not in another tab. Who signs out is out
// in every tab.
func TestDashboardSession(t *testing.T) {
	const admin = "admin-0123456789abcdef"
	tokens := write(t, t.TempDir(), "tokens", "alice admin "+admin+"\n")
	p, b, _ := dashboard(t, dashboardRules, "--admin-token-file", tokens)
	first, second := b.open(p.URL, "#/rules"), b.open(p.URL, "#/rules")
	first.waitFor("dialog " + id("token"))
	second.waitFor("dialog " + id("token"))
	second.fill("dialog "+id("token"), admin)
	second.press("dialog button.main")
	second.see(id("holder"), "alice")
	// The other tab was asking, too, and need not any more.
	first.front()
	first.see(id("holder"), "alice")
	first.see("tr[data-rule=login]", "5/1h")
	first.run("reload", chromedp.Reload())
	first.see(id("holder"), "alice")
	first.see(id("live"), "live")
	third := b.open(p.URL, "")
	third.see(id("holder"), "alice")
	for _, page := range []*tab{first, second, third} {
		if n := page.count("dialog"); n != 0 {
			t.Error("a tab asks for the token")
		}
		var kept string
		if err := page.eval("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])", &kept); err != nil || strings.Contains(kept, "0123456789") || strings.Contains(kept, "session") {
			t.Errorf("a script can read %s, %v", kept, err)
		}
	}
	third.press(id("forget"))
	third.waitFor("dialog " + id("token"))
	first.run("reload", chromedp.Reload())
	first.waitFor("dialog " + id("token"))
}

// A page says what it waits for.
func TestDashboardWaits(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	hold := make(chan struct{})
	base := inFront(t, p.URL, func(w http.ResponseWriter, r *http.Request, weir http.Handler) {
		if r.URL.Path == "/v1/alerts" {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		weir.ServeHTTP(w, r)
	})
	page := b.open(base, "#/alerts")
	page.see("main", "Loading alerts…")
	page.see(id("slow"), "waiting for alerts…")
	close(hold)
	page.see(id("alerts-active"), "No active alerts.")
	waitFor(t, "the end of the wait", func() bool { return page.count(id("slow")) == 0 })
}

// An empty page says what it will show, and which flag or call fills it.
func TestDashboardTeaches(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	page := b.open(p.URL, "")
	page.see(id("empty-overview"), "/v1/check")
	page.goTo("counters")
	page.see(id("empty-counters"), "/v1/counters/add")
	page.see(id("asked-queues"), "--queue")
	page.goTo("alerts")
	page.see(id("empty-alerts"), "--alert-webhook")
	page.goTo("playground")
	page.waitFor(id("simulation"))
	page.choose(id("language"), "zh")
	page.goTo("overview")
	page.see(id("empty-overview"), "这段时间没有请求")
	// The call that it names fills it.
	example := page.text(id("empty-overview") + " code")
	_, body, _ := strings.Cut(example, "'")
	body, address, _ := strings.Cut(body, "' ")
	if a := ask(t, client(t), "POST", address, body); a.Status != 200 || !a.Allowed {
		t.Fatalf("%s answers %d %s", example, a.Status, a.Text)
	}
	waitFor(t, "an overview that is not empty", func() bool { return page.count(id("empty-overview")) == 0 })
}

// A test alert is sent from the page, which says whether it arrived; an alert leads to its time.
func TestDashboardAlertTest(t *testing.T) {
	var broken atomic.Bool
	var posts atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		posts.Add(1)
		if broken.Load() {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(hook.Close)
	p, b, _ := dashboard(t, dashboardRules, "--alert-webhook", hook.URL, "--alert", "denied=10%,window=10s,hold=1s,minimum=5")
	page := b.open(p.URL, "#/alerts")
	page.press(id("alert-test"))
	page.see(id("alert-tested"), "✓ arrived")
	if posts.Load() == 0 {
		t.Error("nothing was sent")
	}
	broken.Store(true)
	page.press(id("alert-test"))
	page.see(id("alert-tested"), "did not arrive: ")
	broken.Store(false)

	var clients []string
	for i := range 4 {
		clients = append(clients, strings.Replace(loginRequest, "192.0.2.1", fmt.Sprint("192.0.2.", i+1), 1))
	}
	keepAsking(t, p.URL, clients...)
	alert := id("alerts-active") + " [data-alert=denied]"
	page.see(alert, "Rule: login")
	page.see(alert, "Instance: ")
	page.press(alert + " " + id("alert-shows"))
	page.see(id("filter-rule"), "login")
	page.see(id("zoomed"), "Zoomed in")
	page.see(id("denied-clients"), "ip:192.0.2.2")
}

// While Redis is unavailable, the overview shows what this instance knows, and one banner says
// so. When it is back, the page goes on.
func TestDashboardStoreLost(t *testing.T) {
	redis := testredis.Start(t)
	p, b, _ := dashboard(t, dashboardRules, "--store", "redis://"+redis.Addr+"?timeout=10s", "--queue", "mail=1/1h,capacity=10")
	page := b.open(p.URL, "")
	spike(t, p.URL)
	page.see(id("denied-clients"), "ip:192.0.2.1")
	redis.Kill()
	keepAsking(t, p.URL, `{"ip": "198.51.100.7", "method": "POST", "path": "/api/login"}`)
	page.see(id("outage"), "this instance only")
	waitFor(t, "degraded requests", func() bool { return page.number(id("tile-degraded")+" .value") > 0 })
	page.see("section[data-points] "+id("legend"), "degraded, allowed")
	page.see(id("denied-clients"), "ip:192.0.2.1")
	for _, place := range []string{"overview", "counters", "alerts", "rules"} {
		page.goTo(place)
		waitFor(t, place, func() bool { return strings.EqualFold(page.text("main h1"), place) })
		page.see(id("outage"), "unavailable since")
		if n := page.count("[role=alert], main .bad:not(.value)"); n != 1 {
			t.Errorf("%s: %d things say that something is wrong: %s", place, n, page.text("[role=alert], main .bad"))
		}
	}
	page.goTo("overview")
	redis.Restart()
	waitFor(t, "the end of it", func() bool { return page.count(id("outage")) == 0 })
	page.see(id("tile-store"), "up")
}
