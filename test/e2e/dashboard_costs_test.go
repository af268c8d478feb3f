//go:build measure

package e2e

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var measure = flag.Duration("measure", time.Minute, "how long TestDashboardCosts measures what open dashboards cost")

// What the dashboard costs is a figure for people, of a machine that does nothing else:
//
//	go test -C test/e2e -tags measure -run TestDashboardCosts -v -timeout 30m
//
// On a busy machine it takes longer than the ten minutes that go test allows by itself.
func TestDashboardCosts(t *testing.T) {
	t.Run("paint", func(t *testing.T) {
		b := openBrowser(t)
		page := b.open(asRun(t).URL, "")
		var all []float64
		for range 10 {
			page.run("load again", chromedp.Evaluate("window.old = true", nil), cdppage.Reload().WithIgnoreCache(true))
			waitFor(t, "another load", func() bool {
				var fresh bool
				return page.eval("!window.old && performance.getEntriesByName('first-contentful-paint').length > 0", &fresh) == nil && fresh
			})
			var at float64
			if err := page.eval("performance.getEntriesByName('first-contentful-paint')[0].startTime", &at); err != nil {
				t.Fatal(err)
			}
			all = append(all, at)
		}
		slices.Sort(all)
		t.Logf("first contentful paint on make run, of %d loads without a cache: median %.0f ms, at most %.0f ms", len(all), all[len(all)/2], all[len(all)-1])
	})
	t.Run("blocked", func(t *testing.T) {
		p, b, places := large(t)
		page := b.open(p.URL, "#/alerts")
		page.slow()
		page.run("watch", chromedp.Evaluate(`window.tasks = []; window.events = []
			new PerformanceObserver(all => tasks.push(...all.getEntries().map(e => e.duration))).observe({type: 'longtask', buffered: true})
			new PerformanceObserver(all => events.push(...all.getEntries().map(e => e.duration))).observe({type: 'event', durationThreshold: 16, buffered: true}); 0`, nil))
		for _, to := range places {
			page.run("forget", chromedp.Evaluate("tasks.length = events.length = 0", nil))
			page.visit(to)
			page.settle()
			page.press("nav [aria-current]") // an interaction while answers arrive
			page.run("type", chromedp.Focus(id("search"), chromedp.ByQuery), chromedp.KeyEvent("service-23"))
			page.see(id("found"), "service-23")
			page.run("leave", chromedp.KeyEvent(kb.Escape))
			page.settle()
			var longest struct{ Task, Event float64 }
			if err := page.eval("({Task: Math.max(0, ...tasks), Event: Math.max(0, ...events)})", &longest); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, slow connection, 5,000 rules: longest task %.0f ms, longest interaction %.0f ms", to.name, longest.Task, longest.Event)
		}
	})
	t.Run("server", func(t *testing.T) {
		p := asRun(t)
		t.Logf("no dashboard: %.2f %% of a core", p.load(t))
		openAsStranger(t, p.URL)
		t.Logf("one idle dashboard: %.2f %% of a core", p.load(t))
		for range 9 {
			openAsStranger(t, p.URL)
		}
		t.Logf("ten idle dashboards: %.2f %% of a core", p.load(t))
		keepAskingSlowly(t, p.URL)
		t.Logf("ten dashboards, with ten requests a second: %.2f %% of a core", p.load(t))
	})
}

// asRun starts weir as make run does.
func asRun(t *testing.T) *process {
	t.Helper()
	rules, err := os.ReadFile("../../examples/rules/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "rules.yaml", string(rules))
	return start(t, dir, "serve", "--http", "127.0.0.1:0", "--data", "data")
}

// openAsStranger opens the overview in the browser of somebody else, who shares nothing with others.
func openAsStranger(t *testing.T, base string) {
	t.Helper()
	p := &tab{t: t, ctx: openBrowser(t).ctx, base: base}
	p.run("open", chromedp.Navigate(base+"/"))
	p.waitFor(id("live"))
	var hidden bool
	if err := p.eval("document.hidden", &hidden); err != nil || hidden {
		t.Fatalf("the window cannot be seen: %v", err)
	}
}

// load is the share of a core that the process uses, in percent.
func (p *process) load(t *testing.T) float64 {
	t.Helper()
	used := func() float64 {
		match := regexp.MustCompile(`(?m)^process_cpu_seconds_total (\S+)`).FindStringSubmatch(p.says(t, "/metrics"))
		if match == nil {
			t.Fatal("there is no process_cpu_seconds_total")
		}
		n, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := used()
	<-time.After(*measure)
	return 100 * (used() - before) / measure.Seconds()
}

// keepAskingSlowly sends ten requests a second until the test ends.
func keepAskingSlowly(t *testing.T, url string) {
	t.Helper()
	c := client(t)
	stop, done := make(chan struct{}), make(chan struct{})
	tick := time.NewTicker(100 * time.Millisecond)
	go func() {
		defer close(done)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				try(c, "POST", url+"/v1/check", fmt.Sprintf(`{"user": "u%d", "path": "/api/items"}`, i%20))
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}
