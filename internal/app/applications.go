package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/counter/memory"
	counterredis "github.com/weirhq/weir/counter/redis"
	"github.com/weirhq/weir/metrics"
	"github.com/weirhq/weir/queue"
	queuememory "github.com/weirhq/weir/queue/memory"
	queueredis "github.com/weirhq/weir/queue/redis"
	"github.com/weirhq/weir/store/redis"
)

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
	var err error
	if a.store.redis == nil {
		err = a.openApplicationsInMemory()
	} else {
		err = a.openApplicationsInRedis(a.link())
	}
	if err != nil {
		return fmt.Errorf("--queue: %w", err)
	}
	return nil
}

func (a *App) openApplicationsInMemory() error {
	counters := memory.New(memory.Options{MaxEntries: a.options.CounterCapacity, Retention: a.options.CounterKeep})
	a.keep(kept{countersFile, "counters", counters.Snapshot, func(r io.Reader) error {
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
	a.keep(kept{queuesFile, "queues", queues.Snapshot, queues.Restore})
	a.later(queues.Close) // before it is saved, so that nothing is accepted that is not
	a.applications.queues = queues
	return nil
}

func (a *App) openApplicationsInRedis(link func() (rueidis.Client, error)) (err error) {
	prefix := cmp.Or(a.store.config.Options.Prefix, redis.DefaultPrefix)
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

// look asks what is in the queues, so that a scrape need not.
func (a *applications) look(ctx context.Context) {
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
