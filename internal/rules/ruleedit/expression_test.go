package ruleedit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/rules/ruleedit"
	_ "github.com/weirhq/weir/rule/expression"
)

// Expressions and their comments stay as they are when the form changes something else, or
// one of them.
func TestDraftKeepsExpressions(t *testing.T) {
	const source = `id: tokens
match:
  path: /v1/chat
  when: request.json.model == "large" # only these
key: user
limit: 100/1m
cost:
  estimate: request.json.max_tokens # what may come
  actual: |-
    has(response.json.usage)
      ? response.json.usage.total_tokens : 7
count: {status: [2xx, 401]} # and wrong tokens
`
	draft, err := ruleedit.ReadDraft([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var rule map[string]any
	if err := json.Unmarshal(draft.Rule, &rule); err != nil {
		t.Fatal(err)
	}
	rule["limit"] = "200/1m"
	rule["cost"].(map[string]any)["estimate"] = "request.size"
	now, err := json.Marshal(rule)
	if err != nil {
		t.Fatal(err)
	}
	draft, err = ruleedit.AmendDraft(draft.Source, now)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("100/1m", "200/1m", "estimate: request.json.max_tokens", "estimate: request.size").Replace(source)
	if got := string(draft.Source); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
