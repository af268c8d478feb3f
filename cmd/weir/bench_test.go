package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/internal/server/httpapi"
)

func (r *running) bench(t *testing.T, args ...string) benchJSON {
	t.Helper()
	got := r.on(t, append([]string{"bench", "--output", "json"}, args...)...)
	var result benchJSON
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil || got.code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", got.code, err, got.stdout, got.stderr)
	}
	return result
}

// Every outcome is counted, and the limits say how many there must be: each of ten
// clients has five, and time stands still.
func TestBenchCounts(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	result := r.bench(t, "--count", "500", "--keys", "10", "--concurrency", "4", "--method", "POST", "--path", "/api/login")
	if want := map[string]int64{"allowed": 50, "denied": 450}; !maps.Equal(result.Outcomes, want) {
		t.Errorf("outcomes %v, want %v", result.Outcomes, want)
	}
	if result.Answered != 500 || result.Errors != 0 || result.Concurrency != 4 || result.Keys != 10 || result.Target != r.URL {
		t.Errorf("%+v", result)
	}
	if l := result.Latency; l["p50"] <= 0 || l["p50"] > l["p90"] || l["p90"] > l["p99"] || l["p99.9"] > l["max"] || l["mean"] > l["max"] || result.Rate <= 0 {
		t.Errorf("latencies %v, %v a second", l, result.Rate)
	}
	// A peek charges nothing: what is left is left.
	result = r.bench(t, "--count", "100", "--keys", "10", "--concurrency", "2", "--user", "u-{n}", "--path", "/api/x", "--peek")
	if result.Outcomes["allowed"] != 100 {
		t.Errorf("outcomes %v", result.Outcomes)
	}
	r.on(t, "check", "--user", "u-3", "--path", "/api/x").want(t, 0, "api has 99 of 100 remaining", "")
}

func TestBenchText(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	got := r.on(t, "bench", "--count", "60", "--keys", "1", "--concurrency", "2", "--method", "POST", "--path", "/api/login", "--ip", "192.0.2.1")
	got.want(t, 0, `\A2 callers for \S+, 1 client, http://\S+\n\n`, "")
	got.want(t, 0, `^answered +60 +\d+/s$`, "")
	got.want(t, 0, `^allowed +5 +8\.3%$`, "")
	got.want(t, 0, `^denied +55 +91\.7%$`, "")
	got.want(t, 0, `^p50 \S+  p90 \S+  p99 \S+  p99\.9 \S+  max \S+$`, "")
	got.want(t, 0, `^up to \S+ +\d+ +█+$`, "")
}

func TestBenchEndsInTime(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	result := r.bench(t, "--duration", "100ms", "--concurrency", "2")
	if result.Answered == 0 || result.Seconds < 0.1 || result.Seconds > 10 {
		t.Errorf("%d answered in %v s", result.Answered, result.Seconds)
	}
}

// After an interrupt, bench prints what it measured so far.
func TestBenchInterrupted(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	r := newRunning(t, loginAndAPI, "")
	var calls atomic.Int64
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if calls.Add(1) == 50 {
			if err := self.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
		r.handler.ServeHTTP(w, req)
	}))
	defer r.Close()
	result := r.bench(t, "--duration", "10m", "--concurrency", "2")
	if result.Answered < 40 || result.Errors > 0 || result.Seconds > 60 {
		t.Errorf("%+v", result)
	}
}

// What is wrong with all requests is told at once.
func TestBenchTriesFirst(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	r.on(t, "bench", "--tier", strings.Repeat("x", 40_000)).want(t, 1, "", `^weir: .*\n\z`)
}

// A server that goes away in the middle is counted, and is exit code 1.
func TestBenchWithErrors(t *testing.T) {
	r := newRunning(t, loginAndAPI, "")
	var calls atomic.Int64
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch n := calls.Add(1); {
		case n > 30:
			panic(http.ErrAbortHandler)
		case n > 20:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			r.handler.ServeHTTP(w, req)
		}
	}))
	defer r.Close()
	got := r.on(t, "bench", "--count", "40", "--concurrency", "1")
	got.want(t, 1, `^no answer +21$`, `^weir: 21 requests had no answer; first error: status 503$`)
	got.want(t, 1, `^answered +19 `, "*")
	got.want(t, 1, `^  no weir at .*: the connection was closed$`, "*")
}

