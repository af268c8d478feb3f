package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fleet is a proxy, the weir that it asks and the application behind it.
type fleet struct {
	front
	public      string // where clients come in
	weir        string // where the proxy asks
	application *application
	process     *process

	t     *testing.T // of all steps together
	dir   string
	flags []string // more of weir
	token string   // by which the proxy asks
}

// replaced is what differs from the addresses that the examples have.
func (f *fleet) replaced() []string {
	return []string{"127.0.0.1:8000", f.public, "127.0.0.1:8080", f.weir, "127.0.0.1:9000", f.application.address()}
}

// newFleetWithToken is a fleet with a weir that takes tokens, and a proxy that has one, or none.
func newFleetWithToken(t *testing.T, front front, token string) *fleet {
	f := &fleet{front: front, public: freeAddress(t), weir: freeAddress(t), application: newApplication(t), t: t, dir: t.TempDir(), token: token}
	t.Setenv("WEIR_TOKEN", token)
	write(t, f.dir, "rules.yaml", atTheGate)
	f.flags = []string{"--admin-token-file", write(t, f.dir, "tokens", "edge check rules=login,shop "+edgeToken+"\n")}
	f.startWeir()
	f.front.start(t, f, false)
	return f
}

const atTheGate = `rules:
  - id: login
    match: {method: POST, path: /api/login}
    key: ip
    algorithm: sliding_log
    limit: 3/1h
    warn: 60%
    deny: {message: too many logins}
  - {id: mine, match: {path: /mine}, key: user, algorithm: sliding_log, limit: 2/1h}
  - {id: shop, match: {host: shop.example.com, path: /shop}, key: ip, algorithm: sliding_log, limit: 1/1h}
block: {ip: [127.0.0.66]}
`

func newFleet(t *testing.T, front front) *fleet {
	f := &fleet{front: front, public: freeAddress(t), weir: freeAddress(t), application: newApplication(t), t: t, dir: t.TempDir()}
	write(t, f.dir, "rules.yaml", atTheGate)
	f.startWeir()
	f.front.start(t, f, false)
	// A proxy that listens need not have read everything yet.
	waitFor(t, "the application", func() bool { return f.ask(t, "127.0.0.1", "GET", "/free", "").Status == http.StatusOK })
	return f
}

// startWeir is also for one that comes back.
func (f *fleet) startWeir() {
	f.process = start(f.t, f.dir, append([]string{"serve", "--http", f.weir, "--trusted-proxies", "127.0.0.1", "--user-header", "X-User"}, f.flags...)...)
}

func (f *fleet) ask(t *testing.T, from, method, path, body string, headers ...string) answer {
	t.Helper()
	return ask(t, clientFrom(from), method, "http://"+f.public+path, body, headers...)
}

func (f *fleet) login(t *testing.T, from string, headers ...string) answer {
	t.Helper()
	return f.ask(t, from, "POST", "/api/login?next=%2F", "name=alice", headers...)
}

// left is what weir says that a client has left of a rule.
func (f *fleet) left(t *testing.T, rule, key string) int64 {
	t.Helper()
	a := ask(t, client(t), "GET", "http://"+f.weir+"/v1/keys?rule="+rule+"&key="+key, "")
	var remaining int64
	if _, text, found := strings.Cut(a.Text, `"remaining":`); !found {
		t.Fatalf("%d %s", a.Status, a.Text)
	} else if _, err := fmt.Sscan(text[:strings.IndexAny(text, ",}")], &remaining); err != nil {
		t.Fatal(err)
	}
	return remaining
}

// passed is how many requests got through to the application meanwhile.
func (f *fleet) passed(during func()) int64 {
	before := f.application.served.Load()
	during()
	return f.application.served.Load() - before
}

