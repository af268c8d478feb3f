package memory

import (
	"cmp"
	"slices"

	"github.com/weirhq/weir"
)

// Holds that have expired end at once if they are as many as that: of a log, each alone would move all
// newer entries. Fewer than one of fewOfAll leave the others in their order.
const (
	manyOfLog = 8
	manyDue   = 64
	fewOfAll  = 16

	// So many are given back at a time, but for a log, so that this takes little memory.
	atATime = 512
)

// endManyLocked ends all holds of a key that have expired, if these are many, and it can be done at once. The
// key is then as if they had ended one after the other.
func (c *core) endManyLocked(sh *shard, slot int, k *keyHolds, now weir.Micros) {
	due := k.expired(now)
	if due == nil {
		return
	}
	e := &sh.table.entries[slot]
	if next, ok := k.releaseAll(e.state, sh.tail(slot), due); ok {
		if e.state = next; k.endAll(due, now) {
			sh.table.held[slot] = nil
		}
		c.releasedLocked(sh, slot)
	}
}

// expired returns the holds that have expired in the order in which ReleaseAll wants them, if they are many and
// give back alike; nil otherwise. In the heap it looks at twice as many. There they are in the order of reservation and
// of expiry as a rule.
func (k *keyHolds) expired(now weir.Micros) (due []*hold) {
	first, compare := k.due[0].hold, byExpiry // a place in flight does not come back
	isLog := first.under.limit.Algorithm() == weir.SlidingLog
	if isLog {
		compare = byTime
	} else if first.leaksEvenly() {
		compare = byNumber
	}
	alike, inOrder := true, true
	add := func(place int) {
		if place >= len(k.due) || k.due[place].at > now {
			return
		}
		h := k.due[place].hold
		alike = alike && (h.under == first.under || releaseAlike(h.under.limit, first.under.limit)) && h.releases()
		inOrder = inOrder && (len(due) == 0 || compare(due[len(due)-1], h) <= 0)
		if len(due) == cap(due) { // in large steps: it can become as long as the heap
			due = slices.Grow(due, min(7*len(due)+8, len(k.due)-len(due)))
		}
		due = append(due, h)
	}
	add(0)
	for i := 0; i < len(due) && alike; i++ {
		place := int(due[i].place)
		add(2*place + 1)
		add(2*place + 2)
	}
	if !alike || len(due) < manyDue && (len(due) < manyOfLog || !isLog) {
		return nil
	}
	if !inOrder {
		slices.SortFunc(due, compare)
	}
	return due
}

func byExpiry(a, b *hold) int { return deadline{a.expires, a}.compare(deadline{b.expires, b}) }
func byTime(a, b *hold) int   { return cmp.Compare(a.time, b.time) }
func byNumber(a, b *hold) int { return cmp.Compare(a.number, b.number) }

// releaseAll returns the state without the units of holds that have expired. If these have to end one after the
// other, it does nothing, and ok is false.
func (k *keyHolds) releaseAll(s weir.State, tail []int64, due []*hold) (next weir.State, ok bool) {
	limit, leaks, levels := due[0].under.limit, due[0].leaks(), k.levels.all()
	evenly, sum, back, number := due[0].leaksEvenly(), int64(0), int64(0), int32(0)
	moveUp := func(until int32) {
		for ; number < until; number++ {
			levels[number] -= back
		}
	}
	atOnce := atATime
	if limit.Algorithm() == weir.SlidingLog { // which is walked once
		atOnce = len(due)
	}
	holds := make([]weir.Held, min(atOnce, len(due)))
	for some := range slices.Chunk(due, atOnce) {
		for i, h := range some {
			level := int64(0)
			if leaks {
				level = levels[h.number]
			}
			holds[i] = h.at(level)
		}
		if s, sum, ok = limit.ReleaseAll(s, tail, holds[:len(some)], sum); !ok {
			return s, false
		}
		for i := 0; evenly && i < len(some); i++ {
			moveUp(some[i].number + 1)
			back += holds[i].Level
		}
	}
	if evenly {
		moveUp(int32(len(levels)))
		k.levels = sumsOf(levels)
	}
	return s, true
}

// releaseAlike reports whether two limits of a key give back alike. After a restart or a reload, equal limits are others.
func releaseAlike(a, b *weir.Compiled) bool {
	if a == b {
		return true
	}
	return a.Limit().Shape == b.Limit().Shape && a.Numbers() == b.Numbers()
}

// endAll takes out those that have expired, and reports whether none is left.
func (k *keyHolds) endAll(due []*hold, now weir.Micros) (none bool) {
	few := len(due) < len(k.due)/fewOfAll
	k.lapsed = true
	for _, h := range due {
		if few {
			k.remove(h)
		} else {
			k.leave(h)
		}
		h.part = hasLapsed
	}
	if few {
		return false
	}
	all := k.due
	k.due = all[:0]
	for _, d := range all {
		if d.at > now {
			k.due.Push(d)
		}
	}
	if clear(all[len(k.due):]); len(k.due) == 0 {
		k.due, k.levels = nil, nil
	}
	return len(k.due) == 0
}
