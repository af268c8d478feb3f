package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/notation"
)

// axis divides the simulated time into slices of equal and readable length.
type axis struct {
	Begin weir.Micros `json:"begin_us"`
	Slice weir.Micros `json:"slice_us"`
	Count int         `json:"slices"`
	Ticks []tick      `json:"ticks"` // what to write on it
}

// tick is an instant on the axis: the beginning of a period, if these can be told apart.
type tick struct {
	At    weir.Micros `json:"at_us"`
	Label string      `json:"label"`
}

// newAxis covers [first, last] with at most columns slices. It begins and ends
// with a period where that does not waste too much room, since windows do.
func newAxis(first, last weir.Micros, p periods, columns int) axis {
	begin, _ := p.around(first)
	_, end := p.around(last)
	from := weir.Micros(0) // slices are counted from here
	if p.calendar != nil {
		from = begin
	}
	if busy := last - first; busy > 0 {
		if first-begin > busy {
			begin = first
		}
		if end-last > busy/2 {
			end = last + 1
		}
	}
	a := axis{Slice: sliceLength(end-begin, columns), Ticks: []tick{}}
	for {
		a.Begin = begin - (begin-from)%a.Slice
		room := a.Slice * weir.Micros(columns)
		if end-a.Begin <= room {
			break
		}
		// Rounding the beginning down has cost a slice too many.
		a.Slice = sliceLength(room+1, columns)
	}
	a.Count = int((end - a.Begin + a.Slice - 1) / a.Slice)
	for _, at := range a.ticks(p) {
		a.Ticks = append(a.Ticks, tick{at, p.instant(at)})
	}
	return a
}

// slice returns which slice an instant is in.
func (a axis) slice(at weir.Micros) int {
	return min(a.Count-1, int((at-a.Begin)/a.Slice))
}

func (a axis) end() weir.Micros { return a.Begin + a.Slice*weir.Micros(a.Count) }

// sliceLength returns the shortest readable length of which at most columns
// cover the span.
func sliceLength(span weir.Micros, columns int) weir.Micros {
	for _, length := range readable {
		if length*weir.Micros(columns) >= span {
			return length
		}
	}
	length := readable[len(readable)-1]
	for length*weir.Micros(columns) < span {
		length *= 2
	}
	return length
}

// readable are the lengths at which people divide time, up to a day.
var readable = func() []weir.Micros {
	var lengths []weir.Micros
	for power := weir.Micros(1); power < 1_000_000; power *= 10 {
		lengths = append(lengths, power, 2*power, 5*power)
	}
	const second, minute, hour = 1_000_000, 60 * 1_000_000, 3600 * 1_000_000
	for _, unit := range []weir.Micros{second, minute} {
		for _, times := range []weir.Micros{1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30} {
			lengths = append(lengths, times*unit)
		}
	}
	for _, times := range []weir.Micros{1, 2, 3, 4, 6, 8, 12, 24} {
		lengths = append(lengths, times*hour)
	}
	return lengths
}()

// ticks returns the instants to write on the axis, as many as have room for
// their labels: ends of windows, where windows can be told apart.
func (a axis) ticks(p periods) []weir.Micros {
	const room = 10 // slices to a label
	step := p.length
	if p.length > a.end()-a.Begin || p.length < a.Slice {
		step = a.Slice * room
	}
	switch {
	case p.calendar == nil:
		for i := 0; step < a.Slice*room; i++ {
			step *= []weir.Micros{2, 5}[i%2] // so 1, 2, 10, 20, 100 times the period
		}
		return a.evenly(0, step)
	case step == p.length:
		return a.bounds(p, int((a.Slice*room+step-1)/step))
	case step > day:
		step = (step + day - 1) / day * day
	}
	begin, end := p.around(a.Begin)
	if end < a.end() {
		begin = end
	}
	return a.evenly(begin, step)
}

// evenly returns all instants that are a multiple of step from one of them.
func (a axis) evenly(from, step weir.Micros) (ticks []weir.Micros) {
	for at := a.Begin + ((from-a.Begin)%step+step)%step; at < a.end(); at += step {
		ticks = append(ticks, at)
	}
	return ticks
}

// bounds returns every n-th beginning of a period.
func (a axis) bounds(p periods, n int) (ticks []weir.Micros) {
	at, end := p.around(a.Begin)
	if at < a.Begin {
		at = end
	}
	for i := 0; at < a.end(); i++ {
		if i%n == 0 {
			ticks = append(ticks, at)
		}
		_, at = p.around(at)
	}
	return ticks
}

// clock writes an instant or a length of time for people: 1m30s, 14h59m, 12d. What begins 40
// years after the start was written as a date, and is again.
func clock(m weir.Micros) string {
	switch {
	case m == 0:
		return "0s"
	case m > 40*365*day:
		return m.Time().Format(time.DateOnly)
	case m%day == 0 || m > 1000*day:
		return fmt.Sprintf("%dd", m/day)
	}
	return strings.ReplaceAll(notation.Span(time.Duration(m)*time.Microsecond), "µ", "u")
}

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
	b, _ := p.calendar.Periods(at)
	return b[1], b[2]
}

// before returns the beginning of the interval that ends at an instant and is as long as a
// period. Periods of the calendar differ in length, and of them it contains none as a
// whole: see weir.Compiled.Bound.
func (p periods) before(at weir.Micros) weir.Micros {
	if p.calendar == nil {
		return at - p.length
	}
	b, _ := p.calendar.Periods(at)
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
	name := notation.FormatDuration(limit.Period)
	if limit.Period == weir.Month || limit.Period == weir.Year {
		return "a " + name
	}
	return name
}
