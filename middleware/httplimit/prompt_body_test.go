package httplimit

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/gateway/llm"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

// A body that a handler or a proxy has not read to its end is still there when the handler has returned,
// whatever others send.
func TestPromptIsKept(t *testing.T) {
	s := newSettling(t, strings.ReplaceAll(tokenRules(""), "1000/1d", "1000000000/1d"), Options{})
	var late io.Reader // what somebody reads when the handler has returned
	handlers := map[string]struct {
		wrap func(http.Handler) http.Handler
		keep func(io.ReadCloser) io.Reader
	}{
		"a handler": {s.Wrap, func(b io.ReadCloser) io.Reader { return b }},
		"a handler that has read a part": {s.Wrap, func(b io.ReadCloser) io.Reader {
			first := make([]byte, 10)
			n, _ := b.Read(first)
			return io.MultiReader(bytes.NewReader(first[:n]), b)
		}},
		"a proxy": {s.wrapProxy, func(b io.ReadCloser) io.Reader { return b }},
	}
	for name, c := range handlers {
		reads := c.wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		}))
		leaves := c.wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { late = c.keep(r.Body) }))
		for i := range 50 {
			text := fmt.Sprintf(`{"messages":[{"content":"%d%s"}]}`, i, strings.Repeat("a", i))
			leaves.ServeHTTP(httptest.NewRecorder(), chat("/v1/chat/completions", text))
			for range 3 {
				reads.ServeHTTP(httptest.NewRecorder(), chat("/v1/chat/completions", `{"messages":["`+strings.Repeat("x", 1000)+`"]}`))
			}
			if got, err := io.ReadAll(late); string(got) != text || err != nil {
				t.Fatalf("%s: %q, %v", name, got, err)
			}
		}
	}
}

func (s *settling) wrapProxy(next http.Handler) http.Handler {
	p, x := s.Proxy(), new(Exchange)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*x = Exchange{}
		p.Serve(w, r, x, next)
	})
}

// A proxy is told of a body that is short and in memory, and of no other.
func TestShortBody(t *testing.T) {
	s := newSettling(t, strings.ReplaceAll(tokenRules(""), "1000/1d", "1000000000/1d"), Options{})
	p := s.Proxy()
	for length, short := range map[int]bool{30: true, 4095: true, 4096: false, 10_000: false} {
		var x Exchange
		text := `{"messages":[{"content":"` + strings.Repeat("x", length-29) + `"}]}`
		p.Serve(httptest.NewRecorder(), chat("/v1/chat/completions", text), &x, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got, err := io.ReadAll(r.Body); string(got) != text || err != nil || x.Short != short {
				t.Errorf("%d bytes: %d are read (%v), short %v", len(text), len(got), err, x.Short)
			}
		}))
	}
}

// A proxy needs little memory for a request.
func TestProxyMemory(t *testing.T) {
	s := newSettling(t, strings.ReplaceAll(tokenRules(""), "1000/1d", "1000000000/1d"), Options{})
	answer := []byte(`{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":100,"completion_tokens":7}}`)
	kind := []string{"application/json"}
	h := s.wrapProxy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = kind
		_, _ = w.Write(answer)
	}))
	r := chat("/v1/chat/completions", "")
	r.Header.Del("Accept-Encoding") // which would be replaced
	body := bytes.NewReader([]byte(`{"messages":[{"content":"` + strings.Repeat("x", 2000) + `"}]}`))
	unread, w := io.NopCloser(body), silent{}
	before := s.used("tokens", client)
	requests := 0
	allocations := testing.AllocsPerRun(1000, func() {
		_, _ = body.Seek(0, io.SeekStart)
		r.Body, r.ContentLength = unread, int64(body.Len())
		clear(w)
		h.ServeHTTP(w, r)
		requests++
	})
	if used := s.used("tokens", client) - before; used != int64(requests)*(100+2*7) {
		t.Errorf("%d tokens are used by %d requests", used, requests)
	}
	// Four for headers, three for the body, and what the store answers. With the race detector, memory is often not used again.
	if allocations > 8 && !testkit.Race {
		t.Errorf("%v allocations", allocations)
	}
}

// The question for usage is written into the memory of the body, but not if expressions read that.
func TestRestoreInPlace(t *testing.T) {
	const sent, asks = `{"stream":true,"messages":[]}`, `{"stream_options":{"include_usage":true},"stream":true,"messages":[]}`
	for _, kept := range []bool{false, true} {
		p := prompt{body: append(make([]byte, 0, 4096), sent...), kept: kept, release: func() {}}
		p.Request, _ = llm.Parse("/v1/chat/completions", p.body, rule.AutoAPI)
		before := p.body
		r := chat("/v1/chat/completions", sent)
		p.restore(r, &settlement{watch: llm.NewWatch(p.Request)}, nil)
		if got, err := io.ReadAll(r.Body); string(got) != asks || err != nil || r.ContentLength != int64(len(asks)) {
			t.Errorf("kept: %v: %s, %v, %d", kept, got, err, r.ContentLength)
		}
		if same := string(before) == sent; same != kept {
			t.Errorf("kept: %v: it became %s", kept, before)
		}
	}
}

// silent is a ResponseWriter that keeps only headers.
type silent http.Header

func (s silent) Header() http.Header         { return http.Header(s) }
func (s silent) Write(b []byte) (int, error) { return len(b), nil }
func (s silent) WriteHeader(int)             {}
