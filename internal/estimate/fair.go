package estimate

import "slices"

const (
	fairValues = 512
	fairShare  = 4       // the part of the values that one source has at most, as 1/fairShare
	fairFine   = 4       // slots are 1/16 wide
	fairMost   = 1 << 41 // values beyond are taken for it
	fairAge    = 16 * fairValues
	lately     = 64
)

// Fair keeps the last values of many sources. None of them has more than a quarter of those that a
// quantile is found by, so that one source cannot lower it for others. If there is no room, the source
// with the most values loses one. The zero value is empty.
type Fair struct {
	values []fairValue // from the oldest on
	last   [lately]uint16
	count  uint64 // of all values that there were
}

type fairValue struct {
	at     uint64
	source uint32
	slot   uint16
}

// Add adds a value of a source.
func (f *Fair) Add(source uint32, value uint64) {
	slot := uint16(Slot(min(value, fairMost), fairFine))
	f.last[f.count%lately] = slot
	f.count++
	if i := f.victim(source); i >= 0 {
		f.values = slices.Delete(f.values, i, i+1)
	}
	f.values = append(f.values, fairValue{f.count, source, slot})
}

// victim is the place of the value that makes room for another one of a source; -1 if there is room.
func (f *Fair) victim(source uint32) int {
	switch {
	case len(f.values) > 0 && f.count-f.values[0].at > fairAge:
		return 0
	case len(f.values) < fairValues:
		return -1
	}
	counts, busiest := f.counts(), source
	for _, v := range f.values { // of several, the one with the oldest value
		if counts[v.source] > counts[busiest] {
			busiest = v.source
		}
	}
	return slices.IndexFunc(f.values, func(v fairValue) bool { return v.source == busiest })
}

func (f *Fair) counts() map[uint32]int {
	counts := make(map[uint32]int, 16)
	for _, v := range f.values {
		counts[v.source]++
	}
	return counts
}

// Quantile returns a value that at least so many percent of the values do not exceed, of the fair ones
// and of the last ones of any source, so that it rises quickly. It is false as long as there are too few
// values, or too few sources, to tell.
func (f *Fair) Quantile(percent int) (uint64, bool) {
	share := f.share()
	taken := make(map[uint32]int, 16)
	var slots []uint16
	for _, v := range slices.Backward(f.values) {
		if taken[v.source]++; taken[v.source] <= share {
			slots = append(slots, v.slot)
		}
	}
	if len(slots) < 5*100/(100-percent) || len(slots) < lately {
		return 0, false
	}
	last := f.last
	return max(top(slots, percent), top(last[:], percent)), true
}

// share is how many values of each source count, so that none has more than its share of those that count.
func (f *Fair) share() int {
	counts := f.counts()
	least, most := 0, fairValues/fairShare
	for least < most {
		share, all := (least+most+1)/2, 0
		for _, n := range counts {
			all += min(n, share)
		}
		if all >= fairShare*share {
			least = share
		} else {
			most = share - 1
		}
	}
	return least
}

// top is the largest number in the slot of a quantile. It sorts the slots.
func top(slots []uint16, percent int) uint64 {
	slices.Sort(slots)
	rank := (len(slots)*percent + 99) / 100
	bottom, width := Bottom(uint(slots[rank-1]), fairFine)
	return bottom + width - 1
}
