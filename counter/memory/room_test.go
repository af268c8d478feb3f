package memory

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

func newStore(t testing.TB, o Options) (*Store, *fake) {
	t.Helper()
	var clock fake
	clock.Set(weir.MicrosOf(time.Date(2025, 8, 29, 12, 0, 0, 0, time.UTC)))
	o.Clock = clock.Now
	s := New(o)
	t.Cleanup(func() { checkRoom(t, s) })
	return s, &clock
}

func add(t testing.TB, s *Store, k counter.Key) {
	t.Helper()
	if _, err := s.Add(t.Context(), counter.Delta{Key: k, By: counter.One}); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, s *Store, k counter.Key) bool {
	t.Helper()
	got, err := s.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return got[0] != 0
}

// full fills a store with totals, and returns a key of each kind that was there before.
func full(t *testing.T, capacity int) (*Store, *fake, counter.Key) {
	t.Helper()
	s, clock := newStore(t, Options{MaxEntries: capacity})
	orders := counter.Key{Name: "orders:total"}
	if _, err := s.Set(t.Context(), counter.Setting{Key: orders, To: counter.Whole(123_456)}); err != nil {
		t.Fatal(err)
	}
	for i := s.Len(); i < capacity; i++ {
		add(t, s, counter.Key{Name: fmt.Sprint("name ", i), Window: counter.Day})
	}
	return s, clock, orders
}

// When it is full, new names are an error of a kind of its own, and nothing that is there is
// lost: it can be read, and goes on counting.
func TestFull(t *testing.T) {
	const capacity = 1000
	s, clock, orders := full(t, capacity)
	board, list := counter.Board{Name: "new"}, counter.HotList{Name: "new", Window: time.Minute, Threshold: 1}
	rejected := int64(0)
	reject := func(what string, err error) {
		t.Helper()
		if rejected++; !errors.Is(err, counter.ErrFull) {
			t.Errorf("%s: %v, want %v", what, err, counter.ErrFull)
		}
	}
	for i := range 3000 {
		_, err := s.Add(t.Context(), counter.Delta{Key: counter.Key{Name: fmt.Sprint("more ", i)}, By: counter.One})
		reject("Add", err)
	}
	_, err := s.Add(t.Context(), counter.Delta{Key: orders, By: counter.One}, counter.Delta{Key: counter.Key{Name: "new"}, By: counter.One})
	reject("Add to one that is there and one that is not", err)
	_, err = s.Add(t.Context(), counter.Delta{Key: counter.Key{Name: "new", Distinct: true}, Members: []string{"m"}})
	reject("Add of a member", err)
	_, err = s.Set(t.Context(), counter.Setting{Key: orders, To: 1}, counter.Setting{Key: counter.Key{Name: "new"}, To: 1})
	reject("Set", err)
	reject("Observe", s.Observe(t.Context(), counter.Sample{Key: counter.Key{Name: "new"}, Values: []counter.Amount{1}}))
	_, err = s.NextID(t.Context(), "new")
	reject("NextID", err)
	_, err = s.Score(t.Context(), board, counter.Mark{Member: "m", By: 1})
	reject("Score", err)
	_, err = s.Score(t.Context(), counter.Board{Name: "new", Sliding: time.Minute}, counter.Mark{Member: "m", By: 1})
	reject("Score on a sliding board", err)
	_, err = s.Hit(t.Context(), list, "m")
	reject("Hit", err)
	if got := s.Usage(); got != (Usage{Entries: capacity, Capacity: capacity, Rejected: rejected}) {
		t.Errorf("%+v, want %d rejected", got, rejected)
	}

	// What changes nothing needs no room.
	if _, err := s.Reset(t.Context(), counter.Key{Name: "new"}); err != nil {
		t.Error(err)
	}
	if _, err := s.Top(t.Context(), board, 1); err != nil {
		t.Error(err)
	}
	clock.Set(clock.Now() + micros(10*24*time.Hour))
	for i := 1; i < capacity; i++ {
		add(t, s, counter.Key{Name: fmt.Sprint("name ", i), Window: counter.Day})
	}
	if got, err := s.Add(t.Context(), counter.Delta{Key: orders, By: counter.One}); err != nil || got[0] != counter.Whole(123_457) {
		t.Errorf("the total is %v, %v", got, err)
	}
}

// Of several names in one call, all have room or none; one that is named twice needs it once.
func TestFullCountsNames(t *testing.T) {
	s, _, _ := full(t, 100)
	s.room.most = 102
	delta := func(name string) counter.Delta { return counter.Delta{Key: counter.Key{Name: name}, By: counter.One} }
	if _, err := s.Add(t.Context(), delta("a"), delta("b"), delta("c")); !errors.Is(err, counter.ErrFull) || s.Len() != 100 {
		t.Errorf("%v with %d entries", err, s.Len())
	}
	if _, err := s.Add(t.Context(), delta("a"), delta("b"), delta("a")); err != nil || s.Len() != 102 {
		t.Errorf("%v with %d entries", err, s.Len())
	}
}

