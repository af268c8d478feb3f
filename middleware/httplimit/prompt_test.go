package httplimit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/engine"
)

const tokens = `
rules:
  - id: tokens
    match: {path: /v1/**}
    key: ip
    algorithm: fixed_window
    limit: 1000/1d
    tokens: {weights: {input: 1, output: 2, cached: 0.1}, default_output: 100%s}
`

const client = "ip:203.0.113.7"

func tokenRules(more string) string { return fmt.Sprintf(tokens, more) }

// chat makes a request of one client to a language model.
func chat(path, body string) *http.Request {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.RemoteAddr = "203.0.113.7:1"
	r.Header.Set("Accept-Encoding", "gzip")
	return r
}

func chunk(content string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"` + content + `"},"finish_reason":null}],"usage":null}` + "\n\n"
}

const (
	usageEvent = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":20,"total_tokens":29}}` + "\n\n"
	doneEvent  = "data: [DONE]\n\n"
)

// A response is settled by the usage that it reports, and its request arrives as it was sent.
func TestTokens(t *testing.T) {
	s := newSettling(t, tokenRules(""), Options{})
	const sent = `{"model":"m","messages":[{"role":"user","content":"Hello"}],"max_tokens":300}`
	reserved := int64(0)
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if string(body) != sent || err != nil || r.ContentLength != int64(len(sent)) || r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("%s, %v, %d, %v", body, err, r.ContentLength, r.Header)
		}
		reserved = s.used("tokens", client)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":50}}}`)
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, chat("/v1/chat/completions", sent))
	if want := int64(5 + 2*300); reserved != want {
		t.Errorf("%d were reserved, want %d", reserved, want)
	}
	if got, want := s.used("tokens", client), int64(50+5+14); got != want {
		t.Errorf("%d are used, want %d", got, want)
	}
	if got := w.Header(); got.Get("x-ratelimit-limit") != "1000" || got.Get("x-ratelimit-remaining") != "395" || got.Get("x-ratelimit-limit-tokens") != "" {
		t.Errorf("%v", got)
	}
}

// What a client does not say about compression, nobody says for it, and what is another's is not
// changed.
func TestTokensHeaders(t *testing.T) {
	s := newSettling(t, tokenRules(""), Options{})
	const sent = `{"stream":true,"messages":[{"role":"user","content":"Hello"}]}`
	for _, accepts := range []string{"", "gzip, br"} {
		r := chat("/v1/chat/completions", sent)
		r.Header.Set("Content-Length", strconv.Itoa(len(sent)))
		if r.Header.Del("Accept-Encoding"); accepts != "" {
			r.Header.Set("Accept-Encoding", accepts)
		}
		before := r.Header.Clone()
		s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			want := before.Clone()
			if want.Set("Content-Length", strconv.Itoa(len(body))); accepts != "" {
				want.Set("Accept-Encoding", "identity")
			}
			if len(body) <= len(sent) || !reflect.DeepEqual(r.Header, want) {
				t.Errorf("%s: %v, want %v", body, r.Header, want)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
		if !reflect.DeepEqual(r.Header, before) {
			t.Errorf("the client's headers are %v, want %v", r.Header, before)
		}
	}
}

// Without an answer, by an error, without usage: what is known counts.
func TestTokensSettledBy(t *testing.T) {
	const estimate = 5 + 2*100
	for _, c := range []struct {
		name   string
		status int
		kind   string
		body   string
		want   int64
	}{
		{"an error", 400, "application/json", `{"error":{"message":"no"}}`, 0},
		{"an upstream that cannot be reached", 502, "text/plain", "", 0},
		{"an answer without usage", 200, "application/json", `{"choices":[{"message":{"content":"12345678"}}]}`, 5 + 2*2},
		{"an answer that is compressed", 200, "application/x-gzip", "\x1f\x8b", estimate},
		{"an answer that says nothing", 200, "application/json", `{"status":"queued"}`, estimate},
		{"a stream without usage", 200, "text/event-stream", chunk("12345678"), 5 + 2*2},
		{"a panic before the answer", 0, "", "", estimate},
		{"a panic within the answer", -200, "text/event-stream", chunk("12345678"), 5 + 2*2},
	} {
		s := newSettling(t, tokenRules(""), Options{})
		h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(max(c.status, -c.status))
			io.WriteString(w, c.body)
			if c.status < 0 {
				panic(http.ErrAbortHandler)
			}
		}))
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(httptest.NewRecorder(), chat("/v1/chat/completions", `{"messages":[{"role":"user","content":"Hello"}]}`))
		}()
		if got := s.used("tokens", client); got != c.want {
			t.Errorf("%s: %d are used, want %d", c.name, got, c.want)
		}
	}
}

