package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/engine"
)

// A request keeps its place while it is delayed, however long that takes.
func TestPlaceOfADelayedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlights(t, "rules: [{id: api, key: user, concurrency: 2, hold_ttl: 1s, limit: 1/10s, algorithm: leaky_bucket, burst: 5, shape: true}]", nil)
		first := f.begin(alice)
		begun := make(chan *engine.Hold)
		go func() {
			req := alice
			var v engine.Verdict
			var d engine.Denial
			if ok, err := f.gate.Reserve(t.Context(), &req, time.Minute, &v, &d); err != nil || !ok {
				t.Error("the second is denied", err)
			}
			begun <- f.gate.Serve(&req, time.Minute, &v)
		}()
		for range 8 {
			time.Sleep(time.Second)
			if got := f.left("user:alice"); got[1] != 0 {
				t.Errorf("%v are left while one request is in flight and one is delayed", got)
			}
		}
		second := <-begun
		time.Sleep(10 * time.Second)
		if got := f.left("user:alice"); got[1] != 0 {
			t.Errorf("%v are left while two requests are in flight", got)
		}
		end(first)
		end(second)
		f.mustLeave(5, 2)
	})
}

// It keeps its hold, too, and so gets back what it has not used.
func TestHoldOfADelayedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlights(t, "rules: [{id: api, key: user, limit: 1/1h, algorithm: leaky_bucket, burst: 5, shape: true, count: {status: 500}}]", nil)
		first := f.begin(alice)
		second := f.begin(alice)
		f.mustLeave(4)
		end(second)
		f.mustLeave(5)
		end(first)
	})
}
