package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile" // reads YAML
	"github.com/weirhq/weir/store/memory"
)

// newLimit makes a limiter of rules, as in the page about middleware.
func newLimit(rules string) (*httplimit.Middleware, error) {
	set, problems := rule.Parse("rules.yaml", []byte(rules))
	if err := problems.Err(); err != nil {
		return nil, err
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
	if err != nil {
		return nil, err
	}
	e.Install(table, 1)
	return httplimit.New(e, httplimit.Options{})
}

func Example() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s", r.URL, r.Header.Get("X-Forwarded-For"))
	}))
	defer upstream.Close()

	limit, err := newLimit("rules: [{id: few, key: ip, algorithm: sliding_log, limit: 2/1m}]")
	if err != nil {
		panic(err)
	}
	route, err := gateway.ParseRoute("/api=" + upstream.URL)
	if err != nil {
		panic(err)
	}
	g, err := gateway.New(gateway.Options{Limit: limit, Routes: []gateway.Route{route}})
	if err != nil {
		panic(err)
	}
	defer g.Close()
	front := httptest.NewServer(g)
	defer front.Close()

	for range 3 {
		answer, err := front.Client().Get(front.URL + "/api/things?page=2")
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != 200 {
			body = nil
		}
		fmt.Println(answer.StatusCode, answer.Header.Get("X-RateLimit-Remaining"), string(body))
	}
	// Output:
	// 200 1 /api/things?page=2 for 127.0.0.1
	// 200 0 /api/things?page=2 for 127.0.0.1
	// 429 0
}
