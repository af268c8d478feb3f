package engine

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// lost is a store that can be unavailable when a hold is settled.
type lost struct {
	*memory.Store
	now atomic.Bool
}

func (l *lost) Settle(ctx context.Context, s weir.Settlement) (weir.Settled, error) {
	if l.now.Load() {
		return weir.Settled{}, errors.New("unavailable")
	}
	return l.Store.Settle(ctx, s)
}

// The memory of a hold is used again only when nobody needs it, and then knows nothing.
func TestFree(t *testing.T) {
	const counts = "rules: [{id: login, key: user, limit: 100/1h, count: {status: [401]}}]"
	const places = "rules: [{id: login, key: user, limit: 100/1h, concurrency: 5, count: {status: [401]}}]"
	end := func(h *Hold) { h.End(&rule.Response{Status: 401}, func(*rule.Response) Used { return Units(3) }) }
	for name, c := range map[string]struct {
		rules string
		do    func(h *Hold, store *lost)
		freed bool
	}{
		"ended":     {counts, func(h *Hold, _ *lost) { end(h) }, true},
		"settled":   {counts, func(h *Hold, _ *lost) { _, _ = h.Settle(t.Context(), Units(1)); end(h) }, true},
		"not ended": {counts, func(*Hold, *lost) {}, false},
		"pending":   {counts, func(h *Hold, store *lost) { store.now.Store(true); end(h) }, false},
		"extended":  {counts, func(h *Hold, _ *lost) { time.Sleep(time.Minute); end(h) }, false},
		"had place": {places, func(h *Hold, _ *lost) { end(h) }, false},
		"in flight": {places, func(h *Hold, _ *lost) { h.Keep(); end(h) }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &lost{Store: memory.New(memory.Options{})}
			e := testkit.Must(New(Options{Store: store}))(t)
			defer e.Close()
			testkit.OK(t, e.Load("rules", []byte(c.rules)))
			gate := testkit.Must(NewGate(e, 0, nil))(t)
			var v Verdict
			var d Denial
			req := rule.Request{User: "alice"}
			if ok, err := gate.Reserve(t.Context(), &req, time.Minute, &v, &d); !ok || err != nil {
				t.Fatal(ok, err)
			}
			h := gate.Serve(&req, time.Minute, &v)
			c.do(h, store)
			synctest.Wait()
			if freed := h.forget(); freed != c.freed {
				t.Errorf("%s: freed: %v", name, freed)
			} else if freed {
				// What Serve and End write, and what belongs to the memory.
				h.id, h.ttl, h.begin, h.ended, h.left = weir.HoldID{}, 0, time.Time{}, false, false
				h.ending.id, h.ending.kind, h.ending.used, h.ending.byTag, h.extension = weir.HoldID{}, 0, nil, nil, extension{}
				if !reflect.DeepEqual(h, new(Hold)) {
					t.Errorf("%s: %+v", name, h)
				}
			}
			store.now.Store(false)
		})
	}
}
