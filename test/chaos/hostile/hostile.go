// Package hostile is a client that tries to hurt others by being slow, and checks that it cannot: while it
// attacks a gateway and its API, honest clients from another address must be answered.
package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/testkit"
)

// rules read bodies in both ways, and deny nobody.
const rules = `rules:
  - {id: requests, key: ip, limit: 1000000/1s}
  - {id: tokens, match: {path: /v1/**}, key: ip, algorithm: fixed_window, limit: 1000000000000/1d, tokens: {}}
  - {id: json, match: {path: /json}, key: ip, algorithm: fixed_window, limit: 1000000000000/1d, cost: {estimate: request.json.n, default: 1}}
`

const (
	large    = 8 << 20         // bytes of a response that nobody reads
	patience = 5 * time.Second // of an honest client
	pause    = 50 * time.Millisecond
)

// Outcome is how honest clients fared during an attack.
type Outcome struct {
	Attack   string
	Requests int // of honest clients
	Failed   int
	First    string // what happened to the first that failed
	Longest  time.Duration
}

// Run makes each attack for so long on a weir that it starts, and tells of each.
func Run(ctx context.Context, h *testkit.Scope, program string, each time.Duration, attacks []Attack, tell func(string)) []Outcome {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, large))
		}
	}))
	h.Cleanup(func() { upstream.CloseClientConnections(); upstream.Close() })
	var outcomes []Outcome
	for _, a := range attacks {
		if ctx.Err() != nil {
			break
		}
		tell(a.Name)
		c, end := start(h, program, upstream.URL)
		outcomes = append(outcomes, c.try(ctx, a, each))
		end()
	}
	return outcomes
}

var listening = regexp.MustCompile(`(?m)^weir listens on http://(\S+)[^\n]*\n(?:.*\n)*?weir gateway listens on http://(\S+)`)

// start starts a gateway, and returns a client for it.
func start(h *testkit.Scope, program, upstream string) (*Client, func()) {
	dir := h.TempDir()
	file, log := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "weir.log")
	testkit.OK(h, os.WriteFile(file, []byte(rules), 0o600))
	process := testkit.Must(testkit.Start(program, []string{"gateway", "--rules", file, "--http", "127.0.0.1:0", "--grpc", "off",
		"--listen", "127.0.0.1:0", "--upstream", upstream, "--adaptive", "5-1000", "--log-level", "error"}, log))(h)
	h.Cleanup(process.Kill)
	found := testkit.Must(process.Await(listening))(h)
	return &Client{API: found[1], Gateway: found[2]}, process.Kill
}

// try attacks while honest clients ask.
func (c *Client) try(ctx context.Context, a Attack, long time.Duration) Outcome {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	if other := net.IPv4(127, 0, 0, 2); canUse(other) {
		c.From = other
	}
	transport := &http.Transport{DialContext: c.dialer().DialContext, Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	c.h2 = &http.Client{Transport: transport}
	defer transport.CloseIdleConnections()
	var attacking, asking sync.WaitGroup
	for range a.Times {
		attacking.Go(func() {
			for ctx.Err() == nil {
				a.Do(ctx, c)
				_ = clock.Sleep(ctx, pause)
			}
		})
	}
	o := Outcome{Attack: a.Name}
	var mu sync.Mutex
	honest := &http.Client{Timeout: patience, Transport: new(http.Transport)}
	for _, q := range questions(c) {
		asking.Go(func() {
			for ctx.Err() == nil {
				begun := time.Now()
				said := q.ask(honest)
				mu.Lock()
				o.Requests++
				o.Longest = max(o.Longest, time.Since(begun))
				if said != "" {
					if o.Failed++; o.First == "" {
						o.First = said
					}
				}
				mu.Unlock()
				_ = clock.Sleep(ctx, pause)
			}
		})
	}
	asking.Wait()
	attacking.Wait()
	honest.CloseIdleConnections()
	return o
}

// canUse reports whether there can be connections from an address: not every system has all of loopback.
func canUse(ip net.IP) bool {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip})
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}

// question is what an honest client asks.
type question struct{ method, url, body string }

