package httplimit

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/engine"
	_ "github.com/weirhq/weir/rule/expression"
)

const priced = `rules:
  - id: tokens
    match: {path: /chat, when: 'request.json.?model.orValue("large") == "large"'}
    key: global
    algorithm: sliding_log
    limit: 1000/1h
    cost: {estimate: request.json.max, default: 100, actual: response.json.?used.orValue(0) + request.json.?max.orValue(0) / 10}
`

// exchange serves an engine that answers with a body, and returns what it has read.
func exchange(t *testing.T, s *settling, path, request, contentType, response string) string {
	t.Helper()
	read := ""
	server := httptest.NewServer(s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if read = string(body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", contentType)
		for _, part := range []string{response[:len(response)/2], response[len(response)/2:]} {
			io.WriteString(w, part)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	})))
	defer server.Close()
	resp, err := server.Client().Post(server.URL+path, "application/json", strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != response {
		t.Errorf("the client reads %.100q, %v", got, err)
	}
	return read
}

// Expressions read the bodies of requests and responses, and the handler and the client get
// them whole.
func TestExpressionsReadBodies(t *testing.T) {
	long := strings.Repeat(" ", maxJSON)
	for name, c := range map[string]struct {
		path, request, contentType, response string
		want                                 int64
	}{
		"settled":                   {"/chat", `{"max": 50}`, "application/json", `{"used": 30}`, 35},
		"another model":             {"/chat", `{"max": 50, "model": "small"}`, "application/json", `{"used": 30}`, 0},
		"another path":              {"/other", `{"max": 50}`, "application/json", `{"used": 30}`, 0},
		"no body":                   {"/chat", ``, "application/json", `{"used": 30}`, 30},
		"no usage":                  {"/chat", `{"max": 50}`, "application/json", `{}`, 5},
		"the longest":               {"/chat", `{"max": 50}` + long[11:], "application/json", `{"used": 30}` + long[12:], 35},
		"a response that is long":   {"/chat", `{"max": 50}`, "application/json", `{"used": 30}` + long, 50},
		"a response that is a text": {"/chat", `{"max": 50}`, "text/plain", `{"used": 30}`, 50},
	} {
		s := newSettling(t, priced, Options{})
		if read := exchange(t, s, c.path, c.request, c.contentType, c.response); read != c.request {
			t.Errorf("%s: the handler reads %d bytes of %d", name, len(read), len(c.request))
		}
		if got := s.used("tokens", "global"); got != c.want {
			t.Errorf("%s: %d units are used, want %d", name, got, c.want)
		}
	}
	if !responses.Try(maxResponses) {
		t.Error("some room for bodies is still taken")
	}
	responses.Give(maxResponses)
}

// A client that accepts a compressed response gets one that can be read, and so pays as others do.
func TestExpressionsReadPlainBodies(t *testing.T) {
	s := newSettling(t, priced, Options{})
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", r.Header.Get("Accept-Encoding"))
		if r.Header.Get("Accept-Encoding") == "gzip" {
			z := gzip.NewWriter(w)
			defer z.Close()
			io.WriteString(z, `{"used": 300}`)
			return
		}
		io.WriteString(w, `{"used": 300}`)
	}))
	r := httptest.NewRequest("POST", "/chat", strings.NewReader(`{"max": 50}`))
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if got := s.used("tokens", "global"); got != 305 || w.Body.String() != `{"used": 300}` {
		t.Errorf("%d units are used; the client reads %q", got, w.Body)
	}
	if r.Header.Get("Accept-Encoding") != "gzip" {
		t.Error("the client's own headers were changed")
	}
}

// A body without a length has no size that a rule could believe.
func TestSizeUnknown(t *testing.T) {
	s := newSettling(t, "rules: [{id: a, key: global, algorithm: sliding_log, limit: 1000/1h, cost: {estimate: request.size, default: 700}}]", Options{})
	h := s.Wrap(answering(200))
	r := from("203.0.113.7:1", "POST", "/")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), -1
	h.ServeHTTP(httptest.NewRecorder(), r)
	r = from("203.0.113.7:1", "POST", "/")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("12345")), 5
	h.ServeHTTP(httptest.NewRecorder(), r)
	if got := s.used("a", "global"); got != 705 {
		t.Errorf("%d units are used", got)
	}
}

// A handler can settle by itself, and then the response does not count.
func TestHandlerSettles(t *testing.T) {
	s := newSettling(t, logins, Options{})
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := engine.HoldOf(r.Context()).Settle(r.Context(), engine.Units(2)); err != nil {
			t.Error(err)
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), from("203.0.113.7:1", "POST", "/login"))
	if got := s.used("login", "ip:203.0.113.7"); got != 2 {
		t.Errorf("%d are used", got)
	}
	if kind := <-s.events; kind != engine.SettledHold || len(s.events) != 0 {
		t.Errorf("%v, and %d more", kind, len(s.events))
	}
	if engine.HoldOf(t.Context()) != nil {
		t.Error("a context without a request has a hold")
	}
}

// A thousand guesses at the same time, over the network, have no more failures than the limit
// allows.
func TestThousandGuesses(t *testing.T) {
	s := newSettling(t, logins, Options{})
	var failures, denied atomic.Int64
	server := httptest.NewServer(s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		failures.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
	})))
	defer server.Close()
	client := server.Client()
	client.Transport.(*http.Transport).MaxConnsPerHost = 100
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			resp, err := client.Post(server.URL, "text/plain", nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusTooManyRequests {
				denied.Add(1)
			}
		})
	}
	all.Wait()
	if got := fmt.Sprint(failures.Load(), " ", denied.Load()); got != "3 997" {
		t.Errorf("failures and denials: %s", got)
	}
}
