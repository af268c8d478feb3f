package weir_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/scenario"
	"github.com/weirhq/weir/store/memory"
)

// newLimiter works on the time of the test's bubble.
func newLimiter(t *testing.T, limit string) *weir.Limiter {
	t.Helper()
	l, err := weir.ParseLimit(limit)
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New(memory.Options{Clock: func() weir.Micros { return weir.MicrosOf(time.Now()) }})
	limiter, err := weir.NewLimiter(store, l)
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, ctx := newLimiter(t, "2/1s"), t.Context()
		for i, want := range []bool{true, true, false} {
			if ok, err := limiter.Allow(ctx, "alice"); err != nil || ok != want {
				t.Fatalf("Allow %d = %v, %v; want %v", i+1, ok, err, want)
			}
		}
		if d, err := limiter.Take(ctx, "alice", 3); err != nil || d.Allowed || d.RetryAfter != weir.Never {
			t.Errorf("Take 3 = %+v, %v", d, err)
		}
		if d, err := limiter.Peek(ctx, "alice", 2); err != nil || d.Allowed || d.RetryAfter != time.Second {
			t.Errorf("Peek 2 = %+v, %v", d, err)
		}
		if d, err := limiter.Peek(ctx, "bob", 0); err != nil || !d.Allowed || d.Remaining != 2 {
			t.Errorf("Peek of another key = %+v, %v", d, err)
		}
		if err := limiter.Reset(ctx, "alice"); err != nil {
			t.Error(err)
		}
		if ok, err := limiter.Allow(ctx, "alice"); err != nil || !ok {
			t.Errorf("Allow after Reset = %v, %v", ok, err)
		}
	})
}

func TestLimiterErrors(t *testing.T) {
	limiter := newLimiter(t, "2/1s")
	var invalid *weir.InvalidError
	if _, err := limiter.Allow(t.Context(), ""); !errors.As(err, &invalid) {
		t.Errorf("Allow of no key: %v", err)
	}
	if _, err := limiter.Take(t.Context(), "k", 0); !errors.As(err, &invalid) {
		t.Errorf("Take of nothing: %v", err)
	}
	if err := limiter.Wait(t.Context(), ""); !errors.As(err, &invalid) {
		t.Errorf("Wait of no key: %v", err)
	}
	if _, err := weir.NewLimiter(nil, weir.Limit{N: 1, Period: time.Second}); err == nil {
		t.Error("NewLimiter took no store")
	}
	if _, err := weir.NewLimiter(memory.New(memory.Options{}), weir.Limit{}); !errors.As(err, &invalid) {
		t.Errorf("NewLimiter of no limit: %v", err)
	}
}

// Wait blocks until there is room, to the microsecond.
func TestWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, ctx, start := newLimiter(t, "2/1s"), t.Context(), time.Now()
		for i, want := range []time.Duration{0, 0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
			if err := limiter.Wait(ctx, "k"); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != want {
				t.Errorf("Wait %d returned after %v, want %v", i+1, got, want)
			}
		}
	})
}

// Many waiters of one key all come through, no faster than the limit.
func TestWaitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, start := newLimiter(t, "10/1s burst 1"), time.Now()
		var wg sync.WaitGroup
		for range 21 {
			wg.Go(func() {
				if err := limiter.Wait(t.Context(), "k"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := time.Since(start); got != 2*time.Second {
			t.Errorf("21 waiters of 10/s took %v, want 2s", got)
		}
	})
}

// Waiters of one key ask the store one at a time, and are served in order: two calls
// for each of them, not one for each pair.
func TestWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, asked := aroundMemory(), 0
		store.take = func(ctx context.Context, ops []weir.Op) ([]weir.Decision, error) {
			asked++
			return store.Store.Take(ctx, nil, ops...)
		}
		limiter, start := limiterOn(t, store, "10/1s burst 1"), time.Now()
		var mu sync.Mutex
		var order []int
		for i := range 50 {
			go func() {
				if err := limiter.Wait(t.Context(), "k"); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for i, who := range order {
			if i != who {
				t.Fatalf("they came through in the order %v", order)
			}
		}
		if len(order) != 50 || asked > 100 {
			t.Errorf("%d came through by %d takes after %v, want 50 by at most 100", len(order), asked, time.Since(start))
		}
	})
}

