package memory

import (
	"fmt"

	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/peers"
)

// walkLen is a power of two, long enough for no branch predictor to learn it.
const walkLen = 1 << 20

// round is what one contestant did in one turn.
type round struct {
	ns     float64 // what one check takes, for the goroutine that asks
	allocs float64 // a check
}

// runRound has each walk done by a goroutine of its own, so many checks each,
// and requires that all are admitted or that all are refused.
func runRound(l peers.Limiter, keys []string, walks [][]uint32, checks int, wantAdmitted bool) (round, error) {
	admitted := make([]int, len(walks))
	cost := rounds.AtOnce(len(walks), func(g int) {
		admitted[g] = ask(l, keys, walks[g], checks)
	})
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
		ns:     float64(cost.Wall.Nanoseconds()) / float64(checks),
		allocs: float64(cost.Mallocs) / float64(total),
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
