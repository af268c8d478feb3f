package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/weirhq/weir/stats/archive"
)

// large starts a server with five thousand rules, a year of statistics and a hundred
// thousand clients, and a browser.
func large(t *testing.T) (*process, *browser, []place) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "data"), "stats.snapshot", yearOfStatistics(t))
	var rules strings.Builder
	rules.WriteString("rules:\n")
	for i := range 5000 {
		fmt.Fprintf(&rules, "  - {id: %s, match: {path: /services/%d/**}, key: user, limit: 8/1h}\n", ruleName(i), i)
	}
	write(t, dir, "rules.yaml", rules.String())
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--data", "data")
	bench := exec.Command(filepath.Join(bin, "weir"), "bench", "--server", p.URL, "--duration", "10m", "--count", "100000", "--keys", "100000",
		"--user", "customer-{n}@example.com", "--path", "/services/7/items")
	if out, err := bench.CombinedOutput(); err != nil {
		t.Fatalf("weir bench: %v\n%s", err, out)
	}
	const key = "user:customer-77777@example.com"
	c := client(t)
	// After so many requests weir takes samples for a while, and one client is easily missed.
	waitFor(t, "a denial in the lists", func() bool {
		for range 12 {
			ask(t, c, "POST", p.URL+"/v1/check", `{"user": "customer-77777@example.com", "path": "/services/7/items"}`)
		}
		denials := ask(t, c, "GET", p.URL+"/v1/stats/denials?key="+key, "")
		ranked := ask(t, c, "GET", p.URL+"/v1/stats/top?by=denied&window=hour", "")
		return strings.Contains(denials.Text, `"denials":[{`) && strings.Contains(ranked.Text, key)
	})
	return p, openBrowser(t), []place{
		{name: "overview", at: "overview?range=1y", ready: id("denied-rules"), says: ruleName(1999)},
		{name: "rules", at: "rules", ready: "main", says: "5,000 rules"},
		{name: "rule", at: "rules/view/" + ruleName(7) + "?range=1y", ready: id("denials"), says: key},
		{name: "new", at: "rules/new", ready: "main h1", says: "rule"},
		{name: "edit", at: "rules/edit/" + ruleName(7), ready: id("checked"), says: "No errors"},
		{name: "history", at: "rules/history", ready: id("versions"), says: "1"},
		{name: "clients", at: "clients", ready: id("hot-denied"), says: key},
		{name: "client", at: "clients?key=" + key, ready: id("standing"), says: "0 / 8"},
		{name: "counters", at: "counters", ready: "main h1", says: "Counters"},
		{name: "alerts", at: "alerts", ready: id("alerts-active"), says: "Active"}, // on a slow machine, there are some
		{name: "playground", at: "playground", ready: id("numbers"), says: "leaky_bucket shape"},
	}
}

// ruleName is as long as people make them.
func ruleName(i int) string { return fmt.Sprintf("service-%04d-per-customer-and-hour", i) }

