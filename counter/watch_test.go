package counter_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/counter/memory"
)

// flaky is a store that cannot always be asked.
type flaky struct {
	counter.Store
	away atomic.Pointer[error]
}

func (f *flaky) Events(ctx context.Context, l counter.HotList, after int64) (counter.Events, error) {
	if err := f.away.Load(); err != nil {
		return counter.Events{}, *err
	}
	return f.Store.Events(ctx, l, after)
}

// A watch asks every second, outlives trouble, makes up for what it missed, and says so
// when that is gone.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := func() weir.Micros { return weir.MicrosOf(time.Now()) }
		store := &flaky{Store: memory.New(memory.Options{Clock: clock})}
		list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 1}
		hit := func(items ...string) {
			t.Helper()
			if _, err := store.Hit(t.Context(), list, items...); err != nil {
				t.Fatal(err)
			}
		}
		hit("old")
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var told []string
		var troubles, missed int
		locked := func(change func()) {
			mu.Lock()
			defer mu.Unlock()
			change()
		}
		done := make(chan error)
		go func() {
			done <- counter.Watch(ctx, store, list, counter.WatchOptions{
				Missed:  func() { locked(func() { missed++ }) },
				Trouble: func(error) { locked(func() { troubles++ }) },
			}, func(e counter.Event) { locked(func() { told = append(told, e.Item) }) })
		}()
		synctest.Wait()
		wait := func(d time.Duration) {
			mu.Unlock()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
		}
		mu.Lock()
		hit("a")
		wait(500 * time.Millisecond)
		if told != nil {
			t.Errorf("it was told at once: %v", told)
		}
		wait(time.Second)
		if !slices.Equal(told, []string{"a"}) {
			t.Errorf("it was told %v", told)
		}
		away := errors.New("away")
		store.away.Store(&away)
		hit("b")
		wait(3 * time.Second)
		if troubles != 3 || len(told) != 1 {
			t.Errorf("there were %d troubles, and it was told %v", troubles, told)
		}
		store.away.Store(nil)
		wait(time.Second)
		if !slices.Equal(told, []string{"a", "b"}) || missed != 0 {
			t.Errorf("it was told %v, and missed %d", told, missed)
		}
		wait(2 * time.Minute)
		if !slices.Equal(told, []string{"a", "b", "a", "old", "b"}) {
			t.Errorf("it was told %v", told)
		}
		told = nil
		for i := range counter.MaxEvents + 1 {
			hit(string([]byte{byte(i), byte(i >> 8)}))
		}
		wait(time.Second)
		if missed != 1 || len(told) != counter.MaxEvents {
			t.Errorf("it was told of %d, and missed %d", len(told), missed)
		}
		mu.Unlock()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch = %v", err)
		}
	})
	if err := counter.Watch(t.Context(), nil, counter.HotList{}, counter.WatchOptions{}, nil); err == nil {
		t.Error("a list without a name can be watched")
	}
}
