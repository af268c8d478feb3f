package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

const loginRequest = `{"ip": "192.0.2.1", "method": "POST", "path": "/api/login"}`

// keepAsking sends two hundred requests a second until the test ends, and leaves the machine to
// those that look at them.
func keepAsking(t *testing.T, url string, bodies ...string) {
	t.Helper()
	c := client(t)
	stop, done := make(chan struct{}), make(chan struct{})
	tick := time.NewTicker(5 * time.Millisecond)
	go func() {
		defer close(done)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				try(c, "POST", url+"/v1/check", bodies[i%len(bodies)])
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// front brings the tab to the front: a tab in the background sends no requests and
// draws nothing.
func (p *tab) front() {
	p.t.Helper()
	p.run("come to the front", cdppage.BringToFront())
	waitFor(p.t, "the tab in front", func() bool {
		var hidden bool
		return p.eval("document.hidden", &hidden) == nil && !hidden
	})
}

// number is the figure that people read somewhere; 0 if there is none.
func (p *tab) number(selector string) float64 {
	text := strings.TrimSuffix(strings.ReplaceAll(p.text(selector), ",", ""), " %")
	scale := 1.0
	if short, found := strings.CutSuffix(text, "K"); found {
		text, scale = short, 1000
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n * scale
}

// setTime writes into a field for a date and a time, whose parts cannot be pasted.
func (p *tab) setTime(selector, value string) {
	p.t.Helper()
	p.waitFor(selector)
	p.run("set "+selector, chromedp.Evaluate(fmt.Sprintf(
		"{const e = document.querySelector(%s); e.value = %s; e.dispatchEvent(new Event('input', {bubbles: true}))}", literal(selector), literal(value)), nil))
}

// points is how many a chart has, by its place on the page.
func (p *tab) points(chart int) (n int) {
	p.eval(fmt.Sprintf("Number(document.querySelectorAll('[data-points]')[%d]?.dataset.points ?? 0)", chart), &n)
	return n
}

// last is the latest second that a chart has. It may have as many as it ever keeps.
func (p *tab) last(chart int) (at float64) {
	p.eval(fmt.Sprintf("Number(document.querySelectorAll('[data-points]')[%d]?.dataset.last ?? 0)", chart), &at)
	return at
}

// The numbers move while requests come.
func TestDashboardLive(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	page := b.open(p.URL, "")
	page.see(id("live"), "live")
	page.see(id("tile-store"), "up")
	if n := page.number(id("tile-rate") + " .value"); n != 0 {
		t.Errorf("there are no requests, but the page shows %v a second", n)
	}
	keepAsking(t, p.URL, loginRequest)
	waitFor(t, "a rate", func() bool { return page.number(id("tile-rate")+" .value") > 1 })
	waitFor(t, "denials", func() bool { return page.number(id("tile-denied")+" .value") > 50 })
	waitFor(t, "a time to decide", func() bool {
		return strings.Contains(page.text(id("tile-latency")), "s") && !strings.Contains(page.text(id("tile-latency")), "–")
	})
	before := page.last(0)
	waitFor(t, "another second on the chart", func() bool { return page.last(0) > before })
	page.goTo("rules")
	waitFor(t, "the rate of the rule", func() bool { return page.number("tr[data-rule=login] "+id("rate")) > 1 })
	waitFor(t, "a line", func() bool { return page.count("tr[data-rule=login] svg path") == 1 })
	if n := page.count("tr[data-rule=api] svg path"); n != 0 {
		t.Error("a rule without traffic has a line")
	}
	page.goTo("clients")
	page.see(id("hot-denied"), "ip:192.0.2.1")
}

// Any stretch of time can be looked at, with the mouse and without it; what has changed
// in it is marked.
func TestDashboardRanges(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	c := client(t)
	for range 20 {
		ask(t, c, "POST", p.URL+"/v1/check", loginRequest)
	}
	if a := ask(t, c, "DELETE", p.URL+"/v1/rules/api?summary=no+longer+needed", "", "If-Match", "*"); a.Status != 200 {
		t.Fatal(a.Text)
	}
	page := b.open(p.URL, "")
	page.see(id("marks"), "no longer needed")
	page.drag()
	for _, name := range []string{"hour", "hours", "day", "week", "month", "year"} {
		page.press(id("range-" + name))
		page.waitFor(id("range-"+name) + "[aria-pressed=true]")
		waitFor(t, "points of "+name, func() bool { return page.points(0) > 1 })
	}
	page.press(id("range-hour"))

	page.press(id("range-other"))
	page.setTime(id("range-from"), "2026-01-01T00:00:00")
	page.setTime(id("range-to"), "2025-01-01T00:00:00")
	waitFor(t, "a range that ends before it begins", func() bool { return page.count(id("range-show")+":disabled") == 1 })
	page.setTime(id("range-to"), "2026-01-02T00:00:00")
	page.press(id("range-show"))
	page.see(id("zoomed"), "Jan 1, 2026")
	page.press(id("unzoom"))
	waitFor(t, "the hour", func() bool { return page.count(id("zoomed")) == 0 })
}

// box is where something is on the page.
type box struct{ X, Y, W, H float64 }

// chartBox is where the first chart is.
func (p *tab) chartBox() (b box) {
	p.t.Helper()
	waitFor(p.t, "a chart", func() bool {
		return p.eval("(() => { const r = document.querySelector('.u-over').getBoundingClientRect(); return {X: r.x, Y: r.y, W: r.width, H: r.height} })()", &b) == nil && b.W > 100
	})
	return b
}

// drag looks closer at a part of the first chart, and goes back with a double click. The
// chart takes in another second meanwhile.
func (p *tab) drag() {
	p.t.Helper()
	box := p.chartBox()
	mouse := func(kind input.MouseType, x float64, clicks int64) chromedp.Action {
		return input.DispatchMouseEvent(kind, box.X+x, box.Y+box.H/2).WithButton(input.Left).WithButtons(1).WithClickCount(clicks)
	}
	latest := func() (text string) {
		p.eval("document.querySelector('[data-last]')?.dataset.last ?? ''", &text)
		return text
	}
	waitFor(p.t, "a chart that stays where it is", func() bool { // the tiles above it may come later
		box = p.chartBox()
		p.run("begin to drag", mouse(input.MousePressed, .6*box.W, 1))
		before := latest()
		waitFor(p.t, "another second", func() bool { return latest() != before })
		if p.chartBox() == box {
			return true
		}
		p.run("let go", mouse(input.MouseReleased, .6*box.W, 1))
		return false
	})
	p.run("drag on", mouse(input.MouseMoved, .7*box.W, 0), mouse(input.MouseMoved, .8*box.W, 0), mouse(input.MouseReleased, .8*box.W, 1))
	p.waitFor(id("zoomed"))
	box = p.chartBox()
	p.run("double click", mouse(input.MousePressed, .5*box.W, 1), mouse(input.MouseReleased, .5*box.W, 1), mouse(input.MousePressed, .5*box.W, 2), mouse(input.MouseReleased, .5*box.W, 2))
	waitFor(p.t, "all of it", func() bool { return p.count(id("zoomed")) == 0 })
	// What is marked is named under the pointer.
	x := box.W
	waitFor(p.t, "the name of a mark", func() bool {
		if x -= 4; x < 0 {
			x = box.W
		}
		p.run("point", input.DispatchMouseEvent(input.MouseMoved, box.X+x, box.Y+box.H/2))
		return strings.Contains(p.text(id("near")), "no longer needed")
	})
}

// A store that is unavailable shows on every page, in one banner, and that it is available
// again shows, too. The list of rules goes on to show those in force.
func TestDashboardDegraded(t *testing.T) {
	redis := testredis.Start(t)
	local := strings.Replace(dashboardRules, "limit: 5/1h}", "limit: 5/1h, on_failure: local}", 1)
	p, b, _ := dashboard(t, local, "--store", "redis://"+redis.Addr+"?timeout=10s")
	page := b.open(p.URL, "")
	page.see(id("tile-store"), "up")
	keepAsking(t, p.URL, loginRequest)
	waitFor(t, "a rate", func() bool { return page.number(id("tile-rate")+" .value") > 1 })
	redis.Kill()
	lost := time.Now()
	page.waitFor(id("outage"))
	t.Logf("the page says so after %v", time.Since(lost))
	page.see(id("tile-store"), "down")
	page.see(id("outage"), "unavailable since")
	page.see(id("outage"), "this instance only")
	if n := page.count("[role=alert]"); n != 1 {
		t.Errorf("there are %d banners", n)
	}
	waitFor(t, "degraded requests", func() bool { return page.number(id("tile-degraded")+" .value") > 0 })
	page.see(id("tile-degraded"), "of them denied") // by the local fallback, which the tile of denied requests leaves out
	page.press(`nav a[href="#/rules"]`)
	page.see(id("outage"), "unavailable since")
	page.press(`nav a[href="#/overview"]`)
	redis.Restart()
	page.see(id("tile-store"), "up")
	waitFor(t, "the end of it", func() bool { return page.count(id("outage")) == 0 })
}

// Rules that are kept in Redis are shown while it is unavailable, and after it has lost
// its data.
func TestDashboardRulesInForce(t *testing.T) {
	redis := testredis.Start(t)
	p, b, _ := dashboard(t, dashboardRules, "--store", "redis://"+redis.Addr+"?timeout=10s", "--rules", "redis")
	c := client(t)
	if a := ask(t, c, "PUT", p.URL+"/v1/rules", dashboardRules, "If-Match", "*"); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Text)
	}
	redis.Kill()
	page := b.open(p.URL, "#/rules")
	page.see(id("in-force"), "cannot be read")
	page.waitFor("[data-rule=login]")
	redis.Restart()
	waitFor(t, "its return", func() bool { return !ask(t, c, "POST", p.URL+"/v1/check", loginRequest).Degraded })
	page.run("reload", chromedp.Reload())
	page.see(id("in-force"), "Version 0 is stored")
	page.waitFor("[data-rule=login]")
}

// However many tabs are open, the next one is answered: only the one that is looked at
// follows what happens.
func TestDashboardTabs(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	var tabs []*tab
	for range 9 { // browsers open six connections to a server
		page := b.open(p.URL, "#/rules")
		page.see(id("live"), "live")
		page.waitFor("[data-rule=login]")
		tabs = append(tabs, page)
	}
	tabs[0].front()
	tabs[0].press(`nav a[href="#/overview"]`)
	tabs[0].see(id("live"), "live")
}

// A server that is gone is not taken for one at rest.
func TestDashboardLost(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	page := b.open(p.URL, "")
	page.see(id("live"), "live")
	p.kill()
	page.see("header", "disconnected")
	if n := page.count(id("live")); n != 0 {
		t.Error("it still says that it is live")
	}
}

// What the upstreams of a gateway do wrong is shown.
func TestDashboardUpstream(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	write(t, dir, "rules.yaml", "rules: [{id: everything, key: global, limit: 100000/1s}]")
	p := start(t, dir, "gateway", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", upstream.URL, "--adaptive", "7-7")
	page := openBrowser(t).open(p.URL, "")
	page.front()
	page.see(id("live"), "live")
	page.see(id("tile-adaptive"), "0 / 7\n"+upstream.URL)
	if n := page.count(id("tile-upstream")); n != 0 {
		t.Error("nothing was passed on, and there is a figure of it")
	}
	c := client(t)
	waitFor(t, "errors of the upstream", func() bool {
		try(c, "GET", p.Gateway+"/", "")
		return page.number(id("tile-upstream")+" .value") == 100
	})
	page.see("main", "Upstream")
}

// What a rule in shadow would have denied is told before it is enforced.
func TestDashboardShadow(t *testing.T) {
	p, b, _ := dashboard(t, "rules: [{id: quiet, key: ip, limit: 1/1h, mode: shadow}, {id: loud, match: {path: /loud}, key: ip, limit: 1/1h}]")
	c := client(t)
	for range 4 {
		ask(t, c, "POST", p.URL+"/v1/check", `{"ip": "192.0.2.1"}`)
	}
	page := b.open(p.URL, "#/rules/edit/quiet")
	page.see(id("shadow-note"), "would have denied 3 of 4 requests (75 %)")
	page.goTo("rules")
	page.see("tr[data-rule=quiet] "+id("would"), "would have denied 3 in 24 hours")
	page.see("tr[data-rule=quiet] "+id("share"), "75 %\nwould be denied")
	page.press("tr[data-rule=quiet] a")
	page.see(id("denials"), "Latest requests that would have been denied")
	page.see(id("rule-top")+" thead", "Would be denied")
	page.see(id("rule-full"), "4 requests, 3 would be denied")

	// Whom an enforced rule denies is not said to be denied by it, too.
	for range 3 {
		ask(t, c, "POST", p.URL+"/v1/check", `{"ip": "192.0.2.1", "path": "/loud"}`)
	}
	page.goTo("overview")
	denied := id("denied-clients") + ` tr[data-denied="ip:192.0.2.1"]`
	page.see(denied, "loud")
	page.see(id("shadow-left"), "Shadow rules deny nothing")
	if text := page.text(denied); strings.Contains(text, "quiet") {
		t.Errorf("a shadow rule is said to deny: %s", text)
	}
	page.visit(place{at: "overview?rule=quiet", ready: id("denied-clients") + " h2", says: "would have been denied"})
	page.see(denied, "quiet")
}

// An alert is listed, marked on the charts, silenced, and let speak again. When its condition no
// longer holds, it is over.
func TestDashboardAlerts(t *testing.T) {
	p, b, file := dashboard(t, dashboardRules, "--alert", "denied=10%,window=10s,hold=1s,minimum=5", "--alert", "denied_requests=off")
	c := client(t)
	page := b.open(p.URL, "#/alerts")
	page.see(id("alerts-active"), "No active alerts.")
	var clients []string
	for i := range 4 { // one alone would be no news
		clients = append(clients, strings.Replace(loginRequest, "192.0.2.1", fmt.Sprint("192.0.2.", i+1), 1))
	}
	keepAsking(t, p.URL, clients...)
	alert := id("alerts-active") + " [data-alert=denied]"
	page.see(alert, "High share of denied clients")
	for _, figure := range []string{"when it fired: ", "now: ", "threshold: 10 %"} {
		page.see(alert, figure)
	}
	if said, fired := page.text(alert+" "+id("sentence")), page.text(alert+" "+id("fired")); !strings.Contains(said, "("+strings.TrimPrefix(fired, "when it fired: ")+")") {
		t.Errorf("it says %q and %q", said, fired)
	}
	page.choose(id("language"), "zh")
	page.see(alert, "的客户端被限额拒绝")
	page.choose(id("language"), "en")
	page.press(alert + " " + id("silence"))
	page.choose("dialog "+id("silence-for"), "hours")
	page.fill("dialog "+id("silence-comment"), "<b>on it</b>\u202e")
	page.press("dialog " + id("sure"))
	page.see(alert+" "+id("silenced"), "silenced until")
	page.see(id("silences"), "<b>on it</b>⟨202E⟩")
	if a := ask(t, c, "GET", p.URL+"/v1/alerts", ""); !strings.Contains(a.Text, `"silenced":true`) {
		t.Errorf("the server says %s", a.Text)
	}
	page.press(id("unsilence"))
	page.waitFor(alert + " " + id("silence"))
	if n := page.count(id("silences")); n != 0 {
		t.Error("the silence is still listed")
	}
	page.goTo("overview")
	page.see(id("marks")+" li.alert", "alert:")
	page.see(id("now-alerts"), "1 alert fires.")
	if err := os.WriteFile(file, []byte("rules: [{id: api, key: user, limit: 10/1s}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	page.see(id("now"), "alert ended ")
	if n := page.count(id("now-alerts")); n != 0 {
		t.Error("the alert is said to fire")
	}
}

// What applications count is shown under the names that they use, which stay in the
// address.
func TestDashboardCounters(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules, "--queue", "mail=1/1h,capacity=10")
	c := client(t)
	send := func(path, body string) {
		t.Helper()
		if a := ask(t, c, "POST", p.URL+path, body); a.Status/100 != 2 {
			t.Fatalf("%s: %s", path, a.Text)
		}
	}
	send("/v1/counters/add", `{"add": [{"name": "views", "window": "year", "by": 41.5}, {"name": "<img src=x>,likes", "window": "year"}]}`)
	send("/v1/counters/add", `{"add": [{"name": "views", "window": "year", "distinct": true, "members": ["alice", "bob", "alice"]}]}`)
	send("/v1/distributions/observe", `{"observe": [{"name": "ms", "values": [40, 47, 47, 480]}]}`)
	send("/v1/boards/score", `{"board": {"name": "week"}, "score": [{"member": "alice", "by": 7}, {"member": "bob\u202e", "by": 9}]}`)
	send("/v1/hot/hit", `{"list": {"name": "goods", "window_s": 3600, "threshold": 2}, "items": ["lamp", "lamp", "chair"]}`)
	send("/v1/hot/hit", `{"list": {"name": "goods", "window_s": 3600, "threshold": 2}, "items": ["lamp"]}`)
	for range 3 {
		send("/v1/queues/mail/push", `{"payload": "hello"}`)
	}
	page := b.open(p.URL, "#/counters")
	page.see(id("answer-queues")+" tr[data-queue=mail]", "3 / 10")
	// What there is is listed, and a click shows it; forms come when somebody wants them.
	page.see(id("answer-names"), "leaderboard\tweek\tever\t–")
	page.see(id("answer-names"), "counter\tviews\tthis year\t41.5")
	page.see(id("answer-names"), "counter\t<img src=x>,likes\tthis year\t1")
	page.see(id("answer-names"), "distinct counter\tviews\tthis year\t2")
	page.see(id("names-usage"), "of 262K entries in use.")
	if n := page.count(id("ask-name") + ", " + id("ask-board") + ", " + id("ask-hot")); n != 0 {
		t.Errorf("there are %d empty fields", n)
	}
	page.press("[data-named=goods] a")
	page.see("tr[data-item=lamp]", "hot")
	page.press("[data-named=week] a")
	page.see(id("answer-board")+" tr[data-member=alice]", "7")
	page.press(id("by-name"))
	page.fill(id("ask-name"), "views\n<img src=x>,likes\nnobody")
	page.choose(id("ask-window"), "year")
	page.see("tr[data-counter=views]", "41.5")
	page.see(id("answer-counters"), "<img src=x>,likes")
	page.see("tr[data-counter=nobody]", "0")
	send("/v1/counters/add", `{"add": [{"name": "views", "window": "year", "by": 0.5}]}`)
	page.see("tr[data-counter=views]", "42")

	page.press(id("ask-distinct"))
	page.see("tr[data-counter=views]", "2")
	page.press(id("ask-distinct"))
	page.see("tr[data-counter=views]", "42")
	page.fill(id("ask-dist"), "ms")
	page.see("tr[data-point=all]", "4\t46.7\t480\t480\t480")

	page.fill(id("ask-board"), "week")
	page.see(id("answer-board")+" tr:first-child", "bob⟨202E⟩")
	page.see(id("answer-board")+" tr[data-member=alice]", "7")
	page.fill(id("ask-hot"), "goods")
	page.fill(id("ask-hot_window_s"), "3600")
	page.fill(id("ask-hot_threshold"), "2")
	page.see("tr[data-item=lamp]", "hot")
	page.fill(id("ask-zone"), "Nowhere/Land")
	page.see(id("wrong-counters"), "Nowhere/Land")
	page.fill(id("ask-zone"), "")
	page.see("tr[data-counter=views]", "42")

	// Somebody else opens the same address.
	var address string
	if err := page.eval("location.hash", &address); err != nil {
		t.Fatal(err)
	}
	other := b.open(p.URL, address)
	other.see("tr[data-counter=views]", "42")
	other.see(id("answer-board")+" tr[data-member=alice]", "7")
	other.see("tr[data-item=lamp]", "hot")
	if got, want := other.value(id("ask-name")), "views\n<img src=x>,likes\nnobody"; got != want {
		t.Errorf("the names are %q, want %q", got, want)
	}
}

// A server that keeps no statistics says so, and everything else works.
func TestDashboardWithoutStatistics(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules, "--stats=false")
	page := b.open(p.URL, "")
	page.see(id("stats-absent"), "keeps no statistics")
	page.goTo("alerts")
	page.see("main", "does not evaluate alerts")
	page.goTo("rules")
	page.see("tr[data-rule=login]", "5/1h")
	page.waitFor(id("new"))
	page.goTo("counters")
	page.see(id("asked-queues"), "has no queues")
}
