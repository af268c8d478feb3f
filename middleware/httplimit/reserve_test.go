package httplimit

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A request that asks for more than its share of the limit reserves that share, its stream is cut there or
// goes on, and others find room meanwhile.
func TestReserveAtMost(t *testing.T) {
	for more, want := range map[string]struct{ sent, used int64 }{
		", on_overrun: cut": {4, 5 + 50},
		"":                  {10, 5 + 100},
	} {
		s := newSettling(t, `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: 1000/1d, tokens: {reserve: {at_most: 5%}`+more+`}}]`, Options{})
		sent := int64(0)
		h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := s.used("tokens", client); got != 50 {
				t.Errorf("%d are reserved", got)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for range 10 {
				if _, err := io.WriteString(w, chunk(strings.Repeat("x", 40))); err != nil {
					return
				}
				sent++
			}
		}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, chat("/v1/chat/completions", `{"messages":[{"role":"user","content":"Hello"}],"stream":true,"max_tokens":1000000}`))
		if used := s.used("tokens", client); w.Code != 200 || sent != want.sent || used != want.used {
			t.Errorf("%s: %d, %d events were sent, %d tokens are used", more, w.Code, sent, used)
		}
	}
}

// A stream that is longer than was expected reserves more while it goes on. Where that does not fit, it is cut, or
// goes on.
func TestReserveSteps(t *testing.T) {
	for _, c := range []struct {
		limit, more string
		sent, used  int64
	}{
		{"1000", ", on_overrun: cut", 10, 105}, {"1000", "", 10, 105},
		{"40", ", on_overrun: cut", 3, 40}, {"40", "", 10, 40}, // what cannot be charged is counted as excess
	} {
		s := newSettling(t, `rules: [{id: tokens, key: ip, algorithm: fixed_window, limit: `+c.limit+`/1d, tokens: {reserve: {output: 12}`+c.more+`}}]`, Options{})
		sent, most := int64(0), int64(0)
		h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 10 {
				if _, err := io.WriteString(w, chunk(strings.Repeat("x", 40))); err != nil {
					return
				}
				sent++
				most = max(most, s.used("tokens", client))
			}
		}))
		h.ServeHTTP(httptest.NewRecorder(), chat("/v1/chat/completions", `{"messages":[{"role":"user","content":"Hello"}],"stream":true,"max_tokens":100}`))
		if used := s.used("tokens", client); sent != c.sent || used != c.used || c.limit == "1000" && most != 105 {
			t.Errorf("%+v: %d events were sent, %d tokens are used, up to %d were reserved", c, sent, used, most)
		}
	}
}
