package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/middleware/httplimit"
)

// talk is an upstream that echoes WebSocket messages, and answers other requests with nothing.
func talk(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		return
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: []string{"*"}})
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		kind, message, err := c.Read(r.Context())
		if err != nil {
			return
		}
		if c.Write(r.Context(), kind, append([]byte("echo "), message...)) != nil {
			return
		}
		if string(message) == "bye" {
			c.Close(websocket.StatusNormalClosure, "bye")
			return
		}
	}
}

// talks is a gateway in this process, before an upstream that talks, and a client of it.
type talks struct {
	t        *testing.T
	url      string
	client   *http.Client
	outcomes chan gateway.Outcome
}

func newTalks(t *testing.T, rules, upstream string, config *tls.Config) *talks {
	t.Helper()
	b := &talks{t: t, outcomes: make(chan gateway.Outcome, 1000)}
	e := testkit.Must(engine.New(engine.Options{}))(t)
	t.Cleanup(e.Close)
	testkit.OK(t, e.Load("rules.yaml", []byte(rules)))
	g := testkit.Must(gateway.New(gateway.Options{
		Limit:   testkit.Must(httplimit.New(e, httplimit.Options{}))(t),
		Routes:  []gateway.Route{testkit.Must(gateway.ParseRoute(upstream))(t)},
		TLS:     config,
		Observe: func(o gateway.Outcome) { b.outcomes <- o },
		Logger:  slog.New(slog.DiscardHandler),
	}))(t)
	t.Cleanup(g.Close)
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	b.url, b.client = front.URL, front.Client()
	return b
}

func (b *talks) dial() (*websocket.Conn, *http.Response, error) {
	return websocket.Dial(b.t.Context(), b.url, &websocket.DialOptions{HTTPClient: b.client})
}

func (b *talks) get() *http.Response {
	b.t.Helper()
	res := testkit.Must(b.client.Get(b.url))(b.t)
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	return res
}

// outcome waits for the next.
func (b *talks) outcome() gateway.Outcome {
	b.t.Helper()
	select {
	case o := <-b.outcomes:
		return o
	case <-time.After(2 * time.Minute):
		b.t.Fatal("nothing was observed")
		return gateway.Outcome{}
	}
}

const generous = "rules: [{id: all, key: ip, limit: 1000000/1s}]"

func TestWebSocket(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(talk))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(talk))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	for _, url := range []string{plain.URL, secure.URL} {
		b := newTalks(t, "rules: [{id: few, key: ip, algorithm: sliding_log, limit: 2/1h}]", url, &tls.Config{RootCAs: roots})
		if got := b.get(); got.StatusCode != 200 {
			t.Fatalf("%s: %d", url, got.StatusCode)
		}
		c, res, err := b.dial()
		if err != nil {
			t.Fatal(err)
		}
		if res.Header.Get("X-Ratelimit-Remaining") != "0" {
			t.Errorf("the answer has no headers about limits: %v", res.Header)
		}
		for _, message := range []string{"hello", strings.Repeat("x", 20_000), "bye"} {
			testkit.OK(t, c.Write(t.Context(), websocket.MessageText, []byte(message)))
			if _, got, err := c.Read(t.Context()); err != nil || string(got) != "echo "+message {
				t.Fatalf("%.20q, %v", got, err)
			}
		}
		if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
			t.Errorf("the end is %v", err)
		}
		c.CloseNow()
		b.outcome()
		if o := b.outcome(); o.Status != 101 {
			t.Errorf("observed %+v", o)
		}
		if _, res, err := b.dial(); err == nil || res.StatusCode != 429 {
			t.Errorf("a third was not denied: %v", err)
		}
	}
}

// When one side of a WebSocket is gone, so is the other.
func TestWebSocketEnds(t *testing.T) {
	over := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(over)
		talk(w, r)
	}))
	defer upstream.Close()
	b := newTalks(t, generous, upstream.URL, nil)
	c, _, err := b.dial()
	if err != nil {
		t.Fatal(err)
	}
	c.CloseNow()
	<-over
	b.outcome()
}

// A WebSocket is in flight until it ends.
func TestWebSocketInFlight(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(talk))
	defer upstream.Close()
	b := newTalks(t, "rules: [{id: api, key: ip, concurrency: 1}]", upstream.URL, nil)
	c, _, err := b.dial()
	if err != nil {
		t.Fatal(err)
	}
	taken := func(when string) {
		t.Helper()
		if got := b.get(); got.StatusCode != 429 || got.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d, want 429", when, got.StatusCode)
		}
	}
	taken("at first")
	testkit.OK(t, c.Write(t.Context(), websocket.MessageText, []byte("hello")))
	if _, _, err := c.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	taken("after a message")
	c.CloseNow()
	waitFor(t, "a place after it ended", func() bool { return b.get().StatusCode == 200 })
}
