package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// What is denied never reaches an upstream.
func TestDenied(t *testing.T) {
	var served atomic.Int64
	b := newStand(t, setup{rules: "rules: [{id: few, key: ip, algorithm: sliding_log, limit: 3/1h}]"}, upstream(t, func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	for i := range 6 {
		got := b.get("/")
		if want := map[bool]int{true: 200, false: 429}[i < 3]; got.StatusCode != want {
			t.Errorf("request %d: %d, want %d", i, got.StatusCode, want)
		}
		if got.StatusCode == 429 && got.Header.Get("Retry-After") == "" {
			t.Error("there is no Retry-After")
		}
	}
	if n := served.Load(); n != 3 {
		t.Errorf("%d reached the upstream", n)
	}
}

// A directory tells whose an API key is and at which levels it counts. Keys that nobody has do not reach an upstream, and
// neither does the name of a client instead of a key.
func TestDirectory(t *testing.T) {
	directory, problems, err := rule.ReadDirectory("", strings.NewReader(`{"client": "api_key:k1", "parent": "user:ann"}
{"client": "api_key:k2", "parent": "user:ann"}
{"client": "api_key:k3", "parent": "user:bob"}
{"client": "user:ann", "parent": "org:secret"}
{"client": "user:bob", "parent": "org:secret"}
{"client": "org:secret"}`))
	testkit.OK(t, errors.Join(err, problems.Err()))
	var served atomic.Int64
	b := newStand(t, setup{
		rules:   "{levels: [org, user], rules: [{id: budget, key: levels, algorithm: fixed_window, levels: {org: 3/1h, user: 2/1h}}]}",
		clients: engine.Clients{Directory: directory, DenyUnknown: true},
	}, upstream(t, func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	for i, c := range []struct {
		key, says string
		want      int
	}{
		{"k1", "", 200}, {"k2", "", 200}, {"k1", "of the level user", 429}, {"k3", "", 200}, {"k3", "of the level org", 429},
		{"invented", "A known API key is required.", 401}, {"user:ann", "A known API key is required.", 401},
	} {
		got := b.get("/", "X-API-Key: "+c.key)
		if got.StatusCode != c.want || !strings.Contains(got.body, c.says) || strings.Contains(fmt.Sprint(got.Header, got.body), "secret") {
			t.Errorf("request %d with %s: %d %v %s", i+1, c.key, got.StatusCode, got.Header, got.body)
		}
	}
	if n := served.Load(); n != 3 {
		t.Errorf("%d reached the upstream", n)
	}
}

// What goes nowhere is answered before a limit is asked, and costs nothing.
func TestNowhereCostsNothing(t *testing.T) {
	b := newStand(t, setup{
		rules:   "rules: [{id: few, key: ip, algorithm: sliding_log, limit: 1/1h}]",
		options: Options{MaxBody: 10},
	}, "example.com/api="+upstream(t, saying("ok"))+"/base")
	for _, c := range []struct {
		request, want string
	}{
		{"GET / HTTP/1.1\r\nHost: example.com", "404"},
		{"GET /api HTTP/1.1\r\nHost: example.org", "404"},
		{"GET /api HTTP/1.1\r\nHost: example.com\r\nVia: 1.1 " + b.name, "508"},
		{"POST /api HTTP/1.1\r\nHost: example.com\r\nContent-Length: 11", "413"},
		{"GET /api/../.. HTTP/1.1\r\nHost: example.com", "404"},
		{"GET /api/x/..;/..;/..;/api HTTP/1.1\r\nHost: example.com", "400"},
		{"GET mailto:x HTTP/1.1\r\nHost: example.com", "400"},
		{"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com", "405"},
		{"GET /api HTTP/1.1\r\nHost: example.com:80:80", "400"},
	} {
		if got := b.raw(c.request + "\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+c.want) {
			t.Errorf("%.60q: %.60q, want %s", c.request, got, c.want)
		}
		if o := b.outcome(); strconv.Itoa(o.Status) != c.want {
			t.Errorf("%.60q: observed %+v, want %s", c.request, o, c.want)
		}
	}
	for _, want := range []int{200, 429} {
		if got := b.get("/api", "Host: example.com"); got.StatusCode != want {
			t.Errorf("%d, want %d", got.StatusCode, want)
		}
	}
}

// Which of several values an upstream takes is its own affair: all of them are counted,
// and it gets all of them.
func TestSeveralIdentities(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{
		rules: `
rules:
  - {id: key, key: api_key, algorithm: fixed_window, limit: 2/1d}
  - {id: cookie, key: "cookie:sid", algorithm: fixed_window, limit: 2/1d}
  - {id: user, key: user, algorithm: fixed_window, limit: 2/1d}
block: {user: [mallory]}
`,
		limit:   httplimit.Options{UserHeader: "X-User"},
		options: Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}, url)
	for _, pattern := range []string{"X-Api-Key: %s", "Cookie: sid=%s", "X-User: %s"} {
		for i, want := range []int{200, 200, 429, 429} {
			junk, real := fmt.Sprintf(pattern, fmt.Sprint("junk", i)), fmt.Sprintf(pattern, "real")
			lines := []string{junk, real}
			if i%2 == 1 {
				slices.Reverse(lines)
			}
			name, _, _ := strings.Cut(pattern, ":")
			if got := b.get("/", lines...); got.StatusCode != want {
				t.Errorf("%q: %d, want %d", lines, got.StatusCode, want)
			} else if want == 200 && len(last().Header[name]) != 2 {
				t.Errorf("%q arrived as %q", lines, last().Header[name])
			}
		}
		var lines []string
		for i := range 9 {
			lines = append(lines, fmt.Sprintf(pattern, fmt.Sprint("other", i)))
		}
		if got := b.get("/", lines...); got.StatusCode != 400 || !strings.Contains(got.body, "too many values") {
			t.Errorf("%q: %d %s", lines, got.StatusCode, got.body)
		}
	}
	if got := b.get("/", "X-User: alice", "X-User: mallory"); got.StatusCode != 403 {
		t.Errorf("in company, who is blocked gets %d", got.StatusCode)
	}
}

// A host that is no name or address with a port means different things to different
// servers, and goes to none.
func TestMalformedHosts(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{}, url)
	for host, want := range map[string]string{
		"example.com": "200", "example.com:80": "200", "Example.COM.:8080": "200", "example.com:": "200", "my_service-1": "200", "10.0.0.1:80": "200",
		"[2001:db8::1]": "200", "[2001:db8::1]:80": "200", "xn--bcher-kva.example": "200",
		"example.com:80:80": "400", "example.com:1:1": "400", "example.com::": "400", "example.com:x": "400", "example.com:-1": "400", "2001:db8::1": "400", "::": "400", ":80": "400",
		"[2001:db8::1": "400", "[2001:db8::1]x": "400", "[2001:db8::1]:80:80": "400", "[example.com]": "400", "[10.0.0.1]": "400", "]": "400", ".": "400", ".example.com": "400",
		"example..com": "400", "example.com..": "400", "example.com,other.com": "400", "example.com%2e": "400", "a@example.com": "400", "*": "400",
	} {
		if got := b.raw("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%q: %.60q, want %s", host, got, want)
		} else if want == "200" && last().Host != host {
			t.Errorf("%q arrived as %q", host, last().Host)
		}
	}
	if got := b.raw("GET / HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 200") {
		t.Errorf("HTTP/1.0 without a host: %.60q", got)
	}
	// On the way out, net/http would write these in ASCII, as another name.
	for _, host := range []string{"b\u00fccher.example", "\uff45xample.com", "example\u3002com"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		b.ServeHTTP(w, r)
		if w.Code != 400 {
			t.Errorf("%q: %d", host, w.Code)
		}
	}
}

// The limiter and the upstream learn the same about the client.
func TestClientBehindProxy(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{
		rules:   "rules: [{id: few, key: ip, algorithm: sliding_log, limit: 1/1h}]",
		options: Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}, url)
	for _, client := range []string{"203.0.113.1", "203.0.113.2"} {
		if got := b.get("/", "X-Forwarded-For: "+client); got.StatusCode != 200 {
			t.Errorf("%s: %d", client, got.StatusCode)
		}
		if v := last().Header.Get("X-Forwarded-For"); v != client+", 127.0.0.1" {
			t.Errorf("%s: the upstream saw %q", client, v)
		}
		if got := b.get("/", "X-Forwarded-For: 192.0.2.1, "+client); got.StatusCode != 429 {
			t.Errorf("%s, again: %d", client, got.StatusCode)
		}
	}
}

