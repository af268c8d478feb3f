package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

// rollout is a gateway that is told to stop while requests are in flight.
type rollout struct {
	*App
	t       *testing.T
	log     *safeBuffer
	events  chan string // what the upstream sends next, on the way /events; closed for the end
	slow    chan string // what it answers on the way /slow
	arrived chan string // the ways of the requests that it got
	stopped chan error
}

func newRollout(t *testing.T, grace, streamGrace time.Duration) *rollout {
	r := &rollout{t: t, events: make(chan string), slow: make(chan string), arrived: make(chan string, 10), stopped: make(chan error, 1)}
	upstream := httptest.NewServer(r)
	t.Cleanup(upstream.Close)
	o, log := prepared(t, Options{Grace: grace, Gateway: &Gateway{Listen: "127.0.0.1:0", StreamGrace: streamGrace}}, perUser)
	o.Gateway.Routes = routes(t, upstream.URL)
	r.App, r.log = started(t, o), log
	return r
}

// ServeHTTP is the upstream.
func (r *rollout) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	r.arrived <- in.URL.Path
	switch in.URL.Path {
	case "/events":
		w.Header().Set("Content-Type", "text/event-stream")
		for http.NewResponseController(w).Flush(); ; http.NewResponseController(w).Flush() {
			select {
			case event, more := <-r.events:
				if !more {
					return
				}
				fmt.Fprintln(w, event)
			case <-in.Context().Done():
				return
			}
		}
	case "/slow":
		select {
		case text := <-r.slow:
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			io.WriteString(w, text)
		case <-in.Context().Done():
		}
	case "/socket":
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			r.t.Error(err)
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(c, buffered)
	}
}

// open sends a request, and returns its answer when that has begun, or the error of it.
func (r *rollout) open(path string, version int) chan result {
	r.t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(version == 1)
	transport.Protocols.SetUnencryptedHTTP2(version == 2)
	r.t.Cleanup(transport.CloseIdleConnections)
	answers := make(chan result, 1)
	req := testkit.Must(http.NewRequestWithContext(r.t.Context(), "GET", "http://"+r.Addrs().Gateway.String()+path, nil))(r.t)
	go func() {
		res, err := (&http.Client{Transport: transport}).Do(req)
		answers <- result{res, err}
	}()
	if got := <-r.arrived; got != path {
		r.t.Fatalf("%s arrived instead of %s", got, path)
	}
	return answers
}

type result struct {
	*http.Response
	err error
}

// text is the rest of an answer, with the error at which it ends.
func (a result) text() (string, error) {
	if a.err != nil {
		return "", a.err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return string(text), err
}

// stream opens events, of which the first has arrived.
func (r *rollout) stream(version int) result {
	r.t.Helper()
	answer := <-r.open("/events", version)
	testkit.OK(r.t, answer.err)
	r.events <- "first"
	line := make([]byte, len("first\n"))
	if _, err := io.ReadFull(answer.Body, line); err != nil || string(line) != "first\n" {
		r.t.Fatalf("%q, %v", line, err)
	}
	return answer
}

// socket opens a WebSocket, without the frames, of which the gateway knows nothing.
func (r *rollout) socket() (net.Conn, *bufio.Reader) {
	r.t.Helper()
	c := testkit.Must(net.Dial("tcp", r.Addrs().Gateway.String()))(r.t)
	r.t.Cleanup(func() { c.Close() })
	io.WriteString(c, "GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(c)
	if res := testkit.Must(http.ReadResponse(in, nil))(r.t); res.StatusCode != http.StatusSwitchingProtocols {
		r.t.Fatal(res.Status)
	}
	<-r.arrived
	return c, in
}

// stop begins to stop, and returns when the grace is over and weir waits for streams.
func (r *rollout) stop() {
	r.t.Helper()
	go func() { r.stopped <- r.Stop(context.Background()) }()
	waitFor(r.t, "the end of the grace", func() bool { return strings.Contains(r.log.String(), "waiting for streams") })
}

// A stream that is open when weir is told to stop goes on to its end, long after the grace; so does
// what else is in flight, as long as weir waits anyway.
func TestStreamsOutlastGrace(t *testing.T) {
	for version := range 2 {
		r := newRollout(t, time.Second, time.Hour)
		events, slow := r.stream(version+1), r.open("/slow", version+1)
		socket, in := r.socket()
		r.stop()
		if !strings.Contains(r.log.String(), "streams=2 at_most=1h0m0s") {
			t.Errorf("HTTP/%d: %s", version+1, r.log)
		}
		if status, body := ask(t, nil, "GET", urlOf(r.App)+"/readyz", ""); status != http.StatusServiceUnavailable {
			t.Errorf("HTTP/%d: ready: %d %s", version+1, status, body)
		}
		if _, err := net.Dial("tcp", r.Addrs().Gateway.String()); err == nil {
			t.Errorf("HTTP/%d: the gateway still listens", version+1)
		}
		r.events <- "second"
		close(r.events)
		if text, err := events.text(); text != "second\n" || err != nil {
			t.Errorf("HTTP/%d: the stream went on with %q, %v", version+1, text, err)
		}
		r.slow <- "done"
		if text, err := (<-slow).text(); text != "done" || err != nil {
			t.Errorf("HTTP/%d: the other request was answered %q, %v", version+1, text, err)
		}
		io.WriteString(socket, "hello\n")
		if line, err := in.ReadString('\n'); line != "hello\n" || err != nil {
			t.Errorf("HTTP/%d: the WebSocket went on with %q, %v", version+1, line, err)
		}
		select {
		case err := <-r.stopped:
			t.Errorf("HTTP/%d: it has stopped before the WebSocket: %v", version+1, err)
		default:
		}
		socket.Close()
		if err := <-r.stopped; err != nil {
			t.Errorf("HTTP/%d: %v", version+1, err)
		}
	}
}

// Other requests do not have more time than the grace, but for that of streams.
func TestGraceOfOthers(t *testing.T) {
	r := newRollout(t, time.Nanosecond, time.Hour)
	slow := r.open("/slow", 1)
	const want = "did not finish within 1ns and were cut off"
	if err := r.Stop(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without a stream: %v", err)
	}
	if text, err := (<-slow).text(); err == nil {
		t.Errorf("without a stream: %q", text)
	}

	r = newRollout(t, time.Nanosecond, time.Hour)
	events, slow := r.stream(1), r.open("/slow", 1)
	r.stop()
	close(r.events)
	_, _ = events.text() // with a grace of nothing, its end may be cut off
	if text, err := (<-slow).text(); err == nil {
		t.Errorf("after the stream: %q", text)
	}
	if err := <-r.stopped; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("after the stream: %v", err)
	}
}

// Streams do not have more time than theirs.
func TestStreamGrace(t *testing.T) {
	for name, open := range map[string]func(*rollout) io.Reader{
		"events":    func(r *rollout) io.Reader { return r.stream(1).Body },
		"WebSocket": func(r *rollout) io.Reader { _, in := r.socket(); return in },
	} {
		r := newRollout(t, time.Nanosecond, 2*time.Nanosecond)
		stream := open(r)
		if err := r.Stop(context.Background()); err == nil || !strings.Contains(err.Error(), "did not finish within 2ns and were cut off") {
			t.Errorf("%s: %v", name, err)
		}
		if text, err := io.ReadAll(stream); len(text) > 0 || name == "events" && err == nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := New(Options{Gateway: &Gateway{StreamGrace: -1}}); err == nil || !strings.Contains(err.Error(), "--stream-grace") {
		t.Errorf("a negative grace: %v", err)
	}
}
