package httplimit

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/internal/gateway/llm"
)

// errPanicked is how a handler ended that did not return.
var errPanicked = errors.New("httplimit: the handler panicked")

// observe calls the handler, settles what its response costs, and tells who wants to know how
// it went.
func (m *Middleware) observe(next http.Handler, w http.ResponseWriter, r *http.Request, s *settlement) {
	if m.options.Observe == nil && s == nil {
		next.ServeHTTP(w, r)
		return
	}
	var n *noted
	if s != nil {
		n = &s.noted
		n.watch, n.hold = s.watch, s.Hold
		defer n.kept.drop()
	} else {
		n = new(noted)
	}
	n.ResponseWriter = w
	var start time.Time
	if m.options.Observe != nil {
		start = time.Now()
	}
	err := errPanicked
	defer func() {
		if n.cut() && err != nil {
			// A proxy that cannot write its response panics, so that the client sees that it
			// is not whole. This one is.
			if cause := recover(); cause == http.ErrAbortHandler {
				err = nil
			} else {
				defer panic(cause)
			}
		}
		status := n.status
		switch {
		case status == 0 && err != nil:
			status = http.StatusInternalServerError
		case status == 0:
			status = http.StatusOK // as net/http answers for a handler that says nothing
			n.status = status
		}
		m.end(s, n, r, err)
		n.free()
		if m.options.Observe != nil {
			// The pattern is the mux's, and so one of a few: a mux writes it into the
			// request on its way down.
			m.options.Observe(r.Pattern, status, time.Since(start), err)
		}
	}()
	next.ServeHTTP(n, r)
	n.finish()
	err = nil
}

// noted takes note of the status and the length, and of the tokens if there are any to count.
// It can do what the writers of net/http can, for handlers that ask for that by type.
type noted struct {
	http.ResponseWriter
	status int // 0 until there is one
	bytes  int64
	watch  *llm.Watch     // or nil
	kept   *kept          // or nil
	hold   *engine.Hold   // or nil
	place  *front.Waiting // or nil
}

// Unwrap lets http.ResponseController reach the writer below.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// WriteHeader implements http.ResponseWriter. Hints such as 103 are no status, but 101
// ends what HTTP has to say.
func (n *noted) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		n.begin(status)
	}
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) begin(status int) {
	if n.status != 0 {
		return
	}
	n.status = status
	if n.hold != nil {
		n.hold.Answered()
	}
	if n.place != nil {
		n.place.Answer()
	}
	n.kept.begin(n.Header())
	if n.watch != nil {
		if n.watch.Begin(status, n.Header()); n.watch.Shortens() {
			n.Header().Del("Content-Length")
		}
	}
}

// Write implements http.ResponseWriter.
func (n *noted) Write(body []byte) (int, error) {
	n.begin(http.StatusOK)
	if n.watch == nil {
		written, err := n.write(body)
		n.kept.keepBytes(body[:written])
		return written, err
	}
	n.kept.keepBytes(body)
	if n.watch.Cut() {
		return 0, ErrCut
	}
	if err := n.send(n.watch.Pass(body)); err != nil {
		return 0, err
	}
	if n.watch.Cut() {
		return len(body), ErrCut
	}
	return len(body), nil
}

func (n *noted) send(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	_, err := n.write(body)
	return err
}

// write waits for a client that reads.
func (n *noted) write(body []byte) (int, error) {
	n.place.Begin()
	written, err := n.ResponseWriter.Write(body)
	n.place.End(written)
	n.bytes += int64(written)
	return written, err
}

// finish sends what is left when the handler is done.
func (n *noted) finish() {
	if n.watch != nil {
		_ = n.send(n.watch.End())
	}
}

// free gives back the memory of what is counted no more.
func (n *noted) free() {
	if n.watch != nil {
		n.watch.Free()
		n.watch = nil
	}
}

// cut reports whether the response was ended before the handler's end.
func (n *noted) cut() bool { return n.watch != nil && n.watch.Cut() }

// ReadFrom implements io.ReaderFrom, by which files are sent without a copy. A request that has a place writes
// itself, because it waits for its client only while it writes.
func (n *noted) ReadFrom(r io.Reader) (int64, error) {
	if n.place != nil || n.watch != nil || n.kept != nil && !n.kept.lost {
		return io.Copy(struct{ io.Writer }{n}, r)
	}
	n.begin(http.StatusOK)
	copied, err := io.Copy(n.ResponseWriter, r)
	n.bytes += copied
	return copied, err
}

// Flush implements http.Flusher.
func (n *noted) Flush() {
	n.begin(http.StatusOK)
	n.place.Begin()
	_ = http.NewResponseController(n.ResponseWriter).Flush()
	n.place.End(0)
}

// Hijack implements http.Hijacker.
func (n *noted) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(n.ResponseWriter).Hijack()
	if err == nil && n.status == 0 {
		n.status = http.StatusSwitchingProtocols
	}
	if err == nil && n.place != nil {
		n.place.Answer()
		n.place.Begin() // it is not known when the connection is busy
	}
	if err == nil && n.hold != nil {
		conn = inFlight(conn, n.hold.Keep())
	}
	return conn, rw, err
}

// hijacked is a connection whose request is in flight until it is closed.
type hijacked struct {
	net.Conn
	leave func()
}

// inFlight returns a connection that calls leave when it is closed, or is not used any more.
func inFlight(conn net.Conn, leave func()) net.Conn {
	if leave == nil {
		return conn
	}
	h := &hijacked{conn, leave}
	runtime.AddCleanup(h, func(leave func()) { leave() }, leave)
	return h
}

// Close closes the connection.
func (h *hijacked) Close() error {
	defer h.leave()
	return h.Conn.Close()
}

// CloseWrite lets those write the end who tell it from that of the connection.
func (h *hijacked) CloseWrite() error {
	if c, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
