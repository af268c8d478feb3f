package gateway

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// problem checks that the gateway's own answer is complete, and returns its detail.
func problem(t *testing.T, got reply, status int) string {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
		RetryAfter          int `json:"retry_after"`
	}
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Errorf("the body is %q: %v", got.body, err)
	}
	if got.StatusCode != status || p.Status != status || p.Type != "about:blank" || p.Title == "" || p.Detail == "" {
		t.Errorf("answered %d, %+v, want %d", got.StatusCode, p, status)
	}
	if kind := got.Header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("the content is %q", kind)
	}
	if again := got.Header.Get("Retry-After"); (again != "") != (status >= 502 && status <= 504) || again != "" && again != fmt.Sprint(p.RetryAfter) {
		t.Errorf("%d with Retry-After %q, retry_after %d", status, again, p.RetryAfter)
	}
	// A request without a route is not checked.
	if judged := got.Header.Get("X-Ratelimit-Limit") != "" && len(got.Header["Ratelimit"]) == 1; judged != (status != 404) {
		t.Errorf("%d with the headers %v", status, got.Header)
	}
	return p.Detail
}

func TestUnreachable(t *testing.T) {
	b := newStand(t, setup{}, denying(t))
	problem(t, b.get("/"), 502)
	var connect *connectError
	if o := b.outcome(); o.Status != 502 || o.Tries != 1 || !errors.As(o.Err, &connect) || o.Header != 0 {
		t.Errorf("observed %+v", o)
	}
	if err := b.Ready(); err == nil || !strings.Contains(err.Error(), "is available") {
		t.Errorf("ready: %v", err)
	}
	problem(t, b.do("POST", "/", strings.NewReader("hello")), 502)
}

// What could not be sent to one upstream goes to another, with its body.
func TestNextUpstream(t *testing.T) {
	b := newStand(t, setup{options: Options{Backoff: time.Hour}}, denying(t)+","+denying(t)+","+upstream(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Method, text)
	}))
	tries := 0
	for i := range 10 {
		if got := b.do("POST", "/", io.MultiReader(strings.NewReader("hello"))); got.StatusCode != 200 || got.body != "POST hello" {
			t.Errorf("request %d: %d %q", i, got.StatusCode, got.body)
		}
		tries += b.outcome().Tries
	}
	if tries != 12 {
		t.Errorf("10 requests tried %d times; each of the lost ones should have been tried once", tries)
	}
	if err := b.Ready(); err != nil {
		t.Errorf("ready: %v", err)
	}
	for _, o := range b.table.origins {
		if n := o.inFlight.Load(); n != 0 {
			t.Errorf("%s: %d requests seem to be under way", o.name, n)
		}
	}
}

// A request that may have been received is not sent again, be it a GET on a connection
// that was kept alive, and be there another upstream.
func TestSentOnce(t *testing.T) {
	for name, answer := range map[string]string{"nothing": "", "a beginning": "HTTP/1.1 2", "rubbish": "rubbish\r\n\r\n"} {
		var received atomic.Int64
		dying := rude(t, func(c net.Conn, in *bufio.Reader, first *http.Request) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				io.Copy(io.Discard, r.Body)
				received.Add(1)
				io.WriteString(c, answer)
				if name == "rubbish" {
					continue
				}
				return
			}
		})
		// The other one is busy, so that all go to the first.
		b := newStand(t, setup{}, dying+","+upstream(t, func(http.ResponseWriter, *http.Request) { received.Add(1) }))
		b.table.origins[1].inFlight.Add(100)
		for i, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "GET"} {
			var body io.Reader
			if method == "PUT" {
				body = strings.NewReader("x")
			}
			if got := b.get("/"); got.body != "ok" { // it opens the connection
				t.Fatalf("%s: %d %q", name, got.StatusCode, got.body)
			}
			got := b.do(method, "/", body, "Idempotency-Key: 1")
			if got.StatusCode != 502 {
				t.Errorf("%s: %s was answered %d", name, method, got.StatusCode)
			}
			if n := received.Load(); n != int64(i+1) {
				t.Fatalf("%s: %d requests were received instead of %d; %s was sent again", name, n, i+1, method)
			}
			b.outcome()
			if o := b.outcome(); o.Tries != 1 {
				t.Errorf("%s: observed %+v", name, o)
			}
		}
	}
}