func TestBenchOfAURL(t *testing.T) {
	var mu sync.Mutex
	paths, hosts, headers, tokens := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths[r.URL.Path], hosts[r.Host], headers[r.Header.Get("X-User")], tokens[r.Header.Get("Authorization")] = true, true, true, true
		if r.URL.Path == "/items/1" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		if r.Method != http.MethodPut {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		io.WriteString(w, strings.Repeat("x", 10_000))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	t.Setenv("WEIR_TOKEN", adminToken) // only weir may receive it
	got := command(t, "", "bench", "--url", s.URL+"/items/{n}", "--method", "PUT", "--host", "a.example", "--header", "X-User=u{n}",
		"--keys", "2", "--count", "200", "--concurrency", "3", "--output", "json")
	var result benchJSON
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil || got.code != 0 {
		t.Fatalf("%v %+v", err, got)
	}
	if len(result.Outcomes) != 2 || result.Outcomes["status 200"]+result.Outcomes["status 429"] != 200 || result.Outcomes["status 429"] == 0 {
		t.Errorf("outcomes %v", result.Outcomes)
	}
	for _, c := range []struct {
		got  map[string]bool
		want string
	}{{paths, "/items/0 /items/1"}, {hosts, "a.example"}, {headers, "u0 u1"}, {tokens, ""}} {
		for _, want := range strings.Split(c.want, " ") {
			if !c.got[want] || len(c.got) != len(strings.Split(c.want, " ")) {
				t.Errorf("%v, want %q", c.got, c.want)
			}
		}
	}
	// A transport closes a connection if the goroutine that wrote the request has not run again 50 ms after the answer came, as
	// on a busy machine; without reuse, there would be 200.
	if connections.Load() > 50 {
		t.Errorf("%d connections for 200 requests of 3 callers", connections.Load())
	}
	command(t, "", "bench", "--url", nobody).want(t, 1, "", `^weir: http://\S+ cannot be reached: dial tcp .*connection refused\n\z`)
}

func TestBenchClients(t *testing.T) {
	for n, want := range map[int]string{0: "198.18.0.0", 255: "198.18.0.255", 256: "198.18.1.0", 65536: "198.19.0.0", 131071: "198.19.255.255", 131072: "198.18.0.0"} {
		if got := benchAddress(n); got != want {
			t.Errorf("the address of client %d is %s, want %s", n, got, want)
		}
	}
	f := benchFlags{keys: 1000, concurrency: 1}
	cmd := &cobra.Command{}
	f.checkFlags.addCheckFlags(cmd)
	aim, err := f.target(f.clientFlags.addClientFlags(cmd))
	if err != nil {
		t.Fatal(err)
	}
	var req httpapi.CheckRequest
	if err := json.Unmarshal([]byte(aim.body.of(300)), &req); err != nil || req.User != "bench-300" || req.IP != "198.18.1.44" {
		t.Errorf("%v %+v", err, req)
	}
}

// It says as how many clients it asks, whatever --keys says.
func TestBenchSaysHowManyClients(t *testing.T) {
	r := serveRules(t, loginAndAPI, "")
	for args, want := range map[string]string{
		"":                            "1000 clients",
		"--user alice":                "1 client",
		"--user alice --path /x/{n}":  "1 client",
		"--user u-{n} --keys 7":       "7 clients",
		"--header X-Team={n}":         "1000 clients",
		"--ip {ip} --keys 9999999":    "131072 clients",
		"--user u-{n} --keys 9999999": "9999999 clients",
	} {
		got := r.on(t, append([]string{"bench", "--count", "2", "--concurrency", "1"}, strings.Fields(args)...)...)
		got.want(t, 0, ", "+want+", http", "")
	}
	command(t, "", "bench", "--count", "2", "--concurrency", "1", "--url", r.URL+"/healthz?{n}").want(t, 0, ", 1 client, ", "")
	if got := r.bench(t, "--count", "2", "--concurrency", "1", "--user", "alice"); got.Keys != 1 {
		t.Errorf("%d keys", got.Keys)
	}
}

// A bar is drawn over itself, and nothing of it is left.
func TestBar(t *testing.T) {
	var w bytes.Buffer
	b := &bar{w: &w}
	b.draw(0.5, "%d requests", 1234)
	b.draw(1, "%d requests", 9)
	b.clear()
	lines := strings.Split(w.String(), "\r\x1b[K")
	if len(lines) != 4 || lines[1] != "[===============               ]  50 %  1234 requests" || lines[2] != "["+strings.Repeat("=", 30)+"] 100 %  9 requests" || lines[3] != "" {
		t.Errorf("%q", lines)
	}
	// Not on what is no terminal.
	w.Reset()
	none := newBar(&w)
	none.draw(0.5, "")
	none.clear()
	if w.Len() > 0 {
		t.Errorf("%q", w.String())
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 12: "12ns", 123456: "123µs", 1234567: "1.23ms", 10 * time.Second: "10s", 10012345678: "10s", 99987 * time.Millisecond: "1m40s"} {
		if got := fmt.Sprint(short(d)); got != want {
			t.Errorf("short(%d) = %s, want %s", d, got, want)
		}
	}
}
