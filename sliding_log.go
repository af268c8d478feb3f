package weir

// A sliding log remembers when each unit was taken. Its tail is a ring of
// times, the unit of rank r (from 0, in order of taking) at r mod len(tail).
//
//	Fresh  a period after the newest unit
//	A      units ever recorded, so the rank of the next one
//	B      how many of the newest may still count; the ring holds them all

func (v *view) lookSlidingLog() {
	if v.now < v.old.Fresh && v.c.Readable(v.old, v.tail) {
		v.now = max(v.now, v.old.Fresh-Micros(v.c.period))
		v.pending = v.old
	} else {
		v.old = State{}
	}
	v.pending.B -= v.deadUnits()
	v.free = v.c.limit.N - v.pending.B
}

// deadUnits is how many of the units that may count do so no more. They are the
// oldest and, as a rule, few: the first living one is looked for in steps that
// double, and then by halves.
func (v *view) deadUnits() int64 {
	since, dead, alive := int64(v.now)-v.c.period, int64(0), v.pending.B
	oldest := v.pending.B - 1
	for step := int64(1); dead < alive; step *= 2 {
		probe := min(dead+step, alive) - 1
		if v.unitTime(oldest-probe) > since {
			alive = probe
			break
		}
		dead = probe + 1
	}
	for dead < alive {
		middle := (dead + alive) / 2
		if v.unitTime(oldest-middle) > since {
			alive = middle
		} else {
			dead = middle + 1
		}
	}
	return dead
}

// unitTime is the time of the unit that has newer others after it.
func (v *view) unitTime(newer int64) int64 {
	charged := v.pending.A - v.old.A // units that are not in the tail yet
	if newer < charged {
		return int64(v.now)
	}
	return v.tail[(v.pending.A-1-newer)%int64(len(v.tail))]
}

// chargeSlidingLog counts denials as long as there is room in a log of N: more
// would keep the key out no longer.
func (v *view) chargeSlidingLog(cost int64) State {
	return State{
		Fresh: v.now + Micros(v.c.period),
		A:     v.pending.A + cost,
		B:     max(v.pending.B, min(v.pending.B+cost, v.c.limit.N)),
	}
}

// waitSlidingLog waits for the newest unit that must not count any more.
func (v *view) waitSlidingLog(cost int64) Micros {
	last := v.unitTime(v.c.limit.N - cost)
	return Micros(last+v.c.period) - v.now
}

// commitSlidingLog writes the units that next has and prev has not.
func (c *Compiled) commitSlidingLog(tail []int64, prev, next State) {
	now := int64(next.Fresh) - c.period
	if int64(prev.Fresh) <= now {
		prev = State{}
	}
	length := int64(len(tail))
	for rank := max(prev.A, next.A-length); rank < next.A; rank++ {
		tail[rank%length] = now
	}
}

// refundSlidingLog takes the units out, and closes the ranks of those taken since.
func (c *Compiled) refundSlidingLog(s State, tail []int64, receipt Micros, cost int64) State {
	length, taken := int64(len(tail)), int64(receipt)-c.period
	oldest, end := s.A-s.B, s.A
	for end > oldest && tail[(end-1)%length] > taken {
		end--
	}
	from := end
	for from > oldest && end-from < cost && (receipt == Latest || tail[(from-1)%length] == taken) {
		from--
	}
	for rank := end; rank < s.A; rank++ {
		tail[(rank-end+from)%length] = tail[rank%length]
	}
	s.A -= end - from
	s.B -= end - from
	if s.B == 0 {
		return State{}
	}
	s.Fresh = Micros(tail[(s.A-1)%length] + c.period)
	return s
}
