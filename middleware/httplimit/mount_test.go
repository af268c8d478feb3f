package httplimit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"testing"
	"weak"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/store/memory"
)

// Whatever the server's ResponseWriter can do, the handler can do.
func TestPassThrough(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 100/1h}]", Options{})
	mux := http.NewServeMux()
	mux.HandleFunc("/flush", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "first\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done() // so that only a flush can have sent it
	})
	mux.HandleFunc("/hijack", func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\nraw\n")
	})
	s := httptest.NewServer(b.Wrap(mux))
	defer s.Close()
	for path, want := range map[string]string{"/flush": "first\n", "/hijack": "raw\n"} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		r := bufio.NewReader(conn)
		line := ""
		for line != want && err == nil {
			line, err = r.ReadString('\n')
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		conn.Close()
	}
}

// A request that comes twice pays once.
func TestTwice(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 5/1h}]", Options{Logger: quiet()})
	other, err := New(b.engine, Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]http.Handler{
		"the same middleware":   b.Wrap(b.Handler),
		"another of one engine": other.Wrap(b.Handler),
		"one that is called": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r, ok := other.Allow(w, r); ok {
				b.ServeHTTP(w, r)
			}
		}),
		"below another context": b.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b.ServeHTTP(w, r.Clone(r.Context()))
		})),
	} {
		b.engine.Install(tableOf(t, "rules: [{id: "+string(rune('a'+b.served.Load()))+", key: ip, limit: 5/1h}]"), 1)
		served := b.served.Load()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, from("203.0.113.7:1", "GET", "/"))
		if w.Header().Get("X-RateLimit-Remaining") != "4" || b.served.Load() != served+1 {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	// It is enough to be called.
	d := newBench(t, "rules: [{id: a, key: ip, limit: 5/1h}]", Options{Logger: quiet()})
	d.mounts.Store(0)
	w := httptest.NewRecorder()
	r, ok := d.Allow(w, from("203.0.113.7:1", "GET", "/"))
	if _, again := d.Allow(w, r); !ok || !again || w.Header().Get("X-RateLimit-Remaining") != "4" {
		t.Errorf("called twice: %v", w.Header())
	}
	// Two engines are two limits.
	a, c := newBench(t, "rules: [{id: a, key: ip, limit: 5/1h}]", Options{}), newBench(t, "rules: [{id: b, key: ip, limit: 2/1h}]", Options{})
	h := a.Wrap(c)
	for i := range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, from("203.0.113.7:1", "GET", "/"))
		if (w.Code == 200) != (i < 2) {
			t.Errorf("request %d through two engines: %d", i, w.Code)
		}
	}
}

// An engine that is no longer used is not kept for having been counted.
func TestMountsForget(t *testing.T) {
	gone := func() weak.Pointer[engine.Engine] {
		e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(e, Options{}); err != nil {
			t.Fatal(err)
		}
		return weak.Make(e)
	}()
	eventually(t, func() bool {
		runtime.GC()
		_, kept := mounts.Load(gone)
		return !kept && gone.Value() == nil
	})
}

func TestSkip(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}]", Options{Skip: func(r *http.Request) bool { return r.URL.Path == "/healthz" }})
	for range 3 {
		if w := b.send(from("203.0.113.7:1", "GET", "/healthz")); w.Code != 200 || limits(w.Header()) != "" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
	if w := b.ask(); w.Code != 200 || w.Header().Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// A client cannot choose its address, unless it is a proxy that is trusted.
func TestSpoof(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, c := range []struct {
		name    string
		options Options
		header  func(i int) (string, string)
		want    int // how many of five pass a limit of one
	}{
		{"X-Forwarded-For", Options{}, func(i int) (string, string) { return "X-Forwarded-For", fmt.Sprint("192.0.2.", i) }, 1},
		{"Forwarded", Options{}, func(i int) (string, string) { return "Forwarded", fmt.Sprint("for=192.0.2.", i) }, 1},
		{"X-Real-IP", Options{TrustedProxies: trusted}, func(i int) (string, string) { return "X-Real-IP", fmt.Sprint("192.0.2.", i) }, 1},
		{"behind a proxy", Options{TrustedProxies: trusted}, func(i int) (string, string) { return "X-Forwarded-For", fmt.Sprintf("192.0.2.%d, 203.0.113.7", i) }, 1},
		{"by the proxy", Options{TrustedProxies: trusted}, func(i int) (string, string) { return "X-Forwarded-For", fmt.Sprint("192.0.2.", i) }, 5},
		{"by the proxy, Forwarded", Options{TrustedProxies: trusted}, func(i int) (string, string) { return "Forwarded", fmt.Sprintf(`for="[2001:db8:%d::1]"`, i) }, 5},
		{"the wrong header", Options{TrustedProxies: trusted, ProxyHeader: Forwarded}, func(i int) (string, string) { return "X-Forwarded-For", fmt.Sprint("192.0.2.", i) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Logger = quiet()
			b := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}]", c.options)
			s := httptest.NewServer(b)
			defer s.Close()
			passed := 0
			for i := range 5 {
				r, err := http.NewRequest("GET", s.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set(c.header(i))
				answer, err := s.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if answer.StatusCode == 200 {
					passed++
				}
			}
			if passed != c.want {
				t.Errorf("%d passed, want %d", passed, c.want)
			}
		})
	}
}

func TestNew(t *testing.T) {
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		e *engine.Engine
		o Options
	}{
		"no engine":        {nil, Options{}},
		"a negative bound": {e, Options{MaxDelayed: -1}},
		"everybody":        {e, Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}},
		"no such header":   {e, Options{ProxyHeader: 7}},
	} {
		if _, err := New(c.e, c.o); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			t.Log(err)
		}
	}
}

// What a request costs in memory, besides the server's map of headers: the text of
// all values and the list of them. A denial has a message, the names of the limits
// and its own headers besides. If there are several mounts, it is two more.
func TestAllocations(t *testing.T) {
	for name, c := range map[string]struct {
		rules string
		want  float64
	}{
		"allowed":         {"rules: [{id: api, key: ip, limit: 1000000/1h}]", 2},
		"no rule applies": {"rules: [{id: api, key: user, limit: 5/1h}]", 0},
		"three limits":    {"rules: [{id: a, key: ip, limit: 1000000/1h}, {id: b, key: ip, algorithm: fixed_window, limits: [1000000/1h, 2000000/1d]}]", 2},
		"denied":          {"rules: [{id: api, key: ip, limit: 1/1h}]", 5},
	} {
		b := newBench(t, c.rules, Options{})
		r := from("203.0.113.7:1234", "GET", "/")
		w := &discard{make(http.Header)}
		n := testing.AllocsPerRun(200, func() { b.ServeHTTP(w, r) })
		if n > c.want && !testkit.Race {
			t.Errorf("%s: %v allocations, want %v", name, n, c.want)
		}
	}
}

// discard is a ResponseWriter that keeps only headers.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func BenchmarkServe(b *testing.B) {
	for name, rules := range map[string]string{
		"allowed": "rules: [{id: api, key: ip, limit: 1000000000/1h}]",
		"denied":  "rules: [{id: api, key: ip, limit: 1/100h}]",
	} {
		b.Run(name, func(b *testing.B) {
			bench := newLiveBench(b, rules, Options{})
			r := from("203.0.113.7:1234", "GET", "/")
			b.ReportAllocs()
			for b.Loop() {
				bench.ServeHTTP(&discard{make(http.Header)}, r)
			}
		})
	}
}
