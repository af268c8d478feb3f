package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/httprate"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	memorystore "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/weirhq/weir/internal/rules/manage"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// clients is how many different ones ask.
const clients = 1000

const weir = "weir"

func groups(t testing.TB) []*group {
	return []*group{
		checks(t, "one rule", "{id: api, match: {path: /api/**}, key: user, limit: 1000000000/1s}"),
		checks(t, "three rules", "{id: api, match: {path: /api/**}, key: user, limit: 1000000000/1s}",
			"{id: items, match: {path: /api/items/**}, key: user, algorithm: sliding_window, limit: 1000000000/1m}",
			"{id: address, key: ip, algorithm: fixed_window, limit: 1000000000/1h}"),
		middlewares(t, "middleware around a handler, by address, all allowed", 1_000_000_000, http.StatusOK),
		middlewares(t, "middleware around a handler, by address, all denied", 1, http.StatusTooManyRequests),
	}
}

// checks are POST /v1/check, and a handler that does all of it but to decide.
func checks(t testing.TB, name string, rules ...string) *group {
	e := bench.NewEngine(t, memory.New(memory.Options{}), "rules: ["+strings.Join(rules, ", ")+"]")
	repo := testkit.Must(filerepo.Open(filepath.Join(t.TempDir(), "rules.yaml"), filerepo.Options{Create: true}))(t)
	api := testkit.Must(httpapi.New(httpapi.Options{Service: manage.Service{Engine: e, Rules: repo, Logger: slog.New(slog.DiscardHandler)}}))(t)
	g := &group{name: "POST /v1/check, memory, " + name, want: http.StatusOK}
	for i := range clients {
		body := testkit.Must(json.Marshal(httpapi.CheckRequest{IP: "192.0.2.7", User: fmt.Sprintf("user-%d", i), Method: "GET", Path: "/api/items/42"}))(t)
		g.add("POST", "/v1/check", fmt.Sprintf("192.0.2.%d:4711", i%250), body)
	}
	answer := sample(t, api, g.bodies[0])
	if len(answer.Results) != len(rules) {
		t.Fatalf("%d limits apply, want %d", len(answer.Results), len(rules))
	}
	g.contestants = []contestant{
		{name: "decode and encode only", handler: echo(answer), peer: true}, {name: weir, handler: api, aim: 1},
	}
	return g
}

// sample is an answer of weir, for the handler that does not decide.
func sample(t testing.TB, api http.Handler, body []byte) (answer httpapi.CheckAnswer) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/v1/check", bytes.NewReader(body))
	r.Host = "127.0.0.1"
	api.ServeHTTP(w, r)
	testkit.OK(t, json.Unmarshal(w.Body.Bytes(), &answer))
	return answer
}

// echo decodes a check and encodes an answer, as one would by hand.
func echo(answer httpapi.CheckAnswer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var check httpapi.CheckRequest
		decoder := json.NewDecoder(io.LimitReader(r.Body, 64<<10))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&check); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a := answer
		a.Results = slices.Clone(answer.Results)
		a.Results[0].Key = "user:" + check.User
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(&a)
	}
}

// peerAddress returns the address of the connection, as in httprate's documentation.
func peerAddress(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "", err
	}
	return httprate.CanonicalizeIP(host), nil
}

// middlewares are those of three projects around one handler.
func middlewares(t testing.TB, name string, n int, want int) *group {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"text/plain"}
		io.WriteString(w, "hello")
	})
	rules := fmt.Sprintf("rules: [{id: address, key: ip, algorithm: fixed_window, limit: %d/1h}]", n)
	limit := testkit.Must(httplimit.New(bench.NewEngine(t, memory.New(memory.Options{}), rules), httplimit.Options{Logger: slog.New(slog.DiscardHandler)}))(t)
	// An engine of its own: one engine in two middlewares has to tell them apart.
	// The others write X-RateLimit-* alone, and deny in a few words of plain text.
	alike := testkit.Must(httplimit.New(bench.NewEngine(t, memory.New(memory.Options{}), rules), httplimit.Options{
		Headers: httplimit.XRateLimit | httplimit.RetryAfter, Logger: slog.New(slog.DiscardHandler),
		Deny: func(w http.ResponseWriter, _ *http.Request, d *httplimit.Denial) {
			delete(w.Header(), "Cache-Control") // which the others do not send
			http.Error(w, "Too Many Requests", d.Status)
		},
	}))(t)
	ulule := limiter.New(memorystore.NewStore(), limiter.Rate{Period: time.Hour, Limit: int64(n)})
	g := &group{name: name, want: want, contestants: []contestant{
		{name: "handler alone", handler: handler},
		{name: "go-chi/httprate", handler: httprate.LimitBy(n, time.Hour, peerAddress)(handler), peer: true},
		{name: "ulule/limiter", handler: stdlib.NewMiddleware(ulule).Handler(handler), peer: true},
		{name: weir + ", the same headers", handler: alike.Wrap(handler)},
		{name: weir, handler: limit.Wrap(handler)},
	}}
	if want != http.StatusOK {
		g.contestants = g.contestants[1:] // the handler alone denies nothing
		g.contestants[2].aim = 1          // with the same headers
	}
	for i := range clients {
		g.add("GET", "/", fmt.Sprintf("10.1.%d.%d:4711", i>>8, i&255), nil)
	}
	// Those who are denied have used their one request before.
	for _, c := range g.contestants {
		for _, r := range g.requests {
			c.handler.ServeHTTP(&writer{header: http.Header{}}, r)
		}
		local := httptest.NewRequest("GET", "/", nil)
		local.RemoteAddr = "127.0.0.1:1"
		c.handler.ServeHTTP(&writer{header: http.Header{}}, local)
	}
	return g
}

// add makes a request of a client.
func (g *group) add(method, path, client string, body []byte) {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r.RemoteAddr = client
	r.Host = "127.0.0.1"
	g.requests = append(g.requests, r)
	var raw bytes.Buffer
	fmt.Fprintf(&raw, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, path)
	if body != nil {
		g.bodies = append(g.bodies, body)
		fmt.Fprintf(&raw, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	raw.WriteString("\r\n")
	raw.Write(body)
	g.raw = append(g.raw, raw.Bytes())
}