// What people put in front of their applications asks weir with the files of
// examples/proxies, and does what weir says.
func TestProxies(t *testing.T) {
	for _, front := range fronts() {
		t.Run(front.name, func(t *testing.T) {
			f := newFleet(t, front)
			for _, step := range []struct {
				name string
				run  func(*testing.T, *fleet)
			}{
				{"limits", limitsHold}, {"others", othersPass}, {"forged", forgedHeaders}, {"dodged", dodgedPaths}, {"large", largeHeads},
				{"away", weirAway}, {"closed", closedWithoutWeir},
			} {
				t.Run(step.name, func(t *testing.T) { step.run(t, f) })
			}
		})
	}
}

const edgeToken = "a-token-of-the-edge-of-the-tests"

// If weir has tokens, a proxy sends one, whatever its client sends; a proxy without one lets
// nothing pass, and weir's log says why.
func TestProxyTokens(t *testing.T) {
	for _, front := range fronts() {
		t.Run(front.name, func(t *testing.T) {
			f := newFleetWithToken(t, front, edgeToken)
			waitFor(t, "the application", func() bool { return f.ask(t, "127.0.0.1", "GET", "/free", "").Status == http.StatusOK })
			for i, token := range []string{"", "forged", edgeToken, edgeToken} {
				want := []int{200, 200, 200, 429}[i]
				if a := f.login(t, "127.0.0.2", "Weir-Token", token, "Authorization", "Bearer of-the-client"); a.Status != want {
					t.Errorf("request %d: %d %s, want %d", i+1, a.Status, a.Text, want)
				}
			}
		})
		t.Run(front.name+" without one", func(t *testing.T) {
			f := newFleetWithToken(t, front, "")
			waitFor(t, "the line of the log", func() bool {
				for _, token := range []string{"", edgeToken} {
					if a := f.login(t, "127.0.0.2", "Weir-Token", token); a.Status == http.StatusOK {
						t.Fatalf("with %q from the client: %d %s", token, a.Status, a.Text)
					}
				}
				return strings.Contains(f.process.log.String(), "check rejected")
			})
		})
	}
}

var aboutLimits = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy"}

// Requests pass until the limit is used up; then the end user is told everything.
func limitsHold(t *testing.T, f *fleet) {
	begin := time.Now()
	for i := range 5 {
		var a answer
		passed := f.passed(func() { a = f.login(t, "127.0.0.2") })
		h := a.Header
		if i >= 3 {
			if a.Status != http.StatusTooManyRequests || a.Rule != "login" || passed != 0 {
				t.Errorf("request %d: %d %s", i+1, a.Status, a.Text)
			}
			if h.Get("Content-Type") != "application/problem+json" || h.Get("Cache-Control") != "no-store" || !f.ownBody && a.Detail != "too many logins" {
				t.Errorf("request %d: %v %s", i+1, h, a.Text)
			}
			for _, name := range append(slices.Clone(aboutLimits), "Retry-After") {
				if len(h.Values(name)) != 1 {
					t.Errorf("%s is %q in %v", name, h.Values(name), h)
				}
			}
			// An hour after the first request.
			if seconds, err := strconv.Atoi(h.Get("Retry-After")); err != nil || seconds > 3600 || seconds < 3600-1-int(time.Since(begin).Seconds()) {
				t.Errorf("Retry-After is %q", h.Get("Retry-After"))
			}
			continue
		}
		if want := "POST /api/login?next=%2F for 127.0.0.2: name=alice"; a.Status != http.StatusOK || a.Text != want || passed != 1 {
			t.Errorf("request %d: %d %q, want %q", i+1, a.Status, a.Text, want)
		}
		if got := h.Get("X-RateLimit-Remaining"); f.tells && got != fmt.Sprint(2-i) {
			t.Errorf("request %d: %q remain", i+1, got)
		}
		if got := len(h.Values("RateLimit-Warning")); f.tells && got != min(i, 1) { // from the second on
			t.Errorf("request %d: RateLimit-Warning is %q", i+1, h.Values("RateLimit-Warning"))
		}
		for _, name := range aboutLimits {
			if f.tells && len(h.Values(name)) != 1 {
				t.Errorf("%s is %q in %v", name, h.Values(name), h)
			}
		}
	}
	// Somebody else, and something else, is not concerned.
	if a := f.login(t, "127.0.0.3"); a.Status != http.StatusOK || f.left(t, "login", "ip:127.0.0.3") != 2 {
		t.Errorf("another client: %d %s", a.Status, a.Text)
	}
	if a := f.ask(t, "127.0.0.2", "GET", "/api/login", ""); a.Status != http.StatusOK || a.Header.Get("RateLimit") != "" {
		t.Errorf("another method: %d %v", a.Status, a.Header)
	}
	if left := f.left(t, "login", "ip:127.0.0.1"); left != 3 {
		t.Errorf("the proxy itself was charged: it has %d left", left)
	}
}

