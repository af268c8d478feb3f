package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
)

// What Options stand for when they say nothing.
const (
	DefaultPrefix  = "weir:"
	DefaultTimeout = 50 * time.Millisecond
)

// Options of a store. The zero value is ready to use.
type Options struct {
	// Prefix begins every key. Default DefaultPrefix.
	Prefix string

	// Timeout is how long a Take, a Peek or a Reset may take Redis. Default DefaultTimeout. After it has
	// passed nothing is repeated: it may have been charged.
	Timeout time.Duration

	// Clock, for tests, is asked instead of Redis's own clock.
	Clock func() weir.Micros
}

// Store keeps limits in Redis. It is safe for concurrent use.
type Store struct {
	client  rueidis.Client
	prefix  string
	timeout time.Duration
	clock   func() weir.Micros
	group   group
}

// New returns a store on a client, which stays the caller's to close.
func New(client rueidis.Client, o Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("redis: New needs a client; rueidis.NewClient makes one")
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.Timeout < 0 {
		return nil, errors.New("redis: Timeout is negative; leave it 0 for the default")
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return &Store{client: client, prefix: o.Prefix, timeout: o.Timeout, clock: o.Clock}, nil
}

// Take implements weir.Store.
func (s *Store) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := weir.ValidateTake(ops); err != nil {
		return dst, err
	}
	return s.ask(ctx, dst, verbTake, ops)
}

// Peek implements weir.Store.
func (s *Store) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := weir.ValidatePeek(ops); err != nil {
		return dst, err
	}
	return s.ask(ctx, dst, verbPeek, ops)
}

func (s *Store) ask(ctx context.Context, dst []weir.Decision, verb int, ops []weir.Op) ([]weir.Decision, error) {
	if err := ctx.Err(); err != nil || len(ops) == 0 {
		return dst, err
	}
	decisions, err := s.do(ctx, verb, ops)
	if err != nil {
		return dst, err // an error never carries a verdict
	}
	return append(dst, decisions...), nil
}

// Reset implements weir.Store.
func (s *Store) Reset(ctx context.Context, ops ...weir.Op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := weir.ValidatePeek(ops); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for i := range ops {
		if err := s.client.Do(ctx, s.client.B().Del().Key(s.keyOf(&ops[i])).Build()).Error(); err != nil {
			return fmt.Errorf("redis: %w", err)
		}
	}
	return nil
}
