package httplimit

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// errPanicked is how a handler ended that did not return.
var errPanicked = errors.New("httplimit: the handler panicked")

// serve calls the handler, and tells who wants to know how it went.
func (m *Middleware) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if m.options.Observe == nil {
		next.ServeHTTP(w, r)
		return
	}
	n := &noted{ResponseWriter: w}
	start := time.Now()
	err := errPanicked
	defer func() {
		status := n.status
		switch {
		case status == 0 && err != nil:
			status = http.StatusInternalServerError
		case status == 0:
			status = http.StatusOK // as net/http answers for a handler that says nothing
		}
		// The pattern is the mux's, and so one of a few: a mux writes it into the
		// request on its way down.
		m.options.Observe(r.Pattern, status, time.Since(start), err)
	}()
	next.ServeHTTP(n, r)
	err = nil
}

// noted takes note of the status. It can do what the writers of net/http can, for
// handlers that ask for that by type.
type noted struct {
	http.ResponseWriter
	status int // 0 until there is one
}

// Unwrap lets http.ResponseController reach the writer below.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// WriteHeader implements http.ResponseWriter. Hints such as 103 are no status, but 101
// ends what HTTP has to say.
func (n *noted) WriteHeader(status int) {
	if n.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		n.status = status
	}
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) begin() {
	if n.status == 0 {
		n.status = http.StatusOK
	}
}

// Write implements http.ResponseWriter.
func (n *noted) Write(body []byte) (int, error) {
	n.begin()
	return n.ResponseWriter.Write(body)
}

// ReadFrom implements io.ReaderFrom, by which files are sent without a copy.
func (n *noted) ReadFrom(r io.Reader) (int64, error) {
	n.begin()
	return io.Copy(n.ResponseWriter, r)
}

// Flush implements http.Flusher.
func (n *noted) Flush() {
	n.begin()
	_ = http.NewResponseController(n.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker.
func (n *noted) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(n.ResponseWriter).Hijack()
	if err == nil && n.status == 0 {
		n.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}