// A client that leaves before the answer pays what was reserved, whatever the handler makes of it:
// a proxy answers with an error. What has arrived is an answer.
func TestTokensClientLeaves(t *testing.T) {
	for status, want := range map[int]int64{200: 5 + 2*1, 401: 205, 502: 205} {
		s := newSettling(t, tokenRules(""), Options{})
		r := chat("/v1/chat/completions", `{"messages":[{"role":"user","content":"Hello"}]}`)
		ctx, leave := context.WithCancel(r.Context())
		h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			leave()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if status == 200 {
				io.WriteString(w, `{"choices":[{"message":{"content":"1234"}}]`)
			}
		}))
		h.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		if got := s.used("tokens", client); got != want {
			t.Errorf("%d: %d are used, want %d", status, got, want)
		}
	}
}

// Every event of a stream arrives before the next one is sent; the usage is asked for and
// removed again; a client that leaves pays for what it has seen.
func TestTokensStream(t *testing.T) {
	s := newSettling(t, tokenRules(""), Options{})
	seen := make(chan struct{})
	asked := make(chan bool, 2)
	server := httptest.NewServer(s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			StreamOptions struct {
				IncludeUsage bool `json:"include_usage"`
			} `json:"stream_options"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		asked <- body.StreamOptions.IncludeUsage
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{chunk("Hello"), chunk(" there"), usageEvent, doneEvent} {
			io.WriteString(w, event)
			w.(http.Flusher).Flush()
			if event == usageEvent {
				continue // nobody sees it
			}
			select {
			case <-seen:
			case <-r.Context().Done():
				return
			}
		}
	})))
	defer server.Close()
	ask := func(ctx context.Context) *http.Response {
		req, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/v1/chat/completions", strings.NewReader(`{"messages":[{"role":"user","content":"Hello"}],"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	read := func(lines *bufio.Reader) (event string) {
		for !strings.HasSuffix(event, "\n\n") {
			line, err := lines.ReadString('\n')
			if event += line; err != nil {
				t.Fatal(err)
			}
		}
		return event
	}
	res := ask(t.Context())
	lines := bufio.NewReader(res.Body)
	for _, want := range []string{chunk("Hello"), chunk(" there"), doneEvent} {
		if got := read(lines); got != want {
			t.Errorf("%q arrives, want %q", got, want)
		}
		seen <- struct{}{}
	}
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	res.Body.Close()
	key := "ip:127.0.0.1"
	if got := s.used("tokens", key); got != 9+2*20 || !<-asked {
		t.Errorf("%d are used", got)
	}

	ctx, leave := context.WithCancel(t.Context())
	res = ask(ctx)
	read(bufio.NewReader(res.Body))
	leave()
	for kind, settled := engine.HoldKind(0), 0; settled < 2; { // the second is that of this request
		if kind = <-s.events; kind == engine.SettledHold {
			settled++
		}
	}
	if got := s.used("tokens", key); got != 9+2*20+5+2*2 {
		t.Errorf("after a client has left, %d are used", got)
	}
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// A client that asks for usage gets it.
func TestTokensAsked(t *testing.T) {
	s := newSettling(t, tokenRules(""), Options{})
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.Copy(w, io.LimitReader(strings.NewReader(chunk("Hello")+usageEvent+doneEvent), 1<<20)) // which has no WriteTo
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, chat("/v1/chat/completions", `{"messages":[],"stream":true,"stream_options":{"include_usage":true}}`))
	if got := w.Body.String(); got != chunk("Hello")+usageEvent+doneEvent || s.used("tokens", client) != 9+2*20 {
		t.Errorf("%s, and %d are used", got, s.used("tokens", client))
	}
}

// A stream that uses more than was reserved goes on, or ends in the way of its API, and the
// handler learns that nobody listens.
func TestTokensOverrun(t *testing.T) {
	for _, cut := range []bool{false, true} {
		more := ""
		if cut {
			more = ", on_overrun: cut"
		}
		s := newSettling(t, tokenRules(more), Options{})
		sent := 0
		h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Length", "99999")
			for range 10 {
				if _, err := io.WriteString(w, chunk(strings.Repeat("x", 40))); err != nil {
					panic(http.ErrAbortHandler) // as ReverseProxy does
				}
				sent++
			}
		}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, chat("/v1/chat/completions", `{"messages":[{"role":"user","content":"Hello"}],"stream":true,"max_tokens":25}`))
		whole := strings.HasSuffix(w.Body.String(), `"finish_reason":"length"}]}`+"\n\n"+doneEvent)
		used := s.used("tokens", client)
		if cut && (sent != 2 || !whole || used != 5+2*30) || !cut && (sent != 10 || whole || used != 5+2*100) {
			t.Errorf("cut: %v: %d events were sent, %d tokens are used, the client has\n%s", cut, sent, used, w.Body)
		}
		if got := w.Header().Get("Content-Length"); got != "" {
			t.Errorf("Content-Length: %s", got)
		}
	}
}

