package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
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
