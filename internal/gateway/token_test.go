package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testissuer"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/middleware/jwt"
	"github.com/weirhq/weir/store/memory"
)

// A request through the gateway with a token of 1 kB that is verified, and the same where it is not.
func BenchmarkToken(b *testing.B) {
	issuer := testissuer.New(b)
	verifier, err := jwt.New(jwt.Options{Issuers: []jwt.Issuer{{URL: issuer.URL, Audience: []string{"api"}}}})
	if err != nil {
		b.Fatal(err)
	}
	if err := verifier.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer upstream.Close()
	bearer := issuer.Bearer(b, map[string]any{"sub": "ann", "pad": strings.Repeat("x", 600)})
	for name, o := range map[string]httplimit.Options{"with": {Token: verifier.Verify}, "without": {User: func(*http.Request) string { return "ann" }}} {
		b.Run(name, func(b *testing.B) {
			route, err := ParseRoute(upstream.URL)
			if err != nil {
				b.Fatal(err)
			}
			limit := limitOf(b, memory.New(memory.Options{}), "rules: [{id: user, key: user, limit: 1000000000/1s}]", o)
			g, err := New(Options{Limit: limit, Routes: []Route{route}})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Close()
			server := httptest.NewServer(g)
			defer server.Close()
			req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("Authorization", bearer)
			for b.Loop() {
				resp, err := server.Client().Do(req)
				if err != nil || resp.StatusCode != http.StatusNoContent {
					b.Fatal(resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
