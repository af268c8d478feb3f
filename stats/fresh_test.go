package stats

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/stats/archive"
)

// Rankings follow within a second, on every instance, and what is sent again and again is
// counted once.
func TestRankingsFollow(t *testing.T) {
	memory := func(t *testing.T) func() archive.Store {
		a, err := archive.NewMemory(archive.Keep{})
		if err != nil {
			t.Fatal(err)
		}
		return func() archive.Store { return a }
	}
	redis := func(t *testing.T) func() archive.Store {
		server := testredis.Start(t)
		return func() archive.Store {
			a, err := archiveredis.Open(redislink.Given(redisClient(t, server.Addr)), archiveredis.Options{Timeout: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
	}
	for name, open := range map[string]func(*testing.T) func() archive.Store{"memory": memory, "redis": redis} {
		t.Run(name, func(t *testing.T) {
			open := open(t)
			clock, table := newClock(noon.Add(3*time.Second)), tableOf(t, someRules)
			var all []*Recorder
			for range 2 {
				r := newRecorder(t, Options{Archive: open(), Clock: clock.now})
				r.Install(table, 1)
				all = append(all, r)
			}
			v := &engine.Verdict{Results: []engine.Result{{Rule: table.Rules()[0], Asked: true, Key: "user:eve", Decision: weir.Decision{}}}}
			for second := range int64(25) {
				for _, r := range all {
					r.Observe(&alice, v, time.Microsecond)
				}
				clock.advance(time.Second)
				for _, r := range all {
					r.tick(clock.now())
					if !r.sendAll(t.Context()) {
						t.Fatal("it has not arrived")
					}
				}
				for _, r := range all {
					top, err := r.Top(t.Context(), TopQuery{By: ByDenied})
					if want := fmt.Sprintf("[{user:eve %d 0}]", 2*(second+1)); err != nil || fmt.Sprint(top.Keys) != want {
						t.Fatalf("after %d seconds: %v, %v; want %s", second+1, top.Keys, err, want)
					}
				}
			}
			for _, r := range all {
				flush(t, r)
				for window := range LastDay + 1 {
					top, err := r.Top(t.Context(), TopQuery{By: ByDenied, Window: window})
					if err != nil || len(top.Keys) != 1 || top.Keys[0].Count != 50 {
						t.Errorf("%v: %+v, %v", window, top, err)
					}
				}
				c, err := r.Clients(t.Context(), ClientsQuery{From: noon, To: clock.now(), By: ByDenied})
				if err != nil || len(c.Clients) != 1 || fmt.Sprint(c.Clients[0].Values) != "[14 20 16]" {
					t.Errorf("%+v, %v", c, err)
				}
			}
		})
	}
}

// A part that waits is replaced by its next revision, and one that arrived is not taken for
// a later one.
func TestQueueOfRevisions(t *testing.T) {
	q := queue{most: 100}
	part := func(id string, revision int64) *archive.Part { return &archive.Part{ID: id, Revision: revision} }
	q.put(part("a", 1), 0)
	q.put(part("b", 0), 0)
	sending := q.first()
	q.put(part("a", 2), 0)
	if n := len(q.first()); n != 2 {
		t.Errorf("%d wait", n)
	}
	q.sent(sending)
	if left := q.first(); len(left) != 1 || left[0].ID != "a" || left[0].Revision != 2 {
		t.Errorf("%+v wait", left)
	}
}
