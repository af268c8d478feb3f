package httplimit

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// settling is a middleware on a store that can hold units, whose time stands still.
type settling struct {
	*Middleware
	t      testing.TB
	now    atomic.Int64
	events chan engine.HoldKind
}

func (s *settling) Observe(*rule.Request, *engine.Verdict, time.Duration) {}

func (s *settling) ObserveHold(e engine.HoldEvent) {
	select {
	case s.events <- e.Kind:
	default:
	}
}

func newSettling(t testing.TB, rules string, o Options) *settling {
	t.Helper()
	s := &settling{t: t, events: make(chan engine.HoldKind, 1000)}
	s.now.Store(begin.UnixMicro())
	clock := func() weir.Micros { return weir.Micros(s.now.Load()) }
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{Clock: clock}), Clock: clock, Observers: []engine.Observer{s}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	e.Install(tableOf(t, rules), 1)
	if s.Middleware, err = New(e, o); err != nil {
		t.Fatal(err)
	}
	return s
}

// used is how much of a rule's limit a client has used.
func (s *settling) used(rule, key string) int64 {
	s.t.Helper()
	var v engine.Verdict
	if _, err := s.engine.Standing(s.t.Context(), rule, key, "", &v); err != nil {
		s.t.Fatal(err)
	}
	return v.Results[0].Limit - v.Results[0].Remaining
}

// answering is a handler that answers with a status; 0 panics.
func answering(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		if status != 200 {
			w.WriteHeader(status)
		}
	})
}

const logins = "rules: [{id: login, key: ip, algorithm: sliding_log, limit: 3/1h, count: {status: [401, 5xx]}}]"

// Only the responses that a rule names count, and a request without one.
func TestSettleByStatus(t *testing.T) {
	s := newSettling(t, logins, Options{})
	ask := func(status int) int {
		w := httptest.NewRecorder()
		defer func() { _ = recover() }()
		s.Wrap(answering(status)).ServeHTTP(w, from("203.0.113.7:1", "POST", "/login"))
		return w.Code
	}
	for range 10 {
		if got := ask(200); got != 200 {
			t.Fatalf("a good login is answered %d", got)
		}
	}
	for i, status := range []int{401, 0, 503} {
		if ask(status); s.used("login", "ip:203.0.113.7") != int64(i+1) {
			t.Errorf("after %d, %d are used", status, s.used("login", "ip:203.0.113.7"))
		}
	}
	if got := ask(200); got != 429 {
		t.Errorf("after three failures: %d", got)
	}
}

// However many guesses are made at the same time, no more fail than the limit allows.
func TestParallelGuesses(t *testing.T) {
	s := newSettling(t, logins, Options{})
	var guesses, denied atomic.Int64
	enough := make(chan struct{})
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guesses.Add(1)
		<-enough // nobody has failed before all have asked
		w.WriteHeader(401)
	}))
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, from("203.0.113.7:1", "POST", "/login")); w.Code == 429 && denied.Add(1) == 97 {
				close(enough)
			}
		})
	}
	all.Wait()
	if guesses.Load() != 3 || denied.Load() != 97 {
		t.Errorf("%d guesses, %d denied", guesses.Load(), denied.Load())
	}
}

// A hold is extended as long as the handler runs, so that it can still be settled.
func TestExtended(t *testing.T) {
	s := newSettling(t, logins, Options{})
	s.front.TTL = 2 * time.Millisecond
	h := s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 5 {
			for range len(s.events) + 2 { // the last one was extended after the clock had moved
				if kind := <-s.events; kind != engine.ExtendedHold {
					t.Errorf("%v", kind)
				}
			}
			s.now.Add(s.front.TTL.Microseconds() - 1) // each time it would expire next
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), from("203.0.113.7:1", "POST", "/login"))
	for kind := range s.events {
		if kind == engine.SettledHold {
			break
		}
		if kind != engine.ExtendedHold {
			t.Fatalf("%v", kind)
		}
	}
	if got := s.used("login", "ip:203.0.113.7"); got != 0 {
		t.Errorf("%d are used", got)
	}
}

// Where the response is not seen, everything counts, and that is told.
func TestAllowDoesNotSettle(t *testing.T) {
	var log buffer
	s := newSettling(t, logins, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer func() {
		if strings.Count(log.String(), "code=M007") != 1 {
			t.Errorf("told: %s", log.String())
		}
	}()
	for i := range 4 {
		w := httptest.NewRecorder()
		if _, ok := s.Allow(w, from("203.0.113.7:1", "POST", "/login")); ok != (i < 3) {
			t.Errorf("request %d: %v", i, ok)
		}
	}
}

// A store that cannot hold units charges what is estimated.
func TestSettleWithoutHolds(t *testing.T) {
	b := newBench(t, logins, Options{})
	for i := range 4 {
		if w := b.ask(); w.Code == 200 != (i < 3) {
			t.Errorf("request %d: %d", i, w.Code)
		}
	}
}

// The hold of an upload that does not come expires. It does not if the upload comes, or if it is the handler that
// takes its time.
func TestStalledUpload(t *testing.T) {
	const rules = "rules: [{id: upload, key: global, limit: 1/1d, algorithm: fixed_window, count: {status: 401}, on_expiry: release}]"
	read := func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		send   func(*io.PipeWriter) // after the first byte
		status int                  // of another request, three minutes later
	}{
		"stalls": {read, nil, 200},
		"drips": {read, func(w *io.PipeWriter) {
			for range 190 {
				time.Sleep(time.Second)
				w.Write(make([]byte, 1))
			}
		}, 200},
		"comes": {read, func(w *io.PipeWriter) {
			for range 190 {
				time.Sleep(time.Second)
				w.Write(make([]byte, 2<<10))
			}
		}, 429},
		"has come": {func(w http.ResponseWriter, r *http.Request) {
			read(w, r)
			time.Sleep(200 * time.Second)
		}, func(w *io.PipeWriter) { w.Close() }, 429},
		"is not read": {func(w http.ResponseWriter, r *http.Request) { time.Sleep(200 * time.Second) }, nil, 429},
		"is answered": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			read(w, r)
		}, nil, 429},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{})}))(t)
				defer e.Close()
				e.Install(tableOf(t, rules), 1)
				m := testkit.Must(New(e, Options{}))(t)
				serve := func(h http.HandlerFunc, r *http.Request) int {
					w := httptest.NewRecorder()
					m.Wrap(h).ServeHTTP(w, r)
					return w.Code
				}
				another := func() int { return serve(read, httptest.NewRequest("GET", "/", nil)) }
				body, client := io.Pipe()
				done := make(chan bool)
				go func() {
					serve(c.handle, httptest.NewRequest("POST", "/", body))
					close(done)
				}()
				go func() {
					client.Write([]byte("x"))
					if c.send != nil {
						c.send(client)
					}
				}()
				synctest.Wait()
				if code := another(); code != 429 {
					t.Errorf("nothing is reserved: %d", code)
				}
				time.Sleep(3 * time.Minute)
				if code := another(); code != c.status {
					t.Errorf("three minutes later: %d, want %d", code, c.status)
				}
				client.Close()
				body.Close()
				<-done
				time.Sleep(time.Minute) // until the sender has given up
			})
		})
	}
}
