package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

func TestEveryAnswer(t *testing.T) {
	s := newStand(t, Options{}).serve()
	for _, what := range []string{"POST /v1/check", "GET /v1/rules", "GET /v1/nothing", "PUT /v1/check", "GET /", "GET /nothing", "GET /healthz", "GET /metrics", "GET /v1/authz"} {
		r := s.call(what, "{}")
		if r.Header.Get("X-Content-Type-Options") != "nosniff" || !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(r.Header.Get("X-Request-Id")) {
			t.Errorf("%s has the headers %v", what, r.Header)
		}
	}
	for _, c := range []struct{ given, want string }{
		{"abc-DEF_1.2", "abc-DEF_1.2"}, {strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{strings.Repeat("x", 65), ""}, {"a b", ""}, {"<script>", ""}, {"a,b", ""}, {"é", ""}, {`a"b`, ""},
	} {
		got := s.call("GET /v1/rules/none", "", "X-Request-Id: "+c.given)
		if id := got.Header["X-Request-Id"]; len(id) != 1 || c.want != "" && id[0] != c.want || c.want == "" && id[0] == c.given {
			t.Errorf("%q became %q", c.given, id)
		}
		got.wantProblem(t, fault.NoRule)
	}
	if r := s.call("GET /healthz", "", "X-Request-Id: a", "X-Request-Id: b"); len(r.Header["X-Request-Id"]) != 1 || len(r.Header.Get("X-Request-Id")) != 16 {
		t.Errorf("two ids became %q", r.Header["X-Request-Id"])
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	s := newStand(t, Options{})
	for _, c := range []struct {
		what  string
		kind  *fault.Kind
		allow string
	}{
		{"GET /v1", fault.NotFound, ""},
		{"GET /v1/", fault.NotFound, ""},
		{"GET /v1/chek", fault.NotFound, ""},
		{"GET /v1/rules/", fault.NotFound, ""},
		{"GET /v1/rules/a/b", fault.NotFound, ""},
		{"GET /v1/rules/history/", fault.NotFound, ""},
		{"GET /v1/rules/history/1/2", fault.NotFound, ""},
		{"POST //v1/check", fault.NotFound, ""},
		{"GET /favicon.ico", fault.NotFound, ""},
		{"GET /metrics", fault.NotFound, ""},
		{"GET /v1/check", fault.MethodNotAllowed, "POST"},
		{"OPTIONS /v1/check", fault.MethodNotAllowed, "POST"},
		{"PATCH /v1/rules", fault.MethodNotAllowed, "GET, HEAD, POST, PUT"},
		{"POST /v1/rules/login", fault.MethodNotAllowed, "DELETE, GET, HEAD, PUT"},
		{"POST /v1/rules/history", fault.MethodNotAllowed, "DELETE, GET, HEAD, PUT"},
		{"POST /healthz", fault.MethodNotAllowed, "GET, HEAD"},
		{"POST /", fault.MethodNotAllowed, "GET, HEAD"},
		{"TRACE /v1/keys", fault.MethodNotAllowed, "DELETE, GET, HEAD"},
	} {
		r := s.call(c.what, "")
		r.wantProblem(t, c.kind)
		if got := r.Header.Get("Allow"); got != c.allow {
			t.Errorf("%s: Allow: %s, want %s", c.what, got, c.allow)
		}
	}
}

// A rule may have the name of a route that does something else.
func TestRuleCalledLikeARoute(t *testing.T) {
	s := newStand(t, Options{})
	const rule = "{id: validate, key: ip, limit: 5/1m}"
	s.call("PUT /v1/rules/validate", rule, "If-Match: *").want(t, 201, nil)
	s.call("POST /v1/rules/validate?as=rule", rule).want(t, 200, &ValidateAnswer{})
	s.call("GET /v1/rules/validate", "").want(t, 200, nil)
	s.call("DELETE /v1/rules/validate", "", "If-Match: *").want(t, 200, nil)
}

func TestHead(t *testing.T) {
	s := newStand(t, Options{}).serve()
	for _, path := range []string{"/v1/rules", "/v1/rules/login", "/v1/rules/history", "/v1/rules/history/1", "/v1/keys?key=user:alice", "/v1/openapi.yaml", "/healthz", "/readyz", "/"} {
		get, head := s.call("GET "+path, ""), s.call("HEAD "+path, "")
		if head.StatusCode != 200 || len(head.body) != 0 || head.Header.Get("Etag") != get.Header.Get("Etag") || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("HEAD %s: %d %q %v", path, head.StatusCode, head.body, head.Header)
		}
	}
}

// A panic is a problem, and the connection survives it.
func TestPanics(t *testing.T) {
	home := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/before":
			panic("secret things")
		case "/after":
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic("too late")
		case "/abort":
			panic(http.ErrAbortHandler)
		}
	})
	var mu sync.Mutex
	var statuses []int
	s := newStand(t, Options{Home: home, Observe: func(_ context.Context, _ string, status int, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		statuses = append(statuses, status)
	}})
	p := s.call("GET /before", "").wantProblem(t, fault.InternalError, "request ID")
	if strings.Contains(p.Detail, "secret") || !strings.Contains(s.log.String(), "secret things") || !strings.Contains(s.log.String(), "TestPanics") || !strings.Contains(s.log.String(), p.RequestID) {
		t.Errorf("%q, and the log %s", p.Detail, s.log)
	}
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = nil
	server.Start()
	defer server.Close()
	for _, path := range []string{"/after", "/abort"} {
		answer, err := server.Client().Get(server.URL + path)
		if err == nil {
			_, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: half an answer looks like a whole one", path)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(statuses[:2], []int{500, 200}) {
		t.Errorf("observed %v", statuses)
	}
}

