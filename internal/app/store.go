package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	countermemory "github.com/weirhq/weir/counter/memory"
	counterredis "github.com/weirhq/weir/counter/redis"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/metrics"
	"github.com/weirhq/weir/queue"
	queuememory "github.com/weirhq/weir/queue/memory"
	queueredis "github.com/weirhq/weir/queue/redis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/lease"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// store is where limits are kept: one of the two.
type store struct {
	weir.Store
	memory *memory.Store
	redis  *redis.Store
	leases *lease.Store  // of redis
	config redis.Config  // of redis
	trip   time.Duration // to redis and back, as measured at the start; 0 if it did not answer
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
	if v.Degraded != nil && !errors.Is(v.Degraded, weir.ErrUnavailable) && !errors.Is(v.Degraded, engine.ErrNoRules) && !errors.Is(v.Degraded, engine.ErrNoClients) {
		cause := v.Degraded
		l.cause.Store(&cause)
		l.checks.Add(1)
	}
}

// lateEvery is how often late checks are logged at most.
const lateEvery = time.Minute

// kind is the name of the kind of store.
func (s *store) kind() string {
	if s.redis == nil {
		return "memory"
	}
	return "redis"
}

// outage is since when the store has been unavailable, and why; the zero time if it is
// available, as far as is known without asking it.
func (s *store) outage() (time.Time, error) {
	if s.redis == nil {
		return time.Time{}, nil
	}
	return s.redis.Outage()
}

// moment is a time in logs and answers to people.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// trouble is what anybody may know of an outage.
func (s *store) trouble() error {
	since, _ := s.outage()
	if since.IsZero() {
		return nil
	}
	return fmt.Errorf("--store: the store has been unavailable since %s, so on_failure of each rule applies; the log has the cause", moment(since))
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
	a.restoreAndKeep(kept{keysFile, "usage", a.store.memory.Snapshot, a.store.memory.Restore})
	return nil
}

func (a *App) openRedis(ctx, background context.Context) error {
	var err error
	if a.store.config, err = redis.ParseURL(a.options.Store); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	a.store.config.Options.Logger = a.options.Logger
	if a.store.redis, err = a.store.config.Open(); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	a.later(a.store.redis.Close)
	var asked weir.LeaseStore = a.store.redis
	if a.tracer != nil {
		asked = tracedStore{a.store.redis}
	}
	a.store.leases = lease.New(asked, lease.Options{Term: cmp.Or(a.options.Lease, lease.OnlyLimits)})
	a.later(a.returnLeases)
	a.store.Store = a.store.leases
	err = a.store.redis.Ping(ctx)
	if err != nil && a.options.RequireStore {
		return fmt.Errorf("the store %s is unavailable, and --require-store is set: %w", redis.Redact(a.options.Store), err)
	}
	if start := time.Now(); err == nil { // the first call connected, too
		if again := a.store.redis.Ping(ctx); again == nil || errors.Is(again, context.DeadlineExceeded) {
			a.store.trip = time.Since(start)
		}
	}
	lost := a.tellStore(time.Time{})
	if err != nil && lost.IsZero() {
		a.options.Logger.Warn("the first call to the store failed", "store", redis.Redact(a.options.Store), "error", err)
	}
	a.background.Go(func() { a.watchStore(background, lost) })
	return nil
}

// returnLeases gives back what is on lease, for other instances.
func (a *App) returnLeases() {
	ctx, cancel := context.WithTimeout(context.Background(), a.store.timeout(time.Second))
	defer cancel()
	if err := a.store.leases.Close(ctx); err != nil {
		a.options.Logger.Warn("units on lease are not returned", "error", err)
	}
}

// tellStore logs that the store has become unavailable, or is available again, and returns since when it has been
// unavailable.
func (a *App) tellStore(lost time.Time) time.Time {
	since, err := a.store.outage()
	switch name := redis.Redact(a.options.Store); {
	case lost.IsZero() && !since.IsZero():
		a.options.Logger.Warn("the store is unavailable; on_failure of each rule applies until it is available",
			"store", name, "since", moment(since), "error", err)
	case !lost.IsZero() && since.IsZero():
		a.options.Logger.Info("the store is available again", "store", name, "unavailable_since", moment(lost))
	}
	return since
}

