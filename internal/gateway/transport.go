package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/overload"
)

// maxTries is how many upstreams a request may try. Who waits for the third will not
// wait for a fourth.
const maxTries = 3

const (
	maxHeaderBytes = 1 << 20     // of an answer
	maxIdle        = 256         // connections to an upstream that are not in use
	idleTimeout    = time.Minute // for which they are kept; it should be less than the upstream's own
)

// ping is when a connection of HTTP/2 that is silent is asked whether it is alive, and
// how long it may take to say so.
const ping = 15 * time.Second

// transport carries requests to upstreams.
type transport struct {
	gateway *Gateway

	// usual speaks HTTP/1, or HTTP/2 to those who offer it with TLS.
	usual *http.Transport

	// fresh is for WebSockets, which need HTTP/1 and a connection of their own.
	fresh *http.Transport

	// h2c speaks HTTP/2 without TLS.
	h2c *http.Transport
}

func newTransport(g *Gateway, o *Options) *transport {
	config := o.TLS
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	d := &dialer{config: config, timeout: o.DialTimeout}
	make := func(dial, dialTLS func(context.Context, string, string) (net.Conn, error), protocols func(*http.Protocols)) *http.Transport {
		t := &http.Transport{
			DialContext:            dial,
			DialTLSContext:         dialTLS,
			Protocols:              new(http.Protocols),
			DisableCompression:     true, // what the client did not ask for, it does not get
			MaxIdleConnsPerHost:    maxIdle,
			IdleConnTimeout:        idleTimeout,
			ResponseHeaderTimeout:  o.HeaderTimeout,
			ExpectContinueTimeout:  o.ContinueTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: ping, PingTimeout: ping},
		}
		protocols(t.Protocols)
		return t
	}
	t := &transport{gateway: g}
	t.usual = make(d.once, d.secure("h2", "http/1.1"), func(p *http.Protocols) { p.SetHTTP1(true); p.SetHTTP2(true) })
	t.fresh = make(d.plain, d.secure("http/1.1"), func(p *http.Protocols) { p.SetHTTP1(true) })
	t.fresh.DisableKeepAlives = true
	t.h2c = make(d.plain, d.secure("h2"), func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) })
	return t
}

// send sends the request of an exchange to one of its route's upstreams, and to another if that
// cannot be reached.
func (t *transport) send(x *exchange, req *http.Request) (*http.Response, error) {
	var unreached error // or all were overloaded
	for len(x.tried) < maxTries {
		if !x.next() {
			break
		}
		if n, most := x.choice.inFlight.Add(1), int64(t.gateway.options.MaxInFlight); n > most || n > most-most/4 && x.ofClient.Load() > most/8 {
			return nil, errBusy
		}
		if !x.acquire() {
			unreached = errOverloaded
			continue
		}
		x.choice.aim(req, x)
		res, err := t.of(x).RoundTrip(req)
		connect := connectFailure(err)
		if connect == nil {
			if (x.choice.out || x.choice.claimed) && req.Context().Err() == nil {
				x.choice.reached(t.gateway.options.Logger) // whatever it has answered
			}
			return res, err
		}
		if req.Context().Err() != nil {
			return nil, err
		}
		x.choice.failed(t.gateway.now(), t.gateway.options.Backoff, x.choice.claimed, t.gateway.options.Logger, connect.cause)
		unreached = err
	}
	return nil, unreached
}

// connectFailure is nil if a connection was made.
func connectFailure(err error) *connectError {
	connect, _ := errors.AsType[*connectError](err)
	return connect
}

// next chooses an upstream that was not tried.
func (x *exchange) next() bool {
	now := x.began.Sub(x.gateway.began)
	if len(x.tried) > 0 {
		now = x.gateway.now()
	}
	c, ok := x.route.pick(now, x.gateway.options.Backoff, x.tried)
	if !ok {
		return false
	}
	x.leave(overload.Failure) // no connection could be made
	x.choice = c
	x.tried = append(x.tried, c.target)
	return true
}

// of is the transport that suits the request and the upstream.
func (t *transport) of(x *exchange) *http.Transport {
	switch {
	case x.upgrade:
		return t.fresh
	case x.choice.h2c:
		return t.h2c
	}
	return t.usual
}

// aim directs a request to the upstream: its path behind the upstream's own.
func (u *target) aim(req *http.Request, x *exchange) {
	req.URL.Scheme, req.URL.Host = u.scheme, u.host
	if u.base != "" {
		req.URL.Path = u.base + x.in.URL.Path
		req.URL.RawPath = u.rawBase + x.in.URL.EscapedPath()
	} else {
		req.URL.Path, req.URL.RawPath = x.in.URL.Path, x.in.URL.RawPath
	}
	if x.gateway.options.RewriteHost {
		req.Host = u.host
	}
}

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
