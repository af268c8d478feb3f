package budget

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Free is how many bytes of a body are read without asking for room.
const Free = 4 << 10

// step is how many bytes make progress, and how many a body beyond Free has room for at first.
const step = 16 << 10

var (
	// ErrBusy is that other bodies took all the room, or that this one was too slow to keep its own.
	ErrBusy = errors.New("httpbody: there is no room for the body")

	// ErrSlow is that the body did not come in time.
	ErrSlow = errors.New("httpbody: the body comes too slowly")
)

// Pace is how fast a body must come: within Timeout, and after the first Grace with Rate bytes a second
// on average since then.
type Pace struct {
	Timeout time.Duration
	Rate    int64
}

// Grace is how long a body may take before its rate matters.
const Grace = 10 * time.Second

// Usual is the pace for those who do not choose one.
var Usual = Pace{Timeout: 5 * time.Minute, Rate: 1 << 10}

// BodyReader reads bodies. It is safe for concurrent use.
type BodyReader struct{ room *Inbox }

// NewBodyReader returns a reader of bodies that together have at most so many bytes, not counting
// what is free.
func NewBodyReader(size int64) *BodyReader { return &BodyReader{NewInbox(size)} }

// Free is how many bytes of room no body has.
func (b *BodyReader) Free() int64 { return b.room.Free() }

// BodySource is where a body comes from, and how it is read.
type BodySource struct {
	Writer  http.ResponseWriter // of the response, for deadlines
	Request *http.Request
	Client  netip.Addr // default that of the connection; no client has all the room
	Pace    Pace

	// Memory is for a short body, if it is long enough.
	Memory []byte

	// Optional is whether the body is used by others if it cannot be read: after an error, there is as much
	// time for the rest as the server gives. It is not so after ErrBusy if more than 2 × Free was read, for which
	// there is no room.
	Optional bool

	// Long is asked when there is more of the body than Free, before more is read. Its error ends the
	// reading. It may be nil.
	Long interface{ Look() error }
}

// Read reads a body of at most so many bytes. The error may be ErrBusy, ErrSlow, that of Long, or an
// *http.MaxBytesError. Whether or not there is one, body is what was read, but nil if Long ended it, and release
// is called when that is not used any more.
func (b *BodyReader) Read(s BodySource, most int64) (body []byte, release func(), err error) {
	if s.Request.ContentLength > most {
		return nil, nothing, &http.MaxBytesError{Limit: most}
	}
	switch body, release, err = b.ReadAhead(s, most+1); err {
	case io.EOF:
		return body, release, nil
	case nil: // whatever its length was said to be
		if !s.Optional {
			setDeadline(s.Writer, time.Now().Add(Grace)) // or the server could wait for the rest for ever
		}
		err = &http.MaxBytesError{Limit: most}
	}
	return body, release, err
}

// ReadAhead reads so many bytes of a body, or all of it; then the error is io.EOF. Other errors are those
// of Read.
func (b *BodyReader) ReadAhead(s BodySource, most int64) (body []byte, release func(), err error) {
	size := int64(512)
	if n := s.Request.ContentLength; n >= 0 {
		most = min(most, n+1) // one more, so that the end is seen
		size = min(most, Free+1)
	}
	body = s.Memory[:0]
	if int64(cap(body)) < size {
		body = make([]byte, 0, size)
	}
	t := s.timing()
	if body, err = t.read(s.Request.Body, body, min(most, Free)); err != nil || most <= Free {
		if t.server == 0 {
			t.end(err)
		}
		return body, nothing, err
	}
	if s.Long != nil {
		if err = s.Long.Look(); err != nil {
			return nil, nothing, err // it has as much time as before, for a server that reads the rest
		}
	}
	r := &receipt{timing: t, room: b.room, client: s.Client}
	r.guard = &r.own
	if remote, err := netip.ParseAddrPort(s.Request.RemoteAddr); err == nil && !r.client.IsValid() {
		r.client = remote.Addr()
	}
	body, err = r.receive(s.Request.Body, body, s.Request.ContentLength, most)
	if !r.room.Received(&r.item) {
		err, r.optional = ErrBusy, s.Optional && len(body) <= 2*Free
	}
	r.end(err)
	return body, r.release, err
}

