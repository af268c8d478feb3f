package httplimit

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
)

const atOnce = "rules: [{id: api, key: ip, concurrency: 1}]"

// flight is a handler whose requests end when they are told to.
type flight struct {
	*settling
	server *httptest.Server
	begun  chan struct{}
	end    chan struct{}
	over   chan struct{} // gets a word when the middleware has returned
}

// newFlight serves requests that call handler once they have begun.
func newFlight(t *testing.T, rules string, handler func(f *flight, w http.ResponseWriter, r *http.Request)) *flight {
	t.Helper()
	f := &flight{settling: newSettling(t, rules, Options{}), begun: make(chan struct{}, 10), end: make(chan struct{}), over: make(chan struct{}, 10)}
	limited := f.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(f, w, r) }))
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { f.over <- struct{}{} }()
		limited.ServeHTTP(w, r)
	}))
	f.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	t.Cleanup(f.server.Close)
	return f
}

func (f *flight) mustBeTaken(when string) {
	f.t.Helper()
	if f.used("api", "ip:127.0.0.1") != 1 {
		f.t.Errorf("%s: the place is free", when)
	}
}

// A place is taken until the response has ended, be it a stream, a panic or a client that has
// disconnected.
func TestPlaceOfAResponse(t *testing.T) {
	for name, handler := range map[string]func(f *flight, w http.ResponseWriter, r *http.Request){
		"stream": func(f *flight, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "first")
			w.(http.Flusher).Flush()
			f.begun <- struct{}{}
			<-f.end
		},
		"panic": func(f *flight, w http.ResponseWriter, r *http.Request) {
			f.begun <- struct{}{}
			<-f.end
			panic(http.ErrAbortHandler)
		},
		"disconnected": func(f *flight, w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			f.begun <- struct{}{}
			<-f.end
			<-r.Context().Done()
		},
	} {
		for _, rules := range []string{atOnce, "rules: [{id: api, key: ip, concurrency: 1}, {id: rate, key: ip, limit: 100/1h, count: {status: 401}}]"} {
			t.Run(name, func(t *testing.T) {
				f := newFlight(t, rules, handler)
				done := make(chan struct{})
				go func() {
					defer close(done)
					res, err := http.Get(f.server.URL)
					if err != nil {
						return
					}
					if name == "disconnected" {
						<-f.end
					} else {
						io.Copy(io.Discard, res.Body)
					}
					res.Body.Close()
				}()
				<-f.begun
				f.mustBeTaken(name)
				res := testkit.Must(http.Get(f.server.URL))(t)
				res.Body.Close()
				if res.StatusCode != 429 || res.Header.Get("Retry-After") != "1" || !strings.Contains(res.Header.Get("Ratelimit-Policy"), `"api";q=1;qu="concurrent-requests"`) {
					t.Errorf("%s: a second got %d %v", name, res.StatusCode, res.Header)
				}
				<-f.over
				close(f.end)
				<-done
				<-f.over
				if f.used("api", "ip:127.0.0.1") != 0 {
					t.Errorf("%s: the place is still taken", name)
				}
			})
		}
	}
}

// A connection that was taken over is in flight until it is closed, also after its handler.
func TestPlaceOfAHijackedConnection(t *testing.T) {
	conns := make(chan net.Conn, 1)
	f := newFlight(t, atOnce, func(f *flight, w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		conns <- conn
	})
	client := testkit.Must(net.Dial("tcp", f.server.Listener.Addr().String()))(t)
	defer client.Close()
	io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	testkit.Must(http.ReadResponse(bufio.NewReader(client), nil))(t)
	conn := <-conns
	<-f.over
	f.mustBeTaken("after the handler")
	if _, ok := conn.(interface{ CloseWrite() error }); !ok {
		t.Error("it cannot end its side of the connection")
	}
	testkit.OK(t, conn.Close())
	if f.used("api", "ip:127.0.0.1") != 0 {
		t.Error("the place of a connection that was closed is taken")
	}
}

// Allow does not see the end of a request, and says so once.
func TestPlaceOfAllow(t *testing.T) {
	var log strings.Builder
	s := newSettling(t, atOnce, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r := httptest.NewRequest("GET", "/", nil)
	if _, ok := s.Allow(httptest.NewRecorder(), r); !ok || !strings.Contains(log.String(), "M008") {
		t.Errorf("%v %s", ok, &log)
	}
	if engine.HoldOf(r.Context()) != nil {
		t.Error("there is a hold")
	}
}

// A place that nobody can give back is free after hold_ttl.
func TestPlaceOfAllowExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLiveBench(t, "rules: [{id: api, key: ip, concurrency: 1, hold_ttl: 1m}]", Options{Logger: slog.New(slog.DiscardHandler)})
		allow := func() bool {
			_, ok := b.Allow(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			return ok
		}
		if !allow() || allow() {
			t.Error("not one at the same time")
		}
		time.Sleep(61 * time.Second)
		if !allow() || allow() {
			t.Error("the place is not free after hold_ttl")
		}
	})
}

// A request waits for the place of another, also if that panics.
func TestWait(t *testing.T) {
	f := newFlight(t, "rules: [{id: api, key: ip, concurrency: 1, wait: 1m}]", func(f *flight, w http.ResponseWriter, r *http.Request) {
		f.begun <- struct{}{}
		if <-f.end; r.URL.Path == "/panic" {
			panic(http.ErrAbortHandler)
		}
	})
	broken, served := make(chan int, 1), make(chan int, 1)
	send := func(path string, status chan<- int) {
		res, err := http.Get(f.server.URL + path)
		if err != nil {
			status <- 0
			return
		}
		res.Body.Close()
		status <- res.StatusCode
	}
	go send("/panic", broken)
	<-f.begun
	go send("/", served)
	for f.Delayed() == 0 && len(served) == 0 {
		runtime.Gosched()
	}
	if len(served) > 0 {
		t.Errorf("the second does not wait: %d", <-served)
		f.end <- struct{}{}
		return
	}
	f.end <- struct{}{}
	<-f.begun
	f.mustBeTaken("the second")
	f.end <- struct{}{}
	if first, second := <-broken, <-served; first != 0 || second != 200 || f.Delayed() != 0 {
		t.Errorf("%d %d, %d wait", first, second, f.Delayed())
	}
}