// Whoever is denied is told so in the way of its API.
func TestTokensDenied(t *testing.T) {
	for path, c := range map[string]struct{ name, want string }{
		"/v1/chat/completions":        {"x-ratelimit-remaining-tokens", `{"error":{"code":"rate_limit_exceeded","message":"`},
		"/v1/messages":                {"anthropic-ratelimit-tokens-remaining", `{"error":{"message":"`},
		"/v1/models/g:streamGenerate": {"x-ratelimit-remaining", `{"error":{"code":"rate_limit_exceeded"`},
		"/v1/models/g:generateContent": {"x-ratelimit-remaining",
			`{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"`},
	} {
		s := newSettling(t, "rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 500/1d, tokens: {}}]", Options{})
		h := s.Wrap(answering(200))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, chat(path, `{"max_tokens":400,"generationConfig":{"maxOutputTokens":400}}`))
		if w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, chat(path, `{"max_tokens":400,"generationConfig":{"maxOutputTokens":400}}`))
		if w.Code != 429 || !strings.HasPrefix(w.Body.String(), c.want) || w.Header().Get(c.name) == "" || w.Header().Get("Retry-After") == "" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %v", path, w.Code, w.Body, w.Header())
		}
		w = httptest.NewRecorder() // more than the limit allows at all
		h.ServeHTTP(w, chat(path, `{"max_tokens":4000,"generationConfig":{"maxOutputTokens":4000}}`))
		if w.Code != 429 || w.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
}

// The clients of OpenAI are told whether requests or tokens are used up.
func TestDeniedKind(t *testing.T) {
	for rules, want := range map[string]string{
		"{id: a, key: ip, limit: 700/1h, tokens: {}}, {id: b, key: ip, limit: 9/1h}":               "tokens",
		"{id: a, key: ip, limit: 9000/1h, tokens: {}}, {id: b, key: ip, limit: 1/1h}":              "requests",
		"{id: a, key: ip, limit: 9000/1h, tokens: {}}, {id: b, key: ip, limit: 1/1h, unit: bytes}": "tokens",
	} {
		s := newSettling(t, "rules: ["+rules+"]", Options{})
		var w *httptest.ResponseRecorder
		for range 2 {
			w = httptest.NewRecorder()
			s.Wrap(answering(200)).ServeHTTP(w, chat("/v1/chat/completions", `{"model":"gpt-5","max_tokens":400,"messages":[]}`))
		}
		if w.Code != 429 || !strings.Contains(w.Body.String(), `"type":"`+want+`"`) {
			t.Errorf("%s: %d %s, want %s", rules, w.Code, w.Body, want)
		}
	}
}

