package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// spike sends requests of three clients, of which the rule login denies most, and some that
// the rule api allows.
func spike(t *testing.T, base string) {
	t.Helper()
	c := client(t)
	for i := range 30 {
		for n := range 3 {
			if i < 30-5*n {
				ask(t, c, "POST", base+"/v1/check", fmt.Sprintf(`{"ip": "192.0.2.%d", "method": "POST", "path": "/api/login"}`, n+1))
			}
		}
		ask(t, c, "POST", base+"/v1/check", `{"user": "alice", "path": "/api/items"}`)
	}
}

// query is the question in the address of a page.
func (p *tab) query() url.Values {
	var hash string
	p.eval("location.hash", &hash)
	_, search, _ := strings.Cut(hash, "?")
	values, err := url.ParseQuery(search)
	if err != nil {
		p.t.Fatalf("the address %s: %v", hash, err)
	}
	return values
}

func (p *tab) back() {
	p.t.Helper()
	p.run("go back", chromedp.Evaluate("history.back()", nil))
}

// From a spike to the rule and the client behind it: every click filters the page, stands in
// the address, survives a reload, and can be taken back.
func TestDashboardFilters(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	page := b.open(p.URL, "")
	page.see(id("live"), "live")
	page.see(id("empty-overview"), "No requests in this range")
	spike(t, p.URL)
	begin := time.Now()
	page.see(id("denied-clients")+` tr[data-denied="ip:192.0.2.1"]`, "login")
	t.Logf("the client is listed after %v", time.Since(begin))
	page.see(id("denied-rules"), "login")
	if text := page.text(id("denied-rules") + " " + id("legend")); strings.Contains(text, "api") {
		t.Errorf("a rule that denied nothing is in the legend: %s", text)
	}
	waitFor(t, "the end of the empty page", func() bool { return page.count(id("empty-overview")) == 0 })

	page.press(id("denied-rules") + " " + id("legend") + " button")
	page.see(id("filter-rule"), "login")
	if got := page.query().Get("rule"); got != "login" {
		t.Errorf("the address has the rule %q", got)
	}
	// 75 requests of the rule, of which 15 were allowed.
	page.see(id("tile-denied")+" .value", "80 %")
	page.see(id("denied-clients"), "ip:192.0.2.3")

	page.press(id("denied-clients") + ` tr[data-denied="ip:192.0.2.2"] button`)
	page.see(id("filter-key"), "ip:192.0.2.2")
	page.see(id("tile-denied")+" .value", "80 %")
	page.see(id("denied-rules")+" tr[data-denying=login]", "20")
	page.run("reload", chromedp.Reload())
	page.see(id("filter-key"), "ip:192.0.2.2")
	page.see(id("filter-rule"), "login")
	page.see(id("denied-rules")+" tr[data-denying=login]", "20")

	// Somebody else opens the same address.
	var address string
	if err := page.eval("location.hash", &address); err != nil {
		t.Fatal(err)
	}
	other := b.open(p.URL, address)
	other.see(id("filter-key"), "ip:192.0.2.2")
	other.see(id("denied-rules")+" tr[data-denying=login]", "20")
	page.front()

	page.back()
	waitFor(t, "the rule alone", func() bool { return page.count(id("filter-key")) == 0 && page.count(id("filter-rule")) == 1 })
	page.back()
	waitFor(t, "everything", func() bool { return page.count(id("filters")) == 0 })
	page.press(id("denied-clients") + ` tr[data-denied="ip:192.0.2.1"] a`)
	page.see("main h1", "ip:192.0.2.1")
	if got := page.query(); got.Get("key") != "ip:192.0.2.1" || got.Get("rule") != "login" {
		t.Errorf("the link leads to %v", got)
	}
}

// A click on a chart looks closer at that time, and tiles and lists follow.
func TestDashboardPicksTime(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	spike(t, p.URL)
	page := b.open(p.URL, "#/overview?range=1h")
	page.waitFor(id("range-hour") + "[aria-pressed=true]")
	page.see(id("denied-clients"), "ip:192.0.2.1")
	waitFor(t, "points", func() bool { return page.points(0) > 10 })
	page.clickChart(.2)
	page.waitFor(id("zoomed"))
	q := page.query()
	if q.Get("from") == "" || q.Get("to") == "" || q.Get("range") != "1h" {
		t.Errorf("the address has %v", q)
	}
	page.see(id("denied-clients"), "No client was denied")
	page.see(id("covers"), "steps of 5 min") // a ranking has longer steps than the chart
	page.see(id("past"), "past, not live")
	waitFor(t, "no requests at that time", func() bool { return page.text(id("tile-rate")+" .value") == "0" })
	page.back()
	waitFor(t, "the hour", func() bool { return page.count(id("zoomed")) == 0 })
	page.see(id("denied-clients"), "ip:192.0.2.1")
	page.see(id("live"), "live")
}

// clickChart clicks on the first chart, at a share of its width.
func (p *tab) clickChart(at float64) {
	p.t.Helper()
	box := p.chartBox()
	mouse := func(kind input.MouseType) chromedp.Action {
		return input.DispatchMouseEvent(kind, box.X+at*box.W, box.Y+box.H/2).WithButton(input.Left).WithClickCount(1)
	}
	p.run("click on the chart", mouse(input.MousePressed), mouse(input.MouseReleased))
}

// A chart says what it shows: the unit, the time zone, the outcomes that occurred and their
// last values, and that a share was smoothed.
func TestDashboardCharts(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	page := b.open(p.URL, "")
	page.see(id("live"), "live")
	spike(t, p.URL)
	page.see("section[data-points] "+id("legend"), "total") // there are two outcomes now
	legend := page.text("section[data-points] " + id("legend"))
	for _, word := range []string{"allowed", "denied", "total", "last value"} {
		if !strings.Contains(legend, word) {
			t.Errorf("the legend has no %q: %s", word, legend)
		}
	}
	for _, word := range []string{"blocked", "degraded", "shadow"} {
		if strings.Contains(legend, word) {
			t.Errorf("%q did not occur, and is in the legend: %s", word, legend)
		}
	}
	page.see("section[data-points]", "requests per second · ")
	var zone string
	if err := page.eval("Intl.DateTimeFormat().resolvedOptions().timeZone", &zone); err != nil {
		t.Fatal(err)
	}
	page.see("section[data-points]", zone)
	page.see(id("chart-note"), "100 requests")
	page.see("main", "logarithmic scale")
	// Under the pointer, the legend shows the values there.
	at := 0.0
	waitFor(t, "another time in the legend", func() bool {
		box := page.chartBox() // which moves when something appears above it
		at = 1 - at
		page.run("point", input.DispatchMouseEvent(input.MouseMoved, box.X+box.W/3+at, box.Y+box.H/2))
		return strings.Contains(page.text(id("legend")+" .when"), "at ")
	})
}
