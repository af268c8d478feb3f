package redis

import (
	"errors"
	"math"

	"github.com/weirhq/weir"
)

// The clock of Redis decides in which period of the calendar a request is, but a script
// knows no calendar. So it gets where three periods end: the one at the time that is
// guessed here, and its neighbors. At any other time it does nothing and returns its own,
// and is asked again.

// errOtherPeriod is returned if Redis has done nothing, because it is in another period of
// the calendar than was thought. The time is then known.
var errOtherPeriod = errors.New("redis: the clock of Redis is in no period near that of this machine")

// clock packs the time, and returns as how many numbers.
func (p *packer) clock(r *request, now int64) int {
	if r.until == 0 {
		p.number(now)
		return 1
	}
	p.number(-1 - now)
	p.number(int64(r.from))
	p.number(int64(r.until))
	return 3
}

// follow finds out at which times the bounds of all periods of the calendar are right, if
// there are any. The time that is guessed is one of them.
func (r *request) follow(guess func() weir.Micros) {
	var last *weir.Compiled
	add := func(c *weir.Compiled) {
		if c == last || !c.FollowsCalendar() {
			return
		}
		last = c
		if r.until == 0 {
			r.at, r.from, r.until = guess(), 0, math.MaxInt64
		}
		b, _ := c.Periods(r.at)
		r.from, r.until = max(r.from, b[0]), min(r.until, b[3])
	}
	for _, c := range r.limits {
		add(c)
	}
	for i := range r.chains {
		add(r.chains[i].limit)
	}
}
