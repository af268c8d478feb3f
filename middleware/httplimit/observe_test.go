package httplimit

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// outcome is what Observe was told.
type outcome struct {
	pattern string
	status  int
	failed  bool
}

func TestObserve(t *testing.T) {
	told := make(chan outcome, 10)
	var least time.Duration // that the handler took
	b := newLiveBench(t, "rules: [{id: once, match: {path: /once}, key: global, limit: 1/1h}]", Options{
		Observe: func(pattern string, status int, took time.Duration, err error) {
			if took < least {
				t.Errorf("%s took %s, want at least %s", pattern, took, least)
			}
			least = 0
			told <- outcome{pattern, status, err != nil}
		},
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /silent", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /once", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /text", func(w http.ResponseWriter, _ *http.Request) {
		begin := time.Now()
		io.WriteString(w, "hello")
		least = time.Since(begin)
	})
	mux.HandleFunc("GET /items/{id}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(http.StatusOK) // too late
	})
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, _ *http.Request) {
		io.Copy(w, io.LimitReader(strings.NewReader("hello"), 5))
	})
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("GET /late-panic", func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("GET /socket", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		conn.Close()
	})
	server := httptest.NewServer(b.Wrap(mux))
	defer server.Close()
	for _, c := range []struct {
		path string
		want outcome
	}{
		{"/silent", outcome{"GET /silent", 200, false}},
		{"/text", outcome{"GET /text", 200, false}},
		{"/items/7", outcome{"GET /items/{id}", 418, false}},
		{"/file", outcome{"GET /file", 200, false}},
		{"/nowhere", outcome{"", 404, false}},
		{"/panic", outcome{"GET /panic", 500, true}},
		{"/late-panic", outcome{"GET /late-panic", 200, true}},
		{"/socket", outcome{"GET /socket", 101, false}},
		{"/once", outcome{"GET /once", 200, false}},
	} {
		get(t, server.Listener.Addr(), c.path)
		if got := <-told; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.path, got, c.want)
		}
	}
	get(t, server.Listener.Addr(), "/once") // denied, so it does not reach the handler
	get(t, server.Listener.Addr(), "/silent")
	if got := <-told; got.pattern != "GET /silent" {
		t.Errorf("a denied request was told of: %+v", got)
	}
}

// get asks by a connection of its own and reads to the end, whatever comes.
func get(t *testing.T, server net.Addr, path string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	io.Copy(io.Discard, conn)
}
