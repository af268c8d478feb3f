package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// barriers are what keeps people from using a page, as axe-core finds it: what it calls
// serious or critical. Of a theme, only colours differ.
func (p *tab) barriers(axe, scheme string) (found []string) {
	p.t.Helper()
	var loaded bool
	if err := p.eval("typeof axe === 'object'", &loaded); err != nil {
		p.t.Fatal(err)
	}
	if !loaded {
		p.run("load axe-core", chromedp.Evaluate(axe+"; axe._audit.checks['color-contrast'].options.ignoreLength = true; 0", nil)) // numbers of lines are short
	}
	only := ""
	if scheme == "dark" {
		only = ", runOnly: ['color-contrast']"
	}
	look := `axe.run(document, {resultTypes: ['violations']` + only + `}).then(all => all.violations
		.filter(v => ['serious', 'critical'].includes(v.impact))
		.flatMap(v => v.nodes.map(n => v.id + ': ' + n.html.slice(0, 200) + ' ' + n.failureSummary.replace(/\s+/g, ' '))))`
	p.settle()
	p.await("look for barriers", look, &found)
	return found
}

// Nothing on any page keeps people from using it, by day and by night, on a desk and on a
// phone, where nothing is cut.
func TestDashboardAccessible(t *testing.T) {
	axe, err := os.ReadFile("../../web/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("%v; cd web && npm ci installs it", err)
	}
	p, b, places := furnished(t, 4)
	look := func(page *tab, name string) {
		t.Helper()
		for _, width := range []int64{1280, 390} {
			for _, scheme := range []string{"light", "dark"} {
				page.look(width, 900, scheme)
				if found := page.barriers(string(axe), scheme); len(found) > 0 {
					t.Errorf("%s, %s, %d pixels:\n  %s", name, scheme, width, strings.Join(found, "\n  "))
				}
			}
			if wrong := page.misfits(); len(wrong) > 0 {
				t.Errorf("%s, %d pixels wide: %s", name, width, strings.Join(wrong, "; "))
			}
		}
	}
	page := b.open(p.URL, "")
	for _, to := range places {
		page.visit(to)
		look(page, to.name)
	}
	page.look(1280, 900, "light")
	page.press(id("help"))
	page.waitFor("dialog " + id("keys"))
	look(page, "keys")
	asked := b.open(withTokens(t).URL, "#/rules")
	asked.waitFor("dialog " + id("token"))
	look(asked, "token")
}
