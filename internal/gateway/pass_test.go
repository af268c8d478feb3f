package gateway

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// echoTarget answers with the path and the query as they came.
func echoTarget(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RequestURI) }

func TestTargetIsPassedOn(t *testing.T) {
	b := newStand(t, setup{}, upstream(t, echoTarget))
	for _, target := range []string{
		"/", "/a", "/a/", "//", "//a//b/", "/a%2Fb", "/a%2fb", "/%61", "/a%20b", "/a+b", "/./a/../b", "/..", "/%2e%2e/x", "/a;v=1/b",
		"/%E2%82%AC", "/a:b@c!$&'()*,=", "/a%00b", "/x?", "/?", "/?a=1&b=2", "/?a=1;b=2", "/?a=%", "/?a=%zz&b", "/?%", "/?&&=&a", "/?a=b?c=d/e", "/?a= b",
	} {
		target = strings.ReplaceAll(target, " b", "+b")
		answer := b.raw("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if _, got, _ := strings.Cut(answer, "\r\n\r\n"); got != target {
			t.Errorf("%s became %s", target, got)
		}
	}
	// What may not be in a URL is escaped, so that upstreams read what the rules read.
	for target, want := range map[string]string{"/a|b": "/a%7Cb", `/"{}`: "/%22%7B%7D", "/a#b": "/a%23b", "/\xff": "/%FF"} {
		answer := b.raw("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if _, got, _ := strings.Cut(answer, "\r\n\r\n"); got != want {
			t.Errorf("%s became %s, want %s", target, got, want)
		}
	}
}

func TestBasePath(t *testing.T) {
	url := upstream(t, echoTarget)
	b := newStand(t, setup{}, "/slash="+url+"/base/", "/escaped="+url+"/a%2Fb", url+"/base")
	for target, want := range map[string]string{
		"/": "/base/", "/x?y": "/base/x?y", "//x": "/base//x", "/a%2Fb": "/base/a%2Fb", "/a/../b": "/base/a/../b",
		"/slash/x": "/base/slash/x", "/escaped/x": "/a%2Fb/escaped/x", "/escaped/%2F": "/a%2Fb/escaped/%2F",
	} {
		if got := b.get(target); got.body != want {
			t.Errorf("%s became %s, want %s", target, got.body, want)
		}
	}
	for _, target := range []string{
		"/../admin", "/x/../../admin", "/%2e%2e/admin", "/.%2E/admin", "/..%2fadmin", "/a%2fb/../../../x", "/a%2Fb/../../x", "/a%2Fb/%2e%2E/.%2e/x", `/..\admin`, "/..;x/admin", "//../admin", "/./../admin",
	} {
		answer := b.raw("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
			t.Errorf("%s was answered %.60q, want 400", target, answer)
		}
	}
}

// Requests that are for no path could be another one to the upstream than to the rules.
func TestOddTargets(t *testing.T) {
	b := newStand(t, setup{}, upstream(t, echoTarget))
	for target, want := range map[string]string{
		"GET mailto:admin":             "400",
		"GET x:%2Fadmin":               "400",
		"GET *":                        "400",
		"GET admin":                    "400",
		"CONNECT internal:22":          "405",
		"GET http://other.example/x?y": "200",
		"GET http://u:p@other/x":       "200",
	} {
		answer := b.raw(target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 "+want) {
			t.Errorf("%s was answered %.60q, want %s", target, answer, want)
		}
		if target == "GET admin" {
			continue // net/http denies it
		}
		if o := b.outcome(); (o.Upstream == "") != (want != "200") {
			t.Errorf("%s: observed %+v", target, o)
		}
	}
}

// seen starts an upstream that keeps the requests that came whole, without their bodies.
func seen(t *testing.T) (url string, next func() *http.Request) {
	requests := make(chan *http.Request, 100)
	url = upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			requests <- r
		}
	})
	return url, func() *http.Request {
		select {
		case r := <-requests:
			return r
		default:
			t.Fatal("the upstream saw no request")
			return nil
		}
	}
}