// watchStore logs when the store becomes unavailable, and when it is available again, checks that
// were decided without it meanwhile, and that Redis has no functions for it.
func (a *App) watchStore(ctx context.Context, lost time.Time) {
	var told time.Time
	scripts := false
	for clock.Sleep(ctx, clock.UntilWhole(time.Now(), time.Second)) == nil {
		lost = a.tellStore(lost)
		if err := a.store.redis.ScriptsBecause(); err != nil && !scripts {
			scripts = true
			a.options.Logger.Info("Redis runs scripts for weir, not functions, which are faster; see docs/guides/redis.md", "reason", err)
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

// applications is what is kept for them: counts, and work. It is where limits are.
type applications struct {
	counters     counter.Store
	counterUsage func() metrics.Counters // nil if they are in Redis
	queues       queue.Store             // nil if there are none
	queueNames   []string
	seen         atomic.Pointer[[]metrics.Queue] // what was in them a moment ago
}

func (a *App) openApplications(context.Context, context.Context) error {
	a.applications.queueNames = slices.Sorted(maps.Keys(a.options.Queues))
	open := a.openApplicationsInMemory
	if a.store.redis != nil {
		open = a.openApplicationsInRedis
	}
	if err := open(); err != nil {
		return fmt.Errorf("--queue: %w", err)
	}
	return nil
}

func (a *App) openApplicationsInMemory() error {
	counters := countermemory.New(countermemory.Options{MaxEntries: a.options.CounterCapacity, Retention: a.options.CounterKeep})
	a.restoreAndKeep(kept{countersFile, "counters", counters.Snapshot, func(r io.Reader) error {
		err := counters.Restore(r)
		if u := counters.Usage(); u.Entries > u.Capacity {
			a.options.Logger.Warn("more counters restored than --counter-capacity; new names are rejected", "entries", u.Entries, "capacity", u.Capacity)
		}
		return err
	}})
	a.applications.counters = counters
	a.applications.counterUsage = func() metrics.Counters { return metrics.Counters(counters.Usage()) }
	if len(a.options.Queues) == 0 {
		return nil
	}
	queues, err := queuememory.New(a.options.Queues, queuememory.Options{})
	if err != nil {
		return err
	}
	a.restoreAndKeep(kept{queuesFile, "queues", queues.Snapshot, queues.Restore})
	a.later(queues.Close) // before it is saved, so that nothing is accepted that is not
	a.applications.queues = queues
	return nil
}

func (a *App) openApplicationsInRedis() (err error) {
	link, prefix := a.link(), cmp.Or(a.store.config.Options.Prefix, redis.DefaultPrefix)
	a.applications.counters, err = counterredis.Open(link, counterredis.Options{
		Prefix: prefix + "counter:", Timeout: a.store.timeout(counterredis.DefaultTimeout), Retention: a.options.CounterKeep,
	})
	if err != nil || len(a.options.Queues) == 0 {
		return err
	}
	a.applications.queues, err = queueredis.Open(link, a.options.Queues, queueredis.Options{Prefix: prefix, Timeout: a.store.timeout(queueredis.DefaultTimeout)})
	return err
}

// queuesEvery is how old what /metrics says of queues may be.
const queuesEvery = 5 * time.Second

// watchLengths asks what is in the queues, so that a scrape need not.
func (a *applications) watchLengths(ctx context.Context) {
	for every := time.Tick(queuesEvery); ctx.Err() == nil; {
		found := make([]metrics.Queue, 0, len(a.queueNames))
		for _, name := range a.queueNames {
			s, err := a.queues.Stats(ctx, name)
			if err != nil {
				continue // it is not known, and not said
			}
			found = append(found, metrics.Queue{
				Name: name, Ready: s.Ready, Delayed: s.Delayed, Leased: s.Leased, Dead: s.Dead, Age: s.Age,
			})
		}
		a.seen.Store(&found)
		select {
		case <-every:
		case <-ctx.Done():
		}
	}
}

func (a *applications) lengths() []metrics.Queue {
	if seen := a.seen.Load(); seen != nil {
		return *seen
	}
	return nil
}
