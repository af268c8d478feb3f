package httplimit

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

const byPriority = `rules:
  - {id: low, match: {path: /low}, key: ip, algorithm: fixed_window, limit: 100000000/1h, priority: low}
  - {id: critical, match: {path: /critical}, key: ip, limit: 100000000/1h, priority: critical}
exempt: {ip: [198.51.100.0/24]}`

// This process uses more than nothing, so requests are shed: those of low priority, before they
// are charged, but not critical ones, and not those of clients that are exempt.
func TestProtect(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says what a process uses")
	}
	b := newBench(t, byPriority, Options{Protect: engine.Protect{CPU: 1e-9}, Logger: slog.New(slog.DiscardHandler)})
	const remote = "203.0.113.7:1234"
	charged, shed := int64(0), uint64(0)
	for began := time.Now(); shed < 20; {
		if time.Since(began) > time.Minute {
			t.Fatal("nothing is shed")
		}
		switch w := b.send(from(remote, "GET", "/low")); w.Code {
		case 200:
			charged++
		case 503:
			shed++
			if body := w.Body.String(); w.Header().Get("Retry-After") != "1" || w.Header().Get("X-RateLimit-Limit") != "" || !strings.Contains(body, reducedCapacity) || !strings.Contains(body, "The server is overloaded; try again soon.") {
				t.Fatalf("%v %s", w.Header(), body)
			}
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for _, r := range []*http.Request{from(remote, "GET", "/critical"), from("198.51.100.9:1", "GET", "/low")} {
			if w := b.send(r); w.Code != 200 {
				t.Fatalf("%s %s: %d %s", r.RemoteAddr, r.URL, w.Code, w.Body)
			}
		}
	}
	p := b.Protection()
	if p.CPU <= 0 || p.Shed[rule.Low] != shed || p.Shed[rule.Critical] != 0 || len(p.Shed) != 4 {
		t.Errorf("%+v, but %d were shed", p, shed)
	}
	var v engine.Verdict
	if err := b.engine.Peek(t.Context(), &rule.Request{Method: "GET", Path: "/low", IP: netip.MustParseAddr("203.0.113.7")}, &v); err != nil {
		t.Fatal(err)
	}
	if used := 100_000_000 - v.Results[0].Remaining; used != charged {
		t.Errorf("%d units are used by %d requests", used, charged)
	}
	if _, err := New(b.engine, Options{Protect: engine.Protect{CPU: 85}}); err == nil || err.Error() != "httplimit: Protect: CPU is 85; it must be a share from 0 to 1, for example 0.85, or 0 for no limit" {
		t.Error(err)
	}
}

// Of four places, one is left for critical requests, if some come.
func TestAdaptiveByPriority(t *testing.T) {
	b := newBench(t, byPriority, Options{Adaptive: Adaptive{Min: 4, Max: 4}})
	var deeper func()
	h := b.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if deeper != nil {
			deeper()
		}
	}))
	send := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, from("203.0.113.7:1234", "GET", path))
		return w.Code
	}
	for i := range 1000 {
		if path := []string{"/low", "/critical"}[min(1, i%20)^1]; send(path) != 200 {
			t.Fatal(path)
		}
	}
	inFlight, low, critical := 0, 0, 0
	deeper = func() { // each request sends another one while it is in flight
		if inFlight++; inFlight < 3 {
			send("/low")
			return
		}
		deeper = nil
		low, critical = send("/low"), send("/critical")
	}
	if send("/low"); inFlight != 3 || low != 503 || critical != 200 {
		t.Errorf("%d in flight, then %d and %d", inFlight, low, critical)
	}
}

// A proxy is told the priority of a request. Without a rule, that is normal.
func TestProxy(t *testing.T) {
	b := newBench(t, byPriority, Options{})
	p := b.Proxy()
	for path, want := range map[string]string{"/low": "low", "/critical": "critical", "/": "normal"} {
		var x Exchange
		p.Serve(httptest.NewRecorder(), from("203.0.113.7:1234", "GET", path), &x, http.NotFoundHandler())
		if x.Priority.String() != want {
			t.Errorf("%s: %s", path, x.Priority)
		}
	}
}
