package countertest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit"
)

// An item turns hot with the hit that reaches the threshold, and cools when enough hits
// have left the window. Each is told once.
func testTurns(b *table) {
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 3}
	b.hot(list)
	begin := b.events(list, counter.Latest).Next
	heats := testkit.Must(b.Store.Hit(b.t.Context(), list, "a", "b", "a", "c", "a", "b"))(b.t)
	b.equal("Hit", heats, []counter.Heat{
		{Item: "a", Hits: 3, Hot: true, Since: b.now, Turned: true}, {Item: "b", Hits: 2}, {Item: "a", Hits: 3, Hot: true, Since: b.now},
		{Item: "c", Hits: 1}, {Item: "a", Hits: 3, Hot: true, Since: b.now}, {Item: "b", Hits: 2},
	})
	first := b.now
	b.pass(time.Second)
	b.equal("Turned", b.hit(list, "b").Turned, true)
	b.hit(list, "b")
	b.equal("Hot", b.hot(list, "b", "a"), []counter.Heat{{Item: "b", Hits: 4, Hot: true, Since: b.now}, {Item: "a", Hits: 3, Hot: true, Since: first}})
	if two, err := b.Store.Hot(b.t.Context(), list, 1); err != nil || len(two) != 1 || two[0].Item != "b" {
		b.t.Errorf("Hot = %+v, %v", two, err)
	}
	got := b.events(list, begin, "+a", "+b")
	b.equal("the first event", got.Events[0], counter.Event{ID: got.Events[0].ID, Item: "a", Hot: true, Hits: 3, At: first})
	b.events(list, got.Events[0].ID, "+b")
	b.events(list, got.Next)
	if got.Missed || got.Next != got.Events[1].ID {
		b.t.Errorf("%+v", got)
	}
	b.pass(62 * time.Second)
	b.hit(list, "b") // the first two hits on it, and all on a, are gone
	got = b.events(list, got.Next, "-a", "-b")
	b.equal("an event", got.Events[0], counter.Event{ID: got.Events[0].ID, Item: "a", Hits: 0, At: b.now})
	b.hot(list)
	b.events(list, got.Next)
}

// Between the two numbers an item stays what it is.
func testHysteresis(b *table) {
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 4, Cool: 2}
	b.hit(list, "a")
	b.hit(list, "a")
	b.pass(30 * time.Second)
	b.hit(list, "a")
	b.events(list, 0)
	b.hit(list, "a")
	b.events(list, 0, "+a")
	b.pass(33 * time.Second)
	b.hot(list, "a")
	b.equal("Hits", b.hot(list, "a")[0].Hits, int64(2))
	b.hit(list, "a")
	b.pass(30 * time.Second)
	b.hot(list)
	b.events(list, 0, "+a", "-a")
	b.hit(list, "a")
	b.hit(list, "a")
	b.hot(list) // three are enough to stay, but not to turn
}

// A threshold that is changed is in force at once.
func testNewThreshold(b *table) {
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 10}
	for i, item := range []string{"a", "b", "c"} {
		for range 2 * (i + 1) {
			b.hit(list, item)
		}
	}
	b.hot(list)
	list.Threshold = 4
	b.hot(list, "c", "b")
	b.events(list, 0, "+c", "+b")
	list.Threshold = 5
	b.hit(list, "a")
	b.hot(list, "c")
	b.events(list, 0, "+c", "+b", "-b")
}

// A list that is full drops the lowest, and those that were hot have cooled.
func testHotRoom(b *table) {
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 2}
	for i := range 16 {
		item := fmt.Sprintf("i%02d", i)
		b.hit(list, item)
		b.hit(list, item)
	}
	b.hit(list, "i15")
	heats, err := b.Store.Hit(b.t.Context(), list, "new", "new", "new")
	if err != nil || heats[0].Hits != 3 || !heats[0].Turned {
		b.t.Fatalf("Hit = %+v, %v", heats, err)
	}
	got := b.hot(list, "i15", "new", "i00", "i01", "i02", "i03", "i04", "i05", "i06", "i07", "i08", "i09", "i10", "i11")
	if len(got) != 14 {
		b.t.Errorf("%+v", got)
	}
	news, err := b.Store.Events(b.t.Context(), list, 0)
	if err != nil || len(news.Events) != 20 {
		b.t.Fatalf("Events = %+v, %v", news, err)
	}
	for i, want := range []string{"i12", "i13", "i14"} {
		if e := news.Events[16+i]; e.Hot || e.Item != want {
			b.t.Errorf("%+v", e)
		}
	}
	if heat := b.hit(list, "i12"); heat.Hits != 1 || heat.Hot {
		b.t.Errorf("%+v", heat)
	}
}

