package httplimit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const tools = `rules:
  - {id: requests, key: ip, algorithm: fixed_window, limit: 1000/1d}
  - {id: tools, match: {path: /mcp, attributes: {mcp.tool: [search, export, "*"]}}, mcp: {}, key: [ip, "attr:mcp.tool"], algorithm: fixed_window, limit: 2/1d%s}
`

// toolKey is the key of a tool under the rule of these tests.
func toolKey(tool string) string { return client + "|attr:mcp.tool:" + tool }

func callTool(id, tool string) string {
	if id != "" {
		id = `"id":` + id + ","
	}
	return `{"jsonrpc":"2.0",` + id + `"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
}

// echoing is a handler that sends back what it reads.
func echoing(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.Copy(w, r.Body)
}

// send makes a request of one client.
func (s *settling) send(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Wrap(http.HandlerFunc(echoing)).ServeHTTP(w, r)
	return w
}

// Calls count by tool, and the handler gets them as they were sent. What is no call of a tool does not count.
func TestTools(t *testing.T) {
	s := newSettling(t, fmt.Sprintf(tools, ""), Options{})
	for _, body := range []string{
		callTool("1", "search"), callTool(`"a"`, "unknown"), callTool("", "export"), " " + callTool("2", "other") + "\n",
		`{"jsonrpc":"2.0","id":3,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`,
	} {
		if w := s.send(chat("/mcp", body)); w.Code != 200 || w.Body.String() != body {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	for tool, want := range map[string]int64{"search": 1, "export": 1, "*": 2} {
		if got := s.used("tools", toolKey(tool)); got != want {
			t.Errorf("%s: %d are used, want %d", tool, got, want)
		}
	}
	if got := s.used("requests", client); got != 8 {
		t.Errorf("%d requests, want 8", got)
	}
	// A long body, and one without a body, such as the stream of a session.
	long := callTool("9", "search") + strings.Repeat(" ", 100_000)
	if w := s.send(chat("/mcp", long)); w.Code != 200 || w.Body.String() != long {
		t.Errorf("%d %.100s", w.Code, w.Body)
	}
	get := httptest.NewRequest("GET", "/mcp", nil)
	get.RemoteAddr = "203.0.113.7:1"
	if w := s.send(get); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := s.used("tools", toolKey("search")); got != 2 {
		t.Errorf("%d searches, want 2", got)
	}
}

// A denied call is answered so that a model can read it; one that wants no answer has only a status.
func TestToolsDenied(t *testing.T) {
	s := newSettling(t, fmt.Sprintf(tools, ""), Options{})
	for range 2 {
		s.send(chat("/mcp", callTool("1", "search")))
	}
	w := s.send(chat("/mcp", callTool(`"x"`, "search")))
	if got, want := w.Body.String(), `{"jsonrpc":"2.0","id":"x","error":{"code":429,"message":"rate limit for tool search: try again in 86400 s","data":{"status":429,"rule":"tools","retry_after":86400}}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if h := w.Header(); w.Code != 200 || h.Get("Retry-After") != "86400" || h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-store" || h.Get("RateLimit") == "" {
		t.Errorf("%d %v", w.Code, h)
	}
	if w = s.send(chat("/mcp", callTool("", "search"))); w.Code != 429 || w.Header().Get("Retry-After") != "86400" || !strings.Contains(w.Body.String(), `"id":null`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	// All calls of a batch are charged, or none.
	w = s.send(chat("/mcp", "["+callTool("1", "export")+","+callTool("2", "search")+","+callTool("", "export")+"]"))
	var answers []struct {
		ID    int
		Error struct{ Message string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answers); err != nil || w.Code != 200 || len(answers) != 2 || answers[1].ID != 2 || answers[0].Error.Message != "rate limit for a batch of 3 messages: try again in 86400 s" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := s.used("tools", toolKey("export")); got != 0 {
		t.Errorf("%d exports, want 0", got)
	}
	if w = s.send(chat("/mcp", "["+callTool("1", "export")+","+callTool("2", "export")+"]")); w.Code != 200 || s.used("tools", toolKey("export")) != 2 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w = s.send(chat("/mcp", "["+callTool("1", "a")+","+callTool("2", "b")+","+callTool("3", "c")+"]")); !strings.Contains(w.Body.String(), "waiting does not help") || w.Header().Get("Retry-After") != "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The rule has the last word on the answer: its message, its status; and Options.Deny on all of it.
func TestToolsDeniedOtherwise(t *testing.T) {
	exceed := func(more string, o Options) *httptest.ResponseRecorder {
		s := newSettling(t, fmt.Sprintf(tools, more), o)
		for range 2 {
			s.send(chat("/mcp", callTool("1", "search")))
		}
		return s.send(chat("/mcp", callTool("1", "search")))
	}
	if w := exceed(", deny: {message: use the index}", Options{}); w.Code != 200 || !strings.Contains(w.Body.String(), `"rate limit for tool search: use the index"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := exceed(", deny: {status: 403, code: 7}", Options{}); w.Code != 403 || !strings.Contains(w.Body.String(), `"id":1,"error":{"code":403,`) || !strings.Contains(w.Body.String(), `"code":7`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	deny := func(w http.ResponseWriter, _ *http.Request, d *Denial) { d.Write(w) }
	if w := exceed("", Options{Deny: deny}); w.Code != 429 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	// What is no message is denied as any other request.
	s := newSettling(t, "rules: [{id: a, mcp: {}, key: ip, limit: 1/1h}]", Options{})
	s.send(chat("/", `{"a":1}`))
	if w := s.send(chat("/", `{"a":1}`)); w.Code != 429 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What servers could take for another message is answered 400 and costs nothing, unless the rule never denies.
func TestUnreadableMessages(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		header [2]string
		status int
		says   string
	}{
		"text":         {"search", [2]string{}, 400, `"id":null,"error":{"code":-32700,`},
		"two methods":  {`{"id":1,"method":"ping","method":"tools/call"}`, [2]string{}, 400, `"id":1,"error":{"code":-32600,`},
		"compressed":   {callTool("1", "search"), [2]string{"Content-Encoding", "gzip"}, 415, `"id":null`},
		"UTF-7":        {callTool("1", "search"), [2]string{"Content-Type", "application/json; charset=utf-7"}, 415, `"id":null`},
		"another tool": {callTool("1", "search"), [2]string{"Mcp-Name", "export"}, 400, `"id":1,"error":{"code":-32020,`},
		"no header":    {callTool("1", "search"), [2]string{"Mcp-Protocol-Version", "2026-07-28"}, 400, "Mcp-Method"},
		"a batch":      {"[" + callTool("1", "search") + "]", [2]string{"Mcp-Protocol-Version", "2025-11-25"}, 400, "2025-03-26"},
	} {
		for _, mode := range []string{"", ", mode: shadow"} {
			s := newSettling(t, fmt.Sprintf(tools, mode), Options{})
			r := chat("/mcp", c.body)
			if c.header[0] != "" {
				r.Header.Set(c.header[0], c.header[1])
			}
			w := s.send(r)
			if mode != "" {
				if w.Code != 200 || w.Body.String() != c.body || s.used("requests", client) != 1 || s.used("tools", toolKey("search")) != 0 {
					t.Errorf("%s: %d %s", name, w.Code, w.Body)
				}
				continue
			}
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || !json.Valid(w.Body.Bytes()) || s.used("requests", client) != 0 {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
		}
	}
}

// The attributes of a message come from the body, whatever a header says of them.
func TestToolsFromBodyAlone(t *testing.T) {
	asked := ""
	s := newSettling(t, fmt.Sprintf(tools, ""), Options{Attributes: func(r *http.Request) map[string]string {
		return map[string]string{"mcp.tool": r.Header.Get("X-Tool"), "other": "x"}
	}})
	for _, body := range []string{callTool("1", "search"), `{"id":1,"method":"ping"}`, ""} {
		r := chat("/mcp", body)
		r.Header.Set("X-Tool", "export")
		if w := s.send(r); w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		asked += fmt.Sprint(s.used("tools", toolKey("search")), s.used("tools", toolKey("export")), s.used("tools", toolKey("*")), " ")
	}
	if asked != "1 0 0 1 0 0 1 0 0 " {
		t.Error(asked)
	}
}

// A path can have tokens and tools: each body is read once, and counts as what it is.
func TestToolsBesideTokens(t *testing.T) {
	s := newSettling(t, `rules:
  - {id: tokens, key: ip, algorithm: fixed_window, limit: 1000/1d, tokens: {default_output: 100}}
  - {id: tools, match: {attributes: {mcp.tool: [search, "*"]}}, mcp: {}, key: [ip, "attr:mcp.tool"], algorithm: fixed_window, limit: 2/1d, cost: {estimate: size(request.json.params.name)}}
`, Options{})
	if w := s.send(chat("/v1/chat/completions", `{"model":"m","messages":[{"content":"Hi"}]}`)); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.send(chat("/v1/chat/completions", callTool("1", "search"))); w.Code != 200 || !strings.Contains(w.Body.String(), "tool search: waiting does not help") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.send(chat("/v1/chat/completions", callTool("1", "ab"))); w.Code != 200 || s.used("tools", toolKey("*")) != 2 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.send(chat("/v1/chat/completions", `{"messages":[`)); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A stream is in flight as long as it lasts, and takes no place twice.
func TestToolsInFlight(t *testing.T) {
	s := newSettling(t, "rules: [{id: streams, match: {path: /mcp}, mcp: {}, key: ip, concurrency: 1}]", Options{})
	open, end := make(chan struct{}), make(chan struct{})
	h := s.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			close(open)
			<-end
		}
	}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		get := httptest.NewRequestWithContext(context.Background(), "GET", "/mcp", nil)
		get.RemoteAddr = "203.0.113.7:1"
		h.ServeHTTP(httptest.NewRecorder(), get)
	}()
	<-open
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, chat("/mcp", callTool("1", "search"))); w.Code != 200 || !strings.Contains(w.Body.String(), "rate limit for tool search: try again in 1 s") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	close(end)
	<-ended
	batch := "[" + callTool("1", "a") + "," + callTool("2", "b") + "]"
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, chat("/mcp", batch)); w.Code != 200 || w.Body.Len() > 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
