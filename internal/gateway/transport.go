package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/weirhq/weir/internal/adaptive"
)

// maxTries is how many upstreams a request may try. Who waits for the third will not
// wait for a fourth.
const maxTries = 3

// maxHeaderBytes is how long the header of an answer may be.
const maxHeaderBytes = 1 << 20

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
			MaxIdleConnsPerHost:    o.MaxIdle,
			IdleConnTimeout:        o.IdleTimeout,
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
	x.leave(adaptive.Failure) // no connection could be made
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
