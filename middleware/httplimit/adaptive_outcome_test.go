package httplimit

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/testoverload"
)

// The limiter learns how each request ended. A client that leaves says nothing about the handlers,
// but one that they keep waiting until the deadline of the server does.
func TestAdaptiveOutcome(t *testing.T) {
	for path, want := range map[string]string{
		"/ok":       "success",
		"/silent":   "success",
		"/500":      "success",
		"/502":      "failure",
		"/503":      "failure",
		"/504":      "failure",
		"/panic":    "failure",
		"/torn":     "failure",
		"/deadline": "failure",
		"/cancel":   "ignored",
		"/leave":    "ignored",
		"/denied":   "ignored",
	} {
		b := newBench(t, "rules: [{id: few, match: {path: /denied}, key: ip, limit: 1/1h}]", Options{Adaptive: Adaptive{Min: 1, Max: 1000}})
		var leave context.CancelFunc
		served := 0
		h := b.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served++
			switch r.URL.Path {
			case "/ok":
				w.Write([]byte("x"))
			case "/500":
				w.WriteHeader(500)
			case "/502":
				w.WriteHeader(502)
			case "/503":
				w.WriteHeader(503)
			case "/504":
				w.WriteHeader(504)
			case "/torn":
				w.Write([]byte("x"))
				panic(http.ErrAbortHandler)
			case "/panic":
				panic("a mistake")
			case "/deadline":
				<-r.Context().Done()
			case "/cancel":
				leave()
				panic(http.ErrAbortHandler) // it cannot go on
			case "/leave":
				leave()
				w.WriteHeader(503)
			}
		}))
		once := func(path string) {
			defer func() { recover() }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if path == "/deadline" {
				ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
			}
			leave = cancel
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil).WithContext(ctx))
		}
		send := func(path string) func() {
			return func() {
				for before := served; ; {
					once(path)
					if served > before || path == "/denied" {
						return // otherwise the deadline came before the handler
					}
				}
			}
		}
		if path == "/denied" {
			once(path) // which is allowed
		}
		got := testoverload.Outcome(func() int { return b.AdaptiveLimit().Limit }, send("/503"), send(path))
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