func TestSlowUpstream(t *testing.T) {
	release := make(chan struct{})
	b := newStand(t, setup{options: Options{HeaderTimeout: 20 * time.Millisecond}}, upstream(t, func(w http.ResponseWriter, r *http.Request) { <-release }))
	defer close(release)
	problem(t, b.get("/"), 504)
	if o := b.outcome(); o.Status != 504 || o.Err == nil || o.Took < 20*time.Millisecond {
		t.Errorf("observed %+v", o)
	}
}

// A handshake that never ends is no connection.
func TestSlowConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it accepts in the kernel, and says nothing
	b := newStand(t, setup{options: Options{DialTimeout: 50 * time.Millisecond}}, "https://"+l.Addr().String())
	problem(t, b.get("/"), 504)
	if b.Ready() == nil {
		t.Error("the gateway is ready")
	}
}

// An upstream that was unavailable is back by itself.
func TestRecovery(t *testing.T) {
	port := reserved(t)
	b := newStand(t, setup{options: Options{Backoff: time.Millisecond}}, "http://"+port.address)
	problem(t, b.get("/"), 502)
	l := port.listen(t)
	s := &http.Server{Handler: saying("back")}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	defer func() { s.Close(); <-done }()
	// The only upstream is tried even while it is left out.
	if got := b.get("/"); got.body != "back" {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
	if err := b.Ready(); err != nil {
		t.Errorf("ready: %v", err)
	}
}

func TestMaxInFlight(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	b := newStand(t, setup{options: Options{MaxInFlight: 2}}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { b.get("/") })
		<-arrived
	}
	problem(t, b.get("/"), 503)
	close(release)
	all.Wait()
	go func() { <-arrived }()
	if got := b.get("/"); got.StatusCode != 200 {
		t.Errorf("afterwards: %d", got.StatusCode)
	}
}

func TestNoRoute(t *testing.T) {
	b := newStand(t, setup{rules: "rules: [{id: few, key: ip, algorithm: sliding_log, limit: 2/1h}]"}, "example.com/api="+upstream(t, saying("ok")))
	problem(t, b.get("/"), 404)
	if o := b.outcome(); o.Route != "" || o.Upstream != "" || o.Status != 404 || o.Err != nil {
		t.Errorf("observed %+v", o)
	}
	if got := b.get("/api/x", "Host: example.com"); got.body != "ok" {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
	if o := b.outcome(); o.Route != "example.com/api" {
		t.Errorf("observed %+v", o)
	}
	// Requests to nowhere do not count.
	problem(t, b.get("/"), 404)
	if got := b.get("/api/x", "Host: example.com"); got.body != "ok" {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
}

// A gateway that is its own upstream says so, instead of going round for ever.
func TestLoop(t *testing.T) {
	var behind atomic.Pointer[stand]
	url := upstream(t, func(w http.ResponseWriter, r *http.Request) { behind.Load().ServeHTTP(w, r) })
	b := newStand(t, setup{}, url)
	other := newStand(t, setup{}, b.server.URL)
	behind.Store(b)
	problem(t, b.get("/"), 508)
	behind.Store(other) // b to other to b
	problem(t, b.get("/"), 508)
}

func TestVia(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{}, url)
	b.raw("GET / HTTP/1.0\r\nVia: 1.1 other\r\n\r\n")
	if v := last().Header["Via"]; len(v) != 2 || v[0] != "1.1 other" || v[1] != "1.0 "+b.name {
		t.Errorf("Via: %q", v)
	}
	b.get("/")
	if v := last().Header["Via"]; len(v) != 1 || v[0] != "1.1 "+b.name {
		t.Errorf("Via: %q", v)
	}
}