func nothing() {}

// receipt is a body that is longer than Free.
type receipt struct {
	timing
	item   Item
	room   *Inbox
	client netip.Addr
	own    guard
}

// receive reads on until there are so many bytes. Memory grows with what comes, not with what was said
// to come.
func (r *receipt) receive(from io.Reader, body []byte, length, most int64) (_ []byte, err error) {
	room := int64(0)
	for n := int64(len(body)); n < most && err == nil; n = int64(len(body)) {
		if n < room {
			r.room.Progress(&r.item)
		} else {
			size := min(max(step, 2*n), most)
			if !r.room.Grow(&r.item, r, size-room, length) {
				return body, ErrBusy
			}
			if room = size; int64(cap(body)) < size {
				body = append(make([]byte, 0, size), body...)
			}
		}
		body, err = r.read(from, body, min(n+step, room))
	}
	return body, err
}

// Client implements Sender.
func (r *receipt) Client() netip.Addr { return r.client }

// Abort implements Sender. Where no deadline can be set, the next read is not made.
func (r *receipt) Abort() {
	r.own.mu.Lock()
	defer r.own.mu.Unlock()
	r.own.aborted = true
	setDeadline(r.w, time.Unix(1, 0))
}

func (r *receipt) release() { r.room.Release(&r.item) }

// timing bounds the time of a body.
type timing struct {
	pace   Pace
	server time.Duration // that the server has for a whole request; 0 for ever
	began  time.Time
	w      http.ResponseWriter
	guard  *guard // nil if nobody else ends it

	optional bool
}

// guard keeps a deadline that ends the reading of a body.
type guard struct {
	mu      sync.Mutex
	aborted bool
}

func (s *BodySource) timing() timing {
	server := time.Duration(0)
	if s, ok := s.Request.Context().Value(http.ServerContextKey).(*http.Server); ok {
		server = s.ReadTimeout
	}
	return timing{pace: cmp.Or(s.Pace, Usual), server: server, began: time.Now(), w: s.Writer, optional: s.Optional}
}

// read reads until there are so many bytes, or an error, of which one is the end.
func (t *timing) read(from io.Reader, body []byte, most int64) ([]byte, error) {
	for int64(len(body)) < most {
		if !t.move(len(body)) {
			return body, ErrBusy
		}
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == nil:
		case err != io.EOF && errors.Is(err, os.ErrDeadlineExceeded):
			return body, ErrSlow
		default:
			return body, err
		}
	}
	return body, nil
}

// move gives a body of which n bytes have come its time for more. It is false if the body was given up.
// The server's own deadline is enough for a short body.
func (t *timing) move(n int) bool {
	most := t.pace.Timeout
	if t.server > 0 {
		if most = min(most, t.server); n < Free {
			return true
		}
	}
	needs := Grace + time.Duration(n)*time.Second/time.Duration(t.pace.Rate)
	if g := t.guard; g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.aborted {
			return false
		}
	}
	setDeadline(t.w, t.began.Add(min(most, needs)))
	return true
}

// end lets the server's own deadline hold again. After an error there is no time left, so that nobody
// waits for the rest of the body, unless others use it.
func (t *timing) end(err error) {
	switch {
	case err != nil && err != io.EOF && !t.optional:
		setDeadline(t.w, time.Unix(1, 0))
	case t.server > 0:
		setDeadline(t.w, t.began.Add(t.server))
	default:
		setDeadline(t.w, time.Time{})
	}
}

// setDeadline does what http.ResponseController does, without an allocation if it cannot be done.
func setDeadline(w http.ResponseWriter, at time.Time) {
	for {
		switch t := w.(type) {
		case interface{ SetReadDeadline(time.Time) error }:
			_ = t.SetReadDeadline(at)
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return
		}
	}
}
