package peers

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

var testKeys = []string{"user:0000000001", "user:0000000002", "10.0.0.1", "10.0.0.2", "user:1", "user:10", "2001:db8::1"}

// Nothing comes back within a Month, and no peer's documentation allows it one
// unit more or less, so none gets any slack here.
func TestEveryContestantLimitsEachKeyByItself(t *testing.T) {
	for _, n := range []int{1, 2, 10, 100} {
		for where, contestants := range everybody(t) {
			for _, c := range contestants {
				l := c.New(Limit{N: n, Period: Month}, len(testKeys))
				if err := prove(l, n, testKeys); err != nil {
					t.Errorf("%s %s with %d units: %v", c.Name, where, n, err)
				}
				l.Close()
			}
		}
	}
}

// everybody returns the contestants by where their memory is. Each gets a Redis
// with nothing in it.
func everybody(t *testing.T) map[string][]Contestant {
	t.Helper()
	server := testredis.Start(t)
	client := newRueidis(server.Addr)
	t.Cleanup(client.Close)
	onRedis := OnRedis(server.Addr)
	for i, c := range onRedis {
		onRedis[i].New = func(limit Limit, keys int) Limiter {
			if err := client.Do(t.Context(), client.B().Flushall().Build()).Error(); err != nil {
				t.Fatal(err)
			}
			return c.New(limit, keys)
		}
	}
	return map[string][]Contestant{"in memory": InMemory(), "on Redis": onRedis}
}

// Goroutines that fight for one key must not get more than one would.
func TestEveryContestantCountsExactlyUnderContention(t *testing.T) {
	const n, goroutines, each = 200, 4, 100
	for where, contestants := range everybody(t) {
		for _, c := range contestants {
			l := c.New(Limit{N: n, Period: Month}, 2)
			var allowed atomic.Int64
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					for range each {
						if l.Take("contended") {
							allowed.Add(1)
						}
						l.Take("bystander")
					}
				})
			}
			wg.Wait()
			if got := allowed.Load(); got != n {
				t.Errorf("%s %s allowed %d of %d units to goroutines that asked for %d", c.Name, where, got, n, goroutines*each)
			}
			l.Close()
		}
	}
}

func TestNamesAreDistinct(t *testing.T) {
	for where, contestants := range everybody(t) {
		seen := map[string]bool{}
		for _, c := range contestants {
			if seen[c.Name] {
				t.Errorf("two contestants are called %q %s", c.Name, where)
			}
			seen[c.Name] = true
			if c.Promise == "" || c.Key == "" {
				t.Errorf("%s does not say what it promises or keeps %s", c.Name, where)
			}
		}
	}
}

// keyless ignores its key, which is how a published benchmark went wrong.
func keyless(l Limiter) Limiter {
	return Limiter{Take: func(string) bool { return l.Take("") }, Drain: func(string) { l.Drain("") }}
}

// counter is right for the n it was given.
func counter(n int) Limiter {
	used := map[string]int{}
	return Limiter{
		Take:  func(key string) bool { used[key]++; return used[key] <= n },
		Drain: func(key string) { used[key] = n },
	}
}

// undrained drains nothing, so that a measurement of denials would measure
// allowances.
func undrained(l Limiter) Limiter {
	l.Drain = func(string) {}
	return l
}

func TestCheckNoticesBrokenLimiters(t *testing.T) {
	const n = 10
	if err := prove(counter(n), n, testKeys); err != nil {
		t.Fatalf("a correct counter fails: %v", err)
	}
	broken := map[string]Limiter{
		"ignores its key":     keyless(GoLimiter.New(Limit{N: n, Period: Month}, 1)),
		"always says yes":     always(true),
		"always says no":      always(false),
		"allows one too many": counter(n + 1),
		"allows one too few":  counter(n - 1),
		"does not drain":      undrained(counter(n)),
	}
	for what, l := range broken {
		if err := prove(l, n, testKeys); err == nil {
			t.Errorf("a limiter that %s passes", what)
		}
	}
}

// prove proves that a limiter of n units limits each of the keys separately:
// exactly n are allowed to each, whatever the others do in between, the next
// one is denied, and neither helps or harms a key that was not there yet. The
// limiter must be new, have a period much longer than the check, and at least
// four keys.
func prove(l Limiter, n int, keys []string) error {
	asked, drained, untouched := keys[:len(keys)-2], keys[len(keys)-2], keys[len(keys)-1]
	for i := range n {
		for _, key := range asked {
			if !l.Take(key) {
				return fmt.Errorf("peers: %q was denied unit %d of %d", key, i+1, n)
			}
		}
	}
	for _, key := range asked {
		if l.Take(key) {
			return fmt.Errorf("peers: %q was allowed unit %d of %d", key, n+1, n)
		}
	}
	l.Drain(drained)
	if l.Take(drained) {
		return fmt.Errorf("peers: %q was allowed after all its %d units were drained", drained, n)
	}
	for i := range n {
		if !l.Take(untouched) {
			return fmt.Errorf("peers: %q was denied unit %d of %d although only others had taken", untouched, i+1, n)
		}
	}
	if l.Take(untouched) {
		return fmt.Errorf("peers: %q was allowed unit %d of %d", untouched, n+1, n)
	}
	return nil
}
