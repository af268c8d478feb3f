package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile" // reads YAML
)

// newEngine is an engine with these rules, in memory.
func newEngine(rules string) (*engine.Engine, error) {
	e, err := engine.New(engine.Options{})
	if err != nil {
		return nil, err
	}
	return e, e.Load("rules.yaml", []byte(rules))
}

func Example() {
	e, err := newEngine(`
rules:
  - {id: login, match: {method: POST, path: /login}, key: ip, algorithm: sliding_log, limit: 2/1m}
`)
	if err != nil {
		panic(err)
	}
	limit, err := httplimit.New(e, httplimit.Options{})
	if err != nil {
		panic(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "welcome")
	})
	server := httptest.NewServer(limit.Wrap(mux))
	defer server.Close()

	for range 3 {
		answer, err := http.Post(server.URL+"/login", "", nil)
		if err != nil {
			panic(err)
		}
		answer.Body.Close()
		fmt.Println(answer.StatusCode, answer.Header.Get("RateLimit"))
	}
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// 200 "login";r=1;t=60
	// 200 "login";r=0;t=60
	// 429 "login";r=0;t=60
}

func ExampleNew() {
	e, err := newEngine("rules: [{id: api, key: user, limit: 100/1m, tiers: {pro: 1000/1m}}]")
	if err != nil {
		panic(err)
	}
	limit, err := httplimit.New(e, httplimit.Options{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		ProxyHeader:    httplimit.XForwardedFor,
		User:           func(r *http.Request) string { return session(r).user },
		Tier:           func(r *http.Request) string { return session(r).tier },
		Cost:           func(r *http.Request) int64 { return 1 + r.ContentLength/1024 },
		Skip:           func(r *http.Request) bool { return r.URL.Path == "/healthz" },
		Headers:        httplimit.RateLimit | httplimit.RetryAfter,
	})
	if err != nil {
		panic(err)
	}
	handler := limit.Wrap(http.NotFoundHandler())

	r := httptest.NewRequest("POST", "/upload", strings.NewReader(strings.Repeat("x", 4096)))
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Println(w.Header().Get("RateLimit-Policy"))
	fmt.Println(w.Header().Get("RateLimit"))
	// Output:
	// "api";q=1000;w=60
	// "api";r=995;t=1
}

// session stands for how an application knows its users.
func session(*http.Request) struct{ user, tier string } {
	return struct{ user, tier string }{"alice", "pro"}
}

// router stands for chi.Router and mux.Router, whose Use takes the same.
type router struct {
	*http.ServeMux
	handler http.Handler
}

func newRouter() *router {
	mux := http.NewServeMux()
	return &router{mux, mux}
}

func (r *router) Use(middleware func(http.Handler) http.Handler) { r.handler = middleware(r.handler) }

func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.handler.ServeHTTP(w, req) }

func ExampleMiddleware_Wrap() {
	e, err := newEngine("rules: [{id: all, key: global, limit: 1/1h}]")
	if err != nil {
		panic(err)
	}
	limit, err := httplimit.New(e, httplimit.Options{})
	if err != nil {
		panic(err)
	}
	r := newRouter() // chi.NewRouter(), or mux.NewRouter()
	r.Use(limit.Wrap)
	r.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {})

	for range 2 {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 429
}

func ExampleDenial() {
	e, err := newEngine("rules: [{id: all, key: global, algorithm: sliding_log, limit: 1/1h, deny: {code: 10007}}]")
	if err != nil {
		panic(err)
	}
	limit, err := httplimit.New(e, httplimit.Options{
		Deny: func(w http.ResponseWriter, r *http.Request, d *httplimit.Denial) {
			if strings.HasPrefix(r.Header.Get("Accept"), "text/html") {
				http.Error(w, "You are too fast for us.", d.Status)
				return
			}
			d.Title = "Slow down"
			d.Write(w)
		},
	})
	if err != nil {
		panic(err)
	}
	handler := limit.Wrap(http.NotFoundHandler())

	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Print(w.Body)
	}
	// Output:
	// 404 page not found
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Slow down","status":429,"detail":"The limit all is used up; try again in 3600 s.","rule":"all","code":10007,"violated-policies":["all"],"retry_after":3600}
}

func ExampleOptions_actual() {
	e, err := newEngine("rules: [{id: bytes, key: ip, algorithm: sliding_log, limit: 100000/1h}]")
	if err != nil {
		panic(err)
	}
	limit, err := httplimit.New(e, httplimit.Options{
		Cost: func(r *http.Request) int64 { return 50_000 }, // an estimate
		Actual: func(r *http.Request, resp *rule.Response) engine.Used {
			if resp.Status == 0 {
				return nil // the handler panicked: the estimate stays charged
			}
			return engine.Units(resp.Bytes)
		},
	})
	if err != nil {
		panic(err)
	}
	handler := limit.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, strings.Repeat("x", 20_000))
	}))

	for range 4 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/export", nil))
		fmt.Println(w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200 50000
	// 200 30000
	// 200 10000
	// 429 40000
}
