package engine_test

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/rule"
)

// A request with several messages is charged for each of them, or for none, and takes one place.
func TestBatch(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: requests, key: user, algorithm: fixed_window, limit: 100/1d}
  - {id: tools, mcp: {}, match: {attributes: {mcp.tool: [search, export, "*"]}}, key: [user, "attr:mcp.tool"], algorithm: fixed_window, limit: 3/1d, concurrency: 2, cost: 1}
  - {id: trial, mcp: {}, key: user, algorithm: fixed_window, limit: 9/1d, mode: shadow}
`, nil)
	batch := func(tools ...string) rule.Request {
		req := rule.Request{User: "bob"}
		for _, tool := range tools {
			req.Batch = append(req.Batch, map[string]string{"mcp.method": "tools/call", "mcp.tool": tool})
		}
		return req
	}
	costs := func(req rule.Request) (text string) {
		v := b.check(t, req)
		for _, r := range v.Results {
			text += fmt.Sprintf(" %s %s %d/%d", r.Rule.ID, r.Key, r.Cost, r.Limit)
		}
		return fmt.Sprint(v.Allowed) + text
	}
	want := "true requests user:bob 1/100 tools user:bob|attr:mcp.tool:search 2/3 tools user:bob|attr:mcp.tool:search 1/2" +
		" tools user:bob|attr:mcp.tool:* 2/3 tools user:bob|attr:mcp.tool:* 1/2 trial user:bob 4/9"
	if got := costs(batch("search", "x", "search", "y")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if v := b.check(t, batch("export", "export", "search", "search")); v.Allowed || v.Speaker().Key != "user:bob|attr:mcp.tool:search" {
		t.Errorf("%t, %+v", v.Allowed, v.Speaker())
	}
	if v := b.check(t, batch("export", "export", "export")); !v.Allowed {
		t.Errorf("what was denied has cost something: %+v", v.Speaker())
	}
}