func TestHeadersOut(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{}, url)
	b.raw("POST / HTTP/1.1\r\nHost: Example.com:81\r\nConnection: close, X-Hop, keep-alive, x-forwarded-for, Via\r\n" +
		"X-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\nProxy-Authenticate: x\r\nTE: gzip, trailers\r\n" +
		"Trailer: X-Late\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nX-Keep: a\r\nX-Keep: b\r\nCookie: a=b\r\nAuthorization: Basic x\r\n" +
		"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Late: 1\r\n\r\n")
	r := last()
	if r.Host != "Example.com:81" {
		t.Errorf("the host became %q", r.Host)
	}
	if len(r.Trailer) > 0 {
		t.Errorf("trailers went on: %v", r.Trailer)
	}
	r.Header.Del("Via")
	want := http.Header{
		"X-Keep": {"a", "b"}, "Cookie": {"a=b"}, "Authorization": {"Basic x"}, "Te": {"trailers"},
		"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {"Example.com:81"}, "X-Forwarded-Proto": {"http"},
	}
	if !maps.EqualFunc(r.Header, want, slices.Equal) {
		t.Errorf("the upstream saw %v\nwant %v", r.Header, want)
	}
}

func TestRewriteHost(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{options: Options{RewriteHost: true}}, url)
	b.get("/", "Host: example.com")
	if r := last(); "http://"+r.Host != url || r.Header.Get("X-Forwarded-Host") != "example.com" {
		t.Errorf("the host is %q, forwarded %q", r.Host, r.Header.Get("X-Forwarded-Host"))
	}
}

func TestHeadersBack(t *testing.T) {
	b := newStand(t, setup{}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Connection"] = []string{"X-Hop"}
		h["X-Hop"], h["Keep-Alive"], h["Proxy-Authenticate"] = []string{"1"}, []string{"timeout=5"}, []string{"Basic"}
		h["Set-Cookie"] = []string{"a=b", "c=d"}
		h["Retry-After"], h["Location"] = []string{"7"}, []string{"/elsewhere"}
		for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Used", "RateLimit", "RateLimit-Policy", "RateLimit-Reset", "X-Rate-Limit-Remaining"} {
			h.Add(name, "upstream")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "no")
	}))
	got := b.get("/")
	if got.StatusCode != 503 || got.body != "no" || got.Header.Get("Retry-After") != "7" || got.Header.Get("Location") != "/elsewhere" {
		t.Errorf("%d %q %v", got.StatusCode, got.body, got.Header)
	}
	if !slices.Equal(got.Header["Set-Cookie"], []string{"a=b", "c=d"}) {
		t.Errorf("cookies: %v", got.Header["Set-Cookie"])
	}
	for _, name := range []string{"X-Hop", "Keep-Alive", "Proxy-Authenticate", "X-Ratelimit-Used", "Ratelimit-Reset", "X-Rate-Limit-Remaining"} {
		if v := got.Header[name]; v != nil {
			t.Errorf("%s came back: %v", name, v)
		}
	}
	for name, want := range map[string]string{"X-Ratelimit-Limit": "1000000", "Ratelimit-Policy": `"all";q=1000000;w=1`} {
		if v := got.Header[name]; len(v) != 1 || v[0] != want {
			t.Errorf("%s is %q, want %q once", name, v, want)
		}
	}
	if v := got.Header["Ratelimit"]; len(v) != 1 || !strings.HasPrefix(v[0], `"all";r=`) {
		t.Errorf("RateLimit is %q", v)
	}
	if o := b.outcome(); o.Status != 503 || o.Err != nil || o.Tries != 1 || o.Route != "/" || o.Header <= 0 || o.Took < o.Header {
		t.Errorf("observed %+v", o)
	}
}

