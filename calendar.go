package weir

import (
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/notation"
)

// Month and Year are periods of the calendar. As durations they are the averages, for
// comparisons and statistics.
const (
	Month = notation.Month
	Year  = notation.Year
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// calendar is where the periods of a limit begin. A period begins at the first instant at
// which the clocks of the zone show its start, or later. So an hour that clocks skip
// or repeat makes a period shorter or longer, and every instant is in exactly one period.
type calendar struct {
	zone  *time.Location
	start start
	last  atomic.Pointer[bounds] // which contain the instant that was asked for last
}

// bounds are where the period before begins, this one, the next one, and where that ends.
type bounds [4]Micros

func newCalendar(l Limit) *calendar {
	if !l.isCalendar() {
		return nil
	}
	s, _ := parseStart(l.Period, l.Starts) // which was validated
	c := &calendar{zone: l.Zone, start: s}
	if c.zone == nil {
		c.zone = time.UTC
	}
	return c
}

// around returns the bounds of the period that contains an instant.
func (c *calendar) around(at Micros) *bounds {
	if b := c.last.Load(); b != nil && b[1] <= at && at < b[2] {
		return b
	}
	seconds := floorDiv(int64(at), 1e6)
	_, offset := time.Unix(seconds, 0).In(c.zone).Zone()
	i := c.start.index(seconds + int64(offset))
	for c.begin(i) > seconds {
		i--
	}
	for c.begin(i+1) <= seconds {
		i++
	}
	b := new(bounds)
	for j := range b {
		b[j] = Micros(c.begin(i-1+int64(j))) * 1e6
	}
	c.last.Store(b)
	return b
}

// begin returns where the i-th period begins, in seconds: when the clocks first show that
// time or a later one.
func (c *calendar) begin(i int64) int64 {
	clock := c.start.clock(i)
	const most = 26 * 60 * 60 // seconds that clocks are ahead of UTC
	for t := time.Unix(clock-most, 0).In(c.zone); ; {
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		for !end.IsZero() && !end.After(t) {
			end = end.Add(day) // by a zone's rule, package time ends leap years a day too early
		}
		begin := max(t.Unix(), clock-int64(offset))
		if end.IsZero() || begin < end.Unix() {
			return begin
		}
		t = end
	}
}

// FollowsCalendar reports whether the periods are those of the calendar.
func (c *Compiled) FollowsCalendar() bool { return c.calendar != nil }

// Periods returns four instants, if the limit has periods of the calendar: the period that
// contains an instant is from the second to the third, and its neighbors begin at the first
// and end at the fourth.
func (c *Compiled) Periods(at Micros) (bounds [4]Micros, ok bool) {
	if c.calendar == nil {
		return bounds, false
	}
	return *c.calendar.around(max(0, at)), true
}

// Length returns how long the period is that contains an instant: Period, unless it is one
// of the calendar.
func (c *Compiled) Length(at Micros) time.Duration {
	if b, ok := c.Periods(at); ok {
		return b[2].Sub(b[1])
	}
	return c.limit.Period
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
