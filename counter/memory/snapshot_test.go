package memory

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/counter"
)

// used is a store with something of every kind.
func used(t testing.TB) (*Store, *fake) {
	t.Helper()
	s, clock := newStore(t, Options{})
	ctx := t.Context()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 2}
	for i := range 4 {
		for _, k := range []counter.Key{{Name: "k"}, {Name: "k", Group: "g", Window: counter.Second}, {Name: "\xff\x00", Window: counter.Day, Zone: berlin}} {
			add(t, s, k)
		}
		marks := []counter.Mark{{Member: "a", By: counter.One}, {Member: "b", By: counter.Amount(i + 1)}}
		for _, b := range []counter.Board{{Name: "b"}, {Name: "b", Window: counter.Hour, Zone: berlin}, {Name: "b", Sliding: time.Minute}} {
			if _, err := s.Score(ctx, b, marks...); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Hit(ctx, list, "x", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.NextID(ctx, "s"); err != nil {
			t.Fatal(err)
		}
		clock.Set(clock.Now() + micros(20*time.Second))
	}
	return s, clock
}

// useMore adds what snapshots have had since version 3.
func useMore(t testing.TB, s *Store) {
	t.Helper()
	add(t, s, counter.Key{Name: "k", Window: counter.Month})
	include(t, s, counter.Key{Name: "d", Window: counter.Year, Distinct: true}, 0, 3)
	if err := s.Observe(t.Context(), counter.Sample{Key: counter.Key{Name: "ms", Window: counter.Day}, Values: []counter.Amount{1, 2, counter.One}}); err != nil {
		t.Fatal(err)
	}
}

func snapshotOf(t testing.TB, s *Store) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// restored is a store that was filled from a snapshot.
func restored(t testing.TB, o Options, snapshot []byte) *Store {
	t.Helper()
	s := New(o)
	if err := s.Restore(bytes.NewReader(snapshot)); err != nil {
		t.Fatal(err)
	}
	checkRoom(t, s)
	return s
}

// contents is all that is in a store, that which was changed the longest time ago first.
func contents(s *Store) (all []entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.room.oldest; e != nil; e = e.newer {
		c := entry{id: e.id, body: e.body, weight: e.weight, expires: e.expires}
		if h, ok := e.body.(*hot); ok {
			c.body = &hot{withoutEmpty(h.sliding), h.threshold, h.cool, h.since, h.events, h.ends, h.last, h.lost}
		} else if x, ok := e.body.(*sliding); ok {
			without := withoutEmpty(*x)
			c.body = &without
		}
		all = append(all, c)
	}
	return all
}

// withoutEmpty makes no difference between a step without members and none.
func withoutEmpty(s sliding) sliding {
	for i, p := range s.parts {
		if len(p) == 0 {
			s.parts[i] = nil
		}
	}
	return s
}

func wantSame(t testing.TB, got, want *Store) {
	t.Helper()
	g, w := contents(got), contents(want)
	if len(g) != len(w) {
		t.Fatalf("there are %d entries, want %d", len(g), len(w))
	}
	for i := range g {
		if !reflect.DeepEqual(g[i], w[i]) {
			t.Fatalf("entry %d is\n%+v %+v\nwant\n%+v %+v", i, g[i], g[i].body, w[i], w[i].body)
		}
	}
}

func TestRestoreIsLossless(t *testing.T) {
	old, clock := used(t)
	useMore(t, old)
	s := restored(t, Options{Clock: clock.Now}, snapshotOf(t, old))
	if n := len(contents(s)); n != 11 {
		t.Fatalf("there are %d entries", n)
	}
	wantSame(t, s, old)
	wantSame(t, restored(t, Options{Clock: clock.Now}, snapshotOf(t, s)), old)
}

func TestRestoreLeavesOutWhatHasExpired(t *testing.T) {
	old, clock := used(t)
	snapshot := snapshotOf(t, old)
	clock.Set(clock.Now() + micros(30*time.Hour))
	s := restored(t, Options{Clock: clock.Now}, snapshot)
	var names []string
	for _, e := range contents(s) {
		names = append(names, fmt.Sprint(e.id.kind, e.id.window))
	}
	// What counts by the second or hour, the sliding board, the list and the sequence are
	// over.
	if got := strings.Join(names, ", "); got != "0 ever, 0 day, 2 ever" {
		t.Errorf("what is left is %s", got)
	}
	clock.Set(clock.Now() + micros(400*24*time.Hour))
	if s := restored(t, Options{Clock: clock.Now}, snapshot); s.Len() != 0 {
		t.Errorf("%d are left after a year", s.Len())
	}
}

// A store with less room keeps all entries, and is full; of lists, it keeps the highest members.
func TestRestoreIntoLessRoom(t *testing.T) {
	old, clock := newStore(t, Options{})
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 1}
	for i := range 200 {
		item := fmt.Sprintf("%03d", i)
		if _, err := old.Hit(t.Context(), list, item, item, fmt.Sprintf("%03d", i/2)); err != nil {
			t.Fatal(err)
		}
		if _, err := old.Score(t.Context(), counter.Board{Name: "b"}, counter.Mark{Member: item, By: counter.Amount(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20_000 {
		add(t, old, counter.Key{Name: fmt.Sprint(i)})
	}
	for _, b := range []string{"x", "y"} { // so that lists are among the newest, too
		if _, err := old.Hit(t.Context(), list, b); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{MaxEntries: 1, MaxMembers: 50, Clock: clock.Now}
	s := restored(t, o, snapshotOf(t, old))
	add(t, s, counter.Key{Name: "0"}) // there is always room for a total that is there
	if _, err := s.NextID(t.Context(), "new"); !errors.Is(err, counter.ErrFull) || !has(t, s, counter.Key{Name: "19999"}) {
		t.Errorf("with %d entries: %v", s.Len(), err)
	}
	hot, err := s.Hot(t.Context(), list, 100)
	if err != nil || len(hot) != 44 || hot[0].Item != "000" || hot[0].Hits != 4 {
		t.Errorf("%d are hot, %v: %+v", len(hot), err, hot)
	}
	// Items without room have cooled, and watchers get an event.
	news, err := s.Events(t.Context(), list, 0)
	cooled := 0
	for _, e := range news.Events {
		if !e.Hot {
			cooled++
		}
	}
	if err != nil || cooled != 202-44 {
		t.Errorf("%d have cooled, %v", cooled, err)
	}
	checkRoom(t, s)
	wantSame(t, restored(t, o, snapshotOf(t, s)), s)
}

// What is restored is kept no longer than this store keeps anything, so that a full store can be
// relieved.
func TestRestoreWithShorterRetention(t *testing.T) {
	old, clock := newStore(t, Options{})
	add(t, old, counter.Key{Name: "user", Window: counter.Day})
	add(t, old, counter.Key{Name: "total"})
	s := restored(t, Options{Clock: clock.Now, Retention: counter.Retention{Days: 1}}, snapshotOf(t, old))
	clock.Set(clock.Now() + micros(2*24*time.Hour) + grace)
	add(t, s, counter.Key{Name: "another"})
	if s.Len() != 2 || !has(t, s, counter.Key{Name: "total"}) {
		t.Errorf("%d entries are left, want two totals", s.Len())
	}
}

// A snapshot is as of when it was begun, whatever is changed, removed or made meanwhile.
func TestSnapshotIsOfOneInstant(t *testing.T) {
	old, clock := used(t)
	for i := range 9 * saveAtOnce {
		add(t, old, counter.Key{Name: fmt.Sprint(i)})
	}
	want := restored(t, Options{Clock: clock.Now}, snapshotOf(t, old))
	old.beginSaving()
	for round := range 5 {
		if !old.saveSome() {
			t.Fatal("all was saved at once")
		}
		clock.Set(clock.Now() + micros(10*time.Second))
		for i := round; i < 9*saveAtOnce; i += 37 {
			add(t, old, counter.Key{Name: fmt.Sprint(i)})
		}
		add(t, old, counter.Key{Name: fmt.Sprint("new", round)})
		add(t, old, counter.Key{Name: fmt.Sprint("new", round)})
		if _, err := old.Reset(t.Context(), counter.Key{Name: "k"}, counter.Key{Name: "8999"}); err != nil {
			t.Fatal(err)
		}
		// Reading moves a window.
		if _, err := old.Top(t.Context(), counter.Board{Name: "b", Sliding: time.Minute}, 5); err != nil {
			t.Fatal(err)
		}
		if _, err := old.Hit(t.Context(), counter.HotList{Name: "l", Window: time.Minute, Threshold: 2}, "x", "9"); err != nil {
			t.Fatal(err)
		}
		add(t, old, counter.Key{Name: old.room.saving.next.id.name}) // which moves it
		old.mu.Lock()
		old.room.remove(old.room.saving.next)
		old.room.remove(old.room.byExpiry[0])
		old.mu.Unlock()
	}
	for old.saveSome() {
	}
	var b bytes.Buffer
	if err := writeRecords(&b, old.endSaving()); err != nil {
		t.Fatal(err)
	}
	clock.Set(clock.Now() - micros(50*time.Second))
	wantSame(t, restored(t, Options{Clock: clock.Now}, b.Bytes()), want)
}

// What one call does is in a snapshot as a whole or not at all.
func TestSnapshotWhileCounting(t *testing.T) {
	s, clock := newStore(t, Options{})
	for i := range 3 * saveAtOnce {
		add(t, s, counter.Key{Name: fmt.Sprint(i)})
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for user := range 4 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				k := func(i int) counter.Key { return counter.Key{Name: fmt.Sprint(i % (3 * saveAtOnce))} }
				deltas := []counter.Delta{{Key: k(i*97 + user), By: counter.One}, {Key: k(i*89 + 1500), By: -counter.One}}
				if _, err := s.Add(t.Context(), deltas...); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		sum := counter.Amount(0)
		for _, e := range contents(restored(t, Options{Clock: clock.Now}, snapshotOf(t, s))) {
			sum += e.body.(*cells).windows[0].value
		}
		if sum != 3*saveAtOnce*counter.One {
			t.Errorf("the sum is %v; a call was torn", sum)
		}
	}
	close(stop)
	all.Wait()
}

func TestRestoreNeedsAnEmptyStore(t *testing.T) {
	s, clock := used(t)
	snapshot := snapshotOf(t, s)
	if err := s.Restore(bytes.NewReader(snapshot)); err == nil || !strings.Contains(err.Error(), "has been used already") {
		t.Errorf("Restore = %v", err)
	}
	wantSame(t, s, restored(t, Options{Clock: clock.Now}, snapshot))
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestSnapshotReportsTheWriter(t *testing.T) {
	s, _ := used(t)
	for _, after := range []int{0, len(snapshotOf(t, s)) - 1} {
		if err := s.Snapshot(&failing{after}); err == nil || err.Error() != "counter: writing the snapshot: disk full" {
			t.Errorf("after %d bytes: %v", after, err)
		}
	}
}

var update = flag.Bool("update", false, "write testdata/version3.snapshot again")

// What was written in version 3 is read, with members that it knows.
func TestVersion3(t *testing.T) {
	const file = "testdata/version3.snapshot"
	s, clock := used(t)
	useMore(t, s)
	if *update {
		if err := os.WriteFile(file, snapshotOf(t, s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s = restored(t, Options{Clock: clock.Now}, kept)
	if got := include(t, s, counter.Key{Name: "d", Window: counter.Year, Distinct: true}, 0, 4); got != counter.Whole(4) {
		t.Errorf("with one more member there are %v, want 4", got)
	}
	times, err := s.Distributions(t.Context(), 1, counter.Key{Name: "ms", Window: counter.Day})
	if err != nil || times[0][0].Count != 3 || times[0][0].Quantile(0.5) != 2 || times[0][0].Max != counter.One {
		t.Errorf("%+v, %v", times, err)
	}
	if n, err := s.Get(t.Context(), counter.Key{Name: "k", Window: counter.Month}); err != nil || n[0] != counter.One {
		t.Errorf("%v, %v", n, err)
	}
}

// A snapshot that an earlier weir has written is read: the format is as it was. If it has to
// change, so has its version.
func TestEarlierSnapshot(t *testing.T) {
	earlier, err := os.ReadFile("testdata/earlier.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	s, clock := used(t)
	wantSame(t, restored(t, Options{Clock: clock.Now}, earlier), s)
}