// Trailers of an answer arrive, announced or not.
func TestTrailers(t *testing.T) {
	for _, c := range []struct{ announced, sent string }{
		{"X-Sum", "X-Sum: 1"},
		{"X-Sum, X-Time", "X-Sum: 1\r\nX-Time: 2"},
		{"X-Sum", "X-Sum: 1\r\nX-Time: 2"},
	} {
		b := newStand(t, setup{}, rude(t, func(conn net.Conn, _ *bufio.Reader, _ *http.Request) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: "+c.announced+"\r\n\r\n2\r\nok\r\n0\r\n"+c.sent+"\r\n\r\n")
		}))
		got := b.get("/")
		var sent []string
		for _, line := range strings.Split(c.sent, "\r\n") {
			name, value, _ := strings.Cut(line, ": ")
			if sent = append(sent, name); got.Trailer.Get(name) != value {
				t.Errorf("%+v: %v", c, got.Trailer)
			}
		}
		if got.body != "ok" || len(got.Trailer) != len(sent) {
			t.Errorf("%+v: %q, %v", c, got.body, got.Trailer)
		}
	}
}

func TestMethodsAndStatus(t *testing.T) {
	b := newStand(t, setup{}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Method", r.Method)
		w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
		var status int
		fmt.Sscan(r.URL.Path[1:], &status)
		w.WriteHeader(status)
	}))
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "X"} {
		for _, status := range []int{200, 204, 206, 301, 304, 400, 404, 418, 429, 500, 502, 599} {
			got := b.do(method, fmt.Sprint("/", status), nil)
			if got.StatusCode != status || got.Header.Get("X-Method") != method || got.Header.Get("X-Length") != "0" {
				t.Errorf("%s %d: %d, %v", method, status, got.StatusCode, got.Header)
			}
		}
	}
}

// Bodies of any size stream both ways, with and without a length.
func TestBigBodies(t *testing.T) {
	data := make([]byte, 10<<20)
	rand.NewChaCha8([32]byte{1}).Read(data)
	sum := sha256.Sum256(data)
	want := hex.EncodeToString(sum[:])
	b := newStand(t, setup{}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		io.Copy(h, r.Body)
		w.Header().Set("X-Sum", hex.EncodeToString(h.Sum(nil)))
		w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
		if r.URL.Path == "/length" {
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		}
		w.Write(data)
	}))
	for path, in := range map[string]io.Reader{"/length": bytes.NewReader(data), "/chunked": io.MultiReader(bytes.NewReader(data))} {
		got := b.do("POST", path, in)
		if got.Header.Get("X-Sum") != want || got.body != string(data) {
			t.Errorf("%s: a body was changed", path)
		}
		if length := got.Header.Get("X-Length"); (length == "-1") != (path == "/chunked") {
			t.Errorf("%s: the upstream was told the length %s", path, length)
		}
		if known := got.ContentLength >= 0; known != (path == "/length") {
			t.Errorf("%s: the client was told the length %d", path, got.ContentLength)
		}
	}
}

func TestMaxBody(t *testing.T) {
	url, last := seen(t)
	b := newStand(t, setup{options: Options{MaxBody: 1000}}, url)
	long := strings.Repeat("x", 1001)
	if got := b.do("POST", "/", strings.NewReader(long)); got.StatusCode != 413 {
		t.Errorf("a long body was answered %d", got.StatusCode)
	}
	if o := b.outcome(); o.Upstream != "" {
		t.Errorf("a body that is known to be too long went to %s", o.Upstream)
	}
	if got := b.do("POST", "/", io.MultiReader(strings.NewReader(long))); got.StatusCode != 413 {
		t.Errorf("a long body of unknown length was answered %d", got.StatusCode)
	}
	if got := b.do("POST", "/", strings.NewReader(long[1:])); got.StatusCode != 200 || last().ContentLength != 1000 {
		t.Errorf("a body of just that length was answered %d", got.StatusCode)
	}
}

// Without a server around, as in a test of somebody else's, it works too.
func TestRecorder(t *testing.T) {
	b := newStand(t, setup{}, upstream(t, saying("hello")))
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader("x")))
	if w.Code != 200 || w.Body.String() != "hello" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// What somebody around the gateway has set stays, beside what the upstream says.
func TestHeadersAround(t *testing.T) {
	b := newStand(t, setup{}, upstream(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Vary", "Accept") }))
	w := httptest.NewRecorder()
	w.Header().Set("Vary", "Origin")
	b.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if got := w.Header()["Vary"]; !slices.Equal(got, []string{"Origin", "Accept"}) {
		t.Errorf("Vary: %q", got)
	}
}
