package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const dashboardRules = `# Kept by hand.
rules:
  # passwords
  - {id: login, match: {method: POST, path: /api/login}, key: ip, algorithm: sliding_log, limit: 5/1h} # exact
  - {id: api, match: {path: /api/**}, key: user, limit: 100/1m}
`

// dashboard starts a server with these rules, and a browser. The test runs beside others: most of
// its time, it waits for the next second of the statistics.
func dashboard(t *testing.T, rules string, args ...string) (*process, *browser, string) {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir, "rules.yaml", rules)
	p := start(t, dir, append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
	return p, openBrowser(t), file
}

// A rule is made in the form, tried, and denies.
func TestDashboardCreatesRule(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	c := client(t)
	page := b.open(p.URL, "")
	page.see("main h1", "Overview")
	page.press(`nav a[href="#/rules"]`)
	page.see("tr[data-rule=login]", "5/1h")
	page.press(id("new"))

	page.fill(id("field-id"), "small")
	page.choose(id("field-key"), "ip")
	page.fill(id("field-path"), "small")
	page.fill(id("field-limit"), "2/1x")
	page.see(id("problems"), "E013")
	page.see("fieldset", `write "/small"`)
	page.choose(id("language"), "zh")
	page.see(id("problems"), "limit：限额无法解析")
	page.see("fieldset", "match.path：路径永远不会匹配")
	page.see(id("field-algorithm"), "sliding_log (滑动窗口日志)")
	page.choose(id("language"), "en")
	page.fill(id("field-limit"), "2/1h")
	page.fill(id("field-path"), "/small")
	page.see(id("checked"), "No errors")
	if source := page.value(id("source")); !strings.Contains(source, "limit: 2/1h") || !strings.Contains(source, "mode: shadow") {
		t.Errorf("the YAML beside the form is %s", source)
	}
	page.press(id("save"))
	page.see(id("notice"), "Version 2 is in force.")

	// In shadow mode it denies nothing.
	const request = `{"ip": "192.0.2.9", "path": "/small"}`
	for range 3 {
		if a := ask(t, c, "POST", p.URL+"/v1/check", request); !a.Allowed {
			t.Fatalf("in shadow: %s", a.Text)
		}
	}
	page.press(id("enforce"))
	page.see(id("notice"), "Version 3 is in force.")
	if a := ask(t, c, "POST", p.URL+"/v1/check", request); a.Allowed || a.Rule != "small" {
		t.Fatalf("enforced: %s", a.Text)
	}
	page.fill(id("try-path"), "/small")
	page.fill(id("try-ip"), "192.0.2.9")
	page.press(id("try"))
	page.see(id("try-answer"), "Denied")
	page.see(id("try-answer"), "by small")
	page.goTo("rules")
	page.see("tr[data-rule=small]", "2/1h")
	page.fill("input[type=search]", "small")
	waitFor(t, "a single row", func() bool { return page.count("tr[data-rule]") == 1 })
}

