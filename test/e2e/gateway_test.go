package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// upstream is a server behind the gateway. What asks it for /slow waits until it is
// released.
type upstream struct {
	*httptest.Server
	waiting, release chan struct{}
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{waiting: make(chan struct{}, 1), release: make(chan struct{})}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slow" {
			w.Header().Set("X-Seen-For", r.Header.Get("X-Forwarded-For"))
			io.WriteString(w, "hello")
			return
		}
		u.waiting <- struct{}{}
		select {
		case <-u.release:
		case <-r.Context().Done():
		}
		io.WriteString(w, "slow")
	}))
	t.Cleanup(u.Close)
	return u
}

// Requests pass until the limit is used up; then the end user is told everything.
func TestGateway(t *testing.T) {
	u := newUpstream(t)
	dir := t.TempDir()
	write(t, dir, "rules.yaml", "rules: [{id: api, match: {path: /api/**}, key: ip, algorithm: sliding_log, limit: 3/1h, deny: {code: 7, message: slow down}}]")
	p := start(t, dir, "gateway", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", u.URL)
	c := client(t)
	for i := range 5 {
		a := ask(t, c, "GET", p.Gateway+"/api/items", "", "X-Forwarded-For", "198.51.100.9")
		h := a.Header
		if i < 3 {
			if a.Status != http.StatusOK || a.Text != "hello" || h.Get("X-Seen-For") != "127.0.0.1" || h.Get("X-RateLimit-Remaining") != string(rune('2'-i)) {
				t.Errorf("request %d: %d %v %s", i+1, a.Status, h, a.Text)
			}
			continue
		}
		if a.Status != http.StatusTooManyRequests || a.Detail != "slow down" || a.Rule != "api" {
			t.Errorf("request %d: %d %s", i+1, a.Status, a.Text)
		}
		for _, name := range []string{"Retry-After", "X-RateLimit-Limit", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy"} {
			if h.Get(name) == "" {
				t.Errorf("%s is missing in %v", name, h)
			}
		}
	}
	if a := ask(t, c, "GET", p.Gateway+"/", ""); a.Status != http.StatusOK {
		t.Errorf("what no rule is about: %d", a.Status)
	}
	// The API shows what the gateway has counted.
	if a := ask(t, c, "GET", p.URL+"/v1/keys?key=ip:127.0.0.1", ""); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Text)
	}
}

// If Redis dies under load, only requests of rules that fail closed are denied, with
// 503, not 500.
func TestGatewayWithoutRedis(t *testing.T) {
	u := newUpstream(t)
	redis := testredis.Start(t)
	dir := t.TempDir()
	write(t, dir, "rules.yaml", `rules:
  - {id: open, match: {path: /open}, key: ip, limit: 1000000/1s, on_failure: open}
  - {id: local, match: {path: /local}, key: ip, limit: 1000000/1s, on_failure: local}
  - {id: closed, match: {path: /closed}, key: ip, limit: 1000000/1s, on_failure: closed}
`)
	p := start(t, dir, "gateway", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", u.URL, "--store", "redis://"+redis.Addr)
	var mu sync.Mutex
	statuses := map[string]map[int]int{"/open": {}, "/local": {}, "/closed": {}}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for path := range statuses {
		wg.Go(func() {
			c := client(t)
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, err := try(c, "GET", p.Gateway+path, "")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				statuses[path][a.Status]++
				mu.Unlock()
			}
		})
	}
	seen := func(path string, status int) func() bool {
		mu.Lock()
		before := statuses[path][status]
		mu.Unlock()
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return statuses[path][status] > before+10
		}
	}
	waitFor(t, "traffic", seen("/closed", http.StatusOK))
	redis.Kill()
	waitFor(t, "denials", seen("/closed", http.StatusServiceUnavailable))
	waitFor(t, "open", seen("/open", http.StatusOK))
	waitFor(t, "local", seen("/local", http.StatusOK))
	redis.Restart()
	waitFor(t, "recovery", seen("/closed", http.StatusOK))
	close(stop)
	wg.Wait()
	for path, counts := range statuses {
		for status, n := range counts {
			if status != http.StatusOK && (path != "/closed" || status != http.StatusServiceUnavailable) {
				t.Errorf("%s was answered %d %d times", path, status, n)
			}
		}
	}
}

// A stream that is open at SIGTERM goes on to its end. A second SIGTERM does not wait for it.
func TestGatewayStopsAfterStreams(t *testing.T) {
	for _, again := range []bool{false, true} {
		rest := make(chan string)
		u := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: 1\n\n")
			http.NewResponseController(w).Flush()
			select {
			case text := <-rest:
				io.WriteString(w, text)
			case <-r.Context().Done():
			}
		}))
		t.Cleanup(u.Close)
		p := start(t, t.TempDir(), "gateway", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--upstream", u.URL, "--grace", "1s", "--stream-grace", "1h")
		res, err := client(t).Get(p.Gateway + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the end of the grace", func() bool { return strings.Contains(p.log.String(), "waiting for streams") })
		if again {
			if code := p.stop(t); code == 0 {
				t.Error("a second signal ended it with status 0")
			}
			continue
		}
		rest <- "data: 2\n\n"
		if text, err := io.ReadAll(res.Body); string(text) != "data: 1\n\ndata: 2\n\n" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if code := p.ends(t); code != 0 {
			t.Errorf("it ended with %d:\n%s", code, p.log)
		}
	}
}
