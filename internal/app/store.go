package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// store is where limits are kept: one of the two.
type store struct {
	weir.Store
	memory *memory.Store
	redis  *redis.Store
	config redis.Config // of redis
	late   late
}

// late counts the checks that were decided without a store that is available: it did not answer in time,
// or this process was too busy.
type late struct {
	checks atomic.Int64
	cause  atomic.Pointer[error]
}

// Observe implements engine.Observer.
func (l *late) Observe(_ *rule.Request, v *engine.Verdict, _ time.Duration) {
	if v.Degraded != nil && !errors.Is(v.Degraded, weir.ErrUnavailable) && !errors.Is(v.Degraded, engine.ErrNoRules) {
		cause := v.Degraded
		l.cause.Store(&cause)
		l.checks.Add(1)
	}
}

// lateEvery is how often late checks are logged at most.
const lateEvery = time.Minute

// outage is since when the store has been unavailable, and why; the zero time if it is
// available, as far as is known without asking it.
func (s *store) outage() (time.Time, error) {
	if s.redis == nil {
		return time.Time{}, nil
	}
	return s.redis.Outage()
}

// up is whether the store answers, as far as is known without asking it.
func (s *store) up() bool { return s.redis == nil || s.redis.Available() }

// timeout is how long a call may take that is no check: as long as by default, or as a check, if
// that is longer.
func (s *store) timeout(standard time.Duration) time.Duration {
	return max(standard, s.config.Options.Timeout)
}

func (a *App) openStore(ctx, background context.Context) error {
	keys, err := memoryKeys(a.options.Store)
	if err == errNotMemory {
		return a.openRedis(ctx, background)
	}
	a.store.memory = memory.New(memory.Options{MaxKeys: keys})
	a.store.Store = a.store.memory
	a.keep(kept{keysFile, "usage", a.store.memory.Snapshot, a.store.memory.Restore})
	return nil
}

func (a *App) openRedis(ctx, background context.Context) error {
	var err error
	if a.store.config, err = redis.ParseURL(a.options.Store); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	if a.store.redis, err = a.store.config.Open(); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	a.store.Store = a.store.redis
	a.later(a.store.redis.Close)
	err = a.store.redis.Ping(ctx)
	if err != nil && a.options.RequireStore {
		return fmt.Errorf("the store %s is unavailable, and --require-store is set: %w", redis.Redact(a.options.Store), err)
	}
	if err != nil {
		a.tellOutage(err)
	}
	a.background.Go(func() { a.watchStore(background, err != nil) })
	return nil
}

func (a *App) tellOutage(err error) {
	a.options.Logger.Warn("the store is unavailable; on_failure of each rule applies until it is available",
		"store", redis.Redact(a.options.Store), "error", err)
}

// watchStore logs when the store becomes unavailable, and when it is available again, and checks that
// were decided without it meanwhile.
func (a *App) watchStore(ctx context.Context, lost bool) {
	var told time.Time
	for clock.Sleep(ctx, clock.UntilWhole(time.Now(), time.Second)) == nil {
		since, err := a.store.outage()
		switch {
		case !lost && !since.IsZero():
			lost = true
			a.tellOutage(err)
		case lost && since.IsZero() && a.store.redis.Ping(ctx) == nil: // before the first check, nobody else has asked it
			lost = false
			a.options.Logger.Info("the store is available again", "store", redis.Redact(a.options.Store))
		}
		if now := time.Now(); now.Sub(told) >= lateEvery {
			if n := a.store.late.checks.Swap(0); n > 0 {
				told = now
				a.options.Logger.Warn("checks were decided without the store", "checks", n, "last_error", *a.store.late.cause.Load())
			}
		}
	}
}

// link is a connection of its own to the Redis of the store: checks should not wait
// behind what is larger than they are.
func (a *App) link() func() (rueidis.Client, error) {
	late := redislink.Late(func() (rueidis.Client, error) { return rueidis.NewClient(a.store.config.Client) })
	a.later(late.Close)
	return late.Client
}