// yearOfStatistics is what a server keeps of a year in which as many rules denied requests as
// it can tell apart, and more denied more.
func yearOfStatistics(t *testing.T) string {
	t.Helper()
	kept, err := archive.NewMemory(archive.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	// All of them denied some on every tenth day; fifty did on every day, and lately in every hour.
	many, few := deniedMore(2000), deniedMore(50)
	now := time.Now()
	month := now.AddDate(0, 0, -30)
	for at, n := now.AddDate(-1, 0, 1), 0; at.Before(now); n++ {
		part := archive.Part{Kind: archive.Series, Start: at.Unix(), ID: at.String(), Frame: few}
		step := 24 * time.Hour
		if at.After(month) {
			step = time.Hour
		} else if n%10 == 0 {
			part.Frame = many
		}
		if err := kept.Add(t.Context(), []archive.Part{part}); err != nil {
			t.Fatal(err)
		}
		at = at.Add(step)
	}
	var out bytes.Buffer
	if err := kept.Snapshot(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// deniedMore is a frame in which so many rules denied requests, the last of them the most.
func deniedMore(rules int) []byte {
	f := &archive.Frame{}
	for i := 2000 - rules; i < 2000; i++ {
		counts := archive.Counts{Allowed: 10_000, Denied: int64(i)}
		f.Rule(archive.Line{Rule: ruleName(i)}).Add(counts)
		f.Requests.Add(counts)
	}
	f.Decision.Put(archive.DurationSlot(40*time.Microsecond), f.Requests.Total())
	return f.Append(nil)
}

// slow makes the connection one of a train: 300 ms there and back, 1.6 Mbit/s.
func (p *tab) slow() {
	p.t.Helper()
	p.run("slow down", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := network.EmulateNetworkConditionsByRule(false, []*network.Conditions{
			{Latency: 300, DownloadThroughput: 200_000, UploadThroughput: 90_000},
		}).Do(ctx)
		return err
	}))
}

// misfits are the words that are broken, the labels, tables and hints that are cut, and by how
// much the page is wider than the window.
func (p *tab) misfits() (wrong []string) {
	p.t.Helper()
	// A word of up to 20 letters has one box; more than one means that it was broken.
	if err := p.eval(`(() => {
		const wrong = []
		const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
		for (let node; (node = walk.nextNode()); ) {
			for (const word of node.data.matchAll(/[A-Za-z0-9:._%]{2,20}/g)) {
				const range = document.createRange()
				range.setStart(node, word.index)
				range.setEnd(node, word.index + word[0].length)
				const tops = new Set([...range.getClientRects()].filter(r => r.width > 0).map(r => Math.round(r.top)))
				if (tops.size > 1) wrong.push('broken: ' + word[0])
			}
		}
		for (const e of document.querySelectorAll('label > span, button, th, h1, h2, nav a, .badge, select')) {
			if (e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1) wrong.push('cut: ' + e.textContent)
		}
		for (const table of document.querySelectorAll('main table')) {
			const place = table.closest('.scroll, .card')
			const [inner, outer] = [table.getBoundingClientRect(), place.getBoundingClientRect()]
			if (place.scrollWidth > place.clientWidth + 1 || inner.right > outer.right + 1) wrong.push('cut: the table ' + table.textContent.trim().slice(0, 60))
		}
		// The usual reason names a rule, which may be long: it ends in an ellipsis.
		for (const e of document.querySelectorAll(':is(input, textarea):placeholder-shown:not([type=number], [data-testid=override-reason])')) {
			const style = getComputedStyle(e)
			const write = document.createElement('canvas').getContext('2d')
			write.font = style.font
			const room = e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)
			if ((e.tagName === 'INPUT' || e.wrap === 'off') && write.measureText(e.placeholder).width > room + 1) wrong.push('cut: the hint ' + e.placeholder)
		}
		const over = document.documentElement.scrollWidth - innerWidth
		if (over > 0) wrong.push('wider than the window by ' + over)
		return wrong
	})()`, &wrong); err != nil {
		p.t.Fatal(err)
	}
	return wrong
}

// With five thousand rules, a hundred thousand clients and a year of statistics, each page opens on a
// phone with a slow connection, says what it must, and fits.
func TestDashboardLarge(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	p, b, places := large(t)
	t.Logf("all of it is there after %v", time.Since(begin))
	page := b.open(p.URL, "#/alerts")
	page.look(390, 844, "light")
	page.slow()
	for _, to := range places {
		begin := time.Now()
		page.visit(to)
		took := time.Since(begin)
		page.settle()
		if wrong := page.misfits(); len(wrong) > 0 {
			t.Errorf("%s: %s", to.name, strings.Join(wrong, "; "))
		}
		t.Logf("%s is complete after %v", to.name, took)
	}
	page.visit(place{name: "client", at: "clients?key=user:customer-77777@example.com&rule=" + ruleName(4321), ready: id("standing"), says: ruleName(4321)})
	for rows := 101; rows <= 201; rows += 100 { // and that of the rule in the address
		waitFor(t, "a piece of the list", func() bool { return page.count(id("standing")+" tbody tr") == rows })
		page.press(id("unfold"))
	}
	page.visit(places[0])
	waitFor(t, "a year", func() bool { return page.points(0) > 300 })
	page.goTo("clients")
	page.choose(id("client-kind"), "user")
	page.fill(id("client-value"), "customer-7777")
	page.see(id("matches"), "user:customer-77777@example.com")
}
