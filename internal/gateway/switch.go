package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// switchProtocols goes on with a WebSocket, until one of its ends closes it.
func (x *exchange) switchProtocols(res *http.Response) error {
	upstream, both := res.Body.(io.ReadWriteCloser) // if Connection says so, too
	if !both || !x.upgrade || !strings.EqualFold(res.Header.Get("Upgrade"), "websocket") {
		_ = res.Body.Close()
		return errSwitched
	}
	defer upstream.Close()
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
	x.wait() // it is not known when a WebSocket is busy
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
