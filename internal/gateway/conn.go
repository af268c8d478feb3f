package gateway

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// conn is a connection for HTTP/1 that is used for one request after another.
//
// If such a connection ends before the first byte of an answer, net/http sends a request
// without a body again, on another one. But the upstream may have read it, and acted on
// it, and died of it. So that it is not sent twice, an end that follows upon a request
// is made to look like what it is: an answer that was cut off after its first byte.
type conn struct {
	net.Conn
	state atomic.Uint32
}

const (
	quietly  = iota // no request, or its answer has begun
	chosen          // for a request of which nothing is written yet
	written         // at least in part, and not answered
	finished        // the end was seen, and made to look like a beginning
)

// gotConn is a hook of net/http: a request is about to be written.
func gotConn(info httptrace.GotConnInfo) {
	if c, ok := info.Conn.(*conn); ok {
		c.state.Store(chosen)
	}
}

func (c *conn) Write(b []byte) (int, error) {
	c.state.CompareAndSwap(chosen, written)
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	switch {
	case n > 0:
		c.state.Store(quietly)
	case err != nil && len(b) > 0 && c.state.CompareAndSwap(written, finished):
		b[0] = 'H' // the next Read has the error
		return 1, nil
	}
	return n, err
}

// dialer makes connections to upstreams. All of its errors are connectErrors.
type dialer struct {
	net.Dialer
	config  *tls.Config
	timeout time.Duration
}

// plain makes a connection as it is.
func (d *dialer) plain(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, &connectError{err}
	}
	return c, nil
}

// once makes a connection that never sends a request twice.
func (d *dialer) once(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.plain(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// secure returns a function that makes connections with TLS for one of the protocols.
func (d *dialer) secure(protocols ...string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, d.timeout)
		defer cancel()
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, &connectError{err}
		}
		config := d.config.Clone()
		config.NextProtos = protocols
		if config.ServerName == "" {
			config.ServerName = host
		}
		raw, err := d.plain(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := tls.Client(raw, config)
		if err := c.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, &connectError{err}
		}
		if c.ConnectionState().NegotiatedProtocol == "h2" {
			return c, nil // net/http finds out by the type; and HTTP/2 says what was not received
		}
		return &conn{Conn: c}, nil
	}
}
