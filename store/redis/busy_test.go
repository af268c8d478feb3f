package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// A check whose call was not sent in time is no failure of Redis: the circuit breaker does not
// hear of it, and it was not charged.
func TestNotSentInTime(t *testing.T) {
	server := testredis.Start(t)
	s := open(t, single(server.Addr)+"?timeout=20ms")
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 100/1d"), Cost: 1}
	busy := &lane{sending: maxSending}
	s.lanes.mu.Lock()
	s.lanes.bySlot[0] = busy
	s.lanes.mu.Unlock()
	for range 2 * tripAfter {
		if _, err := s.Take(t.Context(), nil, op); !errors.Is(err, weir.ErrBusy) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Take = %v", err)
		}
	}
	if !s.Available() {
		t.Error("the circuit breaker is open")
	}
	s.lanes.mu.Lock()
	busy.sending = 0
	s.lanes.mu.Unlock()
	eventually(t, "an answer", func() bool {
		d, err := s.Peek(t.Context(), nil, op)
		if err == nil && d[0].Remaining != 100 {
			t.Errorf("%d remain of 100", d[0].Remaining)
		}
		return err == nil
	})
}

// A Redis that was sent a call and does not answer is to blame, unless the process overslept, or
// sent it late.
func TestWhoIsLate(t *testing.T) {
	now := time.Now()
	s := &Store{timeout: time.Second}
	if overslept(5*time.Millisecond, now, now.Add(2*time.Millisecond)) {
		t.Error("a timer that rang as exactly as timers do has overslept")
	}
	for name, c := range map[string]struct {
		sent, due time.Time
		busy      bool
	}{
		"no answer": {now.Add(-time.Second), now, false},
		"sent late": {now.Add(-800 * time.Millisecond), now, true},
		"overslept": {now.Add(-2 * time.Second), now.Add(-300 * time.Millisecond), true},
	} {
		check := newCheck(take, 0)
		check.send(c.sent)
		late := &timer{Timer: time.NewTimer(0), due: c.due}
		if err := s.await(t.Context(), check, late); errors.Is(err, weir.ErrBusy) != c.busy || errors.Is(err, context.DeadlineExceeded) == c.busy {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Calls of a process that did not run do not open the circuit breaker, and do not close it either.
func TestBusyDoesNotTrip(t *testing.T) {
	server := testredis.Start(t)
	s := open(t, patient(server.Addr))
	s.lanes.mu.Lock()
	s.lanes.probing = true // or a probe would find out that Redis is well
	s.lanes.mu.Unlock()
	l := &lane{}
	for range 2 * tripAfter {
		s.report(l, "k", s.busy())
	}
	if l.doubted {
		t.Error("the circuit breaker has counted a process that did not run")
	}
	for range tripAfter - 1 {
		s.report(l, "k", s.late())
	}
	s.report(l, "k", s.busy())
	s.report(l, "k", s.late())
	if l.down == nil {
		t.Error("the circuit breaker has forgotten calls without an answer")
	}
	if s.learn([]*lane{l}, []error{nil}) || l.down != nil {
		t.Error("the circuit breaker stays open after an answer")
	}
}

// An answer that has come is used, although the time is over.
func TestAnswerAfterTheTimer(t *testing.T) {
	s := &Store{timeout: time.Second}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // a select chooses at random
		for _, ctx := range []context.Context{t.Context(), ended} {
			check := newCheck(take, 0)
			check.send(time.Now())
			check.finish(nil)
			late := &timer{Timer: time.NewTimer(0), due: time.Now().Add(-time.Hour)}
			if err := s.await(ctx, check, late); err != nil {
				t.Fatalf("an answer was lost: %v", err)
			}
		}
	}
}

// What has come is read, although the deadline has passed; and what has not come is not waited for.
func TestLastLook(t *testing.T) {
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	conn := testkit.Must(dial(t.Context(), listener.Addr().String(), &net.Dialer{}, nil))(t)
	defer conn.Close()
	other := testkit.Must(listener.Accept())(t)
	defer other.Close()
	answer := make([]byte, 6)
	testkit.Must(other.Write([]byte("answer")))(t)
	eventually(t, "the answer", func() bool {
		conn.SetDeadline(time.Now().Add(-time.Hour))
		n, err := conn.Read(answer)
		if err != nil {
			if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
				t.Fatal(err)
			}
		}
		return string(answer[:n]) == "answer"
	})
	conn.SetDeadline(time.Now().Add(-time.Hour))
	if _, err := io.ReadFull(conn, answer); err == nil {
		t.Error("there is an answer that was not sent")
	}
}
