package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// load asks a store from several goroutines, one after the other at each, until it
// is stopped: for a tight limit that must be kept whatever happens, and for a wide
// one that shows whether anybody is served.
type load struct {
	t     *testing.T
	store *Store
	tight *weir.Compiled
	wide  *weir.Compiled
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu      sync.Mutex
	allowed int64 // by the tight limit
	denied  int64 // by the tight limit
	served  int64 // by the wide one
	failed  int64
	lastErr error
	longest time.Duration
	stalled time.Duration // the longest time for which the machine ran no thread
}

// tightN is more than one goroutine can take before the trouble begins, and less
// than all of them want.
const tightN = 400

const loadTimeout = 100 * time.Millisecond // the store's, in these tests

// startLoad begins to ask for keys that differ by goroutine for the wide limit, so
// that a cluster is asked everywhere, and for one key under the tight one.
func startLoad(t *testing.T, store *Store) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{
		t: t, store: store, stop: stop,
		tight: weir.MustCompile(fmt.Sprintf("sliding_log %d/1h", tightN)),
		wide:  weir.MustCompile("token_bucket 1000000/1s"),
	}
	for g := range 16 {
		l.wg.Go(func() {
			key := fmt.Sprint("client ", g)
			pace := time.NewTicker(2 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				l.ask(key)
				<-pace.C
			}
		})
	}
	l.wg.Go(func() {
		const nap = 10 * time.Millisecond
		for ctx.Err() == nil {
			start := time.Now()
			time.Sleep(nap)
			l.mu.Lock()
			l.stalled = max(l.stalled, time.Since(start)-nap)
			l.mu.Unlock()
		}
	})
	t.Cleanup(func() { l.end() })
	l.servesAgain("the load")
	return l
}

func (l *load) ask(key string) {
	start := time.Now()
	d, err := l.store.Take(context.Background(), nil, weir.Op{Key: "everybody", Limit: l.tight, Cost: 1})
	tight := time.Since(start)
	start = time.Now()
	_, wideErr := l.store.Take(context.Background(), nil, weir.Op{Key: key, Limit: l.wide, Cost: 1})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, tight, time.Since(start))
	switch {
	case err == nil && d[0].Allowed:
		l.allowed++
	case err == nil:
		l.denied++
	}
	if wideErr == nil {
		l.served++
	}
	for _, err := range []error{err, wideErr} {
		if err != nil {
			l.failed++
			l.lastErr = err
		}
	}
}

// wait waits until something holds of the counts.
func (l *load) wait(what string, holds func() bool) {
	l.t.Helper()
	eventually(l.t, what, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return holds()
	})
}

// servesAgain waits until more are served than before, by every goroutine on the
// average, and returns how long that took.
func (l *load) servesAgain(after string) time.Duration {
	l.t.Helper()
	start := time.Now()
	l.mu.Lock()
	served := l.served
	l.mu.Unlock()
	l.wait("service after "+after, func() bool { return l.served >= served+32 })
	return time.Since(start)
}

// fails waits until the trouble is felt.
func (l *load) fails() {
	l.t.Helper()
	l.mu.Lock()
	failed := l.failed
	l.mu.Unlock()
	l.wait("an error", func() bool { return l.failed > failed+16 })
}

// trips waits until callers are turned away at once.
func (l *load) trips() {
	l.t.Helper()
	l.wait("the breaker", func() bool { return errors.Is(l.lastErr, weir.ErrUnavailable) })
}

func (l *load) end() {
	l.stop()
	l.wg.Wait()
}

// check waits until the tight limit is used up, and ends the load. After any fault, no
// call may have waited much longer than the timeout, and the tight limit may have
// allowed no more than the bound.
func (l *load) check(trouble string, bound int64, back time.Duration) {
	l.t.Helper()
	l.mu.Lock()
	denied := l.denied
	l.mu.Unlock()
	l.wait("a denial", func() bool { return l.denied > denied+16 })
	l.end()
	timeout := l.store.timeout
	l.t.Logf("%s: allowed %d, the bound is %d; %d served, %d errors, the last %q; the longest wait %v of %v, the machine stood still for %v; back after %v",
		trouble, l.allowed, bound, l.served, l.failed, fmt.Sprint(l.lastErr), l.longest.Round(time.Millisecond), timeout, l.stalled.Round(time.Millisecond), back.Round(time.Millisecond))
	if l.allowed > bound {
		l.t.Errorf("%s: %d were allowed, at most %d should be", trouble, l.allowed, bound)
	}
	if l.longest > timeout+time.Second+10*l.stalled { // it may stand still more than once in a call
		l.t.Errorf("%s: somebody waited for %v, the timeout is %v", trouble, l.longest, timeout)
	}
}
