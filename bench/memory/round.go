package memory

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/weirhq/weir/bench/peers"
)

// round is what one contestant did in one turn.
type round struct {
	ns     float64 // what one check takes, for the goroutine that asks
	allocs float64 // a check
}

// runRound has each walk done by a goroutine of its own, so many checks each,
// and requires that all are admitted or that all are refused.
func runRound(l peers.Limiter, keys []string, walks [][]uint32, checks int, wantAdmitted bool) (round, error) {
	start := make(chan struct{})
	admitted := make([]int, len(walks))
	var ready, done sync.WaitGroup
	for g, walk := range walks {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			admitted[g] = ask(l, keys, walk, checks)
		})
	}
	ready.Wait()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	close(start)
	done.Wait()
	elapsed := time.Since(begin)
	runtime.ReadMemStats(&after)

	total, want := checks*len(walks), 0
	if wantAdmitted {
		want = total
	}
	got := 0
	for _, n := range admitted {
		got += n
	}
	if got != want {
		return round{}, fmt.Errorf("memory: %d of %d checks were admitted instead of %d", got, total, want)
	}
	return round{
		ns:     float64(elapsed.Nanoseconds()) / float64(checks),
		allocs: float64(after.Mallocs-before.Mallocs) / float64(total),
	}, nil
}

// ask is the measured loop.
func ask(l peers.Limiter, keys []string, walk []uint32, checks int) (admitted int) {
	for i := range checks {
		if l.Take(keys[walk[i&(walkLen-1)]]) {
			admitted++
		}
	}
	return admitted
}
