package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

const callSearch = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{"name":"other","method":"x","id":1}}}`

func TestMessages(t *testing.T) {
	for body, want := range map[string][]Message{
		callSearch: {{Method: "tools/call", Tool: "search", ID: "7", name: "search", named: true}},
		` {"id":"a\u0062","method":"tools\/call","params":{"arguments":[{"name":"x"}],"name":"s\u0065arch"}} `: {{Method: "tools/call", Tool: "search", ID: `"a\u0062"`, name: "search", named: true}},
		`{"method":"tools/call","params":{"name":"search"}}`:                                                   {{Method: "tools/call", Tool: "search", name: "search", named: true}}, // a notification
		`{"method":"notifications/initialized"}`:                                                               {{Method: "notifications/initialized"}},
		`{"id":null,"method":"ping"}`:                                                                          {{Method: "ping"}},
		`{"id":1,"result":{"method":"tools/call","params":{"name":"search"}}}`:                                 {{ID: "1"}}, // a response
		`{"id":1,"method":"initialize","params":{"name":"a","Name":"b"}}`:                                      {{Method: "initialize", ID: "1"}},
		`{"id":1,"method":"resources/read","params":{"uri":"file:///a"}}`:                                      {{Method: "resources/read", ID: "1", name: "file:///a", named: true}},
		`{"id":1,"method":"prompts/get","params":{"name":"p"}}`:                                                {{Method: "prompts/get", ID: "1", name: "p", named: true}},
		`[` + callSearch + `, {"method":"a,b]"},{"id":2,"method":"ping","params":{"x":[1,[2]]}} ]`: {
			{Method: "tools/call", Tool: "search", ID: "7", name: "search", named: true}, {Method: "a,b]"}, {Method: "ping", ID: "2"},
		},
	} {
		if got := ParseMessages([]byte(body), nil); got.Wrong != "" || !reflect.DeepEqual(got.List, want) {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

// What servers may read in different ways is refused.
func TestWrongMessages(t *testing.T) {
	deep := strings.Repeat("[", 20_000)
	for name, body := range map[string]string{
		"nothing": "", "text": "hello", "torn": `{"method":"ping"`, "two": `{"method":"ping"} {"method":"ping"}`, "comment": `{"method":"ping"}//`,
		"not UTF-8": "{\"method\":\"\xff\"}", "UTF-16": "{\x00}\x00", "BOM": "\ufeff" + callSearch, "a number": "7", "a list of numbers": "[7]", "no messages": "[]",
		"nested": "[[" + callSearch + "]]", "too deep": `{"method":"ping","params":` + deep + strings.Repeat("]", len(deep)) + "}",
		"two methods": `{"method":"ping","method":"tools/call","params":{"name":"search"}}`, "another case": `{"method":"ping","Method":"tools/call"}`,
		"only another case": `{"METHOD":"tools/call","id":1}`, "a letter like k": `{"method":"tools/call","params":{"name":"a"},"param\u017f":{"name":"b"}}`,
		"two ids": `{"id":1,"id":2,"method":"ping"}`, "two params": `{"method":"tools/call","params":{"name":"a"},"params":{"name":"b"}}`,
		"two names": `{"params":{"name":"a","name":"b"},"method":"tools/call"}`, "Name": `{"params":{"name":"a","Name":"b"},"method":"tools/call"}`,
		"no name": `{"method":"tools/call","params":{}}`, "no params": `{"method":"tools/call"}`, "a list": `{"method":"tools/call","params":{"name":["search"]}}`,
		"a number as name": `{"method":"tools/call","params":{"name":7}}`, "a zero": `{"method":"tools/call","params":{"name":"search\u0000x"}}`,
		"half a pair": `{"method":"tools/call","params":{"name":"\ud800"}}`, "a long name": `{"method":"tools/call","params":{"name":"` + strings.Repeat("x", maxName+1) + `"}}`,
		"a method of no kind": `{"method":{"a":1}}`, "an object as id": `{"id":{"a":1},"method":"ping"}`, "a list as id": `{"id":[1],"method":"ping"}`,
		"a long id": `{"id":"` + strings.Repeat("x", maxName) + `","method":"ping"}`, "33 messages": "[" + strings.Repeat(callSearch+",", maxBatch) + callSearch + "]",
		"million messages": "[0" + strings.Repeat(",0", 1_000_000) + "]",
	} {
		if got := ParseMessages([]byte(body), nil); got.Wrong == "" || len(got.List) > maxBatch {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := ParseMessages([]byte("["+strings.Repeat(callSearch+",", maxBatch-1)+callSearch+"]"), nil); got.Wrong != "" || len(got.List) != maxBatch {
		t.Errorf("%d messages: %s", len(got.List), got.Wrong)
	}
}

// Revisions differ in batches, and in headers that have to say what is in the body.
func TestMessageHeaders(t *testing.T) {
	const version, batch = "Mcp-Protocol-Version", "[" + callSearch + "]"
	for _, c := range []struct {
		body  string
		h     http.Header
		wrong bool
	}{
		{batch, nil, false},
		{batch, headers(version, "2025-03-26"), false},
		{batch, headers(version, "2025-06-18"), true},
		{batch, headers(version, "2025-03-26", version, "2025-06-18"), true},
		{callSearch, headers(version, "2025-06-18"), false},
		{callSearch, headers(version, "2026-07-28"), true},
		{callSearch, headers(version, "2026-07-28", "Mcp-Method", "tools/call"), true},
		{callSearch, headers(version, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "search"), false},
		{callSearch, headers(version, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "=?base64?c2VhcmNo?="), false},
		{callSearch, headers(version, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "=?base64?c2VhcmN?="), true},
		{callSearch, headers(version, "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "search", "Mcp-Name", "export"), true},
		{callSearch, headers(version, "2026-07-28", "Mcp-Method", "ping", "Mcp-Name", "search"), true},
		{callSearch, headers("Mcp-Name", "export"), true},
		{callSearch, headers("Mcp-Method", "ping"), true},
		{callSearch, headers("Mcp-Method", ""), true},
		{`{"id":1,"method":"ping"}`, headers(version, "2026-07-28", "Mcp-Method", "ping"), false},
		{`{"method":"notifications/cancelled"}`, headers(version, "2026-07-28"), true},
		{`{"id":1,"result":{}}`, headers(version, "2026-07-28"), false},
	} {
		if got := ParseMessages([]byte(c.body), c.h); got.Wrong != "" != c.wrong {
			t.Errorf("%s, %v: %q", c.body, c.h, got.Wrong)
		}
	}
}

// Whatever the arguments are, the names are those that encoding/json finds.
func TestMessagesAreJSON(t *testing.T) {
	text := rapid.OneOf(rapid.SampledFrom([]string{"tools/call", "search", "ping", `a"b`, "ü\\"}), rapid.StringMatching(`[ -~äß]{1,40}`))
	rapid.Check(t, func(t *rapid.T) {
		arguments := rapid.MapOf(rapid.SampledFrom([]string{"name", "method", "id", "params", "x"}), text).Draw(t, "arguments")
		method, name, id := text.Draw(t, "method"), text.Draw(t, "name"), rapid.Int64().Draw(t, "id")
		body, err := json.MarshalIndent(map[string]any{
			"id": id, "method": method, "params": map[string]any{"arguments": arguments, "name": name, "_meta": []any{arguments, 1.5, nil, true}},
		}, "", rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		list := []byte("[" + string(body) + "," + string(body) + "]")
		for _, body := range [][]byte{body, list} {
			got := ParseMessages(body, nil)
			if got.Wrong != "" {
				t.Fatalf("%s: %s", body, got.Wrong)
			}
			for _, one := range got.List {
				if one.Method != method || one.ID != fmt.Sprint(id) || method == "tools/call" && one.Tool != name {
					t.Fatalf("%s: %+v", body, one)
				}
			}
		}
	})
}

// An error goes to each message that wants an answer, and is JSON whatever the names are.
func TestMessageAnswers(t *testing.T) {
	limit := &Trouble{Status: 429, Limit: true, Rule: "tools", Wait: 11500 * time.Millisecond, Code: 10007}
	for _, c := range []struct {
		body    string
		trouble *Trouble
		want    string
	}{
		{callSearch, limit, `{"jsonrpc":"2.0","id":7,"error":{"code":429,"message":"rate limit for tool search: try again in 12 s","data":{"status":429,"rule":"tools","code":10007,"retry_after":12}}}`},
		{`{"id":"x","method":"tools/list"}`, &Trouble{Status: 429, Limit: true}, `{"jsonrpc":"2.0","id":"x","error":{"code":429,"message":"rate limit for tools/list: waiting does not help","data":{"status":429}}}`},
		{`{"method":"tools/list"}`, &Trouble{Status: 403, Detail: "This client is blocked."}, `{"jsonrpc":"2.0","id":null,"error":{"code":403,"message":"This client is blocked.","data":{"status":403}}}`},
		{`[{"id":1,"method":"ping"},{"method":"ping"},{"id":2,"result":{}},{"id":3,"method":"ping"}]`, &Trouble{Status: 429, Limit: true, Detail: "Ask \"us\"."},
			`[{"jsonrpc":"2.0","id":1,"error":{"code":429,"message":"rate limit for a batch of 4 messages: Ask \"us\".","data":{"status":429}}},{"jsonrpc":"2.0","id":3,"error":{"code":429,"message":"rate limit for a batch of 4 messages: Ask \"us\".","data":{"status":429}}}]`},
		{`{"id":1,"id":2,"method":"ping"}`, &Trouble{Status: 400, Detail: "Two."}, `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"Two.","data":{"status":400}}}`},
	} {
		m := ParseMessages([]byte(c.body), nil)
		if got := string(m.Answer(c.trouble)); got != c.want || !json.Valid([]byte(got)) {
			t.Errorf("%s: %s", c.body, got)
		}
	}
}

// Long bodies take no more memory than short ones.
func TestMessagesAllocate(t *testing.T) {
	if got := len(elements([]byte("[0"+strings.Repeat(",0", 1000)+"]"), maxBatch)); got != maxBatch+1 {
		t.Errorf("%d elements are kept", got)
	}
	long := []byte(`{"id":1,"method":"ping","params":{"x":[` + strings.Repeat(`"x",`, 1<<18) + `1]}}`)
	if got := testing.AllocsPerRun(10, func() { ParseMessages(long, nil) }); got > 30 {
		t.Errorf("%v allocations", got)
	}
}
