package gateway

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/coder/websocket"
)

// A request is in flight until its response has ended: a stream, a WebSocket, an answer that is
// cut off, and one whose client has disconnected.
func TestInFlight(t *testing.T) {
	proceed := make(chan struct{})
	serve := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ws":
			chat(w, r)
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
	c, _, err := websocket.Dial(t.Context(), b.server.URL+"/ws", &websocket.DialOptions{HTTPClient: b.client})
	if err != nil {
		t.Fatal(err)
	}
	taken("/ws")
	if err := c.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	taken("/ws after a message")
	c.CloseNow()
	free("/ws")
}
