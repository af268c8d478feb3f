// Package hostile is a client that tries to hurt others by being slow, and checks that it cannot: while it
// attacks a gateway and its API, honest clients from another address must be answered.
package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

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
