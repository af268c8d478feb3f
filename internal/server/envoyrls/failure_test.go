package envoyrls

import (
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

const failing = `
domain: d
descriptors:
  - {key: open, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: closed, on_failure: closed, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: local, on_failure: local, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: error, on_failure: error, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: closes, on_failure: {local: 60s, then: closed}, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: errs, on_failure: {local: 60s, then: error}, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: shadow, shadow_mode: true, on_failure: closed, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: none, rate_limit: {unit: day, requests_per_unit: 0}}
`

// While the store is unavailable, on_failure of each descriptor applies, and no call
// waits.
func TestFailure(t *testing.T) {
	for _, counting := range []bool{false, true} {
		b := newBench(t, failing, Options{CountDenied: counting, DynamicMetadata: true})
		b.lost.Store(true)
		b.run(t,
			step{request("open=a"), "ok | ok 0"},
			step{request("open=a x5"), "ok | ok 0"},
			step{request("closed=a"), "over | over 0 of 2/day"},
			step{request("closed=a x0"), "over | over 0 of 2/day"},
			step{request("open=a", "closed=a"), "over | ok 0 | over 0 of 2/day"},
			step{request("error=a"), "Unavailable"},
			step{request("open=a", "error=a"), "Unavailable"},
			step{request("error=a x0"), "Unavailable"},
			step{request("local=a"), "ok | ok 1 of 2/day in 86399s"},
			step{request("local=a"), "ok | ok 0 of 2/day in 86399s"},
			step{request("local=a"), "over | over 0 of 2/day in 86399s"},
			step{request("closes=a"), "ok | ok 1 of 2/day in 86399s"},
			step{request("errs=a"), "ok | ok 1 of 2/day in 86399s"},
			step{request("shadow=a"), "ok | ok 0"},
			step{request("none=a"), "over | over 0 of 0/day in 86399s"},
			step{request("unknown=a"), "ok | ok 0"})
		r, err := b.ShouldRateLimit(t.Context(), request("open=a"))
		if err != nil || !r.DynamicMetadata.Fields["degraded"].GetBoolValue() {
			t.Errorf("%v, %v", r, err)
		}
		b.wait(time.Minute)
		b.run(t,
			step{request("closes=a"), "over | over 0 of 2/day"},
			step{request("closes=a x0"), "over | over 0 of 2/day"},
			step{request("errs=a"), "Unavailable"},
			step{request("open=a", "errs=a"), "Unavailable"})
		b.lost.Store(false)
		b.run(t, step{request("open=a"), "ok | ok 1 of 2/day in 86339s"})
		if r, err = b.ShouldRateLimit(t.Context(), request("open=b")); err != nil || r.DynamicMetadata.Fields["degraded"] != nil {
			t.Errorf("%v, %v", r, err)
		}
	}
}

// A request takes little memory: what is answered, and no more.
func TestAllocations(t *testing.T) {
	if testkit.Race {
		t.Log("the race detector allocates, too; this is checked without it")
		return
	}
	b := newBench(t, "domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1000000}}]", Options{})
	one, three := request("k=a"), request("k=a", "k=b", "other=c")
	for _, c := range []struct {
		name string
		most float64
		ask  func()
	}{
		{"one descriptor", 1, func() { b.ShouldRateLimit(t.Context(), one) }},
		{"three descriptors", 3, func() { b.ShouldRateLimit(t.Context(), three) }},
	} {
		if n := testing.AllocsPerRun(500, c.ask); n > c.most {
			t.Errorf("%s: %v allocations, at most %v are wanted", c.name, n, c.most)
		}
	}
}