// WaitN takes all of its units at once, or says at once that it never can.
func TestWaitN(t *testing.T) {
	for limit, want := range map[string]time.Duration{"10/1s": 700 * time.Millisecond, "leaky_bucket 10/1s shape": 800 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			limiter, start := newLimiter(t, limit), time.Now()
			if err := limiter.WaitN(t.Context(), "k", 8); err != nil || time.Since(start) != 0 {
				t.Errorf("%s: the first: %v after %v", limit, err, time.Since(start))
			}
			if err := limiter.WaitN(t.Context(), "k", 9); err != nil || time.Since(start) < want-100*time.Millisecond || time.Since(start) > want {
				t.Errorf("%s: the second: %v after %v, want %v", limit, err, time.Since(start), want)
			}
			var invalid *weir.InvalidError
			for _, n := range []int64{11, 0, -1} {
				if err := limiter.WaitN(t.Context(), "k", n); !errors.As(err, &invalid) {
					t.Errorf("%s: %d units: %v", limit, n, err)
				}
			}
		})
	}
}

// Who stands in line leaves it when its context ends, or is told at once when its
// deadline is too early; the others come through.
func TestWaitInLineGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, start := newLimiter(t, "1/1s"), time.Now()
		wait := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() { done <- limiter.Wait(ctx, "k") }()
			synctest.Wait()
			return done
		}
		if err := limiter.Wait(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		front := wait(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		leaves := wait(ctx)
		behind := wait(t.Context())
		hurried, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		if err := <-wait(hurried); !errors.Is(err, weir.ErrDeadline) || time.Since(start) != 0 {
			t.Errorf("with a deadline: %v after %v", err, time.Since(start))
		}
		cancel()
		if err := <-leaves; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if err := <-front; err != nil || time.Since(start) != time.Second {
			t.Errorf("in front: %v after %v", err, time.Since(start))
		}
		if err := <-behind; err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("behind: %v after %v", err, time.Since(start))
		}
	})
}

// A key that is reset lets those who wait for it go on.
func TestWaitUntilReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, start := newLimiter(t, "2/1h"), time.Now()
		if err := limiter.WaitN(t.Context(), "k", 2); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if err := limiter.Wait(t.Context(), "k"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		if err := limiter.Reset(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if time.Since(start) != time.Minute {
			t.Errorf("they waited for %v", time.Since(start))
		}
	})
}

// A shaping limit holds each waiter until its turn.
func TestWaitShaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, start := newLimiter(t, "leaky_bucket 10/1s burst 100 shape"), time.Now()
		var mu sync.Mutex
		left := map[time.Duration]int{}
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				if err := limiter.Wait(t.Context(), "k"); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				left[time.Since(start)]++
			})
		}
		wg.Wait()
		for i := range 30 {
			if at := time.Duration(i) * 100 * time.Millisecond; left[at] != 1 {
				t.Errorf("%d left at %v, want 1", left[at], at)
			}
		}
	})
}

// A request that leaves the end of the queue makes room for the next.
func TestWaitGivesItsTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, "leaky_bucket 10/1s shape")
		ctx, cancel := context.WithCancel(t.Context())
		if err := limiter.Wait(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		left := make(chan error)
		go func() { left <- limiter.Wait(ctx, "k") }()
		synctest.Wait()
		if d, err := limiter.Peek(t.Context(), "k", 1); err != nil || d.Delay != 200*time.Millisecond {
			t.Errorf("behind two: %+v, %v", d, err)
		}
		cancel()
		if err := <-left; err != context.Canceled {
			t.Errorf("Wait = %v", err)
		}
		if d, err := limiter.Peek(t.Context(), "k", 1); err != nil || d.Delay != 100*time.Millisecond {
			t.Errorf("behind one: %+v, %v", d, err)
		}
	})
}

// A deadline that comes before the slot is an answer at once, and costs nothing.
func TestWaitDeadline(t *testing.T) {
	for limit, free := range map[string]int64{
		"10/1s burst 1":                      0,
		"leaky_bucket 10/1s burst 100 shape": 99,
		"leaky_bucket 10/1s burst 1 shape":   0,
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter, start := newLimiter(t, limit), time.Now()
			if err := limiter.Wait(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				timeout time.Duration
				want    error
			}{{50 * time.Millisecond, weir.ErrDeadline}, {100 * time.Millisecond, weir.ErrDeadline}} {
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				if err := limiter.Wait(ctx, "k"); !errors.Is(err, c.want) || time.Since(start) != 0 {
					t.Errorf("%s: Wait with %v = %v after %v, want %v at once", limit, c.timeout, err, time.Since(start), c.want)
				}
				cancel()
			}
			if d, err := limiter.Peek(t.Context(), "k", 0); err != nil || d.Remaining != free {
				t.Errorf("%s: %+v, %v; want %d left: giving up cost something", limit, d, err, free)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 101*time.Millisecond)
			defer cancel()
			if err := limiter.Wait(ctx, "k"); err != nil || time.Since(start) != 100*time.Millisecond {
				t.Errorf("%s: Wait with enough time = %v after %v", limit, err, time.Since(start))
			}
		})
	}
}

