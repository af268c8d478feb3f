package testredis

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// through is a server as one sees it through a proxy.
func through(p *Proxy) *Server { return &Server{Addr: p.Addr, t: p.t} }

// dial is a connection that does not wait for ever.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

func TestProxyPasses(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s)
	big := strings.Repeat("x", 1<<20)
	answered(t, through(p), "OK", "SET", "k", big)
	answered(t, through(p), big, "GET", "k")
	c := dial(t, p.Addr)
	io.WriteString(c, "QUIT\r\n")
	if reply, err := io.ReadAll(c); err != nil || string(reply) != "+OK\r\n" {
		t.Errorf("QUIT = %q, %v", reply, err)
	}
}

func TestProxyLatency(t *testing.T) {
	p := NewProxy(t, Start(t))
	const latency = 300 * time.Millisecond
	c := dial(t, p.Addr)
	p.Latency(latency)
	start := time.Now()
	io.WriteString(c, strings.Repeat("PING\r\n", 50))
	if _, err := io.ReadFull(c, make([]byte, 50*len("+PONG\r\n"))); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d < latency || d > 25*latency { // one after the other would be 50
		t.Errorf("replies took %v", d)
	}
	p.Latency(time.Hour)
	p.Heal()
	answered(t, through(p), "PONG", "PING")
	p.Latency(time.Hour) // the clean-up need not wait for it
	err := await(func() error {
		io.WriteString(c, "PING\r\n")
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.links[0].replies) == 0 {
			return errors.New("no reply waits behind another")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestProxyReset(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s)
	s.Do("SET", "big", strings.Repeat("x", 1<<20))
	open := dial(t, p.Addr)
	io.WriteString(open, "PING\r\n")
	if _, err := io.ReadFull(open, make([]byte, len("+PONG\r\n"))); err != nil {
		t.Fatal(err)
	}
	p.ResetMidReply(3)
	for name, c := range map[string]net.Conn{"open": open, "new": dial(t, p.Addr)} {
		io.WriteString(c, "GET big\r\n")
		if reply, err := io.ReadAll(c); string(reply) != "$10" || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the reply is %q, %v", name, reply, err)
		}
	}
	p.ResetMidReply(0)
	if _, err := through(p).TryDo("INCR", "n"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("INCR: %v", err)
	}
	answered(t, s, "1", "GET", "n")
	p.Heal()
	answered(t, through(p), "2", "INCR", "n")
}

func TestProxyCut(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s)
	c := dial(t, p.Addr)
	io.WriteString(c, "PING\r\n")
	if _, err := io.ReadFull(c, make([]byte, len("+PONG\r\n"))); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a cut line gave %d bytes, %v", n, err)
	}
	if _, err := through(p).TryDo("PING"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a cut line: %v", err)
	}
	p.Cut()
	p.Heal()
	answered(t, through(p), "PONG", "PING")
	s.Kill()
	if _, err := through(p).TryDo("PING"); err == nil {
		t.Error("a dead server answers")
	}
	s.Restart()
	answered(t, through(p), "PONG", "PING")
}
