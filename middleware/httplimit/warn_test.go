package httplimit

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Each mistake is told once, with its code and what to do.
func TestTell(t *testing.T) {
	trusted := Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	header := func(r *http.Request, lines ...string) *http.Request {
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Set(name, value)
		}
		return r
	}
	direct, proxied := "203.0.113.7:1", "10.0.0.1:1"
	for _, c := range []struct {
		name    string
		options Options
		ask     func(b *bench, i int)
		want    string // the code, or none
	}{
		{"all is well", Options{}, func(b *bench, i int) { b.ask() }, ""},
		{"a proxy's header", Options{}, func(b *bench, i int) { b.send(header(from(direct, "GET", "/"), "X-Forwarded-For: 192.0.2.1")) }, "M001"},
		{"a proxy's other header", Options{}, func(b *bench, i int) { b.send(header(from(direct, "GET", "/"), "Forwarded: for=192.0.2.1")) }, "M001"},
		{"a client's forged header", trusted, func(b *bench, i int) { b.send(header(from(direct, "GET", "/"), "X-Forwarded-For: 192.0.2.1")) }, ""},
		{"mounted twice", Options{}, func(b *bench, i int) { b.Wrap(b.Handler).ServeHTTP(&discard{http.Header{}}, from(direct, "GET", "/")) }, "M002"},
		{"a user for all", Options{User: func(*http.Request) string { return "someone" }}, func(b *bench, i int) { b.send(from(fmt.Sprintf("203.0.113.%d:1", i%60), "GET", "/")) }, "M003"},
		{"a key for all", Options{APIKey: func(*http.Request) string { return "secret" }}, func(b *bench, i int) { b.send(from(fmt.Sprintf("203.0.113.%d:1", i%60), "GET", "/")) }, "M003"},
		{"few addresses", Options{User: func(*http.Request) string { return "someone" }}, func(b *bench, i int) { b.send(from(fmt.Sprintf("203.0.113.%d:1", i%40), "GET", "/")) }, ""},
		{"nobody is logged in", Options{User: func(*http.Request) string { return "" }}, func(b *bench, i int) { b.send(from(fmt.Sprintf("203.0.113.%d:1", i%60), "GET", "/")) }, ""},
		{"two users", Options{User: func(r *http.Request) string { return r.URL.Path }}, func(b *bench, i int) {
			b.send(from(fmt.Sprintf("203.0.113.%d:1", i%60), "GET", fmt.Sprint("/", i%2)))
		}, ""},
		{"headers that disagree", trusted, func(b *bench, i int) {
			b.send(header(from(proxied, "GET", "/"), "X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.2"))
		}, "M004"},
		{"no address", Options{}, func(b *bench, i int) { b.send(from("pipe", "GET", "/")) }, "M005"},
		{"too many limits", Options{}, func(b *bench, i int) { b.ask() }, "M006"},
		{"a response that is not seen", Options{Actual: func(*http.Request, *rule.Response) engine.Used { return nil }}, func(b *bench, i int) {
			b.Allow(&discard{http.Header{}}, from(direct, "GET", "/"))
		}, "M007"},
		{"a response that nobody needs", Options{}, func(b *bench, i int) { b.Allow(&discard{http.Header{}}, from(direct, "GET", "/")) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log buffer
			c.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
			rules := "rules:"
			n := 1
			if c.want == "M006" {
				n = 65
			}
			for i := range n {
				rules += fmt.Sprintf("\n  - {id: r%d, key: global, limit: %d/1h}", i, 10_000+i)
			}
			b := newBench(t, rules, c.options)
			for i := range 1200 {
				c.ask(b, i)
			}
			lines := strings.Count(log.String(), "\n")
			switch {
			case c.want == "" && lines > 0:
				t.Errorf("told: %s", log.String())
			case c.want != "" && (lines != 1 || !strings.Contains(log.String(), "code="+c.want) || !strings.Contains(log.String(), "remedy=")):
				t.Errorf("want %s, told: %s", c.want, log.String())
			}
			if strings.Contains(log.String(), "secret") || strings.Contains(log.String(), "someone") {
				t.Error("the log has who the clients are")
			}
		})
	}
}

// buffer is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// Many at once are told once, too.
func TestTellOnce(t *testing.T) {
	var log buffer
	b := newBench(t, "rules: [{id: a, key: ip, limit: 5/1h}]", Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			r := from("203.0.113.7:1", "GET", "/").WithContext(context.Background())
			r.Header.Set("X-Forwarded-For", "192.0.2.1")
			b.send(r)
		})
	}
	all.Wait()
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}

// A function that never has a second answer is not watched for ever.
func TestSamenessGivesUp(t *testing.T) {
	var s sameness
	addr := netip.MustParseAddr("203.0.113.7")
	for range sameGivenUp {
		if s.everyone("someone", addr) {
			t.Fatal("one address is not everyone")
		}
	}
	if !s.settled.Load() || s.addresses != nil {
		t.Error("it is still watched")
	}
}

// docs/reference/middleware.md explains every code.
func TestCodesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reference/middleware.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mistakes {
		if line := fmt.Sprintf("| %s | %s | %s |\n", m.Code, m.What, m.Remedy); !strings.Contains(string(doc), line) {
			t.Errorf("docs/reference/middleware.md lacks the line\n%s", line)
		}
	}
}