// A context that is cancelled while waiting ends the wait.
func TestWaitCancelled(t *testing.T) {
	for _, limit := range []string{"1/1h", "leaky_bucket 1/1h burst 9 shape"} {
		synctest.Test(t, func(t *testing.T) {
			limiter, start := newLimiter(t, limit), time.Now()
			if err := limiter.Wait(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if err := limiter.Wait(ctx, "k"); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
				t.Errorf("%s: Wait = %v after %v", limit, err, time.Since(start))
			}
		})
	}
}

// around embeds a store and has a Take and a Peek of its own.
type around struct {
	*memory.Store
	take func(ctx context.Context, ops []weir.Op) ([]weir.Decision, error)
	peek func(ops []weir.Op)
}

func (a *around) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if a.take != nil {
		return a.take(ctx, ops)
	}
	return a.Store.Take(ctx, dst, ops...)
}

func (a *around) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	d, err := a.Store.Peek(ctx, dst, ops...)
	if a.peek != nil {
		a.peek(ops)
	}
	return d, err
}

func aroundMemory() *around {
	return &around{Store: memory.New(memory.Options{Clock: func() weir.Micros { return weir.MicrosOf(time.Now()) }})}
}

func limiterOn(t *testing.T, store weir.Store, limit string) *weir.Limiter {
	t.Helper()
	limiter, err := weir.NewLimiter(store, weir.MustParseLimit(limit))
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

// A store that wraps another is asked itself, never passed over.
func TestLimiterAsksTheWrapper(t *testing.T) {
	store, asked := aroundMemory(), 0
	store.take = func(ctx context.Context, ops []weir.Op) ([]weir.Decision, error) {
		asked++
		return store.Store.Take(ctx, nil, ops...)
	}
	limiter := limiterOn(t, store, "5/1m")
	if ok, err := limiter.Allow(t.Context(), "k"); !ok || err != nil {
		t.Errorf("Allow = %v, %v", ok, err)
	}
	if d, err := limiter.Take(t.Context(), "k", 2); d.Remaining != 2 || err != nil {
		t.Errorf("Take = %+v, %v", d, err)
	}
	if asked != 2 {
		t.Errorf("the wrapper was asked %d times, want 2", asked)
	}
}

// Somebody joins the queue between the look and the turn: no turn after the
// deadline is taken.
func TestWaitWhileOthersQueueUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := aroundMemory()
		limiter := limiterOn(t, store, "leaky_bucket 10/1s burst 100 shape")
		store.peek = func(ops []weir.Op) {
			if _, err := store.Store.Take(t.Context(), nil, weir.Op{Key: "k", Limit: ops[0].Limit, Cost: 5}); err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		if err := limiter.Wait(ctx, "k"); !errors.Is(err, weir.ErrDeadline) {
			t.Errorf("Wait = %v, want ErrDeadline", err)
		}
		store.peek = nil
		if d, err := limiter.Peek(t.Context(), "k", 0); err != nil || d.Remaining%5 != 0 {
			t.Errorf("%+v, %v: the one that gave up took a turn", d, err)
		}
	})
}

// late is a context whose deadline has passed and that has not noticed yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

// A turn that is free at once is no turn for one whose deadline has passed: it is
// told so, and nothing is taken.
func TestWaitAfterTheDeadline(t *testing.T) {
	limiter := newLimiter(t, "leaky_bucket 10/1s burst 100 shape")
	if err := limiter.Wait(late{t.Context()}, "k"); !errors.Is(err, weir.ErrDeadline) {
		t.Errorf("Wait = %v, want ErrDeadline", err)
	}
	if d, err := limiter.Peek(t.Context(), "k", 0); err != nil || d.Remaining != 100 {
		t.Errorf("%+v, %v; want 100 remaining", d, err)
	}
}

// What was taken is reported as taken, though the context ended meanwhile.
func TestWaitTakenThenCancelled(t *testing.T) {
	store := aroundMemory()
	ctx, cancel := context.WithCancel(t.Context())
	store.take = func(ctx context.Context, ops []weir.Op) ([]weir.Decision, error) {
		d, err := store.Store.Take(ctx, nil, ops...)
		cancel()
		return d, err
	}
	if err := limiterOn(t, store, "5/1m").Wait(ctx, "k"); err != nil {
		t.Errorf("Wait = %v, but the unit was taken", err)
	}
}

// A store that denies without a time to come back is an error, not a loop.
func TestWaitOnAStoreThatNeverSays(t *testing.T) {
	store := aroundMemory()
	store.take = func(context.Context, []weir.Op) ([]weir.Decision, error) { return make([]weir.Decision, 1), nil }
	if err := limiterOn(t, store, "5/1m").Wait(t.Context(), "k"); err == nil {
		t.Error("Wait returned nothing")
	}
}

