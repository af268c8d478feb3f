package weir_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

// street is places by the definition alone: until when each request has one.
type street map[int]weir.Micros

func (s street) taken(now weir.Micros) (n int64) {
	for _, until := range s {
		if until > now {
			n++
		}
	}
	return n
}

// freeIn is how long it takes until cost places are free, if no request ends.
func (s street) freeIn(now weir.Micros, n, cost int64) time.Duration {
	first := weir.Never
	for _, until := range s {
		if until > now && n-s.taken(until) >= cost {
			first = min(first, until.Sub(now))
		}
	}
	return first
}

// Whatever requests begin, go on, end and die: one more begins exactly if fewer than N are in
// flight, and is told when enough places are free.
func TestInFlightAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, period := rapid.Int64Range(1, 6).Draw(t, "n"), weir.Micros(rapid.Int64Range(1, 40).Draw(t, "ttl"))
		limit, err := weir.Concurrent(n, time.Duration(period)*time.Microsecond).Compile()
		if err != nil {
			t.Fatal(err)
		}
		k, places, receipts := key{limit: limit}, street{}, map[int]weir.Receipt{}
		now := weir.Micros(1_767_225_600_000_000)
		for request := range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += weir.Micros(rapid.Int64Range(0, 1+int64(period)/2).Draw(t, "later"))
			other := rapid.IntRange(0, max(0, request-1)).Draw(t, "request")
			_, running := places[other]
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case running && what == 0:
				k.refund(receipts[other], 1)
				delete(places, other)
			case running && what == 1:
				k.refund(receipts[other], 1)
				fits := places.taken(now) <= n && (places[other] > now || places.taken(now) < n)
				d := k.charge(now, 1)
				places[other], receipts[other] = now+period, d.Receipt
				if d.Allowed != fits || d.Excess != 0 {
					t.Fatalf("renewed at %d: %+v, of %v", now, d, places)
				}
			default:
				cost := rapid.Int64Range(1, n).Draw(t, "cost")
				taken := places.taken(now)
				if d := k.peek(now, cost); d.Allowed != (taken+cost <= n) || d.Remaining != max(0, n-taken) {
					t.Fatalf("peek %d at %d: %+v, of %v", cost, now, d, places)
				} else if !d.Allowed && d.RetryAfter != places.freeIn(now, n, cost) {
					t.Fatalf("peek %d at %d: retry after %v, want %v", cost, now, d.RetryAfter, places.freeIn(now, n, cost))
				}
				if d := k.take(now, 1); d.Allowed != (taken < n) {
					t.Fatalf("take at %d: %+v, of %v", now, d, places)
				} else if d.Allowed {
					places[request], receipts[request] = now+period, d.Receipt
				}
			}
		}
	})
}

func TestLimiterRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, ctx := newLimiter(t, "in_flight 1/1m"), t.Context()
		place, err := limiter.Take(ctx, "api", 1)
		if err != nil || !place.Allowed {
			t.Fatalf("taken: %+v, %v", place, err)
		}
		for range 5 {
			time.Sleep(40 * time.Second)
			if ok, err := limiter.Allow(ctx, "api"); ok || err != nil {
				t.Fatalf("a second one was allowed: %v, %v", ok, err)
			}
			if place, err = limiter.Renew(ctx, "api", place.Receipt); err != nil || !place.Allowed {
				t.Fatalf("renewed: %+v, %v", place, err)
			}
		}
		if err := limiter.Refund(ctx, "api", 1, place.Receipt); err != nil {
			t.Error(err)
		}
		if ok, err := limiter.Allow(ctx, "api"); !ok || err != nil {
			t.Errorf("after the end: %v, %v", ok, err)
		}
	})
}

func TestOnlyPlacesAreRenewed(t *testing.T) {
	limiter := newLimiter(t, "5/1m")
	var invalid *weir.InvalidError
	d, _ := limiter.Take(t.Context(), "k", 1)
	if _, err := limiter.Renew(t.Context(), "k", d.Receipt); !errors.As(err, &invalid) || invalid.Field != "receipt" {
		t.Errorf("a token was renewed: %v", err)
	}
	if _, err := limiter.Renew(t.Context(), "k", 0); !errors.As(err, &invalid) || invalid.Field != "receipt" {
		t.Errorf("nothing was renewed: %v", err)
	}
	place := weir.Op{Key: "k", Limit: weir.MustCompile("in_flight 5/1m"), Cost: 1, Always: true, Receipt: 7}
	other := place
	other.Receipt = 0
	if err := weir.ValidateTake([]weir.Op{place, other}); !errors.As(err, &invalid) || invalid.Field != "receipt" {
		t.Errorf("one of two is renewed: %v", err)
	}
}