func questions(c *Client) []question {
	gateway, api := "http://"+c.Gateway, "http://"+c.API
	return []question{
		{"POST", gateway + "/v1/chat/completions", `{"model":"m","messages":[{"content":"` + strings.Repeat("a", 6000) + `"}]}`},
		{"POST", gateway + "/v1/chat/completions", `{"model":"m","messages":[{"content":"` + strings.Repeat("a", 200_000) + `"}]}`},
		{"POST", gateway + "/json", `{"n": 3, "text": "` + strings.Repeat("a", 100_000) + `"}`},
		{"GET", gateway + "/plain", ""},
		{"POST", gateway + "/plain", strings.Repeat("a", 100_000)},
		{"POST", api + "/v1/check", `{"ip": "203.0.113.7"}`},
		{"POST", api + "/v1/check", `{"ip": "203.0.113.7"}` + spaces(30_000)},
	}
}

// ask returns what went wrong, or "".
func (q question) ask(client *http.Client) string {
	req, err := http.NewRequest(q.method, q.url, bytes.NewReader([]byte(q.body)))
	if err != nil {
		return err.Error()
	}
	res, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK || err != nil {
		return fmt.Sprintf("%s %s was answered with %d: %.200s %v", q.method, req.URL.Path, res.StatusCode, text, err)
	}
	return ""
}

// Attack is what a hostile client does. To add one, add it to Attacks.
type Attack struct {
	Name  string
	Times int // how often it is done at the same time

	// Do does it once, until the context ends or the server has had enough. Then it is done again.
	Do func(ctx context.Context, c *Client)
}

// Attacks are all of them.
func Attacks() []Attack {
	return []Attack{
		{"stalled prompts", 60, func(ctx context.Context, c *Client) {
			c.send(ctx, c.Gateway, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n"+spaces(5000))
		}},
		{"stalled prompts over HTTP/2", 200, func(ctx context.Context, c *Client) { c.stream(ctx, 5000) }},
		{"long stalled prompts", 50, func(ctx context.Context, c *Client) {
			c.send(ctx, c.Gateway, "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 33000000\r\n\r\n"+spaces(5<<20))
		}},
		{"stalled bodies for expressions", 300, func(ctx context.Context, c *Client) {
			c.send(ctx, c.Gateway, "POST /json HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"+spaces(900_000))
		}},
		{"stalled checks", 1100, func(ctx context.Context, c *Client) {
			c.send(ctx, c.API, "POST /v1/check HTTP/1.1\r\nHost: "+c.API+"\r\nContent-Length: 65000\r\n\r\n"+spaces(60_000))
		}},
		{"bodies of one byte", 150, func(ctx context.Context, c *Client) {
			c.send(ctx, c.Gateway, "POST /plain HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx")
		}},
		{"long bodies that stall", 150, func(ctx context.Context, c *Client) {
			c.send(ctx, c.Gateway, "POST /plain HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"+spaces(200_000))
		}},
		{"unread responses", 150, func(ctx context.Context, c *Client) { c.ignore(ctx, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n") }},
		{"many connections", 1000, func(ctx context.Context, c *Client) { c.send(ctx, c.Gateway, "GET /plain HTTP/1.1\r\nHo") }},
	}
}

func spaces(n int) string { return strings.Repeat(" ", n) }

// Client is who attacks.
type Client struct {
	Gateway, API string // addresses
	From         net.IP // default that of honest clients

	h2 *http.Client
}

func (c *Client) dialer() *net.Dialer {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if c.From != nil {
		d.LocalAddr = &net.TCPAddr{IP: c.From}
	}
	return d
}

// dial makes a connection that ends with the context.
func (c *Client) dial(ctx context.Context, to string) (net.Conn, func(), error) {
	conn, err := c.dialer().DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	return conn, func() { stop(); conn.Close() }, nil
}

// send sends a text, and then nothing.
func (c *Client) send(ctx context.Context, to, text string) {
	conn, end, err := c.dial(ctx, to)
	if err != nil {
		return
	}
	defer end()
	if _, err := io.WriteString(conn, text); err == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// ignore sends a request, and does not read the answer.
func (c *Client) ignore(ctx context.Context, text string) {
	conn, end, err := c.dial(ctx, c.Gateway)
	if err != nil {
		return
	}
	defer end()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	if _, err := io.WriteString(conn, text); err == nil {
		<-ctx.Done()
	}
}

// stream sends so much of a prompt, on the one connection that all have.
func (c *Client) stream(ctx context.Context, n int) {
	body, more := io.Pipe()
	defer more.Close()
	go fmt.Fprint(more, spaces(n))
	defer context.AfterFunc(ctx, func() { more.CloseWithError(context.Canceled) })()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+c.Gateway+"/v1/chat/completions", body)
	if err != nil {
		return
	}
	if res, err := c.h2.Do(req); err == nil {
		more.CloseWithError(context.Canceled)
		_ = res.Body.Close()
	}
}
