package memory

import (
	"bytes"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// A hold on a calendar quota survives a restart: what it is charged beyond its reservation
// is in a period of its zone.
func TestHoldOfAMonthSurvives(t *testing.T) {
	s, clock := open(0)
	clock.Set(weir.MicrosOf(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)))
	month := weir.MustCompile("10/month zone Asia/Shanghai starts 15")
	op := weir.Op{Key: "k", Limit: month, Cost: 2}
	hold := weir.HoldID{1}
	if d, err := s.Reserve(t.Context(), nil, weir.Reservation{ID: hold, TTL: 24 * time.Hour}, op); err != nil || !weir.Allowed(d) {
		t.Fatal(d, err)
	}
	var saved bytes.Buffer
	if err := s.Snapshot(&saved); err != nil {
		t.Fatal(err)
	}
	again := restored(t, clock, saved.Bytes())
	if err := again.Reset(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	used := func(string, int64) int64 { return 7 }
	if got, err := again.Settle(t.Context(), weir.Settlement{ID: hold, Used: used}); err != nil || got.State != weir.HoldSettled {
		t.Fatal(got, err)
	}
	got, err := again.Peek(t.Context(), nil, op)
	if want := weir.MicrosOf(time.Date(2026, 2, 14, 16, 0, 0, 0, time.UTC)); err != nil || got[0].Remaining != 5 || got[0].ResetAt != want {
		t.Errorf("%+v, %v; want 5 of 10 left until %v", got, err, want.Time())
	}
}