// The headers of a vendor have tokens and requests: a budget of money, or of anything else, is
// in none of them.
func TestVendorHeaders(t *testing.T) {
	const tokens, requests = "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-requests-remaining"
	for rules, want := range map[string][2]string{
		"{id: a, key: ip, limit: 1000/1h, tokens: {}}":                                                                              {"587", ""},
		"{id: a, key: ip, limit: 90000/1h, tokens: {weights: {input: 3, output: 15}}}":                                              {"", ""},
		"{id: a, key: ip, limit: 90000/1h, tokens: {models: {\"claude*\": {input: 3, output: 15}}}}, {id: b, key: ip, limit: 5/1h}": {"", "4"},
		"{id: a, key: ip, limit: 90000/1h, tokens: {weights: {input: 1, output: 2}}}, {id: b, key: ip, limit: 1000/1h, tokens: {}}": {"587", ""},
		"{id: a, key: ip, limit: 1000/1h, tokens: {}}, {id: b, key: ip, limit: 50/1h, unit: bytes}, {id: c, key: ip, limit: 70/1h}": {"587", "69"},
	} {
		s := newSettling(t, "rules: ["+rules+"]", Options{})
		w := httptest.NewRecorder()
		s.Wrap(answering(200)).ServeHTTP(w, chat("/v1/messages", `{"model":"claude-5","max_tokens":400,"messages":[]}`))
		if got := [2]string{w.Header().Get(tokens), w.Header().Get(requests)}; got != want || w.Code != 200 {
			t.Errorf("%s: %d %q, want %q", rules, w.Code, got, want)
		}
	}
}

// Requests that use no tokens, and clients that are exempt, pass as if there were no such rule.
func TestTokensNotCounted(t *testing.T) {
	s := newSettling(t, tokenRules("")+"exempt: {ip: [192.0.2.1]}", Options{})
	const sent = `{"stream":true,"messages":[]}`
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); r.Method == "POST" && r.URL.Path == "/v1/chat/completions" && (string(body) != sent || err != nil) {
			t.Errorf("%s, %v", body, err)
		}
		if _, wrapped := w.(*noted); wrapped {
			t.Errorf("%s: the response is watched", r.URL.Path)
		}
	}))
	exempt := chat("/v1/chat/completions", sent)
	exempt.RemoteAddr = "192.0.2.1:1"
	for _, r := range []*http.Request{exempt, chat("/v1/messages/count_tokens", sent), from("203.0.113.7:1", "GET", "/v1/models"), chat("/other", sent)} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 200 || s.used("tokens", client) != 0 {
			t.Errorf("%s: %d, %d are used", r.URL, w.Code, s.used("tokens", client))
		}
	}
}

// The model is an attribute of the request.
func TestTokensByModel(t *testing.T) {
	s := newSettling(t, `rules: [{id: model, key: "attr:model", match: {attributes: {model: [a, b]}}, algorithm: fixed_window, limit: 1000/1d, tokens: {}}]`,
		Options{Attributes: func(r *http.Request) map[string]string { return map[string]string{"team": "x"} }})
	h := s.Wrap(answering(200))
	for _, model := range []string{"a", "b", "c"} {
		h.ServeHTTP(httptest.NewRecorder(), chat("/v1/chat/completions", `{"model":"`+model+`","max_tokens":9,"messages":["`+model+model+model+model+`"]}`))
	}
	for key, want := range map[string]int64{"attr:model:a": 10, "attr:model:b": 10, "attr:model:c": 0} {
		if got := s.used("model", key); got != want {
			t.Errorf("%s: %d are used", key, got)
		}
	}
}

// A body that names two models could be sent to one and pay for the other.
func TestTokensSeveralModels(t *testing.T) {
	s := newSettling(t, tokenRules(""), Options{})
	h := s.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request is passed on") }))
	for path, want := range map[string]string{"/v1/chat/completions": `{"error":{"code":"invalid_request",`, "/v1/messages": `{"error":{"message":`} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, chat(path, `{"model":"a","Model":"b","max_tokens":9,"messages":["x"]}`))
		if w.Code != 400 || !strings.HasPrefix(w.Body.String(), want) || !strings.Contains(w.Body.String(), "several values of model;") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if got := s.used("tokens", client); got != 0 {
		t.Errorf("%d are used", got)
	}
}

