package httplimit

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/budget"
)

// stalling is a server, and clients of it that begin bodies and do not complete them.
type stalling struct {
	*settling
	server *httptest.Server
	h2     *http.Client // with one connection
}

func newStalling(t *testing.T, rules string, room int64, o Options) *stalling {
	t.Helper()
	old := prompts
	prompts = budget.NewBodyReader(room)
	s := &stalling{settling: newSettling(t, rules, o)}
	s.server = httptest.NewUnstartedServer(s.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})))
	s.server.Config.Protocols = new(http.Protocols)
	s.server.Config.Protocols.SetHTTP1(true)
	s.server.Config.Protocols.SetUnencryptedHTTP2(true)
	s.server.Start()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	s.h2 = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.server.Close()
		prompts = old
	})
	return s
}

// stall begins a body of n bytes, of which nothing more comes. It returns the status of the answer, when
// there is one.
func (s *stalling) stall(ctx context.Context, client *http.Client, n int) <-chan int {
	body, more := io.Pipe()
	status := make(chan int, 1)
	go func() {
		defer close(status)
		defer context.AfterFunc(ctx, func() { more.CloseWithError(context.Canceled) })() // a transport waits for it
		req, err := http.NewRequestWithContext(ctx, "POST", s.server.URL+"/v1/chat/completions", body)
		if err != nil {
			s.t.Error(err)
			return
		}
		if res, err := client.Do(req); err == nil {
			status <- res.StatusCode
			more.CloseWithError(context.Canceled)
			_ = res.Body.Close()
		}
	}()
	_, _ = io.WriteString(more, strings.Repeat(" ", n))
	return status
}

// honest is the status of a whole request of n bytes.
func (s *stalling) honest(client *http.Client, n int) int {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", s.server.URL+"/v1/chat/completions", strings.NewReader(`{"messages":[]}`+strings.Repeat(" ", n)))
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// Bodies that stall take room only for what has come, and when that is taken, make place for others. So
// nobody else is denied, whether rules count tokens or expressions read the bodies.
func TestStalledBodies(t *testing.T) {
	const reads = "rules: [{id: json, key: ip, limit: 100000000/1d, cost: {estimate: size(request.json.messages) + 1, default: 77}}]"
	for name, rules := range map[string]string{"tokens": strings.ReplaceAll(tokenRules(""), "1000/1d", "100000000/1d"), "expressions": reads} {
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(name+" "+protocol, func(t *testing.T) {
				const room = 1 << 20
				s := newStalling(t, rules, room, Options{})
				client := s.server.Client()
				if protocol == "HTTP/2" {
					client = s.h2
				}
				ctx, leave := context.WithCancel(t.Context())
				var stalled []<-chan int
				defer func() {
					leave()
					for _, status := range stalled {
						<-status
					}
					eventually(t, func() bool { return prompts.Free() == room })
				}()
				for range 100 { // of which each has 16 KiB
					stalled = append(stalled, s.stall(ctx, client, 5000))
				}
				eventually(t, func() bool { return prompts.Free() <= room/4 })
				for i := range 20 {
					if got := s.honest(client, 5000+i*5000); got != http.StatusOK {
						t.Fatalf("request %d: %d", i, got)
					}
				}
				aborted := 0
				for _, status := range stalled {
					select {
					case got, open := <-status:
						if aborted++; open && got != http.StatusServiceUnavailable && name == "tokens" {
							t.Errorf("a body that was given up is answered with %d", got)
						}
					default:
					}
				}
				if aborted == 0 || aborted == len(stalled) {
					t.Errorf("%d of %d were given up", aborted, len(stalled))
				}
			})
		}
	}
}

