package weir

import "math/bits"

// A sliding log remembers when units were taken, in one entry for all units of a
// microsecond. Units are numbered in the order of taking: the rank of a unit is how
// many were taken before it.
//
//	Fresh  a period after the newest unit
//	A      the number of the next entry, and the rank of the next unit
//	B      how many of the newest entries, and how many of the newest units, may
//	       still count
//
// The tail is a ring of entries, entry i at i mod len(tail), which is a power of
// two. An entry is one word: its time in the high bits, and in the low ones the
// rank after its last unit, so that both are found by halves, and a charge of any
// cost is one word. Time and rank begin again at 0 when they no longer fit: what
// counts is less than a period old and at most N units, and the bits suffice for
// twice of either.

const (
	// logTimeBits are enough for periods up to a hundred days. Longer ones take
	// bits from the ranks, so their N is less.
	logTimeBits = 43

	maxRankBits = 64 - logTimeBits
	entryBits   = 24 // of the number of an entry in A; rings are shorter
)

// logRankBits is how many bits of a word are the rank, by the period.
func logRankBits(period int64) int { return 64 - max(logTimeBits, bits.Len64(uint64(period))) }

// maxLogUnits is the largest N of a log with this period, in microseconds.
func maxLogUnits(period int64) int64 { return 1 << (logRankBits(period) - 1) }

// log is a state with its tail, taken apart.
type log struct {
	tail       []int64
	rankBits   int
	first, end int64 // numbers of entries, the latter excluded
	rank       int64 // of the next unit
	units      int64
	newest     int64 // the time of the last entry
}

func (c *Compiled) log(s State, tail []int64) log {
	end := s.A >> maxRankBits
	return log{
		tail: tail, rankBits: c.rankBits,
		first: end - s.B>>maxRankBits, end: end,
		rank: s.A & (1<<maxRankBits - 1), units: s.B & (1<<maxRankBits - 1),
		newest: int64(s.Fresh) - c.period,
	}
}

// state puts together what log took apart.
func (c *Compiled) logState(l *log) State {
	return State{
		Fresh: Micros(l.newest + c.period),
		A:     l.end&(1<<entryBits-1)<<maxRankBits | l.rank,
		B:     (l.end-l.first)<<maxRankBits | l.units,
	}
}

// word is where entry i is kept.
func (l *log) word(i int64) *int64 { return &l.tail[i&int64(len(l.tail)-1)] }

// at is the time of entry i: the last one before the newest that has its bits.
func (l *log) at(i int64) int64 {
	ago := uint64(l.newest) - uint64(*l.word(i))>>l.rankBits
	return l.newest - int64(ago&(1<<(64-l.rankBits)-1))
}

// newer is how many units are in the entries after i.
func (l *log) newer(i int64) int64 { return l.mod(l.rank - *l.word(i)) }

func (l *log) mod(rank int64) int64 { return rank & (1<<l.rankBits - 1) }

// since is the first entry that is as new as that, if the newest is.
func (l *log) since(time int64) int64 {
	return l.search(func(i int64) bool { return l.at(i) >= time })
}

// holding is the entry of the unit that has so many newer ones.
func (l *log) holding(newer int64) int64 {
	return l.search(func(i int64) bool { return l.newer(i) <= newer })
}

// from is how many units that may count are in entry i and those after it.
func (l *log) from(i int64) int64 {
	if i == l.first {
		return l.units
	}
	return min(l.units, l.newer(i-1))
}

// search returns the first entry that passes; those after it do, too, and the last
// one is taken to. As a rule it is among the oldest: so it is looked for in steps
// that double, and then by halves.
func (l *log) search(passes func(int64) bool) int64 {
	from, last := l.first, l.end-1
	for step := int64(1); from < last; step *= 2 {
		probe := min(from+step, last) - 1
		if passes(probe) {
			last = probe
			break
		}
		from = probe + 1
	}
	for from < last {
		if middle := from + (last-from)/2; passes(middle) { // they may be negative
			last = middle
		} else {
			from = middle + 1
		}
	}
	return from
}