// A request that servers could read in different ways is denied, with an answer that the client understands, but not
// by a rule that never denies.
func TestTokensAmbiguous(t *testing.T) {
	const shadow = "\n  - {id: trial, mode: shadow, match: {path: /v1/**}, key: ip, limit: 1000000/1d, tokens: {}}"
	rules := map[string]string{
		"enforced":     tokenRules(""),
		"shadow first": "rules:" + shadow + strings.TrimPrefix(tokenRules(""), "\nrules:"),
		"shadow":       "rules:" + shadow,
	}
	for _, c := range []struct {
		path, body, says string
		status           int
	}{
		{"/v1/chat/completions", `{"model":"a","Model":"b"}`, `"message":"The body of the request has several values of model; send one."`, 400},
		{"/v1/messages", `{"model":`, `{"error":{"message":"The body of the request is not valid JSON in UTF-8.","type":"invalid_request_error"}`, 400},
		{"/v1/models/a:generateContent", `{"contents":"\xff"}`, `"status":"INVALID_ARGUMENT"`, 400},
		{"/v1/deployments/cheap/..%2f..%2fchat/completions", `{}`, "several ways", 400},
		{"/v1/chat/completions/../messages/count_tokens", `{}`, "several ways", 400},
		{"/v1/chat/completions;a:countTokens", `{}`, "several ways", 400},
		{"/v1/a%2Fb/chat/completions", `{"max_tokens":1}`, "", 200},
		{"/v1/x/../chat/completions", `{"max_tokens":1}`, "", 200},
		{"/v1/deployments/cheap/..%2f..%2fchat/completions", ``, "", 200},
		{"/v1/audio/transcriptions", "--x\r\n\xff", "", 200},
	} {
		for name, rules := range rules {
			s, w := newSettling(t, rules, Options{}), httptest.NewRecorder()
			status := c.status
			if name == "shadow" {
				status = 200
			}
			s.Wrap(answering(200)).ServeHTTP(w, chat(c.path, c.body))
			if w.Code != status || status != 200 && !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%s: %s %s: %d %s", name, c.path, c.body, w.Code, w.Body)
			}
		}
	}
}

// A request that may be answered by another model is denied where models have weights of their own.
func TestTokensUnclear(t *testing.T) {
	for tokens, want := range map[string]int{"": 200, "weights: {input: 3}": 200, "models: {mini: {input: 1}}, weights: {input: 3}": 400} {
		for _, body := range []string{`{"model":"mini","models":["pro"],"max_tokens":9}`, `{"model":"` + strings.Repeat("a/", 63) + `o3-pro","max_tokens":9}`} {
			s, w := newSettling(t, "rules: [{id: a, key: ip, limit: 100000/1h, tokens: {"+tokens+"}}]", Options{}), httptest.NewRecorder()
			s.Wrap(answering(200)).ServeHTTP(w, chat("/v1/chat/completions", body))
			if w.Code != want || want == 400 && !strings.Contains(w.Body.String(), "its price is not known") {
				t.Errorf("%s: %.80s: %d %s", tokens, body, w.Code, w.Body)
			}
		}
	}
}

