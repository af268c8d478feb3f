package rule_test

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/rule"
)

// named is a rule for tools, of which it lists some.
func named(t *testing.T, text string) *rule.Table {
	t.Helper()
	set, problems := rule.Parse("", []byte(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

const ofTools = `rules: [{id: tools, mcp: {}, match: {path: /mcp, attributes: {mcp.tool: [search, "a|b", "*"]}}, key: [user, "attr:mcp.tool"], limit: 30/1m, overrides: {"user:bob|attr:mcp.tool:*": 5/1m}}]`

// keysOf are the identities of a request under the rules of a table.
func keysOf(t *testing.T, table *rule.Table, req *rule.Request) (keys []string) {
	t.Helper()
	for _, hit := range table.Match(nil, req) {
		all, ends, err := hit.Identities(nil, nil, req)
		if err != nil {
			t.Fatal(err)
		}
		begin := 0
		for _, end := range ends {
			keys = append(keys, hit.ID+" "+string(all[begin:end]))
			begin = end
		}
	}
	return keys
}

// Names that a rule does not list are one, so clients cannot invent keys.
func TestListedAttributes(t *testing.T) {
	table := named(t, ofTools)
	for tool, want := range map[string]string{
		"search": "[tools user:bob|attr:mcp.tool:search]", "a|b": `[tools user:bob|attr:mcp.tool:a\|b]`,
		"Search": "[tools user:bob|attr:mcp.tool:*]", "*": "[tools user:bob|attr:mcp.tool:*]", "": "[]",
	} {
		if got := fmt.Sprint(keysOf(t, table, &rule.Request{User: "bob", Path: "/mcp", Attributes: map[string]string{"mcp.tool": tool}})); got != want {
			t.Errorf("%q: %s, want %s", tool, got, want)
		}
	}
	if _, err := table.Find("tools").ParseIdentity("user:bob|attr:mcp.tool:export"); err == nil {
		t.Error("a name that is not listed has a key of its own")
	}
	if got, err := table.Find("tools").ParseIdentity("user:bob|attr:mcp.tool:*"); err != nil || got != "user:bob|attr:mcp.tool:*" {
		t.Errorf("%s, %v", got, err)
	}
}

// Of several messages, each counts that meets the conditions of a rule, and other rules see one request.
func TestBatch(t *testing.T) {
	table := named(t, `rules:
  - {id: all, key: user, limit: 10/1m}
  - {id: tools, mcp: {}, match: {attributes: {mcp.tool: [search, "*"]}}, key: [user, "attr:mcp.tool"], limit: 10/1m}
  - {id: exports, mcp: {}, match: {attributes: {mcp.tool: export}}, key: user, limit: 10/1m}
  - {id: imports, mcp: {}, match: {attributes: {mcp.tool: import}}, key: user, limit: 10/1m}
  - {id: messages, mcp: {}, key: user, limit: 10/1m}
`)
	call := func(tool string) map[string]string {
		return map[string]string{"mcp.method": "tools/call", "mcp.tool": tool}
	}
	req := &rule.Request{User: "bob", Path: "/", Batch: []map[string]string{call("export"), call("search"), nil, call("export")}}
	want := "[all user:bob tools user:bob|attr:mcp.tool:* tools user:bob|attr:mcp.tool:search tools user:bob|attr:mcp.tool:*" +
		" exports user:bob exports user:bob messages user:bob messages user:bob messages user:bob messages user:bob]"
	if got := fmt.Sprint(keysOf(t, table, req)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// Before the body is read, nothing is known of messages.
	if got := fmt.Sprint(keysOf(t, table, &rule.Request{User: "bob", Path: "/", Unread: true})); got != "[all user:bob]" {
		t.Error(got)
	}
}

func TestReadsMCP(t *testing.T) {
	table := named(t, ofTools)
	if r := table.ReadsMCP(nil, &rule.Request{Method: "POST", Path: "/mcp"}); r == nil || r.ID != "tools" {
		t.Errorf("%v", r)
	}
	if r := table.ReadsMCP(nil, &rule.Request{Method: "POST", Path: "/"}); r != nil {
		t.Errorf("%v", r.ID)
	}
	if r := named(t, "rules: [{id: a, key: ip, limit: 5/1m}]").ReadsMCP(nil, &rule.Request{Path: "/mcp"}); r != nil {
		t.Errorf("%v", r.ID)
	}
}
