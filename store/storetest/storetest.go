// Package storetest is a test suite that every implementation of weir.Store must pass:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Subject {
//			var now atomic.Int64
//			store := mystore.New(mystore.WithClock(now.Load))
//			return storetest.Subject{Store: store, Set: func(m weir.Micros) { now.Store(int64(m)) }}
//		})
//	}
//
// Each time the store must be empty and must use the time given to Set. It may drop a
// key that has been fully reset for 10 seconds or more.
package storetest

import (
	"path"
	"strings"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/traffic/scenario"
)

// Subject is an empty store with a settable clock.
type Subject struct {
	Store weir.Store
	Set   func(now weir.Micros)
}

// Open returns a new subject.
type Open func(t *testing.T) Subject

// Run runs the whole suite.
func Run(t *testing.T, open Open) {
	t.Run("Scenarios", func(t *testing.T) { testScenarios(t, open) })
	t.Run("Model", func(t *testing.T) { testModel(t, open) })
	t.Run("ExactlyN", func(t *testing.T) { testExactlyN(t, open) })
	t.Run("InFlight", func(t *testing.T) { testInFlight(t, open) })
	t.Run("AllOrNone", func(t *testing.T) { testAllOrNone(t, open) })
	t.Run("Expiry", func(t *testing.T) { testExpiry(t, open) })
	t.Run("Cancelled", func(t *testing.T) { testCancelled(t, open) })
	t.Run("Keys", func(t *testing.T) { testKeys(t, open) })
	t.Run("BadOps", func(t *testing.T) { testBadOps(t, open) })
	t.Run("Appends", func(t *testing.T) { testAppends(t, open) })
}

func testScenarios(t *testing.T, open Open) { playScenarios(t, open, false) }

// playScenarios plays those that have holds, or those that have none.
func playScenarios(t *testing.T, open Open, holds bool) {
	for _, script := range testkit.Must(scenario.Cases())(t) {
		if script.Holds() != holds {
			continue
		}
		t.Run(path.Base(script.Name), func(t *testing.T) {
			if err := script.Run(t.Context(), scenario.Subject(open(t))); err != nil {
				t.Error(err)
			}
		})
	}
}

// limits is one limit for each algorithm and option, all of capacity n.
func limits(t *testing.T, n string) []*weir.Compiled {
	t.Helper()
	var all []*weir.Compiled
	for _, s := range []string{
		"fixed_window N/1m", "fixed_window N/1m count_denied", "N/hour zone Asia/Kolkata", "N/month starts 31",
		"sliding_window N/1m", "sliding_window N/1m count_denied",
		"sliding_buckets N/1m", "sliding_buckets N/1m buckets 7 count_denied",
		"sliding_log N/1m", "sliding_log N/1m count_denied", "in_flight N/1m",
		"token_bucket N/1m", "token_bucket 7/1m burst N",
		"leaky_bucket N/1m", "leaky_bucket 7/1m burst N shape",
	} {
		all = append(all, weir.MustCompile(strings.ReplaceAll(s, "N", n)))
	}
	return all
}
