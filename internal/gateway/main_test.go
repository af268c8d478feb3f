package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/memory"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// generous is a rule that applies to all clients and denies none.
const generous = "rules: [{id: all, key: ip, limit: 1000000/1s}]"

// stand is a gateway on a port of its own, and a client of it.
type stand struct {
	*Gateway
	t        *testing.T
	server   *httptest.Server
	client   *http.Client
	outcomes chan Outcome
}

// setup is what a test wants otherwise.
type setup struct {
	rules   string // default generous
	clients engine.Clients
	store   weir.Store
	limit   httplimit.Options
	observe []engine.Observer
	options Options
	server  func(*httptest.Server) // before it starts
}

// newStand starts a gateway for routes as ParseRoute reads them.
func newStand(t *testing.T, s setup, routes ...string) *stand {
	t.Helper()
	b := &stand{t: t, outcomes: make(chan Outcome, 1000)}
	for _, text := range routes {
		r, err := ParseRoute(text)
		if err != nil {
			t.Fatal(err)
		}
		s.options.Routes = append(s.options.Routes, r)
	}
	if s.rules == "" {
		s.rules = generous
	}
	if s.store == nil {
		s.store = memory.New(memory.Options{})
	}
	discard := slog.New(slog.DiscardHandler)
	s.limit.Logger, s.limit.TrustedProxies = discard, s.options.TrustedProxies
	e := engineOf(t, s.store, s.rules, s.observe...)
	if s.clients != (engine.Clients{}) {
		e.InstallClients(s.clients)
	}
	s.options.Limit = testkit.Must(httplimit.New(e, s.limit))(t)
	s.options.Observe = func(o Outcome) { b.outcomes <- o }
	if s.options.Logger == nil {
		s.options.Logger = discard
	}
	g, err := New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	b.Gateway = g
	b.server = httptest.NewUnstartedServer(g)
	b.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	if s.server != nil {
		s.server(b.server)
	}
	if b.server.TLS != nil {
		b.server.StartTLS()
	} else {
		b.server.Start()
	}
	b.client = b.server.Client()
	b.client.Transport.(*http.Transport).DisableCompression = true
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(func() {
		b.client.CloseIdleConnections()
		b.server.Close()
		g.Close()
	})
	return b
}

func limitOf(t testing.TB, store weir.Store, rules string, o httplimit.Options) *httplimit.Middleware {
	t.Helper()
	return testkit.Must(httplimit.New(engineOf(t, store, rules), o))(t)
}

func engineOf(t testing.TB, store weir.Store, rules string, observers ...engine.Observer) *engine.Engine {
	t.Helper()
	set, problems := rule.Parse("test.yaml", []byte(rules))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: store, Observers: observers})
	if err != nil {
		t.Fatal(err)
	}
	e.Install(table, 1)
	return e
}

// upstream starts a server that answers by a function, and returns its URL.
func upstream(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	return s.URL
}

// saying is an upstream that answers with its name.
func saying(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name) }
}

// reply is an answer with its body read.
type reply struct {
	*http.Response
	body string
}

func (b *stand) get(path string, header ...string) reply {
	b.t.Helper()
	return b.do("GET", path, nil, header...)
}

// do sends a request with headers such as "Accept: text/html".
func (b *stand) do(method, path string, body io.Reader, header ...string) reply {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, b.server.URL+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Add(name, value)
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply{res, string(text)}
}

// outcome waits for the next.
func (b *stand) outcome() Outcome {
	b.t.Helper()
	select {
	case o := <-b.outcomes:
		return o
	case <-time.After(patience):
		b.t.Fatal("nothing was observed")
		return Outcome{}
	}
}

// raw sends bytes as they are on a connection of their own, and returns the answers up
// to the end of the connection.
func (b *stand) raw(text string) string {
	b.t.Helper()
	c := b.dial()
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		b.t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil && len(answer) == 0 {
		b.t.Fatal(err)
	}
	return string(answer)
}

func (b *stand) dial() net.Conn {
	b.t.Helper()
	c, err := net.Dial("tcp", b.server.Listener.Addr().String())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		b.t.Fatal(err)
	}
	return c
}

// denying is the address of a port on which no process listens, nor can begin to.
func denying(t *testing.T) string {
	t.Helper()
	return "http://" + reserved(t).address
}

// port is one of the loopback's that belongs to a test.
type port struct {
	address string
	file    *os.File
}

// reserved is a port on which no process listens, until the test does.
func reserved(t *testing.T) *port {
	t.Helper()
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &port{file: os.NewFile(uintptr(s), "port")}
	t.Cleanup(func() { p.file.Close() })
	if err := syscall.Bind(s, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(s)
	if err != nil {
		t.Fatal(err)
	}
	p.address = fmt.Sprint("127.0.0.1:", bound.(*syscall.SockaddrInet4).Port)
	return p
}

// listen begins to listen on the port.
func (p *port) listen(t *testing.T) net.Listener {
	t.Helper()
	if err := syscall.Listen(int(p.file.Fd()), 16); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(p.file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rude starts an upstream of bare connections: serve gets each one, with the first
// request that came on it.
func rude(t *testing.T, serve func(c net.Conn, in *bufio.Reader, first *http.Request)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(patience))
				in := bufio.NewReader(c)
				first, err := http.ReadRequest(in)
				if err == nil {
					serve(c, in, first)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// waitFor waits until something is so.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
