package stats

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
)

// A million clients take no more memory than a thousand.
func TestMillionKeys(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, limit: 10/1h}, {id: ip, key: ip, limit: 10/1h}]")
	table, _ := d.engine.Rules()
	v := &engine.Verdict{Allowed: true, Results: make([]engine.Result, 2)}
	for i := range v.Results {
		v.Results[i] = engine.Result{Rule: table.Rules()[i], Asked: true, Decision: weir.Decision{Allowed: true}}
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	send := func(from, to int) {
		for i := from; i < to; i++ {
			key := "user:" + strconv.Itoa(1e9+i)
			if i%20 == 0 {
				key = "user:heavy"
			}
			for n := range v.Results {
				v.Results[n].Key = key
			}
			d.Observe(&alice, v, time.Microsecond)
			if i%2500 == 0 { // as if there were ten thousand a second
				d.tick(d.clock.now())
			}
			if i%5_000 == 0 {
				d.pass(1)
			}
		}
	}
	all := 1_052_632 // a million, and one of them often
	if testkit.Race {
		all /= 4
	}
	send(0, all/10)
	before := heap()
	send(all/10, all)
	after := heap()
	flush(t, d.Recorder)
	if grown := int64(after) - int64(before); grown > 8<<20 {
		t.Errorf("it has grown by %d KiB", grown>>10)
	}
	top, err := d.Top(t.Context(), TopQuery{Rule: "api", Window: LastHour, N: 1})
	if err != nil || len(top.Keys) != 1 || top.Keys[0].Key != "user:heavy" {
		t.Fatalf("%+v, %v", top, err)
	}
	e := top.Keys[0]
	h := d.Health()
	t.Logf("heavy came %d to %d times of %d; %+v; %+v; heap %d KiB, then %d KiB", e.Count-e.Error, e.Count, top.Total, h, d.memory.Size(), before>>10, after>>10)
	// One in some is looked at, and stands for all of them.
	if want := int64(all / 20); h.Sampling < 2 || h.Dropped > 0 || e.Count < want*9/10 || e.Count-e.Error > want*11/10 {
		t.Errorf("heavy came %d to %d times, want %d", e.Count-e.Error, e.Count, want)
	}
	if n := d.memory.Size(); n.Bytes > 12<<20 {
		t.Errorf("the archive has %+v", n)
	}
}
