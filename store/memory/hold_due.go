package memory

import (
	"bytes"
	"slices"

	"github.com/weirhq/weir"
)

// Holds that have expired end at once if they are as many as that: of a log, each alone would move all
// newer entries. Fewer than one of fewOfAll leave the others in their order.
const (
	manyOfLog = 8
	manyDue   = 64
	fewOfAll  = 16
)

// dueHold is a hold that has expired, and what it is sorted by. Without pointers, it costs the garbage collector nothing.
type dueHold struct {
	by            int64
	place, number int32 // in the heap, and in the order of reservation
}

// endManyLocked ends all holds of a key that have expired, if these are many. The key is then as if they had
// ended one after the other.
func (c *core) endManyLocked(sh *shard, slot int, k *keyHolds, now weir.Micros) {
	due := k.expired(now)
	if len(due) < manyDue && (len(due) < manyOfLog || k.due[0].hold.under.limit.Algorithm() != weir.SlidingLog) {
		return
	}
	e := &sh.table.entries[slot]
	e.state = k.releaseAll(e.state, sh.tail(slot), k.lapse(due))
	if k.takeOut(due, now) {
		sh.table.held[slot] = nil
	}
	c.releasedLocked(sh, slot)
}

// expired returns the holds that have expired. In the heap it looks at twice as many.
func (k *keyHolds) expired(now weir.Micros) []dueHold {
	var buf [manyDue]dueHold
	due := append(buf[:0], dueHold{by: int64(k.due[0].at)})
	for i := 0; i < len(due); i++ {
		first := 2*due[i].place + 1
		for child := first; child < min(first+2, int32(len(k.due))); child++ {
			if at := k.due[child].at; at <= now {
				if len(due) == cap(due) { // in large steps: they can be all in the heap
					due = slices.Grow(due, min(7*len(due), len(k.due)-len(due)))
				}
				due = append(due, dueHold{by: int64(at), place: child})
			}
		}
	}
	return due
}

// lapse notes that holds have expired. It returns them in the order in which they can give back at once.
func (k *keyHolds) lapse(due []dueHold) []dueHold {
	k.lapsed = true
	algorithm := k.due[0].hold.under.limit.Algorithm()
	for i := range due {
		d, h := &due[i], k.due[due[i].place].hold
		k.leave(h)
		h.part = hasLapsed
		switch algorithm {
		case weir.TokenBucket, weir.LeakyBucket:
			d.number, d.by = h.number, int64(h.number)
		case weir.SlidingLog:
			d.by = int64(h.time)
		}
	}
	if algorithm == weir.FixedWindow || algorithm == weir.SlidingBuckets {
		return due // in any
	}
	return k.sorted(due)
}

// releaseAll returns the state without the units of holds that have expired.
func (k *keyHolds) releaseAll(s weir.State, tail []int64, due []dueHold) weir.State {
	if next, ok := k.releaseAtOnce(s, tail, due); ok {
		return next
	}
	for i, d := range due {
		due[i].by = int64(k.due[d.place].at)
	}
	for _, d := range k.sorted(due) {
		if h := k.due[d.place].hold; h.releases() {
			held, back := k.held(h), int64(0)
			s, back = h.under.limit.Release(s, tail, held, h.cost)
			k.moveUp(h, back)
		}
	}
	return s
}

// releaseAtOnce is releaseAll in one pass. If these have to give back one after the other, it does nothing, and ok
// is false.
func (k *keyHolds) releaseAtOnce(s weir.State, tail []int64, due []dueHold) (next weir.State, ok bool) {
	first, levels, alike := k.due[0].hold, sums(nil), true
	leaks := first.leaksEvenly()
	if leaks {
		levels = k.levels.all()
	}
	anyN := !leaks && first.under.limit.Algorithm() != weir.SlidingWindow // the others give back the same under any limit
	next, ok = first.under.limit.ReleaseAll(s, tail, func(yield func(*weir.Held) bool) {
		var held weir.Held
		for i, d := range due {
			h := k.due[d.place].hold
			if due[i].by = 0; !h.releases() {
				continue
			}
			if alike = anyN || h.under == first.under || releaseAlike(h.under.limit, first.under.limit); !alike {
				return
			}
			if held.Cost = h.cost; leaks {
				held.Level, held.At = levels[h.number], h.time
			} else {
				held.Receipt = weir.Receipt(h.time)
			}
			if !yield(&held) {
				return
			}
			due[i].by = held.Level
		}
	})
	ok = ok && alike
	if leaks {
		if ok {
			moveUp(levels, due)
		}
		k.levels = sumsOf(levels)
	}
	return next, ok
}

// moveUp is for what holds have given back, in the order of their numbers.
func moveUp(levels []int64, due []dueHold) {
	back := int64(0)
	for number := range levels {
		if levels[number] -= back; len(due) > 0 && due[0].number == int32(number) {
			back, due = back+due[0].by, due[1:]
		}
	}
}

// releaseAlike reports whether two limits of a key give back alike. After a restart or a reload, equal limits are others.
func releaseAlike(a, b *weir.Compiled) bool {
	return a == b || a.Limit().Shape == b.Limit().Shape && a.Numbers() == b.Numbers()
}

// sorted returns the holds by their numbers, and by their ids if these are equal. It takes as many steps whatever their
// order was (a radix sort), because in a heap they are in none.
func (k *keyHolds) sorted(due []dueHold) []dueHold {
	const digit = 11 // bits
	low, high, inOrder := due[0].by, due[0].by, true
	for i, h := range due[1:] {
		low, high, inOrder = min(low, h.by), max(high, h.by), inOrder && due[i].by < h.by
	}
	if inOrder {
		return due
	}
	other := make([]dueHold, len(due))
	for shift := 0; (high-low)>>shift > 0; shift += digit {
		var ends [1<<digit + 1]int32
		for _, h := range due {
			ends[(h.by-low)>>shift&(1<<digit-1)+1]++
		}
		for i := range 1 << digit {
			ends[i+1] += ends[i]
		}
		for _, h := range due {
			end := &ends[(h.by-low)>>shift&(1<<digit-1)]
			other[*end] = h
			*end++
		}
		due, other = other, due
	}
	for i := 0; i < len(due); {
		from := i
		for i++; i < len(due) && due[i].by == due[from].by; i++ {
		}
		if equal := due[from:i]; len(equal) > 1 {
			slices.SortFunc(equal, func(a, b dueHold) int { return bytes.Compare(k.due[a.place].hold.id[:], k.due[b.place].hold.id[:]) })
		}
	}
	return due
}

// takeOut takes those that have expired out of the heap, and reports whether none is left.
func (k *keyHolds) takeOut(due []dueHold, now weir.Micros) (none bool) {
	all := k.due
	switch {
	case len(due) == len(all):
		k.due, k.levels = nil, nil
		return true
	case len(due) < len(all)/fewOfAll:
		for k.due[0].at <= now {
			k.due.Remove(k.due[0])
		}
		return false
	}
	k.due = all[:0]
	for _, d := range all {
		if d.at > now {
			k.due.Push(d)
		}
	}
	clear(all[len(k.due):])
	return false
}
