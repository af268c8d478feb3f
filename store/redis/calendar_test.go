package redis

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// Limits that differ only in where their periods end share their states, in any order.
func TestPeriodsThatMove(t *testing.T) {
	client := connect(t)
	var limits []*weir.Compiled
	for _, text := range []string{"5/month", "5/month starts 15", "7/month zone Pacific/Kiritimati starts 31", "3/month zone America/Havana count_denied"} {
		limits = append(limits, weir.MustCompile(text))
	}
	compareHistories(t, client, limits, 600, 2*limits[0].Numbers().Period)
}

// The clock of Redis decides, however wrong this machine's is: a call that brings the wrong
// periods has no effect but to be asked again.
func TestClockOfAnotherPeriod(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{})
	month, day := weir.MustCompile("3/month zone Asia/Shanghai starts 31"), weir.MustCompile("3/day zone Europe/Berlin")
	bucket := weir.MustCompile("token_bucket 100/1m")
	for key, off := range map[string]time.Duration{"right": 0, "a day": 25 * time.Hour, "behind": -weir.Year, "far": 30 * weir.Year, "epoch": -80 * weir.Year} {
		s.guess = func() weir.Micros { return max(0, weir.MicrosOf(time.Now().Add(off))) }
		for i, ops := range [][]weir.Op{
			{{Key: key, Limit: month, Cost: 1}},
			{{Key: key, Limit: month, Cost: 1}, {Key: key, Limit: bucket, Cost: 1}, {Key: key, Limit: day, Cost: 1}},
		} {
			before := weir.MicrosOf(time.Now())
			got, err := s.Take(t.Context(), nil, ops...)
			if err != nil || !weir.Allowed(got) {
				t.Fatalf("%s: %+v, %v", key, got, err)
			}
			for j, op := range ops {
				// A period may end while this runs.
				first, ok := op.Limit.Periods(before)
				last, _ := op.Limit.Periods(weir.MicrosOf(time.Now()))
				if ok && got[j].ResetAt != first[2] && got[j].ResetAt != last[2] {
					t.Errorf("%s: %v ends %v, want %v", key, op.Limit.Limit(), got[j].ResetAt.Time(), first[2].Time())
				}
			}
			if want := int64(2 - i); got[0].Remaining != want && got[0].ResetAt == func() weir.Micros { b, _ := month.Periods(before); return b[2] }() {
				t.Errorf("%s: %d remain of a quota of 3, want %d", key, got[0].Remaining, want)
			}
		}
	}
}

// Holds of calendar quotas, one at a time and with others, by a clock that is far off.
func TestHoldsOfAnotherPeriod(t *testing.T) {
	s := storeOn(t, connect(t), Options{})
	s.guess = func() weir.Micros { return 0 }
	month, bucket := weir.MustCompile("10/month"), weir.MustCompile("token_bucket 100/1m")
	for i, ops := range [][]weir.Op{
		{{Key: "a", Limit: month, Cost: 4}},
		{{Key: "b", Limit: month, Cost: 4}, {Key: "b", Limit: bucket, Cost: 4}},
	} {
		id := weir.HoldID{byte(i + 1)}
		if got, err := s.Reserve(t.Context(), nil, weir.Reservation{ID: id}, ops...); err != nil || !weir.Allowed(got) {
			t.Fatalf("%+v, %v", got, err)
		}
		used := func(string, int64) int64 { return 6 }
		if got, err := s.Settle(t.Context(), weir.Settlement{ID: id, Used: used}); err != nil || got.State != weir.HoldSettled {
			t.Fatalf("%+v, %v", got, err)
		}
		got, err := s.Peek(context.Background(), nil, ops[0])
		if b, _ := month.Periods(weir.MicrosOf(time.Now())); err != nil || got[0].Remaining != 4 && got[0].ResetAt == b[2] {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
