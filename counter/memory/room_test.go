package memory

import (
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

// When it is full, what has expired goes first, and then what was changed the longest
// time ago.
func TestWhoGoes(t *testing.T) {
	s, clock := newStore(t, Options{MaxEntries: 1, MaxMembers: 1})
	most := s.room.most
	name := func(i int) counter.Key { return counter.Key{Name: fmt.Sprint("n", i)} }
	brief := counter.Key{Name: "brief", Window: counter.Second}
	for i := range most - 10 {
		add(t, s, name(i))
	}
	for range 10 {
		brief.Name += "x"
		add(t, s, brief)
	}
	if s.Len() != most {
		t.Fatalf("there are %d of %d", s.Len(), most)
	}
	clock.Set(clock.Now() + micros(2*time.Hour)) // the brief ones are over
	for i := range 10 {
		add(t, s, name(most+i))
	}
	if s.Len() > most || !has(t, s, name(0)) || !has(t, s, name(most-11)) || !has(t, s, name(most+9)) {
		t.Error("what was not over has gone")
	}
	for len(s.room.entries) < most {
		add(t, s, counter.Key{Name: fmt.Sprint("fill", len(s.room.entries))})
	}
	add(t, s, name(0)) // it is the newest now
	add(t, s, counter.Key{Name: "one more"})
	if !has(t, s, name(0)) || has(t, s, name(1)) || !has(t, s, name(2)) {
		t.Error("it was not the oldest that went")
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

// Ten times as many names, members and items as there is room for take no more than that.
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
			_, err = s.Add(t.Context(), deltas...)
		}
		if err != nil || s.Len() > most {
			t.Fatalf("there are %d of %d, %v", s.Len(), most, err)
		}
		clock.Set(clock.Now() + micros(6*time.Second)) // boards and lists of an hour expire, days do not
	}
	if n := s.Len(); n < most*9/10 {
		t.Errorf("only %d of %d are in use", n, most)
	}
	used := int64(heapBytes()) - int64(before)
	t.Logf("%d bytes an entry", used/int64(s.Len()))
	if used > 500*most {
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

// The largest list fits, however small the bound.
func TestLargestListFits(t *testing.T) {
	s, clock := newStore(t, Options{MaxEntries: 1, MaxMembers: 50})
	list := counter.HotList{Name: "l", Window: 20 * time.Second, Threshold: 1}
	for range 100 {
		for i := range 50 {
			if _, err := s.Hit(t.Context(), list, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		clock.Set(clock.Now() + micros(500*time.Millisecond))
	}
	if hot, err := s.Hot(t.Context(), list, 100); err != nil || len(hot) != 50 {
		t.Errorf("%d are hot, %v", len(hot), err)
	}
	if s.Len() > s.room.most {
		t.Errorf("%d of %d", s.Len(), s.room.most)
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
