package testredis

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

// Proxy is a line to a server that can be made a bad one. (Toxiproxy was tried: when
// it cuts a reply that is longer than its buffer, goroutines stay behind for ever.)
type Proxy struct {
	Addr string // host:port, to be used instead of the server's

	t       testing.TB
	running sync.WaitGroup

	mu       sync.Mutex
	server   string
	listener net.Listener // nil while the line is cut
	links    []*link      // those that may be open
	latency  time.Duration
	limit    int // how many bytes of replies a new link may pass
}

const unlimited = -1

// NewProxy makes a good line to the server, which ends with the test.
func NewProxy(t testing.TB, server *Server) *Proxy {
	t.Helper()
	p := newLine(t)
	p.leadTo(server.Addr)
	return p
}

// newLine is a line that leads nowhere yet.
func newLine(t testing.TB) *Proxy {
	t.Helper()
	p := &Proxy{Addr: testkit.Must(FreeAddr())(t), t: t}
	t.Cleanup(p.Cut)
	p.Heal()
	return p
}

func (p *Proxy) leadTo(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

func (p *Proxy) end() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

// Latency delays every reply. Requests travel as fast as ever.
func (p *Proxy) Latency(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = d
}

// ResetMidReply resets each connection, open or new, when so many more bytes of
// replies have passed. With 0 the server does what it is asked, and the next reply
// is lost.
func (p *Proxy) ResetMidReply(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limitLocked(bytes)
}

func (p *Proxy) limitLocked(bytes int) {
	p.limit = bytes
	for _, l := range p.links {
		l.left = bytes
	}
}

// Cut resets all connections and refuses new ones. Nothing passes once it returns.
func (p *Proxy) Cut() {
	p.mu.Lock()
	if p.listener != nil {
		p.listener.Close()
	}
	p.listener = nil
	for _, l := range p.links {
		l.reset()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// Heal makes the line good again, whatever was done to it.
func (p *Proxy) Heal() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = 0
	p.limitLocked(unlimited)
	if p.listener != nil {
		return
	}
	listener := testkit.Must(net.Listen("tcp", p.Addr))(p.t)
	p.listener = listener
	p.running.Go(func() { p.accept(listener) })
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.end())
		if err != nil {
			client.Close()
			continue
		}
		l := &link{client: client.(*net.TCPConn), server: server.(*net.TCPConn), replies: make(chan piece, 1000)}
		l.ctx, l.cancel = context.WithCancel(context.Background())
		p.mu.Lock()
		if p.listener == listener {
			l.left = p.limit
			p.links = append(slices.DeleteFunc(p.links, (*link).over), l)
			p.running.Go(func() { io.Copy(l.server, l.client); l.end() })
			p.running.Go(func() { p.receive(l) })
			p.running.Go(func() { p.deliver(l) })
		} else { // it was cut in the meantime
			l.reset()
		}
		p.mu.Unlock()
	}
}

// receive takes replies from the server at once, so that delays do not add up.
func (p *Proxy) receive(l *link) {
	defer close(l.replies)
	for {
		buffer := make([]byte, 16<<10)
		n, err := l.server.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		due := time.Now().Add(p.latency)
		p.mu.Unlock()
		select {
		case l.replies <- piece{buffer[:n], due}:
		case <-l.ctx.Done():
			return
		}
	}
}

// deliver hands replies to the client when they are due.
func (p *Proxy) deliver(l *link) {
	defer l.end()
	for r := range l.replies {
		select {
		case <-time.After(time.Until(r.due)):
		case <-l.ctx.Done():
			return
		}
		p.mu.Lock()
		if l.left != unlimited {
			r.data = r.data[:min(len(r.data), l.left)]
			l.left -= len(r.data)
		}
		last := l.left == 0
		p.mu.Unlock()
		if _, err := l.client.Write(r.data); err != nil {
			return
		}
		if last {
			l.reset()
		}
	}
}

// link is one connection through a proxy.
type link struct {
	client, server *net.TCPConn
	replies        chan piece
	left           int // how many bytes of replies it may still pass
	ctx            context.Context
	cancel         func()
}

// piece is a part of a reply, and when the client is to have it.
type piece struct {
	data []byte
	due  time.Time
}

// end closes both connections in the same way as the side that closed first.
func (l *link) end() {
	l.cancel()
	l.client.Close()
	l.server.Close()
}

// reset ends it without a farewell.
func (l *link) reset() {
	l.client.SetLinger(0)
	l.server.SetLinger(0)
	l.end()
}

// over reports whether it has ended.
func (l *link) over() bool { return l.ctx.Err() != nil }
