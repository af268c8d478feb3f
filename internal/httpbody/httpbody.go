// Package httpbody reads the bodies of requests within a memory that all of them share.
package httpbody

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/weirhq/weir/internal/budget"
)

// Free is how many bytes of a body are read without asking for room.
const Free = 4 << 10

// maxWait is how long a body waits for room.
const maxWait = 2 * time.Second

// ErrBusy is that other bodies took all the room for too long.
var ErrBusy = errors.New("httpbody: there is no room for the body")

// Reader reads bodies. It is safe for concurrent use.
type Reader struct{ room *budget.Room }

// New returns a reader of bodies that together have at most so many bytes, not counting
// what is free.
func New(size int64) *Reader { return &Reader{budget.New(size)} }

// Read reads a body of at most so many bytes. A short one is in the given memory, if that is
// long enough; else it is new. The error may be ErrBusy, or an *http.MaxBytesError. Whether or not
// there is one, release is called when the body is not used any more.
func (b *Reader) Read(w http.ResponseWriter, r *http.Request, most int64, memory []byte) (body []byte, release func(), err error) {
	nothing := func() {}
	if r.ContentLength > most {
		return nil, nothing, &http.MaxBytesError{Limit: most}
	}
	limited, size := r.Body, int64(512)
	if n := r.ContentLength; n >= 0 { // it is not longer than that
		size = min(n, Free) + 1 // one more, so that the end is seen
	} else {
		limited = http.MaxBytesReader(w, r.Body, most)
	}
	if int64(cap(memory)) < size {
		memory = make([]byte, 0, size)
	}
	body, err = ReadUpTo(limited, memory[:0], Free)
	if err == nil {
		if release, err = b.Hold(r, most); err != nil {
			return nil, nothing, err
		}
		body, err = ReadUpTo(limited, grown(body, r.ContentLength), int(most)+1)
	} else {
		release = nothing
	}
	switch err {
	case io.EOF:
		return body, release, nil
	case nil: // whatever its length was said to be
		err = &http.MaxBytesError{Limit: most}
	}
	return nil, release, err
}

// Hold takes the room for a body of at most so many bytes that is longer than Free, until
// it is released.
func (b *Reader) Hold(r *http.Request, most int64) (release func(), err error) {
	n := most
	if r.ContentLength >= 0 {
		n = min(n, r.ContentLength)
	}
	if !b.room.Try(n) {
		ctx, cancel := context.WithTimeout(r.Context(), maxWait)
		defer cancel()
		if b.room.Take(ctx, n) != nil {
			return nil, ErrBusy
		}
	}
	return func() { b.room.Give(n) }, nil
}

// grown is a body with room for so many bytes, if that is known.
func grown(body []byte, length int64) []byte {
	if length <= int64(len(body)) {
		return body
	}
	return append(make([]byte, 0, length+1), body...)
}

// ReadUpTo reads until there are so many bytes, or an error, of which one is the end.
func ReadUpTo(from io.Reader, body []byte, most int) ([]byte, error) {
	for len(body) < most {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err != nil {
			return body, err
		}
	}
	return body, nil
}
