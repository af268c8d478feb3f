package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// All bytes of a WebSocket arrive: those that came with the request, and those that are written
// after the other side has ended its own. The headers about limits are the gateway's.
func TestSwitchedBytes(t *testing.T) {
	b := newStand(t, setup{}, rude(t, func(c net.Conn, in *bufio.Reader, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Ratelimit-Limit: 5\r\nX-Own: 1\r\n\r\n")
		text, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
		}
		io.WriteString(c, "you wrote: "+string(text))
	}))
	c := b.dial()
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\nearly")
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 101 {
		t.Fatal(res, err)
	}
	if limit := res.Header["X-Ratelimit-Limit"]; len(limit) != 1 || limit[0] != "1000000" || res.Header.Get("X-Own") != "1" || res.Header.Get("Upgrade") != "websocket" {
		t.Errorf("%v", res.Header)
	}
	io.WriteString(c, " and late")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(in); err != nil || string(text) != "you wrote: early and late" {
		t.Errorf("%q, %v", text, err)
	}
	if o := b.outcome(); o.Status != 101 || o.Err != nil {
		t.Errorf("%+v", o)
	}
}

// When the context of the server ends, so does a WebSocket, on both sides.
func TestSwitchedEndsWithServer(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	over := make(chan struct{})
	b := newStand(t, setup{server: func(s *httptest.Server) {
		s.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	}}, rude(t, func(c net.Conn, in *bufio.Reader, _ *http.Request) {
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(io.Discard, in)
		close(over)
	}))
	c := b.dial()
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(c)
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 101 {
		t.Fatal(res, err)
	}
	stop()
	if _, err := in.ReadByte(); err != io.EOF {
		t.Error(err)
	}
	<-over
}
