package memory

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit/countertest"
)

// restarting is a store that is another process at every call.
type restarting struct {
	t     *testing.T
	o     Options
	mu    sync.Mutex
	store *Store
}

func again[T any](r *restarting, ask func(*Store) (T, error)) (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b bytes.Buffer
	if err := r.store.Snapshot(&b); err != nil {
		r.t.Error(err)
	}
	next := New(r.o)
	if err := next.Restore(&b); err != nil {
		r.t.Error(err)
	}
	r.store = next
	return ask(next)
}

func (r *restarting) Add(ctx context.Context, d ...counter.Delta) ([]counter.Amount, error) {
	return again(r, func(s *Store) ([]counter.Amount, error) { return s.Add(ctx, d...) })
}
func (r *restarting) Get(ctx context.Context, k ...counter.Key) ([]counter.Amount, error) {
	return again(r, func(s *Store) ([]counter.Amount, error) { return s.Get(ctx, k...) })
}
func (r *restarting) Reset(ctx context.Context, k ...counter.Key) ([]counter.Amount, error) {
	return again(r, func(s *Store) ([]counter.Amount, error) { return s.Reset(ctx, k...) })
}
func (r *restarting) History(ctx context.Context, n int, k ...counter.Key) ([][]counter.Point, error) {
	return again(r, func(s *Store) ([][]counter.Point, error) { return s.History(ctx, n, k...) })
}
func (r *restarting) NextID(ctx context.Context, name string) (int64, error) {
	return again(r, func(s *Store) (int64, error) { return s.NextID(ctx, name) })
}
func (r *restarting) Score(ctx context.Context, b counter.Board, m ...counter.Mark) ([]counter.Amount, error) {
	return again(r, func(s *Store) ([]counter.Amount, error) { return s.Score(ctx, b, m...) })
}
func (r *restarting) Top(ctx context.Context, b counter.Board, n int) (counter.Ranking, error) {
	return again(r, func(s *Store) (counter.Ranking, error) { return s.Top(ctx, b, n) })
}
func (r *restarting) Set(ctx context.Context, s ...counter.Setting) ([]counter.Amount, error) {
	return again(r, func(store *Store) ([]counter.Amount, error) { return store.Set(ctx, s...) })
}
func (r *restarting) Observe(ctx context.Context, s ...counter.Sample) error {
	_, err := again(r, func(store *Store) (struct{}, error) { return struct{}{}, store.Observe(ctx, s...) })
	return err
}
func (r *restarting) Distributions(ctx context.Context, n int, k ...counter.Key) ([][]counter.DistributionPoint, error) {
	return again(r, func(s *Store) ([][]counter.DistributionPoint, error) { return s.Distributions(ctx, n, k...) })
}
func (r *restarting) Standing(ctx context.Context, b counter.Board, m ...string) ([]counter.Standing, error) {
	return again(r, func(s *Store) ([]counter.Standing, error) { return s.Standing(ctx, b, m...) })
}
func (r *restarting) Hit(ctx context.Context, l counter.HotList, i ...string) ([]counter.Heat, error) {
	return again(r, func(s *Store) ([]counter.Heat, error) { return s.Hit(ctx, l, i...) })
}
func (r *restarting) Hot(ctx context.Context, l counter.HotList, n int) ([]counter.Heat, error) {
	return again(r, func(s *Store) ([]counter.Heat, error) { return s.Hot(ctx, l, n) })
}
func (r *restarting) Names(ctx context.Context, n int) (counter.Names, error) {
	return again(r, func(s *Store) (counter.Names, error) { return s.Names(ctx, n) })
}
func (r *restarting) Events(ctx context.Context, l counter.HotList, after int64) (counter.Events, error) {
	return again(r, func(s *Store) (counter.Events, error) { return s.Events(ctx, l, after) })
}

// No answer shows that there was a restart.
func TestSuiteWithRestarts(t *testing.T) {
	countertest.Run(t, func(t *testing.T, o countertest.Settings) countertest.Subject {
		var clock fake
		r := &restarting{t: t, o: Options{MaxMembers: o.MaxMembers, Retention: o.Retention, Clock: clock.Now}}
		r.store = New(r.o)
		t.Cleanup(func() { checkRoom(t, r.store) })
		return countertest.Subject{Store: r, Set: clock.Set}
	})
}

