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
func (c *core) endManyLocked(sh *shard, slot int, now weir.Micros) {
	k, e := sh.table.held[slot].among, &sh.table.entries[slot]
	if k == nil {
		return
	}
	due, alike := k.expired(now)
	if !alike {
		return
	}
	if next, ok := k.releaseAll(e.state, sh.tail(slot), due); ok {
		e.state, sh.table.held[slot] = next, k.endAll(due, now)
		c.releasedLocked(sh, slot)
	}
}

// expired returns the holds that have expired, and whether they are many and give back alike. They are in the order of their
// places in the heap: as a rule, that is the one in which they were reserved and expire. It looks at twice as many.
func (k *keyHolds) expired(now weir.Micros) (due []expired, alike bool) {
	limit, least := k.due[0].part.limit, manyDue
	isLog, leaks := limit.Algorithm() == weir.SlidingLog, k.due[0].part.leaksEvenly() // a place in flight does not come back
	if isLog {
		least = manyOfLog
	}
	alike = true
	add := func(place int) {
		if place >= len(k.due) || k.due[place].at > now {
			return
		}
		d := expired{deadline: k.due[place]}
		switch p := d.part; {
		case isLog:
			d.order = int64(p.Receipt)
		case leaks:
			d.order = int64(p.number)
		}
		alike = alike && d.part.releases() && releaseAlike(d.part.limit, limit)
		if len(due) == cap(due) { // in large steps: it can become as long as the heap
			due = slices.Grow(due, min(7*len(due)+8, len(k.due)-len(due)))
		}
		due = append(due, d)
	}
	add(0)
	for i := 0; i < len(due) && alike; i++ {
		place := due[i].part.place
		add(2*place + 1)
		add(2*place + 2)
	}
	return due, alike && len(due) >= least
}

// leaksEvenly reports whether the part is of a bucket that does not shape.
func (p *heldPart) leaksEvenly() bool { return p.leaks() && !p.limit.Limit().Shape }

// releaseAll returns the state without the units of holds that have expired. If these have to end one after the
// other, it does nothing, and ok is false.
func (k *keyHolds) releaseAll(s weir.State, tail []int64, due []expired) (next weir.State, ok bool) {
	slices.SortFunc(due, func(a, b expired) int {
		return cmp.Or(cmp.Compare(a.order, b.order), a.compare(b.deadline))
	})
	holds := make([]weir.Held, len(due))
	for i, d := range due {
		holds[i] = d.part.Held
	}
	limit, leaks := due[0].part.limit, due[0].part.leaksEvenly()
	var up sums
	if leaks {
		up = k.up.all()
		for i := range holds {
			holds[i].Level -= up[due[i].order]
		}
	}
	if next, ok = limit.ReleaseAll(s, tail, holds); !ok || !leaks {
		return next, ok
	}
	clear(up)
	for i := range holds {
		if next := int(due[i].order) + 1; next < len(up) {
			up[next] = holds[i].Level
			k.total += holds[i].Level
		}
	}
	k.up.addAll(up)
	return next, true
}

// releaseAlike reports whether two limits of a key give back alike. After a restart or a reload, equal limits are others.
func releaseAlike(a, b *weir.Compiled) bool {
	if a == b {
		return true
	}
	return a.Limit().Shape == b.Limit().Shape && a.Numbers() == b.Numbers()
}

// endAll takes out those that have expired, and returns one that is left; nil if there is none.
func (k *keyHolds) endAll(due []expired, now weir.Micros) (other *heldPart) {
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