// What has expired makes room, whatever the number, and a call never removes more than a few.
func TestFullEnds(t *testing.T) {
	const capacity = 4000
	s, clock, orders := full(t, capacity)
	s.room.most = capacity / 2 // as if twice as much had been restored
	clock.Set(clock.Now() + micros(300*24*time.Hour))
	add(t, s, orders)
	clock.Set(clock.Now() + micros(100*24*time.Hour)) // all but that have expired
	for calls := 0; ; calls++ {
		before := s.Len()
		_, err := s.Add(t.Context(), counter.Delta{Key: counter.Key{Name: "new"}, By: counter.One})
		if removed := before - s.Len(); removed > reclaimAtOnce+2 {
			t.Fatalf("one call removed %d entries", removed)
		}
		if err == nil {
			break
		}
		if calls > capacity/reclaimAtOnce {
			t.Fatalf("after %d calls: %v", calls, err)
		}
	}
	if !has(t, s, orders) {
		t.Error("the total is gone")
	}
}

// Names that are there get windows and members from a reserve. When that is used up, totals and
// counters in their current window go on.
func TestReserve(t *testing.T) {
	const capacity = 1000
	s, clock, orders := full(t, capacity)
	s.room.most = capacity + 2
	board, daily := counter.Board{Name: "board"}, counter.Key{Name: "name 1", Window: counter.Day}
	if _, err := s.Score(t.Context(), board, counter.Mark{Member: "m", By: 1}); err != nil {
		t.Fatal(err)
	}
	marks := make([]counter.Mark, counter.MaxBatch)
	var err error
	for i := 0; err == nil; i++ {
		for j := range marks {
			marks[j] = counter.Mark{Member: fmt.Sprint(i, " ", j), By: counter.One}
		}
		_, err = s.Score(t.Context(), board, marks...)
		if most := 2*s.room.most + len(marks); s.Len() > most {
			t.Fatalf("%d entries, want at most %d", s.Len(), most)
		}
	}
	if !errors.Is(err, counter.ErrFull) || s.Len() < 2*s.room.most {
		t.Errorf("%v with %d entries", err, s.Len())
	}
	add(t, s, orders)
	add(t, s, daily)
	clock.Set(clock.Now() + micros(24*time.Hour))
	add(t, s, orders)
	if _, err := s.Add(t.Context(), counter.Delta{Key: daily, By: counter.One}); !errors.Is(err, counter.ErrFull) {
		t.Errorf("on the next day: %v", err)
	}
	if points, err := s.History(t.Context(), 2, daily); err != nil || points[0][0].Amount != counter.Whole(2) || points[0][1].Amount != 0 {
		t.Errorf("%v, %v", points, err)
	}
}

// What is over goes by itself, a little with each change.
func TestExpiredGo(t *testing.T) {
	s, clock := newStore(t, Options{})
	for i := range 1000 {
		add(t, s, counter.Key{Name: fmt.Sprint(i), Window: counter.Minute})
	}
	clock.Set(clock.Now() + micros(48*time.Hour))
	for i := range 500 {
		add(t, s, counter.Key{Name: fmt.Sprint(i, " later"), Window: counter.Minute})
	}
	if s.Len() != 500 {
		t.Errorf("%d are left", s.Len())
	}
}

// Ten times as many names, members and items as there is room for take no more than that, and
// its reserve.
func TestManyNames(t *testing.T) {
	const most = 12_000
	s, clock := newStore(t, Options{MaxEntries: most, MaxMembers: 200})
	before := heapBytes()
	board := counter.Board{Name: "board", Window: counter.Hour}
	list := counter.HotList{Name: "list", Window: time.Hour, Threshold: 5}
	const batch = 100
	for first := 0; first < 10*most; first += batch {
		names := make([]string, batch)
		for i := range names {
			names[i] = fmt.Sprint("name ", first+i)
		}
		var err error
		switch first / batch % 10 {
		case 0:
			marks := make([]counter.Mark, batch)
			for i := range marks {
				marks[i] = counter.Mark{Member: names[i], By: counter.One}
			}
			_, err = s.Score(t.Context(), board, marks...)
		case 1:
			_, err = s.Hit(t.Context(), list, names...)
		default:
			deltas := make([]counter.Delta, batch)
			for i := range deltas {
				deltas[i] = counter.Delta{Key: counter.Key{Name: names[i], Window: counter.Day}, By: counter.One}
			}
			if _, err = s.Add(t.Context(), deltas...); errors.Is(err, counter.ErrFull) {
				err = nil
			}
		}
		if err != nil || s.Len() > 2*most {
			t.Fatalf("there are %d of %d, %v", s.Len(), most, err)
		}
		clock.Set(clock.Now() + micros(6*time.Second)) // boards and lists of an hour expire, days do not
	}
	if n := s.Len(); n < most*9/10 {
		t.Errorf("only %d of %d are in use", n, most)
	}
	used := int64(heapBytes()) - int64(before)
	t.Logf("%d bytes an entry", used/int64(s.Len()))
	if used > 500*int64(s.Len()) {
		t.Errorf("%d bytes for %d entries", used, s.Len())
	}
	runtime.KeepAlive(s)
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A counter of many windows weighs as it costs, and forgets what cannot be read.
func TestWindowsAreBounded(t *testing.T) {
	s, clock := newStore(t, Options{})
	k := counter.Key{Name: strings.Repeat("k", 200), Window: counter.Second}
	for range 20_000 {
		add(t, s, k)
		clock.Set(clock.Now() + micros(time.Second))
	}
	if n := s.Len(); n < 3600/8 || n > 4600/8 {
		t.Errorf("it weighs %d", n)
	}
}

// The system's clock is the default.
func TestSystemClock(t *testing.T) {
	before := time.Now().UnixMicro()
	id, err := New(Options{}).NextID(t.Context(), "s")
	if after := time.Now().UnixMicro(); err != nil || id < before-1000 || id > after+1000 {
		t.Errorf("%d, %v", id, err)
	}
}