// Requests that a rule shapes are held here, and reach the upstream one by one.
func TestShaping(t *testing.T) {
	var mu sync.Mutex
	var times []time.Time
	b := newStand(t, setup{rules: "rules: [{id: slow, key: global, algorithm: leaky_bucket, shape: true, limit: 20/1s}]"}, upstream(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Now())
	}))
	begin := time.Now()
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() { b.get("/") })
	}
	all.Wait()
	if len(times) != 5 {
		t.Fatalf("%d reached the upstream", len(times))
	}
	if took := times[4].Sub(begin); took < 190*time.Millisecond {
		t.Errorf("the fifth arrived after %v, want 200 ms", took)
	}
}

// Redis dies and comes back while requests are under way. None of them is a 500, and
// each rule does what it says.
func TestRedisDies(t *testing.T) {
	server := testredis.Start(t)
	store, err := redis.Open("redis://" + server.Addr + "?timeout=100ms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	b := newStand(t, setup{store: store, rules: `
rules:
  - {id: open, match: {path: /open}, key: ip, limit: 1000000/1s, on_failure: open}
  - {id: closed, match: {path: /closed}, key: ip, limit: 1000000/1s, on_failure: closed}
  - {id: local, match: {path: /local}, key: ip, algorithm: sliding_log, limit: 5000/1h, on_failure: local}
`}, upstream(t, saying("ok")))
	stop := make(chan struct{})
	var all sync.WaitGroup
	var mu sync.Mutex
	statuses := map[string]map[int]int{}
	for _, path := range []string{"/open", "/closed", "/local"} {
		statuses[path] = map[int]int{}
		for range 2 {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-b.outcomes: // make room
					default:
					}
					got := b.get(path)
					mu.Lock()
					statuses[path][got.StatusCode]++
					mu.Unlock()
				}
			})
		}
	}
	until := func(path string, status int) {
		t.Helper()
		mu.Lock()
		before := statuses[path][status]
		mu.Unlock()
		waitFor(t, path+" is answered as it should be", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return statuses[path][status] >= before+5
		})
	}
	until("/open", 200)
	until("/closed", 200)
	server.Kill()
	until("/closed", 503)
	until("/open", 200)
	until("/local", 200)
	if got := b.get("/open"); got.Header.Get("X-Ratelimit-Degraded") != "1" {
		t.Errorf("the answer does not say that it is degraded: %v", got.Header)
	}
	if got := b.get("/closed"); got.StatusCode != 503 || got.Header.Get("Retry-After") == "" {
		t.Errorf("closed: %d, %v", got.StatusCode, got.Header)
	}
	server.Restart()
	until("/closed", 200)
	close(stop)
	all.Wait()
	for path, counts := range statuses {
		for status := range counts {
			if status != 200 && (path != "/closed" || status != 503) && (path != "/local" || status != 429) {
				t.Errorf("%s was answered %d", path, status)
			}
		}
	}
}

func TestOptionErrors(t *testing.T) {
	limit := limitOf(t, memory.New(memory.Options{}), generous, httplimit.Options{})
	routes := routesOf(t, "http://a")
	for want, o := range map[string]Options{
		"Limit is required":   {Routes: routes},
		"a route is required": {Limit: limit},
		"DialTimeout is -1ns": {Limit: limit, Routes: routes, DialTimeout: -1},
		"MaxInFlight is -1":   {Limit: limit, Routes: routes, MaxInFlight: -1},
		"MaxBody is -1":       {Limit: limit, Routes: routes, MaxBody: -1},
		"is not a path":       {Limit: limit, Routes: routes, Health: Health{Path: "healthz"}},
		"TrustedProxies":      {Limit: limit, Routes: routes, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}},
		"has no upstream":     {Limit: limit, Routes: []Route{{Path: "/x"}}},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	o, err := Options{Limit: limit, Routes: routes, HeaderTimeout: -1}.withDefaults()
	if err != nil || o.HeaderTimeout != 0 || o.DialTimeout != 5*time.Second || o.MaxInFlight != 10_000 || o.Logger != slog.Default() {
		t.Errorf("%+v, %v", o, err)
	}
}
