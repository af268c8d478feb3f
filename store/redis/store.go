// Package redis keeps usage in Redis, where any number of processes share it.
//
//	store, err := redis.Open("redis://:password@localhost:6379")
//
// One call decides all ops of a request, all or none, by the clock of Redis. The library
// of functions (lua/*.lua) implements the arithmetic of package weir in Lua; tests prove
// that both give the same answers. Where Redis has no functions, or its user may not use
// them, the same files run as scripts; see [Store.ScriptsBecause]. Every key has a time to live that ends when it is
// fully reset. In a cluster, ops on several slots are taken concurrently and refunded
// if one is denied.
//
// # Batching and timeouts
//
// Two calls to Redis may be in flight. Checks that arrive meanwhile are sent together in
// the next call. A check ends within its timeout, whatever Redis does. A command that may
// have been charged is never sent twice. After three calls in a row without an answer the circuit
// breaker opens: every check gets weir.ErrUnavailable immediately, until a background
// probe succeeds. Probes count as calls. One is sent every two seconds, and several after a call without an
// answer, so the breaker opens even without checks.
//
// # Keys
//
// The usage of a client is stored under
//
//	PREFIX NAME : KIND { KEY }
//
// without the spaces, for example "weir:login:F1m{203.0.113.7}": the prefix, the
// limit's name, a letter for the algorithm with its period, and the client's key, byte
// for byte; if it begins with a closing brace, a % comes before it. The braces put all limits
// of one client on one slot of a cluster.
//
// The open holds of a client are behind its usage; of sliding logs and sliding buckets they
// are in "PREFIX %holds: NAME : KIND { KEY }". Of a client with more than 32, the others are in
// "PREFIX %many: NAME : KIND { KEY }", and its usage is in "PREFIX %moved: NAME : KIND { KEY }". Each hold has a record "PREFIX %hold: { ID }"
// until a minute after it has expired. Of a client with units on lease, the usage is there, too, and the leases are in
// "PREFIX %leases: NAME : KIND { KEY }".
//
// "PREFIX %formats" lists the formats of state that each running store can read, so that a later
// version writes a newer one only when all can. It has a time to live of a minute.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/redislink"
)

// Defaults of Options.
const (
	DefaultPrefix  = "weir:"
	DefaultTimeout = 50 * time.Millisecond
)

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Prefix is the prefix of every key. Default DefaultPrefix. A hash tag, as in
	// "{weir}:", puts all keys of a cluster on one slot. Then one call decides every
	// request, but one node serves them all.
	Prefix string

	// Timeout is the maximum duration of a call. Default DefaultTimeout. A call that
	// timed out is not repeated, because it may have been charged.
	Timeout time.Duration

	// Clock replaces the clock of Redis in tests.
	Clock func() weir.Micros

	// Logger records when instances cannot agree on newer formats of state. Default slog.Default().
	Logger *slog.Logger
}

// Store keeps usage in Redis. It is safe for concurrent use.
type Store struct {
	prefix  string
	timeout time.Duration
	clock   func() weir.Micros
	guess   func() weir.Micros // what the clock of Redis shows, more or less

	link    link
	lanes   lanes
	known   known
	crowds  crowds
	texts   limitTexts
	formats formats
	timers  []*time.Timer
	closing chan struct{} // closed by Close

	library   *library
	functions functions
}

// New returns a store that uses the client. The caller closes the client, after the
// store. Set DisableRetry on the client; [Open] does.
func New(client rueidis.Client, o Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("redis: New requires a client; create one with rueidis.NewClient, or use Open")
	}
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	s.start(ownLink(redislink.Of(client), client.Mode() == rueidis.ClientModeCluster, s.timeout))
	return s, nil
}

// NewOn returns a store that uses a client of another library.
func NewOn(client Client, o Options) (*Store, error) {
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	s.start(newLink(client, client.Cluster(), s.timeout))
	return s, nil
}

// Open returns a store for the Redis at a URL; see [ParseURL]. It waits briefly for a
// connection. While Redis is unavailable, every call returns weir.ErrUnavailable. Only
// an invalid URL is an error; [Store.Ping] reports other problems.
func Open(url string) (*Store, error) {
	config, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	return config.Open()
}

// Open returns a store for a parsed URL, as the function [Open] does.
func (c Config) Open() (*Store, error) {
	s, err := newStore(c.Options)
	if err != nil {
		return nil, err
	}
	made := redislink.Late(func() (rueidis.Client, error) { return c.connect(s.timeout) })
	failed := made.Renew()
	s.start(ownLink(made, !c.Client.ForceSingleClient && c.Client.Sentinel.MasterSet == "", s.timeout))
	if failed != nil {
		s.lanes.mu.Lock()
		defer s.lanes.mu.Unlock()
		for _, key := range slices.Repeat(s.lookKeys(), tripAfter) {
			s.failLocked(s.laneLocked(s.slot(key)), key, notConnected(failed))
		}
	}
	return s, nil
}

// connect makes a client. There are few calls at once, unless they go to many slots. With
// a connection to itself, a call waits for its answer; else those who write and read for
// all would have to be woken up for it. But another connection may have to be made in the
// time of a call, so where that takes long, all share one.
func (c Config) connect(timeout time.Duration) (rueidis.Client, error) {
	if !c.Client.ForceSingleClient && c.Client.Sentinel.MasterSet == "" {
		return rueidis.NewClient(c.Client)
	}
	apart := c.Client
	apart.DisableAutoPipelining, apart.DialCtxFn = true, dial
	start := time.Now()
	client, err := rueidis.NewClient(apart)
	if err != nil || time.Since(start) <= timeout/4 {
		return client, err
	}
	client.Close()
	return rueidis.NewClient(c.Client)
}

