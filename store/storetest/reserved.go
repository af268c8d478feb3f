package storetest

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// testHoldReserved: of however many open holds, a denial looks at 64, and counts on these. Those that expire
// last are among them.
func testHoldReserved(t *testing.T, open Open) {
	for _, limit := range limits(t, "200") {
		if l := limit.Limit(); l.Shape || l.CountDenied || l.Algorithm == weir.InFlight {
			continue
		}
		t.Run(limit.Limit().String(), func(t *testing.T) {
			store, subject := holder(t, open)
			op := weir.Op{Key: "k", Limit: limit, Cost: 1}
			for i := range 200 {
				r := weir.Reservation{ID: holdID(uint64(i)), TTL: time.Second}
				if i >= 100 {
					r.TTL = time.Minute
				}
				if !testkit.Must(store.Reserve(t.Context(), nil, r, op))(t)[0].Allowed {
					t.Fatalf("hold %d was denied", i+1)
				}
			}
			deny := func(cost, want int64) {
				t.Helper()
				op.Cost = cost
				d := testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: holdID(200)}, op))(t)[0]
				if d.Allowed || d.Reserved != want {
					t.Errorf("%d units: %+v, want %d reserved", cost, d, want)
				}
			}
			deny(64, 64)
			deny(65, 0)
			subject.Set(start.Add(time.Second)) // half of them have expired
			op.Cost = 0
			free := peek(t, store, op).Remaining
			deny(free+64, 64)
			deny(free+65, 0)
		})
	}
}
