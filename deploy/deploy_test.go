package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// ruleFile is what there is to know of prometheus/weir-rules.yaml.
type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Record, Alert, Expr string
			Annotations         map[string]string
		}
	}
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(src, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Prometheus accepts the rules, and each alert fires and is silent when it should.
func TestAlerts(t *testing.T) {
	promtool(t, "check", "rules", "prometheus/weir-rules.yaml")
	promtool(t, "test", "rules", "prometheus/weir-rules.test.yaml")
}

// No alert is without a test that sees it fire, one that sees it silent, a place in
// the docs, and a runbook to which it leads.
func TestAlertsAreTested(t *testing.T) {
	var rules ruleFile
	readYAML(t, "prometheus/weir-rules.yaml", &rules)
	var tests struct {
		Tests []struct {
			Cases []struct {
				Name string `yaml:"alertname"`
				Want []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	readYAML(t, "prometheus/weir-rules.test.yaml", &tests)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, c := range test.Cases {
			if len(c.Want) > 0 {
				fires[c.Name] = true
			} else {
				silent[c.Name] = true
			}
		}
	}
	doc, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			if r.Alert == "" {
				continue
			}
			if !fires[r.Alert] || !silent[r.Alert] {
				t.Errorf("%s is seen to fire: %v, to be silent: %v", r.Alert, fires[r.Alert], silent[r.Alert])
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s says too little", r.Alert)
			}
			if want := "https://github.com/weirhq/weir/blob/main/docs/guides/runbooks.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
				t.Errorf("%s: the runbook is at %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
			}
			named[r.Alert] = true
			if !strings.Contains(string(doc), "`"+r.Alert+"`") {
				t.Errorf("docs/reference/metrics.md says nothing of %s", r.Alert)
			}
		}
	}
	if len(named) < 10 {
		t.Errorf("only %d alerts were found", len(named))
	}
	for _, page := range []string{"../docs/guides/runbooks.md", "../docs/zh/runbooks.md"} {
		runbooks(t, page, named)
	}
}

// runbooks checks that a page has a section for each alert, and none for another one, and that each
// says as much as a section has to: what the alert means, what to look at, and what to do.
func runbooks(t *testing.T, page string, alerts map[string]bool) {
	t.Helper()
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, section := range strings.Split(string(doc), "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		if found[name] || !alerts[name] {
			t.Errorf("%s: %s is there twice, or is no alert", page, name)
		}
		if found[name] = true; strings.Count(text, "\n**") != 3 {
			t.Errorf("%s: %s has %d paragraphs with a bold start, want 3", page, name, strings.Count(text, "\n**"))
		}
	}
	for name := range alerts {
		if !found[name] {
			t.Errorf("%s has no section for %s", page, name)
		}
	}
}

// alertExpressions are those of the rules, by who has them, and the names that they record.
func alertExpressions(t *testing.T) (expressions map[string]string, records map[string]bool) {
	t.Helper()
	var rules ruleFile
	readYAML(t, "prometheus/weir-rules.yaml", &rules)
	expressions, records = map[string]string{}, map[string]bool{}
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			expressions[r.Alert+r.Record] = r.Expr
			if r.Record != "" {
				records[r.Record] = true
			}
		}
	}
	return expressions, records
}

// dashboardExpressions are those of the panels, with Grafana's variables filled in.
func dashboardExpressions(t *testing.T) map[string]string {
	t.Helper()
	src, err := os.ReadFile("grafana/weir.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(src, &dashboard); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "5m", "$job", "weir", "$instance", ".*")
	expressions := map[string]string{}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 && p.Type != "row" {
			t.Errorf("the panel %s shows nothing", p.Title)
		}
		for i, target := range p.Targets {
			expressions[fmt.Sprintf("%s %d", p.Title, i)] = fill.Replace(target.Expr)
		}
	}
	return expressions
}

// Panels of the dashboard have numbers and places of their own, and every metric of holds is in one.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
		}
	}
	src, err := os.ReadFile("grafana/weir.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(src, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids, taken := map[int]string{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if other := ids[p.ID]; other != "" {
			t.Errorf("%s and %s have the same id", p.Title, other)
		}
		ids[p.ID] = p.Title
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				place := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[place]; other != "" && other != p.Title {
					t.Errorf("%s covers %s", p.Title, other)
				}
				taken[place] = p.Title
			}
		}
	}
	for name := range everything(t) {
		if strings.HasPrefix(name, "weir_hold") && !strings.Contains(string(src), name+"{") {
			t.Errorf("no panel shows %s", name)
		}
	}
}

var promql = regexp.MustCompile("(?s)```promql\n(.*?)```\n")

// docExpressions are the examples of a page.
func docExpressions(t *testing.T, page string) map[string]string {
	t.Helper()
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	expressions := map[string]string{}
	for i, block := range promql.FindAllStringSubmatch(string(doc), -1) {
		expressions[fmt.Sprintf("example %d", i)] = block[1]
	}
	return expressions
}

// Every query parses, and asks for nothing that weir does not say.
func TestQueries(t *testing.T) {
	alerts, records := alertExpressions(t)
	exposed := everything(t)
	for where, c := range map[string]struct {
		queries map[string]string
		atLeast int
	}{
		"weir-rules.yaml": {alerts, 15},
		"weir.json":       {dashboardExpressions(t), 20},
		"metrics.md":      {docExpressions(t, "../docs/reference/metrics.md"), 15},
		"runbooks.md":     {docExpressions(t, "../docs/guides/runbooks.md"), 8},
	} {
		if len(c.queries) < c.atLeast {
			t.Errorf("%s: only %d queries were found", where, len(c.queries))
		}
		var file strings.Builder
		file.WriteString("groups:\n  - name: queries\n    rules:\n")
		n := 0
		for name, query := range c.queries {
			fmt.Fprintf(&file, "      - {record: 'query:%d', expr: %q}\n", n, query)
			n++
			for _, wrong := range exposed.wrong(query, records) {
				t.Errorf("%s: %s: %s", where, name, wrong)
			}
		}
		path := filepath.Join(t.TempDir(), "queries.yaml")
		if err := os.WriteFile(path, []byte(file.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		promtool(t, "check", "rules", path)
	}
}