// Nothing that a client chooses becomes a label.
func TestObserve(t *testing.T) {
	var got []string
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}, Observe: func(_ context.Context, route string, status int, took time.Duration) {
		if took < 0 || took > time.Minute {
			t.Errorf("it took %v", took)
		}
		got = append(got, route+" "+http.StatusText(status))
	}})
	for _, c := range []struct{ what, want string }{
		{"POST /v1/check", "POST /v1/check OK"},
		{"GET /v1/rules/login", "GET /v1/rules/{id} OK"},
		{"HEAD /v1/rules/login", "GET /v1/rules/{id} OK"},
		{"GET /v1/rules/history/7", "GET /v1/rules/history/{version} Not Found"},
		{"GET /v1/mine", "/v1/ Not Found"},
		{"BREW /v1/check", "/v1/ Method Not Allowed"},
		{"GET /mine", "/ Not Found"},
		{"BREW /v1/authz", "/v1/authz OK"},
		{"GET /", "/ OK"},
	} {
		got = nil
		s.call(c.what, "{}", as(readerToken))
		if !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s was observed as %q, want %q", c.what, got, c.want)
		}
	}
}

// One line for each call of the management, and none for a check.
func TestLog(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	s.call("POST /v1/check", `{"user":"alice"}`)
	s.call("GET /v1/authz", "")
	s.call("GET /v1/nothing", "")
	if s.log.Len() > 0 {
		t.Errorf("there is no need to log %s", s.log)
	}
	s.call("GET /v1/keys?key=user:a-secret-name", "", as(readerToken), "X-Request-Id: mine", "From: 192.0.2.1:1")
	line := s.log.String()
	for _, want := range []string{"level=DEBUG", "method=GET", `route="GET /v1/keys"`, "status=200", "holder=bob", "client=192.0.2.1", "request_id=mine", "took="} {
		if !strings.Contains(line, want) {
			t.Errorf("%s does not say %s", line, want)
		}
	}
	if strings.Count(line, "\n") != 1 || strings.Contains(line, "secret") {
		t.Errorf("it says %s", line)
	}
	s.log.Reset()
	s.call("PUT /v1/rules", "", as(readerToken))
	if line := s.log.String(); !strings.Contains(line, "level=WARN") || !strings.Contains(line, "status=403") {
		t.Errorf("a rejection says %s", line)
	}
}

func TestHome(t *testing.T) {
	s := newStand(t, Options{})
	r := s.call("GET /", "").want(t, 200, nil)
	if !strings.Contains(string(r.body), "POST /v1/check") || r.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%v %s", r.Header, r.body)
	}
	s = newStand(t, Options{Home: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "home of "+r.URL.Path) })})
	for _, path := range []string{"/", "/assets/app.js", "/v2/x", "/v1x"} {
		r := s.call("GET "+path, "").want(t, 200, nil)
		if string(r.body) != "home of "+path || r.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v %s", path, r.Header, r.body)
		}
		if csp := r.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'self'") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("the policy is %s", csp)
		}
	}
}

func TestHealth(t *testing.T) {
	var trouble, detail error
	s := newStand(t, Options{
		Trouble: func() error { return detail },
		Service: manage.Service{Ready: func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("a call may wait forever")
			}
			return trouble
		}},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "up 1\n") }),
	})
	for _, c := range []struct{ what, want string }{{"GET /healthz", "ok\n"}, {"GET /readyz", "ready\n"}, {"GET /healthcheck", "OK"}, {"GET /metrics", "up 1\n"}} {
		if r := s.call(c.what, "").want(t, 200, nil); string(r.body) != c.want {
			t.Errorf("%s: %s", c.what, r.body)
		}
	}
	detail = errors.Join(errors.New("one"), errors.New("two"))
	if r := s.call("GET /readyz", "").want(t, 200, nil); string(r.body) != "ready\none\ntwo\n" {
		t.Errorf("in trouble, it says %q", r.body)
	}
	trouble = errors.New("the rules are not read yet")
	r := s.call("GET /readyz", "")
	if p := r.wantProblem(t, fault.NotReady); p.Detail != "The rules are not read yet." || r.Header.Get("Retry-After") != "1" {
		t.Errorf("%+v %v", p, r.Header)
	}
	s.call("GET /healthz", "").want(t, 200, nil)
	if r := s.call("GET /healthcheck", "").want(t, 500, nil); len(r.body) > 0 {
		t.Errorf("%s", r.body)
	}
}

// GET /rlconfig shows the limits of Envoy's service to clients that may read the rules.
func TestEnvoyConfig(t *testing.T) {
	var o Options
	s := newStand(t, o)
	s.call("GET /rlconfig", "").wantProblem(t, fault.NotFound, "--envoy-config")
	o.Envoy = func() *envoyconfig.Config { return nil }
	s = newStand(t, o)
	s.call("GET /rlconfig", "").wantProblem(t, fault.NotReady, "weir's log")
	withEnvoy(t, &o)
	s = newStand(t, o)
	const want = "edge.remote_address: unit=SECOND requests_per_unit=50, shadow_mode: false, quota_mode: false\n"
	if r := s.call("GET /rlconfig", "").want(t, 200, nil); string(r.body) != want {
		t.Errorf("%s", r.body)
	}
}

func withEnvoy(t *testing.T, o *Options) {
	config, problems := envoyconfig.Read([]envoyconfig.File{{Name: "edge.yaml", Source: []byte(
		"domain: edge\ndescriptors: [{key: remote_address, rate_limit: {unit: second, requests_per_unit: 50}}]")}}, envoyconfig.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	o.Envoy = func() *envoyconfig.Config { return config }
}