// readableLog reports whether the entries are all in the tail.
func readableLog(s State, tail []int64) bool {
	n := s.B >> maxRankBits
	return s == State{} || 0 < n && n <= int64(len(tail)) && len(tail)&(len(tail)-1) == 0
}

func (v *view) lookSlidingLog() {
	if v.now >= v.old.Fresh || !v.c.Readable(v.old, v.tail) {
		v.old = State{}
	}
	v.free = v.c.limit.N
	if v.old == (State{}) {
		return
	}
	l := v.c.log(v.old, v.tail)
	v.now = max(v.now, Micros(l.newest))
	v.pending = v.old
	if since := int64(v.now) - v.c.period + 1; l.at(l.first) < since {
		i := l.since(since)
		l.units, l.first = l.from(i), i
		v.pending = v.c.logState(&l)
	}
	v.free -= l.units
}

// chargeSlidingLog counts denials as long as there is room in a log of N: more
// would keep the key out no longer. So the oldest units make room for them.
func (v *view) chargeSlidingLog(cost int64, debt bool) State {
	l := v.c.log(v.pending, v.tail)
	kept := l.units
	if !debt {
		kept = max(l.units, min(l.units+cost, v.c.limit.N)) - cost
	}
	switch {
	case kept <= 0:
		l.first = l.end
	case kept < l.units:
		l.first = l.holding(kept - 1)
	}
	if l.first == l.end || l.newest != int64(v.now) {
		l.end++
	}
	l.rank, l.units, l.newest = l.mod(l.rank+cost), kept+cost, int64(v.now)
	return v.c.logState(&l)
}

// waitSlidingLog waits for the newest unit that must not count any more.
func (v *view) waitSlidingLog(cost int64) Micros {
	l := v.c.log(v.old, v.tail)
	charged := l.mod(v.pending.A - v.old.A) // units that are not in the tail yet
	last := int64(v.now)
	if newer := v.c.limit.N - cost; newer >= charged {
		last = l.at(l.holding(newer - charged))
	}
	return Micros(last+v.c.period) - v.now
}

// commitSlidingLog writes the newest entry.
func (c *Compiled) commitSlidingLog(tail []int64, next State) {
	l := c.log(next, tail)
	*l.word(l.end - 1) = l.newest<<l.rankBits | l.rank
}

// refundSlidingLog takes the units out of their entry, and closes the ranks of those
// taken since.
func (c *Compiled) refundSlidingLog(s State, tail []int64, receipt Micros, cost int64) State {
	l := c.log(s, tail)
	if receipt == Micros(Latest) {
		return c.refundNewest(&l, cost)
	}
	taken := int64(receipt) - c.period
	i := l.since(taken)
	if l.at(i) != taken {
		return s
	}
	has := l.from(i) - l.newer(i)
	back := min(cost, has)
	if back <= 0 {
		return s
	}
	before := l.newest
	if i > l.first {
		before = l.at(i - 1)
	}
	if back == has { // the entry goes, and the newer ones move up
		for j := i + 1; j < l.end; j++ {
			*l.word(j - 1) = *l.word(j)
		}
		if l.end--; l.end == i {
			l.newest = before
		}
	}
	for j := i; j < l.end; j++ {
		*l.word(j) = *l.word(j)&^(1<<l.rankBits-1) | l.mod(*l.word(j)-back)
	}
	l.rank, l.units = l.mod(l.rank-back), l.units-back
	if l.units == 0 || l.first == l.end {
		return State{}
	}
	return c.logState(&l)
}

// refundNewest takes out the newest units, whatever their entries.
func (c *Compiled) refundNewest(l *log, cost int64) State {
	if cost >= l.units {
		return State{}
	}
	i := l.holding(cost)
	l.rank, l.units, l.newest, l.end = l.mod(l.rank-cost), l.units-cost, l.at(i), i+1
	*l.word(i) = l.newest<<l.rankBits | l.rank
	return c.logState(l)
}