// What weir does not deny is between the client and the application, and what it
// denies for other reasons is no 429.
func othersPass(t *testing.T, f *fleet) {
	for path, status := range map[string]int{"/forbidden": 403, "/broken": 500, "/weir": 200} {
		if f.name == "nginx" && path == "/weir" {
			status = 404 // its own
		}
		a := f.ask(t, "127.0.0.4", "GET", path, "")
		if want := "GET " + path + " for 127.0.0.4: "; a.Status != status || status != 404 && a.Text != want {
			t.Errorf("%s: %d %q", path, a.Status, a.Text)
		}
	}
	passed := f.passed(func() {
		if a := f.ask(t, "127.0.0.66", "GET", "/free", ""); a.Status != http.StatusForbidden || a.Header.Get("Retry-After") != "" {
			t.Errorf("a blocked client: %d %v", a.Status, a.Header)
		}
	})
	if passed != 0 {
		t.Error("a blocked client came through")
	}
	for i := range 2 {
		status := sendRaw(t, "127.0.0.4", f.public, "GET /shop HTTP/1.1\r\nHost: shop.example.com\r\nConnection: close\r\n\r\n")
		if want := []string{"200", "429"}[i]; !strings.Contains(status, want) {
			t.Errorf("request %d for a host: %s, want %s", i+1, status, want)
		}
	}
}

// weirAway: if weir does not answer, or does not run, requests are delayed only
// briefly. The limits apply again as soon as it is available.
func weirAway(t *testing.T, f *fleet) {
	want := http.StatusOK
	if f.closedOnly {
		want = f.closedWith
	}
	if !f.patient {
		f.process.cmd.Process.Signal(syscall.SIGSTOP)
		waitFor(t, "standstill", func() bool { return stopped(f.process.cmd.Process.Pid) })
		begin := time.Now()
		if a := f.login(t, "127.0.0.2"); a.Status != want {
			t.Errorf("while weir stands still: %d %s", a.Status, a.Text)
		}
		t.Logf("a weir that stands still costs a client %v", time.Since(begin).Round(time.Millisecond))
	}
	f.process.kill()
	for i := range 5 {
		if a := f.login(t, "127.0.0.2"); a.Status != want {
			t.Errorf("request %d without weir: %d %s", i+1, a.Status, a.Text)
		}
	}
	f.startWeir()
	waitFor(t, "the limit", func() bool { return f.login(t, "127.0.0.2").Status == http.StatusTooManyRequests })
}

// closedWithoutWeir: the proxy can also be configured to deny everything without weir.
func closedWithoutWeir(t *testing.T, f *fleet) {
	shut := *f
	shut.public = freeAddress(t)
	f.front.start(t, &shut, true)
	waitFor(t, "the application", func() bool { return shut.ask(t, "127.0.0.1", "GET", "/free", "").Status == http.StatusOK })
	shut.process.kill()
	passed := f.passed(func() {
		for i := range 3 {
			if a := shut.login(t, "127.0.0.7"); a.Status != f.closedWith {
				t.Errorf("request %d without weir: %d %s", i+1, a.Status, a.Text)
			}
		}
	})
	if passed != 0 {
		t.Errorf("%d requests came through", passed)
	}
}
