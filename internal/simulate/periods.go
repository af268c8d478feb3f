package simulate

import (
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/duration"
)

// periods are those of a limit, of constant length or of the calendar.
type periods struct {
	length   weir.Micros    // of the calendar: the average
	calendar *weir.Compiled // nil if the length is constant
	zone     *time.Location
}

func periodsOf(limit weir.Limit) periods {
	p := periods{length: weir.Micros(limit.Period.Microseconds())}
	if c, err := limit.Compile(); err == nil && c.FollowsCalendar() {
		p.calendar, p.zone = c, time.UTC
		if limit.Zone != nil {
			p.zone = limit.Zone
		}
	}
	return p
}

// around returns where the period begins that contains an instant, and where it ends.
func (p periods) around(at weir.Micros) (begin, end weir.Micros) {
	if p.calendar == nil {
		begin = at - at%p.length
		return begin, begin + p.length
	}
	b, _ := p.calendar.Bounds(at)
	return b[1], b[2]
}

// before returns the beginning of the interval that ends at an instant and is as long as a
// period. Periods of the calendar differ in length, and of them it contains none as a
// whole: see weir.Compiled.Bound.
func (p periods) before(at weir.Micros) weir.Micros {
	if p.calendar == nil {
		return at - p.length
	}
	b, _ := p.calendar.Bounds(at)
	return max(b[0], at-(b[2]-b[1]))
}

// theYear is when traffic without dates begins, if the limit needs a date: months differ.
var theYear = weir.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// start returns when traffic without dates begins: with a period, of the calendar the first
// one of the year.
func (p periods) start() weir.Micros {
	if p.calendar == nil {
		return 0
	}
	begin, end := p.around(theYear)
	if begin == theYear {
		return begin
	}
	return end
}

// first returns where the first periods of the traffic begin and end, counted from its start.
func (p periods) first() (bounds [5]weir.Micros) {
	at := p.start()
	for i := range bounds[1:] {
		_, at = p.around(at)
		bounds[i+1] = at - p.start()
	}
	return bounds
}

// instant writes a time for people: with the calendar, by the clocks of the zone.
func (p periods) instant(at weir.Micros) string {
	if p.calendar == nil {
		return clock(at)
	}
	t, layout := at.Time().In(p.zone), time.DateOnly
	switch midnight := t.Hour() == 0 && t.Minute() == 0; {
	case t.Nanosecond() != 0 || t.Second() != 0:
		layout = time.DateTime
	case !midnight:
		layout = "2006-01-02 15:04"
	}
	return t.Format(layout)
}

// nameOf is what a period is called: "1m", "a month".
func nameOf(limit weir.Limit) string {
	name := duration.Format(limit.Period)
	if limit.Period == weir.Month || limit.Period == weir.Year {
		return "a " + name
	}
	return name
}