// Two people change one rule. The slower one sees both texts, and loses none.
func TestDashboardLostRace(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	c := client(t)
	first, second := b.open(p.URL, "#/rules/edit/login"), b.open(p.URL, "#/rules/edit/login")
	for _, page := range []*tab{first, second} {
		page.see(id("version"), "version 1")
	}
	first.fill(id("field-limit"), "7/1h")
	first.press(id("save"))
	first.see(id("notice"), "Version 2 is in force.")

	second.fill(id("field-limit"), "9/1h")
	second.fill(id("field-description"), "mine")
	second.press(id("save"))
	second.see(id("conflict"), "Version 2 (HTTP API, without a token)")
	second.see(id("conflict-theirs"), "limit: 7/1h")
	second.see(id("conflict-yours"), "limit: 9/1h")
	second.see(id("conflict-yours"), "description: mine")
	if a := ask(t, c, "GET", p.URL+"/v1/rules/login", ""); !strings.Contains(a.Text, "7/1h") {
		t.Fatalf("the first text was overwritten: %s", a.Text)
	}

	// Theirs comes into the editor, mine stays beside it.
	second.press(id("take-theirs"))
	waitFor(t, "their text", func() bool { return strings.Contains(second.value(id("source")), "7/1h") })
	if kept := second.value(id("kept") + " textarea"); !strings.Contains(kept, "9/1h") || !strings.Contains(kept, "mine") {
		t.Fatalf("what was typed is lost: %q", kept)
	}
	second.press(id("kept") + " button")
	second.press(id("save"))
	second.see(id("notice"), "Version 3 is in force.")

	// The other way round, now: the first keeps its own.
	first.fill(id("field-limit"), "8/1h")
	first.press(id("save"))
	first.see(id("conflict-theirs"), "9/1h")
	first.press(id("keep-mine"))
	if source := first.value(id("source")); !strings.Contains(source, "8/1h") {
		t.Fatalf("what was typed is lost: %q", source)
	}
	first.press(id("save"))
	first.see(id("notice"), "Version 4 is in force.")

	// Who changed another rule is no rival.
	if a := ask(t, c, "PUT", p.URL+"/v1/rules/api", `{id: api, key: user, limit: 50/1m}`, "If-Match", "*"); a.Status != 200 {
		t.Fatal(a.Text)
	}
	first.fill(id("field-limit"), "6/1h")
	first.press(id("save"))
	first.see(id("notice"), "Version 6 is in force.")
	if a := ask(t, c, "GET", p.URL+"/v1/rules", ""); !strings.Contains(a.Text, "6/1h") || !strings.Contains(a.Text, "50/1m") {
		t.Errorf("a change is lost: %s", a.Text)
	}
}

func TestDashboardRollsBack(t *testing.T) {
	p, b, file := dashboard(t, dashboardRules)
	c := client(t)
	if a := ask(t, c, "DELETE", p.URL+"/v1/rules/login", "", "If-Match", "*"); a.Status != 200 {
		t.Fatal(a.Text)
	}
	page := b.open(p.URL, "#/rules/history")
	page.see(id("versions"), "in force")
	page.press(`li[data-version="2"] a`)
	page.see("table.diff tr.removed", "id: login")
	page.press(`li[data-version="1"] a`)
	page.press(id("rollback"))
	page.press("dialog " + id("sure"))
	page.see(id("notice"), "Version 3 is in force")
	page.see(`li[data-version="3"]`, "in force")
	if text, err := os.ReadFile(file); err != nil || string(text) != dashboardRules {
		t.Errorf("the file is %s, %v", text, err)
	}
}

// A client's limits are those of the tier with which it came, or the page says that it
// does not know.
func TestDashboardTier(t *testing.T) {
	p, b, _ := dashboard(t, "rules: [{id: api, key: user, algorithm: sliding_log, limit: 100/1h, tiers: {paid: 1000/1h}}]\n")
	ask(t, client(t), "POST", p.URL+"/v1/check", `{"user": "bob", "tier": "paid"}`)
	page := b.open(p.URL, "#/clients?key=user:bob")
	page.see(id("client-tier"), "tier paid")
	page.see(id("remaining"), "999 / 1,000")
	page = b.open(p.URL, "#/clients?key=user:carol")
	page.see(id("client-tier"), "has not seen the client recently")
	page.see(id("remaining"), "100 / 100")
	page.goTo("rules", "view", "api")
	page.see(id("rule-tiers")+" tr[data-tier=paid]", "paid\t1000/1h\t1\t0 %")
	page.see(id("rule-tiers")+" tr:last-child", "no tier, or another one\t100/1h\t0\t–")
}

