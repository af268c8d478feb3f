package gateway

import (
	"context"
	"io"
	"net/http"
	"testing"
)

// A request is in flight until its response has ended: a stream, an answer that is cut off, and one whose
// client has disconnected. TestWebSocketInFlight in test/e2e does the same with a WebSocket.
func TestInFlight(t *testing.T) {
	proceed := make(chan struct{})
	serve := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stream", "/torn", "/leaves":
			w.(http.Flusher).Flush()
			if r.URL.Path == "/leaves" {
				<-r.Context().Done()
				return
			}
			<-proceed
			if r.URL.Path == "/torn" {
				panic(http.ErrAbortHandler)
			}
		}
	}
	b := newStand(t, setup{rules: "rules: [{id: api, key: ip, concurrency: 1}]"}, upstream(t, serve))
	taken := func(when string) {
		t.Helper()
		if got := b.get("/"); got.StatusCode != 429 || got.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d, want 429", when, got.StatusCode)
		}
	}
	free := func(after string) {
		t.Helper()
		waitFor(t, "a place after "+after, func() bool { return b.get("/").StatusCode == 200 })
	}
	free("nothing")
	for _, path := range []string{"/stream", "/torn", "/leaves"} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", b.server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := b.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		taken(path)
		if path != "/leaves" {
			proceed <- struct{}{}
			io.Copy(io.Discard, res.Body)
		}
		cancel()
		res.Body.Close()
		free(path)
	}
}

// A request waits for a place, and one whose client has disconnected waits no longer.
func TestWait(t *testing.T) {
	begun, proceed := make(chan string, 9), make(chan struct{})
	serve := func(w http.ResponseWriter, r *http.Request) {
		begun <- r.URL.Path
		<-proceed
	}
	s := setup{rules: "rules: [{id: api, key: ip, concurrency: 1, wait: {up_to: 1m, queued: 2}}]"}
	b := newStand(t, s, upstream(t, serve))
	t.Cleanup(func() { close(proceed) }) // for those who wait if the test fails
	type answer struct {
		path   string
		status int
	}
	answers := make(chan answer, 9)
	send := func(ctx context.Context, path string) {
		req, err := http.NewRequestWithContext(ctx, "GET", b.server.URL+path, nil)
		if err != nil {
			t.Error(err)
		}
		res, err := b.client.Do(req)
		if err != nil {
			answers <- answer{path, 0}
			return
		}
		res.Body.Close()
		answers <- answer{path, res.StatusCode}
	}
	waiting := func(n int) {
		t.Helper()
		waitFor(t, "the right number waits", func() bool { return b.peers.limit.Delayed() == n || len(answers) > 0 })
		if len(answers) > 0 {
			t.Fatalf("%+v did not wait", <-answers)
		}
	}
	go send(t.Context(), "/first")
	<-begun
	leaving, leave := context.WithCancel(t.Context())
	defer leave()
	go send(leaving, "/leaves")
	waiting(1)
	go send(t.Context(), "/second")
	waiting(2)
	send(t.Context(), "/full")
	if got := <-answers; got != (answer{"/full", 429}) {
		t.Errorf("%+v, and the line is full", got)
	}
	leave()
	if got := <-answers; got != (answer{"/leaves", 0}) {
		t.Errorf("%+v", got)
	}
	waiting(1)
	proceed <- struct{}{}
	if got := <-answers; got != (answer{"/first", 200}) {
		t.Errorf("%+v", got)
	}
	if got := <-begun; got != "/second" {
		t.Errorf("%s came next", got)
	}
	waiting(0)
	proceed <- struct{}{}
	if got := <-answers; got != (answer{"/second", 200}) {
		t.Errorf("%+v", got)
	}
}
