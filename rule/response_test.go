package rule_test

import (
	"testing"

	"github.com/weirhq/weir/rule"
)

// settling is a rule by itself, ready to use.
func settling(t *testing.T, text string) *rule.Entry {
	t.Helper()
	set, problems := rule.Parse("", []byte("rules:\n  - "+text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table.Rules()[0]
}

// Only responses with the statuses of the rule count.
func TestCountStatus(t *testing.T) {
	r := settling(t, `{id: a, key: ip, limit: 100/1m, cost: 3, count: {status: [401, 5xx]}}`)
	if !r.Settles() {
		t.Error("the rule does not settle")
	}
	if got, err := r.Estimate(&rule.Request{}); err != nil || got != 3 {
		t.Errorf("the estimate is %d", got)
	}
	for status, want := range map[int]int64{200: 0, 400: 0, 401: 7, 402: 0, 499: 0, 500: 7, 599: 7, 600: 0, 999: 0} {
		if got, err := r.Actual(&rule.Request{}, &rule.Response{Status: status}, 7); got != want || err != nil {
			t.Errorf("%d costs %d, %v; want %d", status, got, err, want)
		}
	}
	for name, resp := range map[string]*rule.Response{"no response": nil, "no status": {}} {
		if got, err := r.Actual(&rule.Request{}, resp, 7); got != 7 || err == nil {
			t.Errorf("%s costs %d, %v", name, got, err)
		}
	}
}

// A rule that settles by nothing keeps what was charged.
func TestSettlesByNothing(t *testing.T) {
	r := settling(t, `{id: a, key: ip, limit: 100/1m, cost: 3}`)
	if r.Settles() {
		t.Error("the rule settles")
	}
	if got, err := r.Estimate(&rule.Request{Cost: 5}); err != nil || got != 5 {
		t.Errorf("the estimate is %d", got)
	}
	if got, err := r.Actual(&rule.Request{}, nil, 5); got != 5 || err != nil {
		t.Errorf("it costs %d, %v", got, err)
	}
}

// Statuses that cannot be written do not compile.
func TestStatusesThatCannotBeWritten(t *testing.T) {
	for _, s := range []rule.Statuses{{}, {401, 403}, {500, 598}, {0, 99}, {600, 699}, {700, 700}, {404, 400}} {
		r := limited("a", rule.Match{})
		r.Count.Status = []rule.Statuses{s}
		if _, err := rule.Compile(&rule.Set{Rules: []rule.Rule{r}}, rule.Options{}); err == nil {
			t.Errorf("%v compiles", s)
		}
	}
}
