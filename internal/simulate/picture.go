package simulate

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/duration"
	"github.com/weirhq/weir/internal/phrase"
	"github.com/weirhq/weir/internal/simulate/chart"
)

// PictureColumns is how many slices of time a picture has room for.
const PictureColumns = 146

// WriteSVG draws the reports, one below the other, as one picture.
func WriteSVG(w io.Writer, reports []*Report) error {
	var pictures []*chart.Picture
	for _, r := range reports {
		pictures = append(pictures, r.picture())
	}
	return chart.WriteSVG(w, pictures...)
}

// WriteHTML writes the reports as a page: a picture and a table of each.
func WriteHTML(w io.Writer, reports []*Report) error {
	page := chart.Page{Title: "weir simulate"}
	for _, r := range reports {
		rows := r.rows()
		lines := []string{r.Summary}
		for _, note := range r.Notes {
			lines = append(lines, "Note: "+note)
		}
		page.Parts = append(page.Parts, chart.Part{
			Picture: r.picture(),
			Table:   &chart.Table{Head: rows[0], Rows: rows[1:]},
			Lines:   lines,
		})
	}
	return page.WriteHTML(w)
}

// picture is the timeline as a drawing: the same slices, and the budget besides.
func (r *Report) picture() *chart.Picture {
	p := &chart.Picture{
		Title: r.title(), Slices: r.Axis.Count,
		About: []string{phrase.Cut(r.Traffic, 120, false), r.size()},
		Legend: []chart.Entry{
			{Ink: chart.Good, Text: "allowed"}, {Ink: chart.Bad, Text: "denied ×"}, {Ink: chart.Accent, Text: "remaining"},
		},
	}
	for _, at := range r.Axis.ticks(micros(r.limit)) {
		p.Ticks = append(p.Ticks, chart.Tick{
			Slice: float64(at-r.Axis.Begin) / float64(r.Axis.Slice), Label: clock(at),
		})
	}
	most := r.most()
	p.Lanes = append(p.Lanes, chart.Lane{
		Name: "offered", Most: most, Bars: []chart.Bars{{Ink: chart.Plain, Values: r.Arrivals}},
		Notes: []string{phrase.Count(r.Offered, "unit"), fmt.Sprintf("full height: %d in %s", most, clock(r.Axis.Slice))},
	})
	delayed := false
	for i := range r.Lanes {
		p.Lanes = append(p.Lanes, r.Lanes[i].lane(most, duration.Format(r.limit.Period)))
		delayed = delayed || r.Lanes[i].Delayed > 0
	}
	if delayed {
		p.Legend = append(p.Legend, chart.Entry{Ink: chart.Faint, Text: "arrived, and delayed"})
	}
	return p
}

// lane draws one result. What was allowed and denied add up to what came; what
// was delayed stands where it came, faintly, and where it left.
func (l *Result) lane(most int64, period string) chart.Lane {
	lane := chart.Lane{
		Name: l.Name, Most: most, Marks: l.DeniedSlices,
		Notes: []string{
			fmt.Sprintf("%d allowed, %d denied", l.Allowed, l.Denied),
			fmt.Sprintf("most in %s: %d (bound %d)", period, l.Worst, l.Bound),
		},
	}
	passed := chart.Bars{Ink: chart.Good, Values: l.AllowedSlices}
	if l.Delayed > 0 {
		passed.Ink = chart.Faint
		lane.Over = &chart.Bars{Ink: chart.Good, Values: l.ReleasedSlices}
		lane.Notes = append(lane.Notes, "delayed up to "+clock(l.LongestDelay))
	}
	lane.Bars = []chart.Bars{passed, {Ink: chart.Bad, Values: l.DeniedSlices}}
	for _, left := range l.RemainingSlices {
		lane.Line = append(lane.Line, float64(left)/float64(max(1, l.Capacity)))
	}
	return lane
}

// axis divides the simulated time into slices of equal and readable length.
type axis struct {
	Begin weir.Micros `json:"begin_us"`
	Slice weir.Micros `json:"slice_us"`
	Count int         `json:"slices"`
}

// newAxis covers [first, last] with at most columns slices. It begins and ends
// with a period where that does not waste too much room, since windows do.
func newAxis(first, last, period weir.Micros, columns int) axis {
	begin, end := first-first%period, last-last%period+period
	if busy := last - first; busy > 0 {
		if first-begin > busy {
			begin = first
		}
		if end-last > busy/2 {
			end = last + 1
		}
	}
	a := axis{Slice: sliceLength(end-begin, columns)}
	for {
		a.Begin = begin - begin%a.Slice
		room := a.Slice * weir.Micros(columns)
		if end-a.Begin <= room {
			break
		}
		// Rounding the beginning down has cost a slice too many.
		a.Slice = sliceLength(room+1, columns)
	}
	a.Count = int((end - a.Begin + a.Slice - 1) / a.Slice)
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
func (a axis) ticks(period weir.Micros) []weir.Micros {
	const room = 10 // slices to a label
	step := period
	if period > a.end()-a.Begin || period < a.Slice {
		step = a.Slice * room
	}
	for i := 0; step < a.Slice*room; i++ {
		step *= []weir.Micros{2, 5}[i%2] // so 1, 2, 10, 20, 100 times the period
	}
	var ticks []weir.Micros
	for at := (a.Begin + step - 1) / step * step; at < a.end(); at += step {
		ticks = append(ticks, at)
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
	return strings.ReplaceAll(phrase.Span(time.Duration(m)*time.Microsecond), "µ", "u")
}
