package storetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// RunFullHolds plays histories with clients that use up the open holds of a key. The store must
// be a [weir.HoldStore], of which a key can have only so many.
func RunFullHolds(t *testing.T, open Open, most int) {
	for _, limit := range releasing(t, limits(t, "300")) { // under others, holds that have expired may count until they are looked at
		t.Run(limit.Limit().String(), func(t *testing.T) { fullHistory(t, open, []*weir.Compiled{limit}, 0, 400, most) })
	}
	t.Run("Shares", func(t *testing.T) { testHoldShares(t, open, most) })
	t.Run("several limits", func(t *testing.T) { fullHistory(t, open, releasing(t, limits(t, "300")), 0, 1200, most) })
}

// RunManyHolds plays histories that begin with 10,000 open holds on one key, each under another limit, which is drawn. Nothing is denied,
// because at which of the holds a denial looks is the store's. The store must be a [weir.HoldStore].
func RunManyHolds(t *testing.T, open Open, histories int) {
	all := []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_buckets", "sliding_log"}
	for _, i := range rand.Perm(len(all))[:histories] {
		limit := weir.MustCompile(all[i] + " 100000/40m release")
		t.Run(all[i], func(t *testing.T) { fullHistory(t, open, []*weir.Compiled{limit}, 10_000, 150, weir.MaxHolds) })
	}
}

// testHoldShares: clients that settle nothing leave room for another one, and when their holds have expired,
// they have their shares again.
func testHoldShares(t *testing.T, open Open, most int) {
	store, subject := holder(t, open)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("1000000/1h"), Cost: 1}
	made := 0
	reserve := func(client uint32) weir.Decision {
		made++
		r := weir.Reservation{ID: holdID(uint64(made)), TTL: time.Duration(1000-made) * time.Second, Client: client}
		if client == 0 {
			r.TTL = time.Minute // these expire first
		}
		return testkit.Must(store.Reserve(t.Context(), nil, r, op))(t)[0]
	}
	for range most / 2 {
		if d := reserve(0); !d.Allowed {
			t.Fatalf("hold %d: %+v", made, d)
		}
	}
	for client := uint32(1); client <= 3; client++ {
		own := 0
		for d := reserve(client); ; d = reserve(client) {
			if !d.Allowed {
				if own == 0 || client == 1 && !d.AtShare || d.RetryAfter != time.Minute || d.Remaining != d.Limit-int64(made)+int64(client) {
					t.Errorf("client %d with %d holds: %+v", client, own, d)
				}
				break
			}
			own++
		}
	}
	subject.Set(start.Add(time.Hour - time.Second))
	if d := reserve(1); !d.Allowed {
		t.Errorf("when all have expired: %+v", d)
	}
}

// fewestHolds is how many a key of any store may have.
const fewestHolds = 1000

// testHoldFull: a key has a bounded number of holds, and says when there is room again.
func testHoldFull(t *testing.T, open Open) {
	store, subject := holder(t, open)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("1000000/1h"), Cost: 1}
	first, most := weir.Reservation{ID: holdID(0), TTL: 100 * time.Second}, int64(0)
	for r := first; testkit.Must(store.Reserve(t.Context(), nil, r, op))(t)[0].Allowed; most++ {
		r.ID, r.TTL = holdID(uint64(most+1)), time.Duration(101+most%900)*time.Second
	}
	if most < fewestHolds || most > weir.MaxHolds {
		t.Fatalf("a key has %d holds", most)
	}
	other := op
	other.Key = "other"
	more := weir.Reservation{ID: holdID(1 << 20)}
	d := testkit.Must(store.Reserve(t.Context(), nil, more, other, op))(t)
	if d[1].Allowed || d[1].RetryAfter != 100*time.Second || !d[0].Allowed || d[0].Receipt != 0 {
		t.Errorf("one too many: %+v", d)
	}
	if s := settleZero(t, store, 1<<20); s.State != weir.HoldUnknown {
		t.Errorf("a denied reservation made a hold: %+v", s)
	}
	if d := take(t, store, op); !d.Allowed {
		t.Errorf("what needs no hold was denied: %+v", d)
	}
	op.Final = true
	d = testkit.Must(store.Reserve(t.Context(), nil, more, op, other))(t)
	if !weir.Allowed(d) || d[0].Receipt == 0 {
		t.Errorf("what is final was denied: %+v", d)
	}
	used := func(op weir.Op, want int64) {
		t.Helper()
		if d := peek(t, store, op); d.Limit-d.Remaining != want {
			t.Errorf("%d units of %q are used, want %d", d.Limit-d.Remaining, op.Key, want)
		}
	}
	used(op, most+2)
	used(other, 1)
	if s := settleZero(t, store, 1<<20); s.State != weir.HoldSettled || len(s.Parts) != 1 {
		t.Errorf("a hold beside what is final: %+v", s)
	}
	used(op, most+2)
	used(other, 0)
	op.Receipt = d[0].Receipt
	testkit.OK(t, store.Refund(t.Context(), op))
	used(op, most+1)
	more.ID, op.Final, op.Receipt = holdID(2<<20), false, 0
	subject.Set(start.Add(100 * time.Second))
	if d := testkit.Must(store.Reserve(t.Context(), nil, more, op))(t); !d[0].Allowed {
		t.Errorf("after the first has expired: %+v", d)
	}
}