// A client that is blocked, or has no units left, is told so before its body is read. A short body is
// read first. Nothing is charged twice, and what counts denied requests counts one.
func TestDeniedBeforeTheBody(t *testing.T) {
	const json = `
  - {id: json, match: {path: /json}, key: ip, limit: 1000000/1d, cost: {estimate: size(request.json.messages) + 1, default: 77}}
  - {id: trial, mode: shadow, match: {path: /trial}, key: ip, limit: 1000/1d, cost: {estimate: size(request.json.messages) + 1, default: 77}}`
	rules := strings.ReplaceAll(tokenRules(""), "1000/1d", "1000000/1d") + json + `
  - {id: requests, key: ip, algorithm: fixed_window, limit: 2/1d}
  - {id: guesses, key: ip, algorithm: fixed_window, limit: 100/1d, count_denied: true}
`
	for _, path := range []string{"/v1/chat/completions", "/json", "/trial"} {
		for _, list := range []string{"", "block: {ip: [127.0.0.1]}\n"} {
			t.Run(path+" "+list, func(t *testing.T) {
				s := newStalling(t, list+rules, 1<<20, Options{})
				want, before := 403, int64(0)
				if list == "" {
					want = 429
					for range 2 {
						if got := s.honest(s.server.Client(), 9000); got != http.StatusOK {
							t.Fatal(got)
						}
					}
					if used := s.used("requests", "ip:127.0.0.1"); used != 2 {
						t.Fatalf("2 requests cost %d", used)
					}
					before = s.used("guesses", "ip:127.0.0.1")
				}
				tokens := s.used("tokens", "ip:127.0.0.1")
				c, err := net.Dial("tcp", s.server.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n%s", path, strings.Repeat(" ", 5000))
				answer, err := io.ReadAll(c) // although the body does not come; the rest of it may end in a reset
				if !strings.HasPrefix(string(answer), fmt.Sprintf("HTTP/1.1 %d ", want)) {
					t.Errorf("%.300s, %v", answer, err)
				}
				if list == "" {
					if !strings.Contains(string(answer), "requests") || !strings.Contains(string(answer), "Ratelimit") {
						t.Errorf("it does not say which limit: %s", answer)
					}
					if used := s.used("guesses", "ip:127.0.0.1"); used != before+1 || s.used("tokens", "ip:127.0.0.1") != tokens {
						t.Errorf("a denied request counts %d times", used-before)
					}
				}
			})
		}
	}
}

// A body that comes too slowly is answered with 408, and takes no room then.
func TestSlowBody(t *testing.T) {
	s := newStalling(t, tokenRules(""), 1<<20, Options{BodyTimeout: 50 * time.Millisecond})
	for name, client := range map[string]*http.Client{"HTTP/1.1": s.server.Client(), "HTTP/2": s.h2} {
		for _, n := range []int{1, 5000} {
			if got := <-s.stall(t.Context(), client, n); got != http.StatusRequestTimeout {
				t.Errorf("%s, %d bytes: %d", name, n, got)
			}
		}
		eventually(t, func() bool { return prompts.Free() == 1<<20 })
		if got := s.honest(client, 100); got != http.StatusOK {
			t.Errorf("afterwards: %d", got)
		}
	}
}

// Requests that wait for their own clients take no places from others. One that has lost its place and
// goes on when there is none cannot read its body.
func TestAdaptiveSlowClients(t *testing.T) {
	failed := make(chan error, 2)
	held, holds := make(chan struct{}), make(chan struct{})
	limit := newSettling(t, "rules: [{id: all, key: ip, limit: 1000000/1s}]", Options{
		Adaptive: Adaptive{Min: 2, Max: 2}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	server := httptest.NewServer(limit.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			close(held)
			<-holds
		} else if _, err := io.Copy(io.Discard, r.Body); err != nil {
			failed <- err
		}
	})))
	defer server.Close()
	get := func(path string) int {
		req, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+path, nil)
		if err != nil {
			t.Error(err)
			return 0
		}
		req.Header.Set("X-Forwarded-For", "192.0.2.2")
		res, err := server.Client().Do(req)
		if err != nil {
			return 0
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	var slow [2]net.Conn
	for i := range slow {
		var err error
		if slow[i], err = net.Dial("tcp", server.Listener.Addr().String()); err != nil {
			t.Fatal(err)
		}
		defer slow[i].Close()
		fmt.Fprint(slow[i], "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\nContent-Length: 10\r\n\r\nx")
	}
	eventually(t, func() bool { return limit.AdaptiveLimit().InFlight == 2 && get("/") == http.StatusOK })
	for i := range 20 {
		if got := get("/"); got != http.StatusOK {
			t.Fatalf("request %d: %d", i, got)
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(holds)
	wg.Go(func() { get("/hold") }) // in a place of one that waits
	<-held
	for _, c := range slow {
		fmt.Fprint(c, "x")
	}
	if err := <-failed; err != errOverloaded {
		t.Error(err)
	}
}
