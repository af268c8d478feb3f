package http

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/rawhttp"
	"github.com/weirhq/weir/test/bench/internal/rounds"
)

// group is contestants that are asked the same.
type group struct {
	name        string
	contestants []contestant
	requests    []*http.Request // one for each client, as a server would see it
	bodies      [][]byte        // of the requests
	raw         [][]byte        // the same as bytes on a connection
	want        int             // the status of every answer
}

type contestant struct {
	name    string
	handler http.Handler
	aim     float64 // the least share of the fastest peer's rate; 0 if there is none
	peer    bool
	address string
}

// listen serves each contestant on a port of its own.
func (g *group) listen(t testing.TB) {
	for i := range g.contestants {
		c := &g.contestants[i]
		l := testcall.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
		c.address = l.Addr().String()
		s := &http.Server{Handler: c.handler}
		t.Cleanup(func() { s.Close() })
		go s.Serve(l)
	}
}

func (g *group) measure(i int, o Options) (Figure, error) {
	c := &g.contestants[i]
	f := Figure{Name: c.name}
	var err error
	if f.Rate, err = g.rate(c, o); err != nil {
		return f, fmt.Errorf("%s: %s: %w", g.name, c.name, err)
	}
	if err := g.direct(c, o, &f); err != nil {
		return f, fmt.Errorf("%s: %s: %w", g.name, c.name, err)
	}
	return f, nil
}

// rate asks over connections, one request after the other on each.
func (g *group) rate(c *contestant, o Options) (float64, error) {
	counts, errs := make([]int, o.Connections), make([]error, o.Connections)
	cost := rounds.AtOnce(o.Connections, func(n int) {
		counts[n], errs[n] = g.ask(c.address, n, time.Now().Add(o.Time))
	})
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / cost.Wall.Seconds(), errors.Join(errs...)
}

// ask is one connection.
func (g *group) ask(address string, first int, until time.Time) (n int, err error) {
	conn, err := rawhttp.Dial(address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	for ; n == 0 || n%64 != 0 || time.Now().Before(until); n++ { // at least once, however late it is
		a, err := conn.Ask(g.raw[(first*7919+n)%len(g.raw)])
		if err != nil {
			return n, err
		}
		if a.Status != g.want {
			return n, fmt.Errorf("the status is %d, want %d", a.Status, g.want)
		}
	}
	return n, nil
}

// direct calls the handler, as the server does.
func (g *group) direct(c *contestant, o Options, f *Figure) error {
	w := &writer{header: http.Header{}}
	body := bytes.NewReader(nil)
	wrong := 0
	cost := rounds.AtOnce(1, func(int) {
		for n := range o.Calls {
			i := n % len(g.requests)
			r := g.requests[i]
			if g.bodies != nil {
				body.Reset(g.bodies[i])
				r.Body = readCloser{body}
			}
			clear(w.header)
			w.status = http.StatusOK
			c.handler.ServeHTTP(w, r)
			if w.status != g.want {
				wrong = w.status
			}
		}
	})
	f.Nanos = float64(cost.Wall.Nanoseconds()) / float64(o.Calls)
	f.Allocs = float64(cost.Mallocs) / float64(o.Calls)
	if wrong != 0 {
		return fmt.Errorf("the status is %d, want %d", wrong, g.want)
	}
	return nil
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// writer throws the answer away.
type writer struct {
	header http.Header
	status int
}

func (w *writer) Header() http.Header         { return w.header }
func (w *writer) Write(p []byte) (int, error) { return len(p), nil }
func (w *writer) WriteHeader(status int)      { w.status = status }
