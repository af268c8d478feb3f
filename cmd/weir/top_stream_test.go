package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/server/httpapi"
)

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         []string
		err          error
	}{
		{"none", "", nil, io.EOF},
		{"two", "data: a\n\ndata:b\n\n", []string{"a", "b"}, io.EOF},
		{"lines of all kinds", ": hello\r\n\r\nevent: x\r\ndata: a\r\nid: 7\r\ndata: b\r\n\r\n", []string{"a\nb"}, io.EOF},
		{"torn", "data: a\n\ndata: b\n", []string{"a"}, io.EOF},
		{"an endless line", "data: " + strings.Repeat("x", maxEvent+1), nil, bufio.ErrTooLong},
		{"endless lines", strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 5), nil, bufio.ErrTooLong},
	} {
		var got []string
		err := events(strings.NewReader(c.stream), func(data []byte) error {
			got = append(got, string(data))
			return nil
		})
		if fmt.Sprint(got) != fmt.Sprint(c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

// seen is what a follower tells, in order.
type seen struct {
	event *httpapi.SummaryAnswer
	lost  error
	pause time.Duration
}

// follow follows a server until a test ends.
func follow(t *testing.T, address string, f follower) <-chan seen {
	t.Helper()
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	flags := clientFlags{timeout: 10 * time.Second}
	if f.server, err = flags.clientOf(base); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	told, done := make(chan seen), make(chan struct{})
	tell := func(s seen) {
		select {
		case told <- s:
		case <-ctx.Done():
		}
	}
	f.event = func(e *httpapi.SummaryAnswer) { tell(seen{event: e}) }
	f.lost = func(err error, pause time.Duration) { tell(seen{lost: err, pause: pause}) }
	go func() {
		f.run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return told
}

func next(t *testing.T, told <-chan seen) seen {
	t.Helper()
	select {
	case s := <-told:
		return s
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing is told")
	}
	return seen{}
}

// The real stream begins with a second that is over.
func TestFollow(t *testing.T) {
	r := serveStats(t, loginAndAPI)
	r.check(t, 3, `{"user":"alice","path":"/api/x"}`)
	r.pass(t, 5)
	s := next(t, follow(t, r.URL, follower{}))
	if s.event == nil || s.event.Window != 1 || s.event.Allowed != 3 || len(s.event.Rules) != 1 || s.event.Rules[0].Rule != "api" {
		t.Errorf("the first event is %+v, %v", s.event, s.lost)
	}
}

// A lost connection is made again, after pauses that grow until something comes.
func TestFollowReconnects(t *testing.T) {
	answers := make(chan http.HandlerFunc, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (<-answers)(w, r) }))
	t.Cleanup(s.Close)
	stream := func(data ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, d := range data {
				fmt.Fprintf(w, "data: %s\n\n", d)
			}
		}
	}
	problem := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(503)
		io.WriteString(w, `{"detail":"As many follow already as may."}`)
	}
	const first, most = time.Millisecond, 3 * time.Millisecond
	told := follow(t, s.URL, follower{silence: time.Minute, first: first, most: most})
	event := func(from int64) {
		t.Helper()
		if s := next(t, told); s.event == nil || s.event.From != from {
			t.Errorf("%+v, want an event of %d", s, from)
		}
	}
	lost := func(text string, pause time.Duration) {
		t.Helper()
		if s := next(t, told); s.lost == nil || !strings.Contains(s.lost.Error(), text) || s.pause != pause {
			t.Errorf("%+v, want %q and a pause of %v", s, text, pause)
		}
	}
	answers <- stream(`{"from":1}`, `{"from":2}`)
	event(1)
	event(2)
	lost("closed the connection", first)
	answers <- problem
	lost("as many follow already as may", 2*first)
	answers <- http.NotFound
	lost("answered with status 404", most)
	answers <- func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }
	lost("answered with status 200", most)
	answers <- stream(`{"from":3}`, `nonsense`, `{"from":4}`)
	event(3)
	lost("not from weir", first)
	answers <- stream(`{"from":5}`)
	event(5)
	lost("closed the connection", first)
	answers <- problem
	lost("as many follow", 2*first)
	answers <- stream()
}

// A stream on which nothing comes any more, or never did, is given up.
func TestFollowSilence(t *testing.T) {
	const event, nothing = "data: {\"from\":1}\n\n", ": nothing yet\n\n"
	var sends atomic.Value // what a stream begins with
	sends.Store(event)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, sends.Load())
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	told := follow(t, s.URL, follower{silence: time.Second, first: time.Millisecond, most: time.Millisecond})
	lost := func(s seen) {
		t.Helper()
		if s.lost == nil || !strings.Contains(s.lost.Error(), "sent nothing for 1s") {
			t.Fatalf("%+v", s)
		}
	}
	for range 2 {
		s := next(t, told)
		for ; s.event == nil; s = next(t, told) {
			lost(s) // the event came too late, or the stream had begun with nothing
		}
		sends.Store(nothing)
		lost(next(t, told)) // after an event
		lost(next(t, told)) // without any
		sends.Store(event)
	}
}

// The errors of no server and of a server that does not answer differ.
func TestFollowNobody(t *testing.T) {
	told := follow(t, nobody, follower{silence: time.Minute, first: time.Millisecond, most: time.Millisecond})
	if s := next(t, told); s.lost == nil || !strings.Contains(s.lost.Error(), "no weir at ") {
		t.Errorf("%+v", s)
	}
	release := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer mute.Close()
	defer close(release)
	base, err := url.Parse(mute.URL)
	if err != nil {
		t.Fatal(err)
	}
	server, err := (&clientFlags{timeout: 30 * time.Millisecond}).clientOf(base)
	if err != nil {
		t.Fatal(err)
	}
	f := follower{server: server, silence: time.Minute}
	if _, err := f.once(t.Context()); err == nil || !strings.Contains(err.Error(), "did not answer within 30ms") {
		t.Errorf("%v", err)
	}
}
