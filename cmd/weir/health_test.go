package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// weir health says what /readyz answers, over TLS too, and sends no token to anyone.
func TestHealth(t *testing.T) {
	t.Setenv("WEIR_TOKEN", adminToken)
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "" {
				t.Errorf("%s with %q", r.URL, r.Header)
			}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	ready := answer(200, "text/plain", "ready\nqueues.snapshot could not be saved\n")
	stopping := answer(503, "application/problem+json", `{"title": "Not ready", "detail": "weir is stopping."}`)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		start   func(http.Handler) *httptest.Server
		code    int
		want    string
	}{
		"ready":     {ready, httptest.NewServer, 0, "ready\nqueues.snapshot could not be saved\n"},
		"encrypted": {ready, httptest.NewTLSServer, 0, "ready\n"},
		"stopping":  {stopping, httptest.NewServer, 1, "weir: weir is stopping\n"},
		"another":   {answer(200, "text/html", "<html>"), httptest.NewServer, 1, "the response is not from weir"},
		"moved":     {answer(302, "text/plain", ""), httptest.NewServer, 1, "status 302"},
	} {
		t.Run(name, func(t *testing.T) {
			server := c.start(c.handler)
			defer server.Close()
			t.Setenv("WEIR_SERVER", server.URL)
			var out strings.Builder
			if code := run([]string{"health"}, strings.NewReader(""), &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit code %d, want %d:\n%s", code, c.code, out.String())
			}
		})
	}
}

// The address of this container answers with TLS, whether or not the environment tells. An
// address that somebody wrote is taken as it is written.
func TestHealthFindsTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ready\n") }))
	defer server.Close()
	address := server.Listener.Addr().String()
	t.Setenv("WEIR_HTTP", address)
	var out strings.Builder
	if code := run([]string{"health"}, strings.NewReader(""), &out, &out); code != 0 || out.String() != "ready\n" {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
	out.Reset()
	if code := run([]string{"health", "--server", "http://" + address}, strings.NewReader(""), &out, &out); code != 1 || !strings.Contains(out.String(), "uses TLS; write https:// in --server") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}
