package memory

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// A settlement gives back first what has expired on its key.
func TestSettleAfterWhatExpired(t *testing.T) {
	s, clock := open(0)
	l := weir.MustParseLimit("fixed_window 10/1d")
	l.Release = true
	limit := testkit.Must(l.Compile())(t)
	long := weir.Reservation{ID: weir.HoldID{1}, TTL: time.Hour}
	testkit.Must(s.Reserve(t.Context(), nil, long, weir.Op{Key: "k", Limit: limit, Cost: 1}))(t)
	reserve(t, s, 2, weir.Op{Key: "k", Limit: limit, Cost: 5}, false) // for a minute
	clock.Pass(weir.Micros((2 * time.Minute).Microseconds()))
	if done := settle(t, s, long.ID, 200); done.Parts[0].Excess != 200-limit.MaxUsage() {
		t.Errorf("%+v, with at most %d units in use", done, limit.MaxUsage())
	}
}

// What a settlement gives back of a bucket is no more that of later holds. Of these, what has drained
// does not come back.
func TestSettleBesideOtherHolds(t *testing.T) {
	s, clock := open(0)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("token_bucket 10/10s"), Cost: 5}
	first, second := reserve(t, s, 1, op, false), reserve(t, s, 2, op, false)
	settle(t, s, first, 0)
	clock.Pass(3_000_000)
	op.Cost = 1
	testkit.Must(s.Take(t.Context(), nil, op))(t)
	settle(t, s, second, 0)
	if d := testkit.Must(s.Peek(t.Context(), nil, op))(t); d[0].Remaining != 9 {
		t.Errorf("%d remain", d[0].Remaining)
	}
}

// If Used panics, the hold stays open, and can be settled.
func TestSettlePanics(t *testing.T) {
	s, _ := open(0)
	id := reserve(t, s, 1, weir.Op{Key: "k", Limit: weir.MustCompile("10/1h"), Cost: 5}, false)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller")
			}
		}()
		s.Settle(t.Context(), weir.Settlement{ID: id, Used: func(string, int64) int64 { panic("no usage") }})
	}()
	if !s.core.Load().holdShard(&id).mu.TryLock() {
		t.Fatal("the shard is locked")
	}
	s.core.Load().holdShard(&id).mu.Unlock()
	if done := settle(t, s, id, 2); done.State != weir.HoldSettled || done.Repeated || done.Parts[0].Used != 2 {
		t.Errorf("%+v", done)
	}
}
