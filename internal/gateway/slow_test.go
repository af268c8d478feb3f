package gateway

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/overload"
)

const largeAnswer = 8 << 20

// slowStand is a gateway with an adaptive limit, and as many clients of one address as take all places and
// more. They send what is given, and read nothing.
func slowStand(t *testing.T, bounds overload.Bounds, text string) *stand {
	t.Helper()
	r, err := ParseRoute(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, largeAnswer))
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.Adaptive = bounds
	b := newStand(t, setup{options: Options{Routes: []Route{r}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	var conns []net.Conn
	t.Cleanup(func() {
		for _, c := range conns {
			c.Close()
		}
	})
	for range bounds.Max * 11 / 10 {
		c := b.dial()
		conns = append(conns, c)
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(c, text, "X-Forwarded-For: 192.0.2.1")
	}
	waitFor(t, "all places are taken", func() bool { return b.inFlight() == bounds.Max })
	return b
}

// Requests that wait for their own clients take no places from others, however they make the gateway wait.
func TestSlowClients(t *testing.T) {
	for name, text := range map[string]string{
		"a byte of a body":        "POST / HTTP/1.1\r\nHost: a\r\n%s\r\nContent-Length: 10\r\n\r\nx",
		"a part of a long body":   "POST / HTTP/1.1\r\nHost: a\r\n%s\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat(" ", 100_000),
		"a response that is long": "GET /large HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := slowStand(t, overload.Bounds{Min: 100, Max: 100}, text)
			if name == "a response that is long" { // until the connections have no more room for it
				waitFor(t, "a response waits", func() bool { return b.do("GET", "/", nil, "X-Forwarded-For: 192.0.2.2").StatusCode == http.StatusOK })
			}
			for i := range 100 {
				if got := b.do("POST", "/", strings.NewReader("hello"), "X-Forwarded-For: 192.0.2.2"); got.StatusCode != http.StatusOK {
					t.Fatalf("request %d: %d %s", i, got.StatusCode, got.body)
				}
			}
		})
	}
}

// One client cannot have all requests that may be in flight to an upstream, with bodies that do not end.
func TestSlowUploads(t *testing.T) {
	b := newStand(t, setup{options: Options{MaxInFlight: 16, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
		upstream(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	for i := range 20 { // addresses of one network
		c := b.dial()
		defer c.Close()
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 2001:db8::%x\r\nContent-Length: 10\r\n\r\nx", i)
	}
	for range 8 { // are denied
		if o := b.outcome(); o.Status != http.StatusServiceUnavailable {
			t.Errorf("%+v", o)
		}
	}
	for i := range 20 {
		if got := b.do("POST", "/", strings.NewReader("hello"), "X-Forwarded-For: 192.0.2.2"); got.StatusCode != http.StatusOK {
			t.Fatalf("request %d: %d %s", i, got.StatusCode, got.body)
		}
	}
}
