package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// everyField has each field of a rule, with values that differ.
const everyField = `levels: [org, user]
rules:
  - {id: a1, key: global, limit: 111/1m, burst: 112, priority: high, description: "a note,\nof two lines"}
  - {id: a2, key: global, limits: [113/1m, 114/1h], algorithm: sliding_buckets, buckets: 15, unit: pages, count_denied: unless_denied_earlier}
  - {id: a3, key: global, limit: 116/1s, algorithm: leaky_bucket, shape: true, cost: 7, on_expiry: release}
  - {id: a4, key: global, limit: 117/month, zone: Asia/Shanghai, starts: 18, on_failure: closed}
  - {id: a5, match: {method: PUT, host: h.example, path: /x, attributes: {do: it}, when: request.size < 5000}, key: global, concurrency: 119, hold_ttl: 17m, wait: {up_to: 13s, queued: 23}, shares: {low: 42.5%}}
  - {id: a6, key: global, limit: 9/1m, lease: 3s, count: {status: [401, 5xx]}, mode: soft}
  - {id: a7, key: global, limit: 9/1m, tokens: {api: gemini, default_output: 777, reserve: {output: p88, at_most: 6.5%}}, warn: [61%, 73%]}
  - {id: a8, key: global, limit: 9/1m, penalty: {after: 3, within: 5m, for: 19m}, deny: {status: 403, code: 10007, message: "no: more"}}
  - {id: a9, key: global, limit: 9/1m, on_failure: {local: 43s, limit: 4/1h, then: open}}
  - {id: b2, key: global, limit: 9/1m, algorithm: sliding_log, count_denied: true}
  - {id: b3, key: levels, levels: {org: 120/1m, user: 121/1h}}
  - {id: b4, key: global, limit: 9/1m, mcp: {}}
  - {id: b1, key: global, limit: 9/1m, tiers: {pro: 1/1m}, overrides: {global: 2/1m}}
`

// No field of a rule is forgotten in what people read: explain has its values, or its name if it is true or false, once, and a
// list has at least its name, and all of on_failure.
func TestEveryFieldIsSaid(t *testing.T) {
	set, problems := rule.Parse("", []byte(everyField))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	explained := command(t, everyField, "rules", "explain", "-", "--path", "/x", "--method", "PUT", "--host", "h.example", "--attr", "do=it", "--attr", "org=acme", "--user", "ann").stdout
	left := rule.FieldNames("rule")
	for i := range set.Rules {
		r := &set.Rules[i]
		_, own, _ := strings.Cut(explained, "+ "+r.ID+" ")
		own, _, _ = strings.Cut(r.ID+" "+own, "\n+ ")
		listed := listRules(&rule.Set{Rules: []rule.Rule{*r}}, 1)
		for _, m := range document.Read("r.json", string(rule.RuleToJSON(r)), func(f document.Fault) { t.Fatal(f) }).Members {
			field := m.Name.Text
			left = slices.DeleteFunc(left, func(name string) bool { return name == field })
			if len(r.Quota.Levels) > 0 { // explain has a line for each
				own = explained
			}
			switch field {
			case "tiers", "overrides": // explain says which of them applies
				if !strings.Contains(listed, "+ 1 "+strings.TrimSuffix(field, "s")) || !strings.Contains(own, "(override)") {
					t.Errorf("%s is missing in\n%s%s", field, own, listed)
				}
				continue
			case "on_failure":
				if whole := "on_failure: " + m.Value.Brief(); !strings.Contains(listed, whole) {
					t.Errorf("list leaves out %q:\n%s", whole, listed)
				}
			case "count_denied":
				if n := strings.Count(own, field); n != 1 && !r.UnlessDeniedEarlier {
					t.Errorf("explain says %s %d times:\n%s", field, n, own)
				}
			case "match": // explain says what a request lacks
				own += listed
			}
			for _, value := range leaves(m.Value, field) {
				if value != "levels" && !strings.Contains(own, value) && !strings.Contains(own, "(override)") {
					t.Errorf("explain leaves out %q of %s:\n%s", value, field, own)
				}
				if !strings.Contains(listed, value) && !strings.Contains(listed, ", "+field) && !strings.Contains(listed, "  "+field) && field != "description" {
					t.Errorf("list leaves out %q of %s:\n%s", value, field, listed)
				}
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("no rule of the test has %v", left)
	}
}

// leaves are all values in a field, as a line has them.
func leaves(e *document.Element, field string) (all []string) {
	switch {
	case e.Kind == document.Truth, e.Kind == document.Mapping && len(e.Members) == 0:
		return []string{field}
	case e.IsScalar():
		return strings.Split(e.Text, "\n")
	}
	for _, item := range e.Items {
		all = append(all, leaves(item, field)...)
	}
	for _, m := range e.Members {
		all = append(all, leaves(m.Value, m.Name.Text)...)
	}
	return all
}
