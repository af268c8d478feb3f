package redis

import (
	"errors"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// Available follows the breaker, there and back.
func TestAvailable(t *testing.T) {
	server := testredis.Start(t)
	s := open(t, single(server.Addr))
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	eventually(t, "an answer", func() bool {
		_, err := s.Take(t.Context(), nil, op)
		return err == nil
	})
	if !s.Available() {
		t.Error("it is not available although it answers")
	}
	if since, err := s.Outage(); !since.IsZero() || err != nil {
		t.Errorf("unavailable since %v: %v", since, err)
	}
	begun := time.Now()
	server.Pause()
	eventually(t, "the breaker", func() bool {
		_, err := s.Take(t.Context(), nil, op)
		return errors.Is(err, weir.ErrUnavailable)
	})
	if s.Available() {
		t.Error("it is available while the breaker is open")
	}
	if since, err := s.Outage(); since.Before(begun) || since.After(time.Now()) || err == nil {
		t.Errorf("unavailable since %v: %v; it began after %v", since, err, begun)
	}
	server.Resume()
	eventually(t, "that Redis is available again without a call", s.Available)
	if since, err := s.Outage(); !since.IsZero() || err != nil {
		t.Errorf("unavailable since %v: %v", since, err)
	}
	s.Close()
	if s.Available() {
		t.Error("it is available after it was closed")
	}
}

// A Redis that was never there is not available.
func TestAvailableBeforeRedis(t *testing.T) {
	server := testredis.Start(t)
	server.Kill()
	if s := open(t, single(server.Addr)); s.Available() {
		t.Error("it is available")
	}
}
