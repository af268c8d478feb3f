package rule_test

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/rule"
)

// An expression is evaluated only for requests that meet all other conditions of its rule,
// however many rules there are.
func TestWhenIsEvaluatedAfterTheIndex(t *testing.T) {
	set := &rule.Set{}
	for i := range 500 {
		set.Rules = append(set.Rules, limited(fmt.Sprint("r", i), rule.Match{
			Methods: []string{"POST"}, Paths: []string{fmt.Sprintf("/a/%d/**", i)}, When: `request.json.model == "large"`,
		}))
	}
	set.Rules = append(set.Rules, limited("plain", rule.Match{Paths: []string{"/a/7/**"}}))
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	evaluations, body := 0, `{"model": "large"}`
	req := &rule.Request{Method: "POST", Path: "/a/7/b", JSON: func() ([]byte, error) {
		evaluations++
		return []byte(body), nil
	}}
	hits := table.Match(nil, req)
	if got := idsOf(hits); fmt.Sprint(got) != "[r7 plain]" || evaluations != 1 {
		t.Errorf("%v match after %d evaluations", got, evaluations)
	}
	body = `{"model": "small"}`
	if got := idsOf(table.Match(hits, req)); fmt.Sprint(got) != "[r7 plain plain]" { // it appends
		t.Errorf("%v match a small model", got)
	}
	evaluations, req.Method = 0, "GET"
	if got := idsOf(table.Match(nil, req)); fmt.Sprint(got) != "[plain]" || evaluations != 0 {
		t.Errorf("%v match a GET after %d evaluations", got, evaluations)
	}
	// Who matches no rule with an expression does not pay for it.
	hits = hits[:0]
	if allocs := testing.AllocsPerRun(100, func() { hits = table.Match(hits[:0], req) }); allocs != 0 {
		t.Errorf("%v allocations without an expression", allocs)
	}
}

func TestExplainWhen(t *testing.T) {
	r := settling(t, `{id: a, key: ip, limit: 5/1m, match: {method: GET, when: request.size > 100}}`)
	table, err := rule.Compile(&rule.Set{Rules: []rule.Rule{*r.Rule}}, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int64]string{100: "[the expression of when is false the request has no IP address, which the rule's key needs]", 101: "[the request has no IP address, which the rule's key needs]"} {
		if got := fmt.Sprint(table.Explain(&rule.Request{Method: "GET", Size: size})[0].Why); got != want {
			t.Errorf("%d bytes: %s", size, got)
		}
	}
}

// A summary of changes has no long expressions in it.
func TestSummarizeCost(t *testing.T) {
	sets := make([]*rule.Set, 3)
	for i, cost := range []string{"3", "{estimate: request.size}", "{estimate: request.size + 1}"} {
		sets[i] = &rule.Set{Rules: []rule.Rule{*settling(t, "{id: a, key: ip, limit: 5/1m, cost: "+cost+"}").Rule}}
	}
	for i := range 2 {
		if got := rule.Summarize(sets[i], sets[i+1]); got != "a: cost changed" {
			t.Errorf("%q", got)
		}
	}
}