// Random histories have the same answers with a restart before some calls, and without.
func TestRestartsMakeNoDifference(t *testing.T) {
	restarts := 0
	rapid.Check(t, func(rt *rapid.T) {
		var clock fake
		clock.Set(micros(55 * 365 * 24 * time.Hour))
		o := Options{MaxMembers: rapid.IntRange(1, 6).Draw(rt, "MaxMembers"), Clock: clock.Now,
			Retention: counter.Retention{Seconds: 5, Minutes: 3, Hours: 4, Days: 2}}
		always, other := New(o), New(o)
		latest := clock.Now()
		for range rapid.IntRange(10, 80).Draw(rt, "steps") {
			leap := rapid.SampledFrom([]time.Duration{0, 0, 1000, time.Second, 3 * time.Second, time.Minute, 9 * time.Hour, -5 * time.Second}).Draw(rt, "leap")
			latest = max(latest, clock.Now()+micros(leap))
			clock.Set(max(clock.Now()+micros(leap), latest-grace)) // who has gone back further knows less
			if rapid.IntRange(0, 3).Draw(rt, "restart") == 0 {
				restarts++
				next := New(o)
				if err := next.Restore(bytes.NewReader(snapshotOf(t, other))); err != nil {
					rt.Fatal(err)
				}
				other = next
			}
			ask := question(rt)
			if got, want := ask(t.Context(), other), ask(t.Context(), always); !reflect.DeepEqual(got, want) {
				rt.Fatalf("with a restart %+v\nwithout %+v", got, want)
			}
		}
		checkRoom(t, other)
	})
	if restarts < 100 {
		t.Errorf("there were %d restarts, which shows little", restarts)
	}
}

// question draws a call, with all that came of it.
func question(rt *rapid.T) func(context.Context, *Store) []any {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(rt, label) }
	window := rapid.SampledFrom(counter.Windows()).Draw(rt, "window")
	key := counter.Key{Name: pick("name", "a", "b", "c"), Group: pick("group", "", "g"), Window: window, Distinct: rapid.IntRange(0, 2).Draw(rt, "distinct") == 0}
	board := counter.Board{Name: "b", Window: window}
	if window == counter.Second {
		board = counter.Board{Name: "b", Sliding: time.Minute}
	}
	item := pick("item", "1", "2", "3", "4", "5", "6", "7")
	n := rapid.Int64Range(1, 5).Draw(rt, "n")
	list := counter.HotList{Name: "h", Window: 20 * time.Second, Threshold: 1 + n/4}
	both := func(x any, err error) []any { return []any{x, fmt.Sprint(err)} }
	call := rapid.IntRange(0, 11).Draw(rt, "call")
	return func(ctx context.Context, s *Store) []any {
		switch call {
		case 0:
			if key.Distinct {
				return both(s.Add(ctx, counter.Delta{Key: key, Members: []string{item, "1"}}))
			}
			return both(s.Add(ctx, counter.Delta{Key: key, By: counter.Amount(n - 2)}))
		case 1:
			return both(s.Get(ctx, key, counter.Key{Name: "a"}))
		case 2:
			return both(s.Reset(ctx, key))
		case 3:
			return both(s.History(ctx, s.kept.Windows(window), key))
		case 9:
			return both(s.Set(ctx, counter.Setting{Key: key, To: counter.Amount(n - 2)}))
		case 10:
			err := s.Observe(ctx, counter.Sample{Key: counter.Key{Name: "d", Window: window}, Values: []counter.Amount{counter.Whole(n), 0}})
			return append(both(s.Distributions(ctx, s.kept.Distributions(window), counter.Key{Name: "d", Window: window})), fmt.Sprint(err))
		case 4:
			return both(s.NextID(ctx, key.Name))
		case 5:
			return both(s.Score(ctx, board, counter.Mark{Member: item, By: counter.Amount(n)}))
		case 6:
			return append(both(s.Top(ctx, board, 10)), both(s.Standing(ctx, board, item))...)
		case 7:
			return both(s.Hit(ctx, list, item, "1"))
		case 8:
			return append(both(s.Hot(ctx, list, 10)), both(s.Events(ctx, list, 0))...)
		}
		var deltas []counter.Delta
		for i := range 100 {
			deltas = append(deltas, counter.Delta{Key: counter.Key{Name: fmt.Sprint(item, n, i), Window: window}, By: 1})
		}
		return both(s.Add(ctx, deltas...))
	}
}