// The playground draws every algorithm, with the numbers of the command line.
func TestDashboardPlayground(t *testing.T) {
	p, b, _ := dashboard(t, dashboardRules)
	page := b.open(p.URL, "#/playground")
	for _, c := range []struct{ limit, pattern, own string }{
		{"100/1m", "boundary", ""}, {"10/1s burst 20", "overload", ""}, {"100/1m", "poisson", ""}, {"7/1s", "own", "5/1s@0s..20s,30@10s"},
	} {
		page.fill(id("play-limit"), c.limit)
		page.choose(id("play-pattern"), c.pattern)
		traffic := c.pattern
		if c.own != "" {
			page.fill(id("play-own"), c.own)
			traffic = c.own
		}
		want := simulated(t, c.limit, traffic)
		page.press(id("play"))
		waitFor(t, fmt.Sprintf("%d lanes of %s and %s, with the numbers\n%s", len(want.Lanes), c.limit, traffic, want.rows()), func() bool {
			return page.played(c.limit) == want.rows() && page.count("[data-lane]") == len(want.Lanes)
		})
		if len(want.Lanes) < 6 || page.count("[data-lane] path.allowed") != len(want.Lanes) {
			t.Errorf("%+v: %d lanes, of which %d are drawn", c, len(want.Lanes), page.count("[data-lane] path.allowed"))
		}
	}
	page.choose(id("play-pattern"), "log")
	page.fill(id("play-log"), "2026-01-01T00:00:00Z a\n2026-01-01T00:00:01Z b\nnothing\n2026-01-01T00:00:01.500Z c\n")
	want := simulated(t, "7/1s", "1@0s,1@1s,1@1500ms")
	waitFor(t, "the log", func() bool { return page.played("7/1s") == want.rows() })
	page.fill(id("play-limit"), "many")
	page.see(id("play-wrong"), "limits[0]")

	// A quota of a billing month has dates in its zone, and months as long as they are.
	const month = "10/month zone Asia/Shanghai starts 15"
	page.fill(id("play-log"), "2026-02-14T15:59:59Z\n2026-02-14T16:00:00Z\n2026-02-14T16:00:01Z\n")
	page.fill(id("play-limit"), "1"+month[2:])
	waitFor(t, "a log across the billing day", func() bool { return page.played("1"+month[2:]) == "fixed_window 2 1 0 2 2\n" })
	page.fill(id("play-limit"), month)
	page.choose(id("play-pattern"), "overload")
	want = simulated(t, month, "overload")
	waitFor(t, "four months", func() bool { return page.played(month) == want.rows() })
	page.see(id("simulation"), "within a month; the limit is 10.")
	page.see(id("simulation"), "other algorithms are left out")
	page.see(id("simulation"), "times are in Asia/Shanghai.")
	var drawn struct {
		Ticks  string
		Inside bool
	}
	if err := page.eval(`(([svg, worst]) => ({
		Ticks: [...svg.querySelectorAll('line.tick + text')].map(e => e.textContent).join(' '),
		Inside: worst.left >= svg.getBoundingClientRect().left && worst.right <= svg.getBoundingClientRect().right && worst.width > 50,
	}))([document.querySelector('[data-testid=lanes]'), document.querySelector('rect.worst').getBoundingClientRect()])`, &drawn); err != nil ||
		drawn.Ticks != "2026-01-15 2026-02-15 2026-03-15 2026-04-15" || !drawn.Inside {
		t.Errorf("the axis of four months has %+v, %v", drawn, err)
	}
}

// simulation is what weir simulate says.
type simulation struct {
	Lanes []struct {
		Algorithm                string
		Allowed, Denied, Delayed int64
		WorstWindow              int64 `json:"worst_window"`
		Bound                    int64
	}
}

func simulated(t *testing.T, limit, traffic string) simulation {
	t.Helper()
	out, err := exec.Command(filepath.Join(bin, "weir"), "simulate", "--limit", limit, "--traffic", traffic, "--output", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Simulations []simulation }
	if err := json.Unmarshal(out, &all); err != nil || len(all.Simulations) != 1 {
		t.Fatalf("%v in %s", err, out)
	}
	return all.Simulations[0]
}

func (s simulation) rows() string {
	var b strings.Builder
	for _, l := range s.Lanes {
		fmt.Fprintf(&b, "%s %d %d %d %d %d\n", l.Algorithm, l.Allowed, l.Denied, l.Delayed, l.WorstWindow, l.Bound)
	}
	return b.String()
}

// played is what the page says of the same.
func (p *tab) played(limit string) (rows string) {
	p.eval(`[...document.querySelectorAll('[data-limit=`+literal(limit)+`] tr[data-algorithm]')].map(r =>
		[r.dataset.algorithm, r.dataset.allowed, r.dataset.denied, r.dataset.delayed, r.dataset.worst, r.dataset.bound].join(' ') + '\n').join('')`, &rows)
	return rows
}
