package stats

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/frame"
)

// outcome is a field of frame.Counts.
type outcome uint8

const (
	allowed outcome = iota
	denied
	shadowDenied
	degraded
	failed
	blocked
	outcomes
)

// tally counts outcomes. A block lives for a second, so that 32 bits are enough.
type tally [outcomes]uint32

func (t *tally) counts() frame.Counts {
	return frame.Counts{
		Allowed: int64(t[allowed]), Denied: int64(t[denied]), ShadowDenied: int64(t[shadowDenied]),
		Degraded: int64(t[degraded]), Failed: int64(t[failed]), Blocked: int64(t[blocked]),
	}
}

// times is a histogram that is being counted.
type times struct {
	slots [frame.Slots]uint32
	sum   int64
}

// gauge is the usage of a limit that is being counted.
type gauge struct {
	slots  [frame.Slots]uint32
	denied uint32
}

// block is everything that a stripe counts in a second.
type block struct {
	index    *index
	requests tally
	decision times
	cells    []tally // of rules and tiers
	rules    []times
	gauges   []gauge
	keys     keys
}

func newBlock(x *index) *block {
	return &block{index: x, cells: make([]tally, x.cells), rules: make([]times, len(x.rules)), gauges: make([]gauge, x.gauge)}
}

// stripe is one of several places to count in. Requests on different cores mostly find
// different ones.
type stripe struct {
	mu    sync.Mutex
	block *block // guarded by mu, with all that is in it
	_     [64]byte
}

// maxStripes is enough for any number of cores: a lock is held for some tens of nanoseconds.
const maxStripes = 8

func newStripes(x *index) []stripe {
	n := 1
	for n < min(runtime.GOMAXPROCS(0), maxStripes) {
		n *= 2
	}
	all := make([]stripe, n)
	for i := range all {
		all[i].block = newBlock(x)
		all[i].block.keys = newKeys()
	}
	return all
}

// lock returns a stripe that is locked. It begins by the address of the verdict, which
// callers use again and again: one each, or one a core.
func (r *Recorder) lock(v *engine.Verdict) *stripe {
	const golden = 0x9E3779B97F4A7C15
	n := uint64(len(r.stripes))
	first := uint64(uintptr(unsafe.Pointer(v))) * golden >> 32
	for i := range n {
		if s := &r.stripes[(first+i)&(n-1)]; s.mu.TryLock() {
			return s
		}
	}
	s := &r.stripes[first&(n-1)]
	s.mu.Lock()
	return s
}