func TestAllowIsNotForShaping(t *testing.T) {
	if ok, err := newLimiter(t, "leaky_bucket 5/1m shape").Allow(t.Context(), "k"); ok || err == nil {
		t.Errorf("Allow of a shaping limit = %v, %v", ok, err)
	}
}

// Limiters on one store share what a key has used, unless they have names.
func TestNames(t *testing.T) {
	store := memory.New(memory.Options{})
	remaining := func(name string, n int64) int64 {
		limit := weir.Limit{Name: name, N: n, Period: time.Hour, Algorithm: weir.SlidingLog}
		limiter, err := weir.NewLimiter(store, limit)
		if err != nil {
			t.Fatal(err)
		}
		d, err := limiter.Take(t.Context(), "alice", 1)
		if err != nil {
			t.Fatal(err)
		}
		return d.Remaining
	}
	for _, c := range []struct {
		name    string
		n, want int64
	}{{"", 10, 9}, {"", 5, 3}, {"login", 5, 4}, {"search", 5, 4}, {"login", 10, 8}} {
		if got := remaining(c.name, c.n); got != c.want {
			t.Errorf("under %q, %d remain, want %d", c.name, got, c.want)
		}
	}
}

// The way through the limiter allocates nothing.
func TestLimiterAllocatesNothing(t *testing.T) {
	limiter, ctx := newLimiter(t, "1000000/1s"), t.Context()
	got := testing.AllocsPerRun(1000, func() {
		if _, err := limiter.Take(ctx, "alice", 1); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations a Take, want 0", got)
	}
}

// A store that knows no more than weir.Store is charged the same.
func TestLimiterOnAnyStore(t *testing.T) {
	limiter, err := weir.NewLimiter(scenario.NewModel(), weir.MustCompile("5/1m").Limit())
	if err != nil {
		t.Fatal(err)
	}
	if d, err := limiter.Take(t.Context(), "k", 2); err != nil || d.Remaining != 3 {
		t.Errorf("Take 2 = %+v, %v", d, err)
	}
	if ok, err := limiter.Allow(t.Context(), "k"); err != nil || !ok {
		t.Errorf("Allow = %v, %v", ok, err)
	}
	if d, err := limiter.Peek(t.Context(), "k", 0); err != nil || d.Remaining != 2 {
		t.Errorf("%+v, %v; want 2 left", d, err)
	}
}

// Who waits with a deadline has a turn at once, not when it comes.
func TestWaitTakesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(t, "leaky_bucket 10/1s burst 100 shape")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 3 {
			go limiter.Wait(ctx, "k")
			synctest.Wait()
		}
		if d, err := limiter.Peek(ctx, "k", 0); err != nil || d.Remaining != 97 {
			t.Errorf("%+v, %v; want 97 left", d, err)
		}
		time.Sleep(time.Second)
	})
}

func TestLimiterCancelled(t *testing.T) {
	limiter := newLimiter(t, "2/1s")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := limiter.Take(ctx, "k", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Take = %v", err)
	}
	if ok, err := limiter.Allow(ctx, "k"); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("Allow = %v, %v", ok, err)
	}
}

// Charge takes what does not fit, too, and says so.
func TestCharge(t *testing.T) {
	l := newLimiter(t, "fixed_window 5/3650d")
	if d, err := l.Charge(t.Context(), "k", 3); err != nil || !d.Allowed || d.Remaining != 2 {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := l.Charge(t.Context(), "k", 100); err != nil || d.Allowed || d.Remaining != 0 || d.Excess != 48 {
		t.Errorf("%+v, %v", d, err)
	}
	if ok, err := l.Allow(t.Context(), "k"); ok || err != nil {
		t.Errorf("%v, %v: a client in debt was allowed", ok, err)
	}
	var invalid *weir.InvalidError
	if _, err := l.Charge(t.Context(), "k", weir.MaxUnits+1); !errors.As(err, &invalid) || invalid.Field != "cost" {
		t.Errorf("%v", err)
	}
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1h"), Cost: 1}
	owes := op
	owes.Always = true
	look, both := op, owes
	look.Look, both.Look = true, true
	for field, ops := range map[string][]weir.Op{"": {look, owes, look}, "always": {op, look, owes}, "look": {owes, both}} {
		var invalid *weir.InvalidError
		if err := weir.ValidateTake(ops); errors.As(err, &invalid) != (field != "") || invalid != nil && invalid.Field != field {
			t.Errorf("want %q: %v", field, err)
		}
	}
}
