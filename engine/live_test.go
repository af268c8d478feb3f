package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

// Rules that keep changing under load allow no more than the larger limit, and deny no
// client below the smaller.
func TestRulesChangeUnderLoad(t *testing.T) {
	const smaller, larger = 300, 500
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	tables := make([]*rule.Table, 2)
	for i, n := range []int{smaller, larger} {
		tables[i] = table(t, fmt.Sprintf("rules: [{id: api, key: user, algorithm: sliding_log, limit: %d/1h}]", n))
	}
	e.Install(tables[0], 0)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := int64(1); ctx.Err() == nil; i++ {
			e.Install(tables[i%2], i)
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		}
	})
	var mu sync.Mutex
	var takers sync.WaitGroup
	allowed := 0
	for range 8 {
		takers.Go(func() {
			var v engine.Verdict
			for range 400 {
				if err := e.Check(ctx, &alice, &v); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if v.Allowed {
					allowed++
				} else if allowed < smaller-8 { // eight may be between the store and here
					t.Errorf("denied after %d, of at least %d", allowed, smaller)
				}
				mu.Unlock()
				time.Sleep(50 * time.Microsecond)
			}
		})
	}
	takers.Wait()
	stop()
	wg.Wait()
	t.Logf("%d were allowed, between %d and %d", allowed, smaller, larger)
	if allowed < smaller || allowed > larger {
		t.Errorf("%d were allowed, want %d to %d", allowed, smaller, larger)
	}
}

// A check on the memory store with three limits allocates nothing.
func TestNoAllocation(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: ip, key: ip, limit: 1000000/1s}
  - {id: user, key: user, limit: 1000000/1s}
  - {id: login, match: {path: "/api/**"}, key: [user, ip], limit: 1000000/1s}
`, nil)
	var v engine.Verdict
	check := func() {
		if err := b.Check(context.Background(), &alice, &v); err != nil || !v.Allowed || len(v.Results) != 3 {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	check()
	if n := testing.AllocsPerRun(1000, check); n != 0 {
		t.Errorf("%v allocations a check", n)
	}
}
