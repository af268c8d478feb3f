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
)

// expired is a hold that has expired.
type expired struct {
	deadline
	order int64 // in which it was reserved, if that is the one that counts
}

// endManyLocked ends all holds of a key that have expired, if these are many, and it can be done at once. The
// key is then as if they had ended one after the other.
func (c *core) endManyLocked(sh *shard, slot int, k *keyHolds, now weir.Micros) {
	due, alike := k.expired(now)
	if !alike {
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

// expired returns the holds that have expired, and whether they are many and give back alike. They are in the order of their
// places in the heap: as a rule, that is the one in which they were reserved and expire. It looks at twice as many.
func (k *keyHolds) expired(now weir.Micros) (due []expired, alike bool) {
	limit, least := k.due[0].hold.under.limit, manyDue
	isLog, leaks := limit.Algorithm() == weir.SlidingLog, k.due[0].hold.leaksEvenly() // a place in flight does not come back
	if isLog {
		least = manyOfLog
	}
	alike = true
	add := func(place int) {
		if place >= len(k.due) || k.due[place].at > now {
			return
		}
		d := expired{deadline: k.due[place]}
		switch {
		case isLog:
			d.order = int64(d.hold.time)
		case leaks:
			d.order = int64(d.hold.number)
		}
		alike = alike && d.hold.releases() && releaseAlike(d.hold.under.limit, limit)
		if len(due) == cap(due) { // in large steps: it can become as long as the heap
			due = slices.Grow(due, min(7*len(due)+8, len(k.due)-len(due)))
		}
		due = append(due, d)
	}
	add(0)
	for i := 0; i < len(due) && alike; i++ {
		place := int(due[i].hold.place)
		add(2*place + 1)
		add(2*place + 2)
	}
	return due, alike && len(due) >= least
}

// releaseAll returns the state without the units of holds that have expired. If these have to end one after the
// other, it does nothing, and ok is false.
func (k *keyHolds) releaseAll(s weir.State, tail []int64, due []expired) (next weir.State, ok bool) {
	slices.SortFunc(due, func(a, b expired) int {
		return cmp.Or(cmp.Compare(a.order, b.order), a.compare(b.deadline))
	})
	limit, leaks, levels := due[0].hold.under.limit, due[0].hold.leaksEvenly(), k.levels.all()
	holds := make([]weir.Held, len(due))
	for i, d := range due {
		if leaks {
			holds[i] = d.hold.at(levels[d.order])
		} else {
			holds[i] = k.held(d.hold)
		}
	}
	if next, ok = limit.ReleaseAll(s, tail, holds); !ok || !leaks {
		return next, ok
	}
	back := int64(0)
	for number := range levels {
		levels[number] -= back
		if len(due) > 0 && int64(number) == due[0].order {
			back, holds, due = back+holds[0].Level, holds[1:], due[1:]
		}
	}
	k.levels = sumsOf(levels)
	return next, true
}

// releaseAlike reports whether two limits of a key give back alike. After a restart or a reload, equal limits are others.
func releaseAlike(a, b *weir.Compiled) bool {
	if a == b {
		return true
	}
	return a.Limit().Shape == b.Limit().Shape && a.Numbers() == b.Numbers()
}

// endAll takes out those that have expired, and reports whether none is left.
func (k *keyHolds) endAll(due []expired, now weir.Micros) (none bool) {
	few := len(due) < len(k.due)/fewOfAll
	k.lapsed = true
	for _, d := range due {
		if few {
			k.remove(d.hold)
		} else {
			k.leave(d.hold)
		}
		d.hold.part = hasLapsed
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
