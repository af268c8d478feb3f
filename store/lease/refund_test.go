package lease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// A refund of what was decided here goes back to the lease if the store does not know of it, and otherwise to the store.
func TestRefund(t *testing.T) {
	for _, text := range []string{"fixed_window 1000/1h", "token_bucket 1000/1h", "sliding_window 1000/1h", "sliding_log 1000/1h", "sliding_buckets 1000/1h"} {
		synctest.Test(t, func(t *testing.T) {
			limit := weir.MustCompile(text)
			s, n := opened(t, time.Millisecond)
			warm(t, s, "k", limit)
			refund := func(d weir.Decision) {
				t.Helper()
				testkit.OK(t, s.Refund(t.Context(), weir.Op{Key: "k", Limit: limit, Cost: 1, Receipt: d.Receipt}))
			}
			total := func() int64 { return remaining(t, s, limit) } // with what is leased here

			before, calls := total(), n.calls.Load()
			local := take(t, s, "k", limit, 1)
			if local.Receipt < localReceipt || local.Receipt == weir.Latest {
				t.Fatalf("%+v", local)
			}
			refund(local)
			if total() != before || n.calls.Load() != calls {
				t.Errorf("%s: %d remain after a refund, want %d; %d calls", text, total(), before, n.calls.Load()-calls)
			}

			// One that was reported: it comes back once it is known with which receipt.
			local = take(t, s, "k", limit, 1)
			for range 300 {
				take(t, s, "k", limit, 1)
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
			before = total()
			refund(local)
			if got := total(); got != before+1 {
				t.Errorf("%s: %d remain after a refund of what was reported, want %d: %+v", text, got, before+1, s.Stats())
			}

			// One of the store.
			var asked weir.Decision
			for asked = take(t, s, "k", limit, 1); asked.Receipt >= localReceipt; asked = take(t, s, "k", limit, s.Stats().Leased+1) {
			}
			if asked.Receipt == 0 {
				t.Fatalf("%+v", asked)
			}

			// What is forgotten, unknown or of another process gives nothing back.
			testkit.OK(t, s.Close(t.Context()))
			before = remaining(t, n, limit)
			for _, r := range []weir.Receipt{local.Receipt, localReceipt, weir.Latest - 1} {
				testkit.OK(t, s.Refund(t.Context(), weir.Op{Key: "k", Limit: limit, Cost: 1, Receipt: r}))
			}
			if got := remaining(t, n, limit); got != before {
				t.Errorf("%s: %d remain after refunds of nothing, want %d", text, got, before)
			}
		})
	}
}

// Latest gives back what was spent here last, and then what the store has.
func TestRefundLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, time.Millisecond)
		taken := warm(t, s, "k", hourly)
		take(t, s, "k", hourly, 2)
		testkit.OK(t, s.Refund(t.Context(), weir.Op{Key: "k", Limit: hourly, Cost: taken + 1, Receipt: weir.Latest}))
		if got := remaining(t, s, hourly); got != 999 {
			t.Errorf("%d remain, want 999", got)
		}
	})
}

// Refunds do not make units of nothing, whatever is spent, reported and given back in between.
func TestRefundOfABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := weir.MustCompile("token_bucket 100/1h burst 500")
		s, n := opened(t, time.Millisecond)
		warm(t, s, "k", limit)
		var receipts []weir.Receipt
		for i := range 200 {
			d := take(t, s, "k", limit, 1)
			if i%3 == 0 {
				receipts = append(receipts, d.Receipt)
			}
			time.Sleep(time.Duration(i) * time.Millisecond)
		}
		before := remaining(t, s, limit)
		for _, r := range receipts {
			testkit.OK(t, s.Refund(t.Context(), weir.Op{Key: "k", Limit: limit, Cost: 1, Receipt: r}))
		}
		got := remaining(t, s, limit)
		if got <= before || got > before+int64(len(receipts)) || got > 500 {
			t.Errorf("%d remain after %d refunds, %d before", got, len(receipts), before)
		}
		testkit.OK(t, s.Close(t.Context()))
		if out := n.Account("k", limit).Out; out != 0 {
			t.Errorf("%d on lease", out)
		}
	})
}
