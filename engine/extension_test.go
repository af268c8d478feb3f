package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// Holds that are served are extended when half of their time has passed, whichever was first, and
// as long as they are served.
func TestExtensions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saw := new(watcher)
		clock := func() weir.Micros { return weir.MicrosOf(time.Now()) }
		e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{Clock: clock}), Clock: clock, Observers: []engine.Observer{saw}}))(t)
		e.Install(table(t, "rules: [{id: login, key: user, limit: 100/1h, count: {status: [401]}}]"), 1)
		gate := testkit.Must(engine.NewGate(e, 0, nil))(t)
		serve := func(ttl time.Duration) *engine.Hold {
			var v engine.Verdict
			var d engine.Denial
			if ok, err := gate.Reserve(t.Context(), &alice, ttl, &v, &d); !ok || err != nil {
				t.Fatal(ok, err)
			}
			return gate.Serve(&alice, ttl, &v)
		}
		expect := func(when string, want map[string]int) {
			t.Helper()
			synctest.Wait()
			got := map[string]int{}
			for _, kind := range saw.saw() {
				got[kind]++
			}
			for kind := range want {
				if got[kind] != want[kind] {
					t.Errorf("%s: %v, want %v", when, got, want)
				}
			}
		}
		end := func(h *engine.Hold) { h.End(&rule.Response{Status: 200}, nil) }

		long := serve(10 * time.Second)
		time.Sleep(time.Second)
		short := serve(2 * time.Second)
		for range 100 {
			end(serve(2 * time.Second))
		}
		time.Sleep(9500 * time.Millisecond)
		expect("after 10.5 s", map[string]int{"extended": 2 + 9, "settled": 100})
		end(short)
		time.Sleep(5 * time.Second)
		expect("after 15.5 s", map[string]int{"extended": 3 + 9, "settled": 101})
		end(long)
		time.Sleep(time.Hour)
		expect("at the end", map[string]int{"extended": 3 + 9, "settled": 102, "expired": 0})

		last := serve(10 * time.Second) // the timer runs no more
		time.Sleep(6 * time.Second)
		expect("again", map[string]int{"extended": 3 + 9 + 1})
		end(last)
	})
}
