package engine

import (
	"io"
	"sync/atomic"
)

// upload is the body of a request that has a hold.
type upload struct {
	io.ReadCloser
	rate  int64 // bytes a second that it has to come with
	bytes atomic.Int64
	waits atomic.Bool // for the client to send more
	over  atomic.Bool // nothing more is waited for
	seen  int64       // bytes, when the hold was due to be extended last
}

// Upload returns the body of the request, for the handler to read instead. While the handler waits
// for more of it, and before [Hold.Answered], the hold is then extended only if the body comes at so
// many bytes a second: a client that sends nothing must not keep what is reserved from others for
// ever. Places stay taken.
func (h *Hold) Upload(body io.ReadCloser, rate int64) io.ReadCloser {
	u := &upload{ReadCloser: body, rate: rate}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.upload = u
	return u
}

// Answered says that the response has begun, so that it no longer matters how the body comes.
func (h *Hold) Answered() {
	if h.upload != nil {
		h.upload.over.Store(true)
	}
}

func (u *upload) Read(p []byte) (int, error) {
	u.waits.Store(true)
	n, err := u.ReadCloser.Read(p)
	u.waits.Store(false)
	u.bytes.Add(int64(n))
	if err != nil {
		u.over.Store(true)
	}
	return n, err
}

func (u *upload) Close() error {
	u.over.Store(true)
	return u.ReadCloser.Close()
}

// isStalledLocked reports whether too little has come since it was asked last, which is half of the hold's time ago.
func (h *Hold) isStalledLocked() bool {
	u := h.upload
	if u == nil || u.over.Load() {
		return false
	}
	bytes := u.bytes.Load()
	came := bytes - u.seen
	u.seen = bytes
	return u.waits.Load() && float64(came) < float64(u.rate)*(h.ttl/2).Seconds()
}
