package memory

import (
	"os"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/countertest"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// fake is a clock that tests set.
type fake struct{ now atomic.Int64 }

func (f *fake) Now() weir.Micros    { return weir.Micros(f.now.Load()) }
func (f *fake) Set(now weir.Micros) { f.now.Store(int64(now)) }

func TestSuite(t *testing.T) {
	countertest.Run(t, func(t *testing.T, o countertest.Settings) countertest.Subject {
		var clock fake
		store := New(Options{MaxMembers: o.MaxMembers, Retention: o.Retention, Clock: clock.Now})
		t.Cleanup(func() { checkRoom(t, store) })
		return countertest.Subject{Store: store, Set: clock.Set}
	})
}

// checkRoom compares what the room thinks with what there is.
func checkRoom(t testing.TB, s *Store) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.room
	weight, linked := 0, 0
	for id, e := range r.entries {
		weight += e.body.weight()
		if e.id != id || r.byExpiry[e.index] != e {
			t.Errorf("%+v is out of place", id)
		}
	}
	for e := r.oldest; e != nil; e = e.newer {
		linked++
		if e.newer == nil && e != r.newest || e.newer != nil && e.newer.older != e {
			t.Errorf("%+v is not linked well", e.id)
		}
	}
	if weight != r.weight || linked != len(r.entries) || len(r.byExpiry) != len(r.entries) {
		t.Errorf("%d entries, %d linked, %d by expiry; they weigh %d, and it thinks %d", len(r.entries), linked, len(r.byExpiry), weight, r.weight)
	}
}
