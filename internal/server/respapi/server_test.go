package respapi

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/store/memory"
)

// slow is a store that takes its time.
type slow struct {
	weir.HoldStore
	came, done chan struct{}
}

func (s *slow) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	s.came <- struct{}{}
	select {
	case <-s.done:
		return s.HoldStore.Take(ctx, dst, ops...)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func newSlow(t *testing.T) (*stand, *slow) {
	t.Helper()
	store := &slow{memory.New(memory.Options{}), make(chan struct{}, 100), make(chan struct{})}
	e, err := engine.New(engine.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	o := Options{}
	o.Engine = e
	return newStand(t, o), store
}

// What was received is answered; who waits for nothing is sent away.
func TestShutdown(t *testing.T) {
	s, store := newSlow(t)
	idle, busy := s.dial(t), s.dial(t)
	idle.do("PING")
	busy.send(array("CL.THROTTLE", "k", "4", "1", "60") + array("PING"))
	<-store.came
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(t.Context()) }()
	if rest := idle.isClosed(); rest != "" {
		t.Errorf("the idle one got %q", rest)
	}
	close(store.done)
	if rest := busy.isClosed(); rest != "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:60\r\n+PONG\r\n" {
		t.Errorf("the busy one got %q", rest)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A command that takes too long is cut off.
func TestShutdownHasAnEnd(t *testing.T) {
	s, store := newSlow(t)
	c := s.dial(t)
	c.send(array("CL.THROTTLE", "k", "4", "1", "60"))
	<-store.came
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	c.isClosed()
}

// A store that fails is no error of CL.THROTTLE: the process goes on by itself.
func TestStoreUnavailable(t *testing.T) {
	store := &broken{memory.New(memory.Options{})}
	e, err := engine.New(engine.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	o := Options{}
	o.Engine = e
	s := newStand(t, o)
	c := s.dial(t)
	for _, want := range []string{"0", "1"} {
		c.send(array("CL.THROTTLE", "k", "0", "1", "3600"))
		answer := c.read().([]any)
		if got := answer[0]; (got == int64(1)) != (want == "1") {
			t.Errorf("got %v, want %s", answer, want)
		}
	}
}

type broken struct{ weir.HoldStore }

func (*broken) Take(context.Context, []weir.Decision, ...weir.Op) ([]weir.Decision, error) {
	return nil, errors.New("gone")
}

// A command that panics ends its connection, and no other.
func TestCrash(t *testing.T) {
	o := Options{}
	s := newStand(t, o)
	c, other := s.dial(t), s.dial(t)
	other.do("PING")
	s.engineGone()
	c.send(array("PING") + array("WEIR.CHECK", "user", "alice") + array("PING"))
	rest := c.isClosed()
	if !strings.HasPrefix(rest, "+PONG\r\n-INTERNAL_ERROR An internal error occurred; weir's log has the cause under the request ID ") || strings.Count(rest, "\r\n") != 2 {
		t.Errorf("got %q", rest)
	}
	if !strings.Contains(s.log.String(), "command=weir.check") {
		t.Errorf("the log: %s", s.log.String())
	}
	if other.do("PING") != "PONG" {
		t.Error("the other connection ended")
	}
}

// engineGone makes every check panic.
func (s *stand) engineGone() { s.options.Engine = nil }

// failing is a listener that has no file descriptor left, at first.
type failing struct {
	net.Listener
	left atomic.Int32
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, syscall.EMFILE
	}
	return f.Listener.Accept()
}

// The server goes on when a connection could not be accepted, and ends when its listener does.
func TestAccept(t *testing.T) {
	s := newStand(t, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{Listener: l}
	f.left.Store(2)
	done := make(chan error, 1)
	go func() { done <- s.Serve(f) }()
	s.addr = l.Addr().String()
	if got := s.dial(t).do("PING"); got != "PONG" {
		t.Errorf("got %v", got)
	}
	l.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
