package httplimit

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/internal/httpbody"
)

// promptBody is a body that was read. Its room is free when it has been read again, or is
// closed; if it is kept, when the response has ended.
type promptBody struct {
	body    []byte
	kept    bool
	ended   atomic.Bool // a transport may close what it still reads
	release func()

	// The memory of a short body is used again after the response, if it cannot be read any more:
	// all of it was read, or the handler says so.
	memory *shortBody
	read   atomic.Bool
	unused bool
	short  bytes.Reader
}

func (b *promptBody) Read(to []byte) (int, error) {
	if len(b.body) == 0 {
		b.read.Store(true)
		return 0, b.end()
	}
	n := copy(to, b.body)
	b.body = b.body[n:]
	return n, nil
}

// Short returns the body if it is so short that it takes no room, which would have to be given back
// when it has been read; else nil.
func (b *promptBody) Short() *bytes.Reader {
	if len(b.body) >= httpbody.Free {
		return nil
	}
	b.short.Reset(b.body)
	return &b.short
}

// Unused says that the body, or what Short returned, is not read any more.
func (b *promptBody) Unused() { b.unused = true }

func (b *promptBody) Close() error {
	b.end()
	return nil
}

func (b *promptBody) end() error {
	if b.body = nil; !b.kept {
		b.free()
	}
	return io.EOF
}

func (b *promptBody) free() {
	if !b.ended.Swap(true) {
		b.release()
	}
}

// finish is free when the response has ended.
func (b *promptBody) finish() {
	if b.free(); b.unused || b.read.Load() {
		b.memory.free()
	}
}

// shortBody is memory for a body that takes no room, and one byte more, so that its end is seen.
type shortBody [httpbody.Free + 1]byte

var shortBodies = sync.Pool{New: func() any { return new(shortBody) }}

// take returns memory for the body of a request that may be short, or nil. No framework says when it
// can be used again.
func (p *prompt) take(r *http.Request, by caller) []byte {
	if by == framework || r.ContentLength >= httpbody.Free {
		return nil
	}
	p.memory = shortBodies.Get().(*shortBody)
	return p.memory[:0]
}

func (m *shortBody) free() {
	if m != nil {
		shortBodies.Put(m)
	}
}