// What is too long is not read, and Allow gives the body back, too.
func TestTokensBody(t *testing.T) {
	s := newSettling(t, tokenRules(""), Options{})
	long := chat("/v1/messages", "x")
	long.ContentLength = maxPrompt + 1
	w := httptest.NewRecorder()
	if _, ok := s.Allow(w, long); ok || w.Code != 413 || !strings.Contains(w.Body.String(), `"request_too_large"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	endless := chat("/v1/messages", "")
	endless.Body, endless.ContentLength = io.NopCloser(zeros{}), -1
	w = httptest.NewRecorder()
	if _, ok := s.Allow(w, endless); ok || w.Code != 413 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	broken := chat("/v1/messages", "")
	broken.Body, broken.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("x"), failingReader{})), -1
	w = httptest.NewRecorder()
	if _, ok := s.Allow(w, broken); ok || w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	r, ok := s.Allow(httptest.NewRecorder(), chat("/v1/messages", `{"max_tokens":9}`))
	if body, err := io.ReadAll(r.Body); !ok || string(body) != `{"max_tokens":9}` || err != nil || s.used("tokens", client) == 0 {
		t.Errorf("%v %s %v", ok, body, err)
	}
}

// A rule that never denies does not apply to a body that it cannot read, and the handler gets all of that.
func TestTokensOnTrial(t *testing.T) {
	const reads = `, {id: json, key: ip, limit: 9/1d, cost: {estimate: size(request.json.x), default: 1}}`
	for name, c := range map[string]struct {
		more    string
		length  int64
		known   bool
		coding  string
		status  int
		handled int64
	}{
		"compressed":             {length: 10, known: true, coding: "gzip", status: 200, handled: 10},
		"long":                   {length: maxPrompt + 9, known: true, status: 200, handled: maxPrompt + 9},
		"long, without a length": {length: maxPrompt + 9, status: 200, handled: maxPrompt + 9},
		"long for another rule":  {more: reads, length: maxPrompt + 9, status: 413},
	} {
		for _, mode := range []string{"shadow", "soft"} {
			s := newSettling(t, `rules: [{id: trial, mode: `+mode+`, key: ip, limit: 1000000000/1d, tokens: {}}`+c.more+`]`, Options{})
			r := chat("/v1/messages", "")
			r.Body, r.ContentLength = io.NopCloser(io.LimitReader(zeros{}, c.length)), -1
			if c.known {
				r.ContentLength = c.length
			}
			if c.coding != "" {
				r.Header.Set("Content-Encoding", c.coding)
			}
			w, n := httptest.NewRecorder(), int64(0)
			s.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { n, _ = io.Copy(io.Discard, r.Body) })).ServeHTTP(w, r)
			if w.Code != c.status || n != c.handled || s.used("trial", client) != 0 || prompts.Free() != maxPrompts {
				t.Errorf("%s, %s: %d %s, %d bytes, cost %d, %d free", name, mode, w.Code, w.Body, n, s.used("trial", client), prompts.Free())
			}
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// The room of a prompt that expressions can read is taken until the response has ended, for
// as long as it is in memory; that of others is free when it has been sent on. One that is too
// long for expressions is denied.
func TestPromptRoom(t *testing.T) {
	const reads = `
  - {id: json, match: {path: /v1/**}, key: ip, limit: 1000000/1d, cost: {estimate: size(request.json.messages), default: 77}}`
	isFree := func() bool { return prompts.Free() == maxPrompts }
	for name, c := range map[string]struct {
		more   string
		length int
		free   bool
		cost   int64
	}{
		"not kept": {"", 5000, true, 0},
		"kept":     {reads, 5000, false, 1},
	} {
		s := newSettling(t, strings.Replace(tokenRules(""), "1000/1d", "10000000/1d", 1)+c.more, Options{})
		free, cost := false, int64(0)
		h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			r.Body.Close()
			free = isFree()
			if c.more != "" {
				cost = s.used("json", client)
			}
		}))
		h.ServeHTTP(httptest.NewRecorder(), chat("/v1/chat/completions", `{"messages":["`+strings.Repeat("a ", c.length/2)+`"]}`))
		if free != c.free || cost != c.cost || !isFree() {
			t.Errorf("%s: free %v, cost %d, free in the end %v", name, free, cost, isFree())
		}
	}
	s, w := newSettling(t, tokenRules("")+reads, Options{}), httptest.NewRecorder()
	s.Wrap(answering(200)).ServeHTTP(w, chat("/v1/chat/completions", `{"messages":["`+strings.Repeat("a ", maxJSON/2)+`"]}`))
	if w.Code != 413 || !isFree() {
		t.Errorf("too long: %d %s, free: %v", w.Code, w.Body, isFree())
	}
}