// Only the latest events are kept, and who missed some is told.
func testManyEvents(b *table) {
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 1}
	for i := range counter.MaxEvents/100 + 1 {
		items := make([]string, 100)
		for j := range items {
			items[j] = fmt.Sprintf("%03d-%03d", i, j)
		}
		testkit.Must(b.Store.Hit(b.t.Context(), list, items...))(b.t)
	}
	news, err := b.Store.Events(b.t.Context(), list, 0)
	if err != nil || len(news.Events) != counter.MaxEvents || !news.Missed || news.Events[0].Item != "001-000" {
		b.t.Fatalf("%d events from %+v, missed %v, %v", len(news.Events), news.Events[0], news.Missed, err)
	}
	again, err := b.Store.Events(b.t.Context(), list, news.Events[0].ID-1)
	if err != nil || len(again.Events) != counter.MaxEvents || again.Missed {
		b.t.Errorf("%d events, missed %v, %v", len(again.Events), again.Missed, err)
	}
}

// A list without calls is dropped, but the numbers of its events still grow afterwards.
func testForgotten(b *table) {
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 1}
	b.hit(list, "a")
	last := b.events(list, 0, "+a").Next
	b.pass(counter.EventsKept)
	b.hot(list)
	last = b.events(list, last, "-a").Next
	b.pass(counter.EventsKept + time.Minute + 6*time.Second)
	b.equal("Missed", b.events(list, 0).Missed, false)
	b.hit(list, "a")
	b.events(list, last, "+a")
}

// Of many who hit an item, one is told that it turned hot.
func testOnce(b *table) {
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 50}
	var turned atomic.Int64
	b.begin(10, 10, func(int, int) error {
		got, err := b.Store.Hit(b.t.Context(), list, "a")
		if err == nil && got[0].Turned {
			turned.Add(1)
		}
		return err
	})()
	b.equal("how many were told", turned.Load(), int64(1))
	b.events(list, 0, "+a")
}

// Every watcher is told of every event, once and in order.
func testWatch(b *table) {
	list := counter.HotList{Name: "l", Window: time.Minute, Threshold: 1}
	b.hit(list, "before")
	ctx, cancel := context.WithCancel(b.t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	const watchers = 3
	told := make([]chan string, watchers)
	ready := make(chan struct{}, watchers)
	for i := range told {
		told[i] = make(chan string, 100)
		first := sync.OnceFunc(func() { ready <- struct{}{} })
		all.Go(func() {
			store := asked{b.Store, first}
			err := counter.Watch(ctx, store, list, counter.WatchOptions{Every: 5 * time.Millisecond}, func(e counter.Event) {
				told[i] <- fmt.Sprint(e.Hot, " ", e.Item)
			})
			if err != context.Canceled {
				b.t.Errorf("Watch = %v", err)
			}
		})
	}
	for range watchers {
		<-ready
	}
	b.hit(list, "a")
	b.hit(list, "a")
	b.hit(list, "b")
	b.pass(2 * time.Minute) // they find out by themselves that all have cooled
	for i := range told {
		for _, want := range []string{"true a", "true b", "false a", "false b", "false before"} {
			select {
			case got := <-told[i]:
				if got != want {
					b.t.Errorf("watcher %d was told %q, want %q", i, got, want)
				}
			case <-time.After(30 * time.Second):
				b.t.Fatalf("watcher %d was not told %q", i, want)
			}
		}
	}
	cancel()
	all.Wait()
	for i := range told {
		if len(told[i]) != 0 {
			b.t.Errorf("watcher %d was told more: %s", i, <-told[i])
		}
	}
}

// asked is a store that says when its events were asked for.
type asked struct {
	counter.Store
	told func()
}

func (a asked) Events(ctx context.Context, l counter.HotList, after int64) (counter.Events, error) {
	defer a.told()
	return a.Store.Events(ctx, l, after)
}
