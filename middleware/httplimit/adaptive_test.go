package httplimit

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A place is free again when the handler has ended, however it ends. What does not find one is
// answered with 503, and is not handled.
func TestAdaptive(t *testing.T) {
	b := newBench(t, "rules: [{id: all, key: ip, limit: 1000/1s}]", Options{Adaptive: Adaptive{Min: 1, Max: 1}})
	for _, c := range []struct {
		name   string
		handle func(http.ResponseWriter)
	}{
		{"silent", func(http.ResponseWriter) {}},
		{"written", func(w http.ResponseWriter) { w.Write([]byte("x")) }},
		{"flushed", func(w http.ResponseWriter) { w.(http.Flusher).Flush() }},
		{"failed", func(w http.ResponseWriter) { w.WriteHeader(503) }},
		{"panicked", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
	} {
		var h http.Handler
		inner := httptest.NewRecorder()
		h = b.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if b.AdaptiveLimit().InFlight != 1 {
				t.Errorf("%s: %+v", c.name, b.AdaptiveLimit())
			}
			if r.URL.Path == "/" {
				h.ServeHTTP(inner, httptest.NewRequest("GET", "/second", nil))
			} else {
				t.Errorf("%s: the second was handled", c.name)
			}
			c.handle(w)
		}))
		func() {
			defer func() { recover() }()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}()
		body := inner.Body.String()
		if inner.Code != 503 || inner.Header().Get("Retry-After") != "1" || !strings.Contains(body, "The server is overloaded; try again soon.") || !strings.Contains(body, reducedCapacity) {
			t.Errorf("%s: %d %v %s", c.name, inner.Code, inner.Header(), body)
		}
		if s := b.AdaptiveLimit(); s.InFlight != 0 || s.Limit != 1 {
			t.Errorf("%s: %+v at the end", c.name, s)
		}
	}
	if s := b.AdaptiveLimit(); s.Denied != 5 {
		t.Errorf("%+v", s)
	}
}

// The answer can be another, and requests that are not checked need no place.
func TestAdaptiveOptions(t *testing.T) {
	var denied *Denial
	b := newBench(t, "rules: [{id: all, key: ip, limit: 1000/1s}]", Options{
		Adaptive: Adaptive{Min: 1, Max: 1},
		Skip:     func(r *http.Request) bool { return r.URL.Path == "/health" },
		Deny:     func(w http.ResponseWriter, _ *http.Request, d *Denial) { denied = d; w.WriteHeader(d.Status) },
	})
	codes := map[string]int{}
	var h http.Handler
	h = b.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			return
		}
		for _, path := range []string{"/health", "/other"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			codes[path] = w.Code
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if codes["/health"] != 200 || codes["/other"] != 503 || denied == nil {
		t.Errorf("%v %+v", codes, denied)
	}
	if _, err := New(b.engine, Options{Adaptive: Adaptive{Min: 5}}); err == nil || err.Error() != "httplimit: Adaptive: the maximum, 0, is less than the minimum, 5; write for example 1000" {
		t.Error(err)
	}
}

// A handler that copies its response waits for where that comes from, not for its client, and keeps its place.
func TestAdaptiveCopies(t *testing.T) {
	b := newBench(t, "rules: [{id: all, key: ip, limit: 1000/1s}]", Options{Adaptive: Adaptive{Min: 2, Max: 2}})
	var h http.Handler
	next := map[string]*http.Request{"/1": from("192.0.2.1:1", "GET", "/2"), "/2": from("192.0.2.2:1", "GET", "/3")}
	h = b.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, readerFunc(func([]byte) (int, error) {
			if next := next[r.URL.Path]; next != nil {
				h.ServeHTTP(httptest.NewRecorder(), next)
			} else {
				t.Error("a client took the place of another one, which reads")
			}
			return 0, io.EOF
		}))
	}))
	h.ServeHTTP(httptest.NewRecorder(), from("192.0.2.1:1", "GET", "/1"))
	if s := b.AdaptiveLimit(); s.Denied != 1 {
		t.Errorf("%+v", s)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(to []byte) (int, error) { return f(to) }