func newStore(o Options) (*Store, error) {
	if o.Timeout < 0 {
		return nil, errors.New("redis: Timeout is negative; leave it 0 for the default")
	}
	if err := checkPrefix(o.Prefix); err != nil {
		return nil, err
	}
	s := &Store{prefix: cmp.Or(o.Prefix, DefaultPrefix), timeout: cmp.Or(o.Timeout, DefaultTimeout), clock: o.Clock, guess: o.Clock, formats: newFormats(o.Logger), closing: make(chan struct{}), library: theLibrary()}
	if s.guess == nil {
		s.guess = func() weir.Micros { return weir.MicrosOf(time.Now()) }
	}
	s.lanes.bySlot, s.lanes.doubted = map[uint16]*lane{}, map[uint16]*lane{}
	return s, nil
}

// Timeout is the maximum duration of a call.
func (s *Store) Timeout() time.Duration { return s.timeout }

// Ping sends a request to Redis and returns an error if Redis is unavailable.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// A key, because a cluster would send PING to any node, also to one that is gone.
	if err := s.link.client.Exists(ctx, []string{s.prefix + "probe"})[0]; err != nil {
		return explain(err)
	}
	return nil
}

// Close waits for calls in flight, and closes the connection if the store opened it.
// Later calls return an error.
func (s *Store) Close() {
	s.lanes.mu.Lock()
	if s.lanes.closed {
		s.lanes.mu.Unlock()
		return
	}
	s.lanes.closed = true
	close(s.closing)
	s.lanes.mu.Unlock()
	s.lanes.workers.Wait()
	for _, timer := range s.timers {
		timer.Stop()
	}
	s.retract()
	s.link.close()
}

// Take implements weir.Store.
func (s *Store) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := weir.ValidateTake(ops); err != nil {
		return dst, err
	}
	verb := take
	if len(ops) > 0 && ops[0].Renews() {
		verb = renew
	}
	dst, _, err := s.answer(ctx, dst, verbFor(verb, ops), ops, false)
	return dst, err
}

// Peek implements weir.Store.
func (s *Store) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := weir.ValidatePeek(ops); err != nil {
		return dst, err
	}
	dst, _, err := s.answer(ctx, dst, s.peekFor(ops), ops, false)
	return dst, err
}

// TakePartial, PeekPartial and ReservePartial implement weir.PartialStore: in a cluster, the slots that
// answer decide without the others.
func (s *Store) TakePartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	if err := weir.ValidateTake(ops); err != nil {
		return dst, nil, err
	}
	return s.answer(ctx, dst, verbFor(take, ops), ops, true)
}

// PeekPartial implements weir.PartialStore.
func (s *Store) PeekPartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	if err := weir.ValidatePeek(ops); err != nil {
		return dst, nil, err
	}
	return s.answer(ctx, dst, s.peekFor(ops), ops, true)
}

// ReservePartial implements weir.PartialStore.
func (s *Store) ReservePartial(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, []error, error) {
	return s.reserve(ctx, dst, &r, ops, true)
}

// PartOf implements weir.PartialStore: it returns the slot of the op's key in a cluster.
func (s *Store) PartOf(op weir.Op) uint16 {
	return s.slot(s.keyOf(&op))
}

// slot is that of a key, or 0 for all keys of a Redis that is no cluster.
func (s *Store) slot(key string) uint16 {
	if !s.link.cluster {
		return 0
	}
	return slotOf(key)
}

// Refund implements weir.Store.
func (s *Store) Refund(ctx context.Context, ops ...weir.Op) error {
	if err := weir.ValidateRefund(ops); err != nil {
		return err
	}
	_, err := s.do(ctx, nil, refund, ops)
	return err
}

// Reset implements weir.Store.
func (s *Store) Reset(ctx context.Context, ops ...weir.Op) error {
	if err := weir.ValidatePeek(ops); err != nil {
		return err
	}
	_, err := s.do(ctx, nil, reset, ops)
	return err
}

// call asks Redis, and gives each check its decisions. It asks again only when Redis has
// done nothing because the slot is on its way, with some of the keys here and some there, or
// because its clock is in another period of the calendar.
func (s *Store) call(r *request) error {
	due := time.Now().Add(s.timeout)
	ctx, cancel := context.WithDeadline(context.Background(), due)
	defer cancel()
	now := int64(0)
	if s.clock != nil {
		now = int64(s.clock()) + 1
	}
	r.follow(s.guess)
	for {
		answer, err := s.execute(ctx, r, now)
		switch {
		case err == nil:
			if err := r.decode(answer); err != errOtherPeriod {
				return err
			}
			r.until = 0
			r.follow(func() weir.Micros { return r.at })
			continue
		case ctx.Err() != nil && !answered(err) && overslept(s.timeout, due, time.Now()):
			return s.busy()
		case !saysAny(err, "TRYAGAIN"):
			return explain(err)
		}
		if clock.Sleep(ctx, onItsWay) != nil {
			return explain(err)
		}
	}
}

// onItsWay is about how long Redis takes to move a key.
const onItsWay = time.Millisecond

// explain adds a remedy to errors of Redis that do not explain themselves.
func explain(err error) error {
	switch {
	case errors.Is(err, errNotConnected):
		return err
	case saysAny(err, "MOVED"):
		return fmt.Errorf("redis: this is one node of a cluster; write redis+cluster:// in the URL, or use a cluster's client: %w", err)
	}
	return fmt.Errorf("redis: %w", err)
}
