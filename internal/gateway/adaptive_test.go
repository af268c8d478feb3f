package gateway

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/overload"
)

// two lets two requests be in flight to each upstream.
var two = overload.Bounds{Min: 2, Max: 2}

func adaptiveStand(t *testing.T, o Options, bounds overload.Bounds, routes ...string) *stand {
	t.Helper()
	for _, text := range routes {
		r, err := ParseRoute(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Adaptive = bounds
		o.Routes = append(o.Routes, r)
	}
	return newStand(t, setup{options: o})
}

// inFlight is the number of places that are taken at the first upstream.
func (b *stand) inFlight() int { return b.AdaptiveLimits()[0].InFlight }

// What is more than the limit is answered with 503. A place is free again when the response has
// ended, however it ends: also a stream, a client that leaves, and an upstream that does.
func TestAdaptiveLimit(t *testing.T) {
	var log bytes.Buffer
	var logs sync.Mutex
	release := make(chan string)
	begun := time.Now()
	b := adaptiveStand(t, Options{Logger: slog.New(slog.NewTextHandler(lockedWriter{&logs, &log}, nil))}, two, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		select {
		case how := <-release:
			if how == "abort" {
				panic(http.ErrAbortHandler)
			}
		case <-r.Context().Done():
		}
	}))
	begin := func() *http.Response {
		res, err := b.client.Get(b.server.URL)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for _, how := range []string{"end", "abort", "leave"} {
		first, second := begin(), begin()
		third := b.get("/")
		if third.StatusCode != 503 || third.Header.Get("Retry-After") != "1" || !strings.Contains(third.body, "The upstream is overloaded; try again soon.") {
			t.Fatalf("%d %v %s", third.StatusCode, third.Header, third.body)
		}
		if how == "leave" {
			first.Body.Close()
			second.Body.Close()
		} else {
			release <- how
			release <- how
			io.Copy(io.Discard, first.Body)
			io.Copy(io.Discard, second.Body)
			first.Body.Close()
			second.Body.Close()
		}
		waitFor(t, how+" frees both places", func() bool { return b.inFlight() == 0 })
	}
	if s := b.AdaptiveLimits()[0]; s.Denied != 3 || s.Limit != 2 {
		t.Errorf("%+v", s)
	}
	logs.Lock()
	defer logs.Unlock()
	if n := strings.Count(log.String(), "upstream overloaded"); n < 1 || n > 1+int(time.Since(begun)/quiet) || !strings.Contains(log.String(), "limit=2 in_flight=2") {
		t.Errorf("%d lines about it: %s", n, &log)
	}
}

type lockedWriter struct {
	*sync.Mutex
	to io.Writer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.Lock()
	defer w.Unlock()
	return w.to.Write(p)
}

// If the upstream with the fewest requests in flight has no place, another one gets the request.
func TestAdaptiveLimitOfSeveral(t *testing.T) {
	hold := make(chan struct{})
	free := sync.OnceFunc(func() { close(hold) })
	defer free()
	wait := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/hold" {
				<-hold
			}
			io.WriteString(w, name)
		}
	}
	b := adaptiveStand(t, Options{}, two, upstream(t, wait("small"))+","+upstream(t, wait("large")))
	b.table.origins[1].adaptive = overload.New(10, 10) // as if it had adapted
	held := func() int { return b.AdaptiveLimits()[0].InFlight + b.AdaptiveLimits()[1].InFlight }
	var done sync.WaitGroup
	for n := range 6 {
		done.Go(func() { b.get("/hold") })
		waitFor(t, "it is held", func() bool { return held() == n+1 })
	}
	if s := b.AdaptiveLimits(); s[0].InFlight != 2 || s[1].InFlight != 4 {
		t.Errorf("%+v", s)
	}
	if r := b.get("/"); r.body != "large" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	free()
	done.Wait()
	waitFor(t, "all places are free", func() bool { return held() == 0 })
}

func TestSetAdaptive(t *testing.T) {
	routes := func() []Route {
		var all []Route
		for _, text := range []string{"http://a", "/api=http://b", "/admin=http://b"} {
			r, err := ParseRoute(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		return all
	}
	for _, c := range []struct{ settings, want string }{
		{"5-1000", ""},
		{"/=5-1000", ""},
		{"5-1000 /=2-20", ""},
		{"/api=2-20 /admin=2-20 5-1000", ""},
		{"/admin=2-20 5-1000", "gateway: two routes to http://b have different adaptive limits; write the same for both"},
		{"/api=5-1000", "gateway: two routes to http://b have different adaptive limits; write the same for both"},
		{"/api=5-1000 /admin=5-1000", ""},
		{"5", `gateway: "5" is not a minimum and a maximum; write for example 5-1000, or /api=5-1000 for one route`},
		{"a-b", `gateway: "a-b" is not a minimum and a maximum; write for example 5-1000, or /api=5-1000 for one route`},
		{"/x=5-10", `gateway: no route is named "/x"; write the host and path of a route as in its upstream, or / for the one without`},
		{"0-0", "gateway: 0-0 limits nothing; leave it out, or write for example 5-1000"},
		{"0-10", `gateway: the adaptive limit of the route "/": the minimum is 0; it must be at least 1, for example 5`},
		{"10-5", `gateway: the adaptive limit of the route "/": the maximum, 5, is less than the minimum, 10; write for example 1000`},
		{"5-2000000", `gateway: the adaptive limit of the route "/": the maximum is 2000000; it must be at most 1000000, for example 1000`},
	} {
		all := routes()
		err := SetAdaptive(all, strings.Fields(c.settings))
		if err == nil {
			_, err = newTable(all)
		}
		if got := ""; err != nil && err.Error() != c.want || err == nil && c.want != got {
			t.Errorf("%s: %v, want %q", c.settings, err, c.want)
		}
	}
}

// Of four places, one is left for critical requests, if some come.
func TestAdaptiveLimitByPriority(t *testing.T) {
	hold := make(chan struct{})
	free := sync.OnceFunc(func() { close(hold) })
	defer free()
	r, err := ParseRoute(upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/low/hold" {
			<-hold
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.Adaptive = overload.Bounds{Min: 4, Max: 4}
	b := newStand(t, setup{options: Options{Routes: []Route{r}}, rules: `rules:
  - {id: low, match: {path: /low/**}, key: ip, limit: 1000000/1s, priority: low}
  - {id: critical, match: {path: /critical}, key: ip, limit: 1000000/1s, priority: critical}`})
	for i := range 600 {
		path := "/low/x"
		if i%20 == 0 {
			path = "/critical"
		}
		if r := b.get(path); r.StatusCode != 200 {
			t.Fatalf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	var done sync.WaitGroup
	for n := range 3 {
		done.Go(func() { b.get("/low/hold") })
		waitFor(t, "it is held", func() bool { return b.inFlight() == n+1 })
	}
	if r := b.get("/low/x"); r.StatusCode != 503 {
		t.Errorf("low: %d", r.StatusCode)
	}
	if r := b.get("/critical"); r.StatusCode != 200 {
		t.Errorf("critical: %d %s", r.StatusCode, r.body)
	}
	free()
	done.Wait()
}
