package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// place is a page of the dashboard, with what it shows once it is complete.
type place struct {
	name  string
	at    string // behind "#/" in the address
	ready string // a selector
	says  string
	image string // of the picture in the documentation; "" if there is none
}

// visit goes to a page, and waits until it is complete.
func (p *tab) visit(to place) {
	p.t.Helper()
	p.run("go to "+to.name, chromedp.Evaluate("location.hash = "+literal("#/"+to.at), nil))
	p.see(to.ready, to.says)
}

// await computes an expression that is a promise, and waits for what it promises.
func (p *tab) await(what, promise string, into any) {
	p.t.Helper()
	p.run(what, chromedp.Evaluate(promise, into, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
}

// settle waits until the page has been drawn, and nothing on it fades into another colour.
func (p *tab) settle() {
	p.t.Helper()
	p.await("come to rest", `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))).then(() =>
		Promise.allSettled(document.getAnimations().filter(a => a.effect.getComputedTiming().endTime !== Infinity).map(a => a.finished))).then(() => 0)`, nil)
}

const furnishedRules = `rules:
  - {id: login, description: stop password guessing, match: {method: POST, path: /api/login}, key: ip, algorithm: sliding_log, limit: 5/1h}
  - {id: api, match: {path: /api/**}, key: user, limit: 30/1s, warn: 90%}
  - {id: search, match: {path: /api/search}, key: user, limit: 8/1s, mode: shadow}
  - {id: everything, key: global, limit: 1000/1s}
`

// furnished starts a server on which every page has something to show, and a browser. There
// are so many seconds of traffic, in the middle of which a rule changes.
func furnished(t *testing.T, seconds int) (*process, *browser, []place) {
	t.Helper()
	p, b, _ := dashboard(t, furnishedRules, "--queue", "mail=1/1h,capacity=10", "--queue", "thumbnails=50/1s",
		"--alert", "denied=1%,window=10s,hold=1s,minimum=5")
	c := client(t)
	post := func(path, body string) {
		t.Helper()
		if a := ask(t, c, "POST", p.URL+path, body); a.Status/100 != 2 {
			t.Fatalf("%s: %s", path, a.Text)
		}
	}
	logIn := func() { // as several clients, since one alone that is denied is no alert
		for n := range 4 {
			post("/v1/check", strings.Replace(loginRequest, "192.0.2.1", fmt.Sprint("192.0.2.", n+1), 1))
		}
	}
	for range 7 {
		logIn()
	}
	post("/v1/overrides", `{"rule": "api", "key": "user:alice", "limit": "60/1s", "for": "2h", "reason": "imports today"}`)
	post("/v1/counters/add", `{"add": [{"name": "views", "by": 48210}, {"name": "likes", "by": 1207}, {"name": "shares", "by": 96}]}`)
	post("/v1/distributions/observe", `{"observe": [{"name": "checkout_ms", "values": [38, 41, 41, 44, 47, 52, 58, 71, 120, 640]}]}`)
	post("/v1/boards/score", `{"board": {"name": "songs"}, "score": [{"member": "Blue Hour", "by": 812}, {"member": "Long Way Down", "by": 640}, {"member": "Paper Boats", "by": 377}]}`)
	post("/v1/hot/hit", `{"list": {"name": "goods", "window_s": 3600, "threshold": 2}, "items": ["lamp", "chair"]}`)
	post("/v1/hot/hit", `{"list": {"name": "goods", "window_s": 3600, "threshold": 2}, "items": ["lamp"]}`)
	for range 4 {
		post("/v1/queues/mail/push", `{"payload": "hello"}`)
	}
	from, to := traffic(t, p.URL, seconds, func() {
		const raised = `{id: everything, key: global, limit: 2000/1s}`
		if a := ask(t, c, "PUT", p.URL+"/v1/rules/everything?summary=more+for+everybody", raised, "If-Match", "*"); a.Status != 200 {
			t.Fatal(a.Text)
		}
	})
	waitFor(t, "an alert", func() bool {
		logIn() // which is denied
		return strings.Contains(ask(t, c, "GET", p.URL+"/v1/alerts", "").Text, `"kind":"denied"`)
	})
	span := fmt.Sprintf("?from=%d&to=%d", from+1, to)
	return p, b, []place{
		{"overview", "overview" + span, id("marks"), "more for everybody", "dashboard-overview"},
		{"rules", "rules", "tr[data-rule=api] " + id("share"), "%", ""},
		{"rule", "rules/view/api" + span, id("rule-top"), "user:", ""},
		{"rule-shadow", "rules/view/search" + span, id("rule-top"), "user:", ""},
		{"new", "rules/new", "main h1", "rule", ""},
		{"edit", "rules/edit/login", id("checked"), "No errors, 1 warning.", "dashboard-rule"},
		{"history", "rules/history/2", "table.diff", "2000/1s", ""},
		{"clients", "clients", id("hot-denied"), "user:", ""},
		{"client", "clients?key=ip:192.0.2.1", id("standing"), "0 / 5", "dashboard-client"},
		{"counters", "counters?name=views&name=likes&name=shares&board=songs&hot=goods&hot_window_s=3600&hot_threshold=2&dist=checkout_ms", "tr[data-item=lamp]", "hot", "dashboard-counters"},
		{"alerts", "alerts", "[data-alert]", "threshold", ""},
		{"playground", "playground", id("numbers"), "leaky_bucket shape", "dashboard-playground"},
	}
}

// withTokens starts a server that asks for a token.
func withTokens(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "rules.yaml", dashboardRules)
	write(t, dir, "tokens", "alice admin admin-0123456789abcdef\n")
	return start(t, dir, "serve", "--http", "127.0.0.1:0", "--admin-token-file", "tokens")
}
