package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/stats"
)

const (
	// followerPatience is how long a follower may take to read an event. Until then, a
	// follower that does not read keeps a connection and a goroutine, but delays no other.
	followerPatience = 15 * time.Second

	// settled is after how long a second is known of all instances. The first event is
	// that second; those that follow are fresher.
	settled = 5 * time.Second

	// maxFirst is how long a follower waits for that.
	maxFirst = 2 * time.Second
)

var typeEvents = []string{"text/event-stream"}

// statsStream answers GET /v1/stats/stream: a summary of every second, as soon as it is
// known, until somebody leaves.
func (h *Handler) statsStream(c *call) (any, error) {
	header := c.Header()
	if c.r.Method == http.MethodHead {
		return text{kind: typeEvents}, nil
	}
	follow, err := h.options.Stats.Subscribe()
	if err != nil {
		return nil, fault.Busy.Of("The maximum number of streams is open; close a page, or try again.").After(fault.Outage).Coded("streams-busy")
	}
	defer follow.Close()
	header["Content-Type"] = typeEvents
	header.Set("X-Accel-Buffering", "no") // or nginx would collect events
	if c.r.ProtoMajor == 1 {
		header.Set("Connection", "close") // its deadlines are not those of other calls
	}
	s := &stream{call: c, control: http.NewResponseController(c.ResponseWriter), patience: h.patience}
	if s.open() {
		defer s.bound()
		h.follow(s, follow)
	}
	return nil, nil
}

// follow writes events until somebody leaves.
func (h *Handler) follow(s *stream, follow *stats.Subscription) {
	c := s.call
	if first, ok := h.firstEvent(c); ok && !s.send(h.summary(first.Summary())) {
		return
	}
	for {
		select {
		case live, open := <-follow.C:
			if !open || !h.mayFollow(c) || !s.send(h.summary(live.Summary())) {
				return
			}
		case <-c.r.Context().Done():
			return
		case <-h.options.Stopping:
			return
		}
	}
}

// mayFollow is whether the token or session by which a stream was opened is still good.
func (h *Handler) mayFollow(c *call) bool {
	_, err := manage.Identify(h.options.Tokens(), c.credentials, h.options.Clock())
	return err == nil
}

// firstEvent is a second that is over, so that a page need not wait for the next one.
// There is none if the archive does not answer at once.
func (h *Handler) firstEvent(c *call) (first stats.Live, ok bool) {
	at := h.options.Clock().Add(-settled)
	err := h.inTurn(c.r.Context(), maxFirst, func(ctx context.Context) error {
		return h.options.Stats.Replay(ctx, at, at.Add(time.Second), func(l stats.Live) { first, ok = l, true })
	})
	return first, ok && err == nil
}

// stream writes events to a follower.
type stream struct {
	*call
	control  *http.ResponseController
	patience time.Duration
}

// open sends the head of the answer. From then on the server's own deadlines, which are
// for calls that end, do not apply.
func (s *stream) open() bool {
	if err := s.control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return false
	}
	s.WriteHeader(http.StatusOK)
	return s.flush()
}

// send writes an event, and reports whether the follower still reads.
func (s *stream) send(value any) bool {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // every answer has a notation
	}
	return s.write(slices.Concat([]byte("data: "), body, []byte("\n\n")))
}

// write writes a piece, and reports whether the follower still reads.
func (s *stream) write(piece []byte) bool {
	s.bound()
	if _, err := s.Write(piece); err != nil {
		return false
	}
	return s.flush()
}

func (s *stream) flush() bool {
	s.bound()
	defer func() { _ = s.control.SetWriteDeadline(time.Time{}) }() // HTTP/2 would end a stream in which nothing happens
	return s.control.Flush() == nil
}

// bound begins the time within which what is written must be read. A writer without
// deadlines has no reader either who could be slow.
func (s *stream) bound() { _ = s.control.SetWriteDeadline(time.Now().Add(s.patience)) }
