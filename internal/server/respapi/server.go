// Package respapi answers Redis clients: RESP2 and RESP3 to engine and back, nothing else.
//
//	api, err := respapi.New(respapi.Options{Service: manage.Service{Engine: engine, Rules: repository}})
//	err = api.Serve(listener)
//
// It has the command of redis-cell, CL.THROTTLE, the commands WEIR.…, which have the same
// meaning as the calls of the HTTP API, and what clients send when they connect.
// docs/reference/resp.md is the reference.
//
// A denial by a limit is an answer. An error begins with a stable word in capitals.
package respapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/rules/manage"
)

// Bounds on what clients may cost.
const (
	maxCommand = 2 * manage.MaxQuestion // bytes
	maxLarge   = 16 << 20               // bytes of all buffers that are not small
	flushAt    = 2 * smallBuffer        // bytes of answers that wait for the end of a pipeline
	keepOut    = 2 * flushAt            // of a buffer for answers that is used again
)

// Options of a server.
type Options struct {
	// Service is what all servers need.
	manage.Service

	// Version is of the program, for INFO.
	Version string

	// MaxConnections is how many clients may be connected. Default 10,000, as Redis has.
	MaxConnections int

	// Idle is after how long a connection without commands is closed. Default one hour.
	Idle time.Duration

	// Patience is how long a client may take to send the rest of a command, to read its
	// answers, and for a handshake. Default 30 seconds.
	Patience time.Duration
}

// Server answers Redis clients. It is safe for concurrent use.
type Server struct {
	options Options
	limits  limits
	large   *budget.Inbox
	work    sync.Pool
	stats   stats
	warned  atomic.Int64 // of an HTTP request, in Unix seconds

	ctx     context.Context // of all commands
	cancel  context.CancelFunc
	closing context.Context // ended by Shutdown
	close   context.CancelFunc
	lastID  atomic.Int64

	mu    sync.Mutex
	conns map[*conn]struct{}
	ended sync.WaitGroup // connections
}

// New returns a server of an engine and its rules.
func New(o Options) (*Server, error) {
	if err := o.Complete("respapi"); err != nil {
		return nil, err
	}
	if o.MaxConnections < 0 || o.Idle < 0 || o.Patience < 0 {
		return nil, errors.New("respapi: an option is negative; write 0 for its default")
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = 10_000
	}
	if o.Idle == 0 {
		o.Idle = time.Hour
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	s := &Server{options: o, large: budget.NewInbox(maxLarge), conns: map[*conn]struct{}{}}
	s.stats.answered = make([][2]atomic.Uint64, len(commands))
	s.work.New = func() any { return new(work) }
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.closing, s.close = context.WithCancel(s.ctx)
	return s, nil
}

// Serve answers those who connect, until Shutdown is called.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	stop := context.AfterFunc(s.closing, func() { l.Close() })
	defer stop()
	pause := time.Duration(0)
	for {
		accepted, err := l.Accept()
		switch {
		case s.closing.Err() != nil:
			if err == nil {
				accepted.Close()
			}
			return nil
		case err == nil:
			pause = 0
			s.welcome(accepted)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("respapi: %w", err)
		}
		// There may be no file descriptor left, which is no reason to give up.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.options.Logger.Warn("could not accept a connection; trying again", "error", err)
		select {
		case <-time.After(pause):
		case <-s.closing.Done():
		}
	}
}

// welcome answers a new connection, if there is room.
func (s *Server) welcome(accepted net.Conn) {
	c := newConn(s, accepted)
	s.mu.Lock()
	full, closing := len(s.conns) >= s.options.MaxConnections, s.closing.Err() != nil
	if !full && !closing {
		s.conns[c] = struct{}{}
		s.ended.Add(1)
	}
	s.mu.Unlock()
	switch {
	case closing:
		accepted.Close()
	case full:
		s.stats.rejected.Add(1)
		if plain, ok := accepted.(*net.TCPConn); ok { // TLS would need a handshake first
			_ = plain.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = plain.Write([]byte("-ERR max number of clients reached\r\n"))
		}
		accepted.Close()
	default:
		go c.serve()
	}
}

// forget ends a connection. When the client notices, its place is free.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	c.net.Close()
	s.ended.Done()
}

// connected is how many clients there are.
func (s *Server) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Shutdown accepts no more connections, and closes each when the commands that were
// received are answered. When the context ends, it cuts the rest off, and returns the
// context's error.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.cancel()
	s.close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.net.SetReadDeadline(time.Unix(1, 0)) // who waits for a command need not wait longer
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.ended.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.cancel()
	s.mu.Lock()
	for c := range s.conns {
		c.net.Close()
	}
	s.mu.Unlock()
	<-done
	return ctx.Err()
}
