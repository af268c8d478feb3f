package gateway

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/middleware/httplimit"
)

// forward sends the request to an upstream, and its answer to the client. httputil.ReverseProxy
// does the same with several copies of the request and its headers; this one makes a request in
// the memory of the exchange, whose headers are written once.
func (x *exchange) forward(r *http.Request) {
	if !x.prepare(r) {
		x.answer(badUpgrade, nil)
		return
	}
	x.trace.GotConn, x.trace.Got1xxResponse = gotConn, x.got1xx
	x.Context = httptrace.WithClientTrace(x.Context, &x.trace)
	res, err := x.gateway.transport.send(x, &x.out)
	x.mu.Lock()
	x.answered = true
	x.mu.Unlock()
	if err == nil {
		x.header = time.Since(x.began)
		if res.StatusCode != http.StatusSwitchingProtocols {
			x.respond(res)
			return
		}
		err = x.switchProtocols(res)
	}
	if err != nil {
		a := x.explain(err)
		x.limited.Lost = a.isLost(err)
		x.answer(a, err)
	}
}

// prepare makes the request for the upstream, but for its address. It is false if the client asks
// for a protocol that cannot be written.
func (x *exchange) prepare(r *http.Request) bool {
	g, out, in := x.gateway, &x.out, r.Header
	*out = *r // and so the context
	x.url = *r.URL
	// Parameters that cannot be parsed go on as they are. Rules read the same query in
	// the same way and leave them out; what an upstream makes of them is its affair.
	x.url.User = nil
	out.URL, out.Close = &x.url, false
	out.Trailer = nil // they would come after everything that was checked

	h := make(http.Header, headersOut(in))
	out.Header = h
	g.peers.write(r, h, &x.forwarded)
	if hasToken(in["Te"], "trailers") {
		h["Te"] = trailers
	}
	if up := in["Upgrade"]; len(up) > 0 && hasToken(in["Connection"], "upgrade") {
		if strings.ContainsFunc(up[0], func(c rune) bool { return c < ' ' || c > '~' }) {
			return false
		}
		// Other protocols after an upgrade, such as h2c, could carry any number of requests
		// that are not checked. A server may always decline an upgrade.
		if x.upgrade = strings.EqualFold(up[0], "websocket"); x.upgrade {
			h["Connection"], h["Upgrade"] = upgrade, up[:1:1]
		}
	}
	via := g.via[10*r.ProtoMajor+r.ProtoMinor]
	if via == nil {
		via = g.via[11]
	}
	if before := h["Via"]; len(before) > 0 {
		via = append(slices.Clip(before), via[0])
	}
	h["Via"] = via
	if _, said := h["User-Agent"]; !said {
		h["User-Agent"] = none // net/http would write its own
	}
	switch most := g.options.MaxBody; {
	case r.ContentLength == 0:
		out.Body = nil
	case x.limited.Short && (most == 0 || r.ContentLength <= most): // it goes on as it is
	case out.Body != nil:
		x.body = &x.bodyOne
		x.body.exchange = x
		if x.body.reader = out.Body; most > 0 {
			x.body.reader = http.MaxBytesReader(x.w, out.Body, most)
		}
		out.Body = x.body
	}
	return true
}

// headersOut is how many headers there are on the way out, or a few more. It is exact for usual
// requests, because a map for nine or more costs several allocations.
func headersOut(in http.Header) int {
	n := len(in) + 4 // Via, and three about the client
	for _, name := range [...]string{"Connection", "Content-Length"} {
		if _, given := in[name]; given {
			n--
		}
	}
	if _, given := in["User-Agent"]; !given {
		n++
	}
	return n
}

// Values of headers, which are shared and never changed.
var (
	trailers = []string{"trailers"}
	upgrade  = []string{"Upgrade"}
	none     = []string{""}
)

