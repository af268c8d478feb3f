package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"
)

// Events arrive one by one: the upstream sends the next only when the client has seen
// the last.
func TestServerSentEvents(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "text/event-stream; charset=utf-8", "application/x-ndjson"} {
		next := make(chan struct{})
		b := newStand(t, setup{}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			if kind == "text/event-stream" {
				w.Header().Set("Content-Length", "27") // it is a stream all the same
			}
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				w.(http.Flusher).Flush()
				<-next
			}
		}))
		res, err := b.client.Get(b.server.URL)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(res.Body)
		for i := range 3 {
			line, err := in.ReadString('\n')
			if want := fmt.Sprintf("data: %d\n", i); err != nil || line != want {
				t.Fatalf("%s: %q %v, want %q", kind, line, err, want)
			}
			in.ReadString('\n')
			next <- struct{}{}
		}
		res.Body.Close()
	}
}

// A body and an answer may be under way at the same time, also in HTTP/1: the upstream
// gets every byte, although its answer has begun.
func TestFullDuplex(t *testing.T) {
	b := newStand(t, setup{}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		rc.EnableFullDuplex()
		w.WriteHeader(200)
		rc.Flush()
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		fmt.Fprintf(w, "%d %v %x", n, err, h.Sum(nil))
	}))
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<15)
	want := fmt.Sprintf("%d <nil> %x", len(data), sha256.Sum256(data))
	// A client of bare bytes, since net/http's stops sending when it is answered.
	c := b.dial()
	defer c.Close()
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", 100, data[:100])
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "%x\r\n%s\r\n0\r\n\r\n", len(data)-100, data[100:])
	text, err := io.ReadAll(res.Body)
	if err != nil || string(text) != want {
		t.Errorf("the upstream got %q, %v\nwant %q", text, err, want)
	}
}

// A body that the upstream does not request is not read from the client.
func TestExpectContinue(t *testing.T) {
	read := make(chan string, 1)
	b := newStand(t, setup{options: Options{ContinueTimeout: time.Hour}}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/deny" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		text, _ := io.ReadAll(r.Body)
		read <- string(text)
	}))
	ask := func(path string) (reply string, continued bool) {
		c := b.dial()
		defer c.Close()
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n", path)
		in := textproto.NewReader(bufio.NewReader(c))
		line, err := in.ReadLine()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, " 100 ") {
			h, _ := in.ReadMIMEHeader()
			if len(h) > 0 {
				t.Errorf("the 100 had headers: %v", h)
			}
			continued = true
			io.WriteString(c, "hello")
			line, _ = in.ReadLine()
		}
		h, _ := in.ReadMIMEHeader()
		if h.Get("RateLimit") == "" || h.Get("X-RateLimit-Limit") != "1000000" {
			t.Errorf("%s: there are no headers about limits: %v", path, h)
		}
		return line, continued
	}
	if line, continued := ask("/deny"); continued || !strings.Contains(line, " 403 ") {
		t.Errorf("denied: %q, asked for the body: %v", line, continued)
	}
	if line, continued := ask("/"); !continued || !strings.Contains(line, " 200 ") || <-read != "hello" {
		t.Errorf("accepted: %q, asked for the body: %v", line, continued)
	}
}

// What comes before the answer is passed on, and the answer still has the headers about
// limits, once. A 100 is not: the server sends its own when the body is read.
func TestInformational(t *testing.T) {
	b := newStand(t, setup{}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusContinue)
		for i := range 2 {
			w.Header().Set("Link", fmt.Sprintf("</%d.css>", i))
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header().Del("Link")
		w.Header().Set("X-Final", "1")
		io.WriteString(w, "done")
	}))
	var hints []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, h))
		return nil
	}}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "GET", b.server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got := strings.Join(hints, " "); got != "103 map[Link:[</0.css>]] 103 map[Link:[</1.css>]]" {
		t.Errorf("hints: %s", got)
	}
	if len(res.Header["X-Ratelimit-Limit"]) != 1 || len(res.Header["Ratelimit"]) != 1 || res.Header.Get("X-Final") != "1" || res.Header.Get("Link") != "" {
		t.Errorf("%v", res.Header)
	}
}

// When the client leaves, the upstream is told.
func TestClientLeaves(t *testing.T) {
	arrived, left := make(chan struct{}), make(chan struct{})
	b := newStand(t, setup{}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/streaming" {
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}
		arrived <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	}))
	for path, status := range map[string]int{"/waiting": 499, "/streaming": 200} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", b.server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		done, begun := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			if res, err := b.client.Do(req); err == nil {
				close(begun)
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		}()
		<-arrived
		if path == "/streaming" {
			<-begun
		}
		cancel()
		<-left
		<-done
		if o := b.outcome(); o.Status != status || !errors.Is(o.Err, context.Canceled) {
			t.Errorf("%s: observed %+v, want %d", path, o, status)
		}
	}
	if n := b.table.origins[0].inFlight.Load(); n != 0 {
		t.Errorf("%d requests seem to be under way", n)
	}
}

// An answer that is cut off is not made to look whole.
func TestTornAnswer(t *testing.T) {
	b := newStand(t, setup{}, rude(t, func(c net.Conn, _ *bufio.Reader, r *http.Request) {
		switch r.URL.Path {
		case "/length":
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		case "/chunked":
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
		}
	}))
	for _, path := range []string{"/length", "/chunked"} {
		res, err := b.client.Get(b.server.URL + path)
		if err == nil {
			var text []byte
			text, err = io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil {
				t.Errorf("%s: half an answer looks whole: %q", path, text)
			}
		}
		if o := b.outcome(); o.Status != 200 || !errors.Is(o.Err, errTorn) {
			t.Errorf("%s: observed %+v", path, o)
		}
	}
}

// A client whose body is cut off or wrong is told that it is its own fault, and the
// upstream does not take half a body for a whole one.
func TestTornBody(t *testing.T) {
	whole := make(chan bool, 10)
	b := newStand(t, setup{}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		whole <- err == nil
	}))
	for name, text := range map[string]string{
		"length":  "Content-Length: 100\r\n\r\nhalf",
		"chunked": "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"rubbish": "Transfer-Encoding: chunked\r\n\r\nrubbish\r\n\r\n",
	} {
		c := b.dial()
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\n"+text)
		c.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(c)
		c.Close()
		o := b.outcome()
		if o.Status != 400 && o.Status != 499 {
			t.Errorf("%s: observed %+v, answered %q", name, o, answer)
		}
		if name == "rubbish" && !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
			t.Errorf("%s: answered %.60q", name, answer)
		}
		if <-whole {
			t.Errorf("%s: the upstream took half a body for a whole one", name)
		}
	}
}
