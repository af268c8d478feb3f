package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/server/httpapi"
)

// maxEvent is the most that is read of an event, in bytes: one has a few hundred rules.
const maxEvent = 4 << 20

var (
	errSilent  = errors.New("no event for too long")
	errForeign = errors.New("an event is not from weir")
)

// follower reads the events of a server, and goes on when the connection is lost.
type follower struct {
	server *client
	event  func(*httpapi.SummaryAnswer)
	lost   func(err error, pause time.Duration) // it waits for so long, and tries again

	silence     time.Duration // after which a stream is given up. Default 15 s
	first, most time.Duration // pauses between tries, which double. Default 1 s and 15 s
}

// run follows until the context ends.
func (f *follower) run(ctx context.Context) {
	if f.silence == 0 {
		f.silence, f.first, f.most = 15*time.Second, time.Second, 15*time.Second
	}
	pause := f.first
	for {
		heard, err := f.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			pause = f.first // it was well meanwhile
		}
		f.lost(err, pause)
		if clock.Sleep(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, f.most)
	}
}

// once follows one connection until it ends, and reports whether any event came.
func (f *follower) once(ctx context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(f.server.timeout, func() { cancel(context.DeadlineExceeded) })
	defer watchdog.Stop()
	req, err := f.server.request(ctx, question{method: http.MethodGet, path: []string{"stats", "stream"}, accept: "text/event-stream"})
	if err != nil {
		return false, err
	}
	resp, err := f.server.http.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return false, f.server.unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxEvent)) // what cannot be read is no problem that weir describes
		return false, f.server.rejected(resp, body)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		return false, f.server.stranger(resp.StatusCode)
	}
	watchdog.Stop()
	watchdog = time.AfterFunc(f.silence, func() { cancel(errSilent) })
	defer watchdog.Stop()
	err = events(resp.Body, func(data []byte) error {
		var e httpapi.SummaryAnswer
		if json.Unmarshal(data, &e) != nil {
			return errForeign
		}
		heard = true
		watchdog.Reset(f.silence)
		f.event(&e)
		return nil
	})
	switch {
	case context.Cause(ctx) == errSilent:
		err = fmt.Errorf("%s sent nothing for %v", f.server.base, f.silence)
	case err == errForeign || err == bufio.ErrTooLong:
		err = f.server.stranger(resp.StatusCode)
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		err = fmt.Errorf("%s closed the connection", f.server.base)
	default:
		err = fmt.Errorf("lost the connection to %s: %s", f.server.base, cause(err))
	}
	return heard, err
}

// events reads server-sent events, and calls for the data of each. It returns io.EOF at
// the end. Names and ids of events, and how long to wait, weir does not send.
func events(r io.Reader, event func(data []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	var data []byte
	for lines.Scan() {
		text := lines.Bytes()
		value, isData := bytes.CutPrefix(text, []byte("data:"))
		switch {
		case isData:
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
			if len(data) > maxEvent {
				return bufio.ErrTooLong
			}
		case len(text) == 0 && len(data) > 0:
			if err := event(data); err != nil {
				return err
			}
			data = data[:0]
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}
