package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/storetest"
)

// ungranted is the memory store with an answer to messages that the interface allows: it takes what is asked for, and
// grants nothing.
type ungranted struct{ *memory.Store }

func (s ungranted) Lease(ctx context.Context, dst []weir.LeaseAnswer, messages ...weir.LeaseOp) ([]weir.LeaseAnswer, error) {
	if err := weir.ValidateLease(messages); err != nil {
		return dst, err
	}
	ops := make([]weir.Op, len(messages))
	for i, m := range messages {
		ops[i] = m.Op
		if m.Cost == 0 {
			ops[i].Cost, ops[i].Look = 1, true
		}
	}
	decisions, err := s.Take(ctx, nil, ops...)
	for i, d := range decisions {
		dst = append(dst, weir.LeaseAnswer{Decision: d, Granted: messages[i].Spent, Charged: messages[i].Spent})
	}
	return dst, err
}

// asking is a Store that remembers no denials.
type asking struct{ *Store }

func (s asking) forget() {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for _, e := range sh.keys {
			for ; e != nil; e = e.next {
				e.forget()
			}
		}
		sh.mu.Unlock()
	}
}

func (s asking) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	s.forget()
	return s.Store.Take(ctx, dst, ops...)
}

func (s asking) TakePartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	s.forget()
	return s.Store.TakePartial(ctx, dst, ops...)
}

// The suite demands answers that are exact to the unit and the microsecond. So it passes as long as no units are leased
// and no denial is remembered: messages, holds, refunds and errors go through unchanged. With units on lease, other
// tests here say what is demanded instead, because Remaining, ResetAt and RetryAfter are then as last known, and
// two requests that compete for the last units may both be denied.
func TestSuite(t *testing.T) {
	var stores []*Store
	open := func(t *testing.T) storetest.Subject {
		var now, latest atomic.Int64
		clock := func() weir.Micros { return weir.Micros(now.Load()) }
		s := New(ungranted{memory.New(memory.Options{MaxKeys: 1 << 24, Clock: clock})}, Options{Clock: func() (time.Time, time.Duration) {
			return clock().Time(), time.Duration(latest.Load()) * time.Microsecond
		}})
		t.Cleanup(func() { testkit.OK(t, s.Close(context.Background())) })
		stores = append(stores, s)
		return storetest.Subject{Store: asking{s}, Set: func(m weir.Micros) {
			now.Store(int64(m))
			latest.Store(max(latest.Load(), int64(m)))
		}}
	}
	storetest.Run(t, open)
	storetest.RunHolds(t, open)
	var messages int64
	for _, s := range stores {
		messages += s.Stats().Messages
	}
	if messages < 1000 {
		t.Errorf("the suite needed only %d messages", messages)
	}
}

// Many goroutines fight for N units. Never more are allowed, and what is not spent in the end goes back.
func TestExactlyN(t *testing.T) {
	for _, text := range []string{"fixed_window 570/1d", "sliding_window 570/1d", "sliding_log 570/1d", "sliding_buckets 570/1d", "token_bucket 570/1000d"} {
		limit := weir.MustCompile(text)
		shared := newReference(func() weir.Micros { return 1e15 })
		var allowed atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			s := New(shared, Options{})
			l := testkit.Must(weir.NewLimiter(s, limit.Limit()))(t)
			wg.Go(func() {
				var users sync.WaitGroup
				for range 20 {
					users.Go(func() {
						for range 20 {
							if testkit.Must(l.Allow(t.Context(), "k"))(t) {
								allowed.Add(1)
							}
						}
					})
				}
				users.Wait()
				testkit.OK(t, s.Close(context.Background()))
			})
		}
		wg.Wait()
		if got, rest := allowed.Load(), remaining(t, shared, limit); got+rest != 570 || shared.Account("k", limit).Out != 0 {
			t.Errorf("%s: %d allowed, %d remain of 570", text, got, rest)
		}
	}
}

// A check on leased units allocates nothing.
func TestLocalAllocations(t *testing.T) {
	s := New(newReference(func() weir.Micros { return 1e15 }), Options{Clock: func() (time.Time, time.Duration) { return time.Time{}, 0 }})
	defer s.Close(context.Background())
	limit, other := weir.MustCompile("fixed_window 100000000/1h"), weir.MustCompile("token_bucket 100000000/1h")
	l := testkit.Must(weir.NewLimiter(s, limit.Limit()))(t)
	ctx, dst := t.Context(), make([]weir.Decision, 0, 2)
	ops := []weir.Op{{Key: "k", Limit: limit, Cost: 1}, {Key: "k", Limit: other, Cost: 1}}
	check := map[string]func(){
		"Allow":  func() { l.Allow(ctx, "k") },
		"Take":   func() { l.Take(ctx, "k", 1) },
		"Take 1": func() { s.Take(ctx, dst, ops[:1]...) },
		"Take 2": func() { s.Take(ctx, dst, ops...) },
	}
	for range 30_000 { // the clock stands still, so a lease grows with every request, and needs no more
		check["Take 2"]()
	}
	for asked := int64(-1); asked != s.Stats().Asked; { // what is under way has come when 1,000 in a row did not ask
		asked = s.Stats().Asked
		for range 1000 {
			check["Take 2"]()
		}
	}
	for name, f := range check {
		asked := s.Stats().Asked
		if got := testing.AllocsPerRun(500, f); got > 0.1 { // refills allocate
			t.Errorf("%s: %v allocations", name, got)
		}
		if s.Stats().Asked != asked {
			t.Errorf("%s asked the store", name)
		}
	}
}
