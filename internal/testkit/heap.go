package testkit

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Peak is how many more bytes of the heap were in use at once, while something was done,
// than before. What is not collected yet is in use, so the collector works harder meanwhile:
// otherwise a busy machine, which collects late, would show more than was needed.
func Peak(do func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	used := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64() + sample[1].Value.Uint64()
	}
	runtime.GC()
	runtime.GC() // what was found useless by the first
	before := used()
	most := before
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(200 * time.Microsecond)
		defer tick.Stop()
		for {
			most = max(most, used())
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	do()
	close(done)
	<-watched
	return max(most, used()) - before
}

// Least is Peak, measured up to three times while it is above a bound. What is collected late
// is another amount each time; what is needed is in all of them.
func Least(bound uint64, do func()) uint64 {
	least := Peak(do)
	for range 2 {
		if least <= bound {
			break
		}
		least = min(least, Peak(do))
	}
	return least
}