// got1xx passes on an answer before the answer. The headers about limits are not for it. A 100 is
// not passed on: the server sends its own when the body is read, and a client would get two.
func (x *exchange) got1xx(code int, header textproto.MIMEHeader) error {
	if code == http.StatusContinue {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.answered {
		return nil // the headers are no longer its to touch
	}
	h := x.w.Header()
	kept := maps.Clone(h)
	clear(h)
	maps.Copy(h, http.Header(header))
	x.w.WriteHeader(code)
	clear(h)
	maps.Copy(h, kept)
	return nil
}

// respond sends an answer to the client. An answer that ends early ends the connection, so that the
// client sees that it is not whole.
func (x *exchange) respond(res *http.Response) {
	x.status = res.StatusCode
	x.place.Answer()
	h := x.w.Header()
	copyBack(h, res.Header)
	announced := len(res.Trailer)
	if announced > 0 {
		h.Add("Trailer", strings.Join(slices.Collect(maps.Keys(res.Trailer)), ", "))
	}
	x.w.WriteHeader(res.StatusCode)
	err := x.copyBody(res)
	_ = res.Body.Close() // now the trailers are there
	switch err {
	case nil:
	case httplimit.ErrCut:
		return
	default:
		panic(http.ErrAbortHandler)
	}
	prefix := ""
	if len(res.Trailer) != announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range res.Trailer {
		h[prefix+name] = append(slices.Clip(h[prefix+name]), values...)
	}
}

// copyBack copies the headers of an answer, but for those that are between two neighbours, and
// those about limits, which are the gateway's.
func copyBack(to, from http.Header) {
	dropNamed(from, from["Connection"])
	for name, values := range from {
		switch before := to[name]; {
		case isHop(name), aboutLimits(name):
		case before == nil:
			to[name] = values
		default:
			to[name] = append(slices.Clip(before), values...)
		}
	}
}

// copyBody copies the body of an answer. What has no length, or is a stream of events, is sent at
// once, and so are its headers.
func (x *exchange) copyBody(res *http.Response) error {
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	flush := func() error { return nil }
	if res.ContentLength < 0 || strings.EqualFold(strings.TrimSpace(kind), "text/event-stream") {
		x.gateway.streams.begin()
		defer x.gateway.streams.end()
		flush = http.NewResponseController(x.w).Flush
		_ = flush() // a client that has left shows when something is written
	}
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		n, err := res.Body.Read(buffer[:])
		if n > 0 {
			x.place.Begin()
			_, err := x.w.Write(buffer[:n])
			if err == nil {
				_ = flush()
			}
			if x.place.End(n); err != nil {
				return err
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// streams counts what may go on for long: an operator has it end in its own time when the process
// stops, while other responses have to be quick.
type streams struct {
	mu   sync.Mutex
	open int
	none chan struct{} // closed when the last one ends; nil if there was none yet
}

func (s *streams) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open++; s.open == 1 {
		s.none = make(chan struct{})
	}
}

func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open--; s.open == 0 {
		close(s.none)
	}
}

func (s *streams) count() (open int, none <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, s.none
}

// wait waits until there is none, and returns how many there are when the context ends.
func (s *streams) wait(ctx context.Context) int {
	open, none := s.count()
	if open == 0 {
		return 0
	}
	select {
	case <-none:
		return 0
	case <-ctx.Done():
		open, _ = s.count()
		return open
	}
}

const bufferSize = 32 << 10

// buffers are what bodies are copied by.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// switchProtocols goes on with a WebSocket, until one of its ends closes it.
func (x *exchange) switchProtocols(res *http.Response) error {
	upstream, both := res.Body.(io.ReadWriteCloser) // if Connection says so, too
	if !both || !x.upgrade || !strings.EqualFold(res.Header.Get("Upgrade"), "websocket") {
		_ = res.Body.Close()
		return errSwitched
	}
	defer upstream.Close()
	x.gateway.streams.begin() // from here on, the server does not know of it
	defer x.gateway.streams.end()
	client, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return err
	}
	defer client.Close()
	defer context.AfterFunc(x.Context, func() { _ = upstream.Close() })()

	x.status = res.StatusCode
	h := x.w.Header()
	for name, values := range res.Header {
		if !aboutLimits(name) {
			h[name] = values
		}
	}
	res.Header, res.Body = h, nil
	if x.err = res.Write(buffered); x.err == nil {
		x.err = buffered.Flush()
	}
	if x.err != nil {
		return nil // there is nobody to tell
	}
	x.place.Answer()
	x.place.Begin() // it is not known when a WebSocket is busy
	ended := make(chan error, 2)
	go carry(ended, client, upstream)
	// The client may have written something already. Behind that, the reader of the server would
	// take the end of what it writes for its departure.
	early := io.LimitReader(buffered, int64(buffered.Reader.Buffered()))
	go carry(ended, upstream, io.MultiReader(early, client))
	if <-ended == nil {
		<-ended // one direction may be closed before the other
	}
	return nil
}

// carry copies one direction of a connection, and passes its end on.
func carry(ended chan<- error, to io.Writer, from io.Reader) {
	_, err := io.Copy(to, from)
	if err == nil {
		err = io.EOF
		if half, can := to.(interface{ CloseWrite() error }); can {
			err = half.CloseWrite()
		}
	}
	ended <- err
}
