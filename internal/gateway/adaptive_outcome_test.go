package gateway

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/internal/testkit/testoverload"
)

const chatPath = "/v1/chat/completions"

// The limiter learns how each request ended. A client that leaves, or whose body is broken, says
// nothing about the upstream; an upstream that does not answer does. That a rule cuts a response is no
// failure of the upstream.
func TestAdaptiveOutcome(t *testing.T) {
	for path, want := range map[string]string{
		"/ok":     "success",
		"/500":    "success",
		"/502":    "failure",
		"/503":    "failure",
		"/504":    "failure",
		"/torn":   "failure",
		"/dead":   "failure",
		"/silent": "failure",
		"/leave":  "ignored",
		"/broken": "ignored",
		"/denied": "ignored",
		chatPath:  "success", // a rule cuts the response
	} {
		t.Run(strings.ReplaceAll(path[1:], "/", "-"), func(t *testing.T) {
			t.Parallel()
			testOutcome(t, path, want)
		})
	}
}

func testOutcome(t *testing.T, path, want string) {
	arrived := make(chan struct{}, 1)
	r, err := ParseRoute(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			io.WriteString(w, "x")
		case "/500":
			w.WriteHeader(500)
		case "/502":
			w.WriteHeader(502)
		case "/503":
			w.WriteHeader(503)
		case "/504":
			w.WriteHeader(504)
		case "/torn":
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/dead":
			panic(http.ErrAbortHandler)
		case "/silent":
			<-r.Context().Done()
		case "/leave":
			arrived <- struct{}{}
			<-r.Context().Done()
		case "/broken":
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(503)
		case chatPath:
			w.Header().Set("Content-Type", "text/event-stream")
			for range 10 {
				io.WriteString(w, `data: {"object":"chat.completion.chunk","choices":[{"delta":{"content":"`+strings.Repeat("word ", 100)+`"}}]}`+"\n\n")
				w.(http.Flusher).Flush()
			}
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.Adaptive = overload.Bounds{Min: 1, Max: 1000}
	o := Options{Routes: []Route{r}}
	if path == "/silent" {
		o.HeaderTimeout = time.Millisecond // a late 503 is a failure, too
	}
	b := newStand(t, setup{options: o, rules: `rules:
- {id: few, match: {path: /denied}, key: ip, limit: 1/1h}
- {id: tokens, match: {path: /v1/**}, key: ip, algorithm: fixed_window, limit: 1000000000/1d, tokens: {on_overrun: cut}}`})
	once := func(path string) {
		if path == "/broken" {
			c := b.dial()
			defer c.Close()
			io.WriteString(c, "POST /broken HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n")
			if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != 400 {
				t.Error(res, err)
			}
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		method, body := "GET", ""
		if path == chatPath {
			method, body = "POST", `{"messages":[],"stream":true,"max_tokens":25}`
		}
		req, err := http.NewRequestWithContext(ctx, method, b.server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
		}
		if path == "/leave" {
			go func() { <-arrived; cancel() }()
		}
		if res, err := b.client.Do(req); err == nil {
			answer, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if path == chatPath && !strings.Contains(string(answer), `"finish_reason":"length"`) {
				t.Errorf("the response was not cut: %s", answer)
			}
		}
	}
	send := func(path string) func() {
		return func() {
			if once(path); path != "/denied" {
				b.outcome() // its place is free
			}
		}
	}
	if path == "/denied" {
		once(path) // which is allowed
		b.outcome()
	}
	if got := testoverload.Outcome(func() int { return b.AdaptiveLimits()[0].Limit }, send("/503"), send(path)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
