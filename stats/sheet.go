package stats

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/archive"
)

// sheet counts how often something was said, and how long that took. A slot has both
// the number, from bit sumBits on, and the nanoseconds, so that one addition is all that
// a request costs.
type sheet struct {
	slots [archive.HistogramSlots]atomic.Uint64

	long    atomic.Int64 // nanoseconds of those that would fill a slot soon
	mu      sync.Mutex
	spilled map[uint8]int64 // what was in slots that were nearly full; guarded by mu
}

const (
	sumBits = 36
	sumMask = 1<<sumBits - 1
	long    = 1 << 16 // nanoseconds

	// nearlyFull are the highest bits of both. Until one of them overflows there is
	// room for another half a million of requests, all of which see the bit.
	nearlyFull = 1<<63 | 1<<(sumBits-1)
)

// add counts one, and returns a number that differs each time and from slot to slot.
func (s *sheet) add(slot uint8, took time.Duration) uint64 {
	if took >= long {
		s.long.Add(int64(took))
		took = 0
	}
	at := &s.slots[slot]
	now := at.Add(1<<sumBits | uint64(took))
	if now&nearlyFull != 0 {
		s.spill(slot)
	}
	return now + uint64(uintptr(unsafe.Pointer(at)))
}

func (s *sheet) spill(slot uint8) {
	was := s.slots[slot].Swap(0)
	s.long.Add(int64(was & sumMask))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spilled == nil {
		s.spilled = map[uint8]int64{}
	}
	s.spilled[slot] += int64(was >> sumBits)
}

// take empties the sheet into a histogram.
func (s *sheet) take(h *archive.Histogram) {
	for i := range s.slots {
		if s.slots[i].Load() != 0 {
			was := s.slots[i].Swap(0)
			h.Put(uint8(i), int64(was>>sumBits))
			h.Sum += int64(was & sumMask)
		}
	}
	h.Sum += s.long.Swap(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	for slot, n := range s.spilled {
		h.Put(slot, n)
	}
	clear(s.spilled)
}

// line is what one rule said to one tier, or what became of requests.
type line struct {
	archive.Line
	cells []cell // one for each stripe
	left  int64  // the second in which its rule went out of force; 0 if it is in force
}

// cell has the sheets of a line in a stripe. Those that were never used are nil: most
// rules say two of the six, and most tiers never come.
type cell [2][outcomes]atomic.Pointer[sheet]

// Which sheets of a cell. A request that one rule decided, and whose outcome is that of
// the rule, is counted only there; otherwise it has its own line.
const (
	along = iota
	alone
)

func newLine(l archive.Line, stripes int) *line { return &line{Line: l, cells: make([]cell, stripes)} }

func (l *line) sheet(stripe, with int, said engine.Outcome) *sheet {
	at := &l.cells[stripe][with][said]
	if s := at.Load(); s != nil {
		return s
	}
	at.CompareAndSwap(nil, &sheet{})
	return at.Load()
}

// used reports whether anything was ever counted.
func (l *line) used() bool {
	for i := range l.cells {
		for with := range l.cells[i] {
			for said := range l.cells[i][with] {
				if l.cells[i][with][said].Load() != nil {
					return true
				}
			}
		}
	}
	return false
}

// take empties the line and calls a function with what each outcome had.
func (l *line) take(visit func(with int, said engine.Outcome, h *archive.Histogram)) {
	for with := range 2 {
		for said := range outcomes {
			var h archive.Histogram
			var last *sheet
			for i := range l.cells {
				if s := l.cells[i][with][said].Load(); s != nil {
					s.take(&h)
					last = s
				}
			}
			switch {
			case h.Count > 0:
				visit(with, said, &h)
			case h.Sum > 0: // somebody is between the two additions of a long time
				last.long.Add(h.Sum)
			}
		}
	}
}
