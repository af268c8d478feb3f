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

// endManyLocked ends all holds of a key that have expired, if these are many, and it can be done at once. The
// key is then as if they had ended one after the other.
func (c *core) endManyLocked(sh *shard, slot int, now weir.Micros) {
	k, e := sh.table.held[slot].among, &sh.table.entries[slot]
	if k == nil {
		return
	}
	due := k.expired(now)
	if next, ok := k.releaseAll(e.state, sh.tail(slot), due); ok {
		e.state, sh.table.held[slot] = next, k.endAll(due, now)
		c.releasedLocked(sh, slot)
	}
}

// expired returns the holds that have expired, in the order of their places in the heap: as a rule, that is the
// order in which they were reserved and expire. It looks at twice as many.
func (k *keyHolds) expired(now weir.Micros) (due []deadline) {
	add := func(place int) {
		if place >= len(k.due) || k.due[place].at > now {
			return
		}
		if len(due) == cap(due) { // in large steps: it can become as long as the heap
			due = slices.Grow(due, min(7*len(due)+8, len(k.due)-len(due)))
		}
		due = append(due, k.due[place])
	}
	add(0)
	for i := 0; i < len(due); i++ {
		place := due[i].part.place
		add(2*place + 1)
		add(2*place + 2)
	}
	return due
}

// releaseAll returns the state without the units of holds that have expired. If these are few, or have to end one after the
// other, it does nothing, and ok is false.
func (k *keyHolds) releaseAll(s weir.State, tail []int64, due []deadline) (next weir.State, ok bool) {
	limit, least := due[0].part.limit, manyDue
	isLog := limit.Algorithm() == weir.SlidingLog // a place in flight does not come back
	if isLog {
		least = manyOfLog
	}
	if len(due) < least || slices.ContainsFunc(due, func(d deadline) bool { return !d.part.releases() || !releaseAlike(d.part.limit, limit) }) {
		return s, false
	}
	switch {
	case isLog:
		slices.SortFunc(due, func(a, b deadline) int { return cmp.Compare(a.part.Receipt, b.part.Receipt) })
		return limit.ReleaseAll(s, tail, heldBy(due))
	case due[0].part.leaks() && !limit.Limit().Shape:
		slices.SortFunc(due, func(a, b deadline) int { return cmp.Compare(a.part.number, b.part.number) })
		return k.releaseAndMoveUp(s, due)
	}
	slices.SortFunc(due, deadline.compare)
	for _, d := range due {
		s, _ = limit.Release(s, tail, d.part.Held, d.part.Cost)
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

func heldBy(due []deadline) []*weir.Held {
	all := make([]*weir.Held, len(due))
	for i, d := range due {
		all[i] = &d.part.Held
	}
	return all
}

// releaseAndMoveUp is for a bucket: those that were reserved later move up.
func (k *keyHolds) releaseAndMoveUp(s weir.State, due []deadline) (next weir.State, ok bool) {
	up := k.up.all()
	for _, d := range due {
		d.part.Level -= up[d.part.number]
	}
	if next, ok = due[0].part.limit.ReleaseAll(s, nil, heldBy(due)); !ok {
		for _, d := range due {
			d.part.Level += up[d.part.number]
		}
		return s, false
	}
	clear(up)
	for _, d := range due {
		if next := int(d.part.number) + 1; next < len(up) {
			up[next] = d.part.Level
			k.total += d.part.Level
		}
	}
	k.up.addAll(up)
	return next, true
}

// endAll takes out those that have expired, and returns one that is left; nil if there is none.
func (k *keyHolds) endAll(due []deadline, now weir.Micros) (other *heldPart) {
	few := len(due) < len(k.due)/fewOfAll
	for _, d := range due {
		if d.part.listed, d.part.lapsed = false, true; few {
			other = k.remove(d.part)
		} else {
			d.part.among = nil
			k.leave(d.part)
		}
	}
	if few {
		return other
	}
	all := k.due
	k.due = all[:0]
	for _, d := range all {
		if d.at > now {
			k.due.Push(d)
		}
	}
	clear(all[len(k.due):])
	if len(k.due) == 0 {
		return nil
	}
	return k.due[0].part
}
