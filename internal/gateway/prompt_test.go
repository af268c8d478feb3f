package gateway

import (
	"context"
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

const countTokens = "rules: [{id: tokens, key: ip, limit: 1000000000/1s, tokens: {}}]"

// counted counts what is written to a connection.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// A short body that was read because its tokens are counted is sent together with the header. Bodies
// of every length arrive as they were sent, up to the maximum.
func TestPrompts(t *testing.T) {
	const most = 10_000
	got := make(chan string, 100)
	b := newStand(t, setup{rules: countTokens, options: Options{MaxBody: most}}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	var writes atomic.Int64
	dial := b.transport.usual.DialContext
	b.transport.usual.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if c, ok := c.(*conn); ok {
			c.Conn = counted{c.Conn, &writes}
		}
		return c, err
	}
	for _, c := range []struct {
		length int
		writes int64 // 0 for any number
		status int
	}{
		{40, 1, 200}, {1000, 1, 200}, {4095, 0, 200}, {4096, 0, 200}, {most, 0, 200}, {most + 1, 0, 413},
	} {
		for _, known := range []bool{true, false} {
			text := `{"messages":[{"content":"` + strings.Repeat("x", c.length-29) + `"}]}`
			var from io.Reader = strings.NewReader(text)
			if !known {
				from = io.MultiReader(from)
			}
			writes.Store(0)
			res, err := b.client.Post(b.server.URL+"/v1/chat/completions", "application/json", from)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != c.status {
				t.Errorf("%+v, length known: %v: status %d", c, known, res.StatusCode)
				continue
			}
			if c.status != 200 {
				continue
			}
			if body := <-got; body != text {
				t.Errorf("%+v, length known: %v: the upstream got %d bytes", c, known, len(body))
			}
			if n := writes.Load(); c.writes > 0 && n != c.writes {
				t.Errorf("%+v, length known: %v: %d writes", c, known, n)
			}
		}
	}
}

// Prompts whose memory is used again are not mixed up: many at once, to an upstream that answers
// before or after it has read them, from clients of which some leave.
func TestPromptsAtOnce(t *testing.T) {
	var wrong atomic.Int64
	b := newStand(t, setup{rules: countTokens}, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Early") != "" {
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.WriteString(w, "{}")
			_ = http.NewResponseController(w).Flush()
		}
		body, err := io.ReadAll(r.Body)
		if text := r.Header.Get("X-Text"); err == nil && !strings.Contains(string(body), `"`+strings.Repeat(text, 200)+`"`) {
			wrong.Add(1)
		}
	}))
	var callers sync.WaitGroup
	for g := range 16 {
		callers.Go(func() {
			for i := range 40 {
				text := fmt.Sprintf("%d-%d.", g, i)
				ctx, cancel := context.WithCancel(t.Context())
				req, _ := http.NewRequestWithContext(ctx, "POST", b.server.URL+"/v1/chat/completions", strings.NewReader(`{"messages":[{"content":"`+strings.Repeat(text, 200)+`"}]}`))
				req.Header.Set("X-Text", text)
				if i%3 == 0 {
					req.Header.Set("X-Early", "1")
				}
				if i%5 == 0 {
					go cancel()
				}
				if res, err := b.client.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				cancel()
			}
		})
	}
	callers.Wait()
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d prompts were changed", n)
	}
}

// halted stops after what it writes first, until it may go on, and tells what it writes then.
type halted struct {
	net.Conn
	writes int
	goOn   chan struct{}
	rest   chan string
}

func (h *halted) Write(b []byte) (int, error) {
	h.writes++
	if h.writes == 2 {
		h.rest <- string(b)
	}
	n, err := h.Conn.Write(b)
	if h.writes == 1 {
		<-h.goOn
	}
	return n, err
}

// A prompt that is still being sent when its answer has come is not given to others.
func TestPromptUnderWay(t *testing.T) {
	b := newStand(t, setup{rules: countTokens}, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		_, _ = io.Copy(io.Discard, c) // until the gateway closes it
	}))
	h := &halted{goOn: make(chan struct{}), rest: make(chan string, 1)}
	dial := b.transport.usual.DialContext
	b.transport.usual.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if c, ok := c.(*conn); ok && h.Conn == nil {
			h.Conn = c.Conn
			c.Conn = h
		}
		return c, err
	}
	post := func(letter string) {
		t.Helper()
		res, err := b.client.Post(b.server.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[{"content":"`+strings.Repeat(letter, 4000)+`"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	post("a") // with its header, it is longer than what is written at once
	for range 10 {
		post("b")
	}
	close(h.goOn)
	select {
	case rest := <-h.rest:
		if strings.Contains(rest, "b") || !strings.Contains(rest, "a") {
			t.Errorf("%q was sent", rest)
		}
	case <-time.After(patience):
		t.Error("the rest of the prompt was lost")
	}
}
