package simulate

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/traffic/chart"
)

// Look is how a report is drawn.
type Look struct {
	Width int  // of the page, in characters
	ASCII bool // for terminals and fonts without block characters
	Color bool // denials in red
}

// Margin is how much of a page the names of the lanes take from the timeline.
const Margin = 20

// WriteText draws the report: what was asked, a table, and a timeline.
func (r *Report) WriteText(w io.Writer, look Look) error {
	var b bytes.Buffer
	line := func(name, value string) {
		fmt.Fprintf(&b, "%-9s%s\n", name, notation.Cut(value, look.Width-9, look.ASCII))
	}
	line("limit", r.title())
	line("traffic", r.Traffic)
	line("offered", r.size())
	b.WriteByte('\n')
	rows := r.rows()
	rows[0][0] = fmt.Sprintf("%-*s", Margin-2, rows[0][0]) // as wide as the names beside the timeline
	b.WriteString(notation.Grid(rows, 1))
	b.WriteByte('\n')
	r.timeline(&b, look)
	b.WriteByte('\n')
	for _, note := range r.Notes {
		b.WriteString(notation.Wrap("Note: "+note, look.Width))
	}
	for _, l := range r.Lanes {
		if l.Delayed > 0 {
			note := fmt.Sprintf("%s delayed %s, the longest for %s.", l.Name, notation.Count(l.Delayed, "unit"), clock(l.LongestDelay))
			b.WriteString(notation.Wrap(note, look.Width))
		}
	}
	b.WriteString(notation.Wrap(r.Summary, look.Width))
	_, err := w.Write(b.Bytes())
	return err
}

// title is the limit, with its name if there are several.
func (r *Report) title() string {
	if r.Name == "" {
		return r.Limit
	}
	return r.Name + ": " + r.Limit
}

// size is how much there was, and when.
func (r *Report) size() string {
	size := notation.Count(int64(r.Requests), "request")
	if r.Offered != int64(r.Requests) {
		size += " for " + notation.Count(r.Offered, "unit")
	}
	if r.Keys > 1 {
		size += " from " + notation.Count(int64(r.Keys), "key")
	}
	return fmt.Sprintf("%s, seen from %s to %s", size, r.periods.instant(r.Axis.Begin), r.periods.instant(r.Axis.end()))
}

// rows is the head of the table and one row for each lane. What was offered is the
// same for all, and stands in the head of the page.
func (r *Report) rows() [][]string {
	rows := [][]string{{
		"algorithm", "allowed", "denied", "delayed",
		"most in " + nameOf(r.limit), "bound", "first denial",
	}}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, l := range r.Lanes {
		first := "-"
		if l.FirstDenial != nil {
			first = r.periods.instant(*l.FirstDenial)
		}
		rows = append(rows, []string{
			l.Name, number(l.Allowed), number(l.Denied), number(l.Delayed),
			number(l.Worst), number(l.Bound), first,
		})
	}
	return rows
}

// WriteCSV writes a line for each limit, algorithm and slice of time, which is
// named by its beginning in seconds from the start.
func WriteCSV(w io.Writer, reports []*Report) error {
	c := csv.NewWriter(w)
	c.Write([]string{"limit", "algorithm", "at", "offered", "allowed", "denied", "released", "remaining"})
	for _, r := range reports {
		for i := range r.Lanes {
			for slice := range r.Axis.Count {
				c.Write(r.record(&r.Lanes[i], slice))
			}
		}
	}
	c.Flush()
	return c.Error()
}

func (r *Report) record(l *Result, slice int) []string {
	at := int64(r.Axis.Begin) + int64(slice)*int64(r.Axis.Slice)
	fields := []string{r.title(), l.Name, strconv.FormatFloat(float64(at)/1e6, 'f', -1, 64)}
	for _, n := range []int64{
		r.Arrivals[slice], l.AllowedSlices[slice], l.DeniedSlices[slice], l.ReleasedSlices[slice], l.RemainingSlices[slice],
	} {
		fields = append(fields, strconv.FormatInt(n, 10))
	}
	return fields
}

// glyphs are the characters of a timeline.
type glyphs struct {
	levels []rune // from a little to the most
	denied rune
	guide  rune // where a window ends and nothing happens
	line   rune // the axis
	tick   rune
}

var (
	blocks = glyphs{levels: notation.Blocks, denied: '×', guide: '┊', line: '─', tick: '┴'}
	ascii  = glyphs{levels: []rune(".-=+oO0@"), denied: 'x', guide: ':', line: '-', tick: '+'}
)

// timeline draws what came, and for each lane what left and, below it, when
// something was denied. All rows have the same scale.
func (r *Report) timeline(b *bytes.Buffer, look Look) {
	g := blocks
	if look.ASCII {
		g = ascii
	}
	most := r.most()
	guides := r.guides()
	row := func(name, cells string) {
		fmt.Fprintf(b, "%-*s%s\n", Margin, name, strings.TrimRight(cells, " "))
	}
	bars := func(units []int64, most int64, levels []rune) string {
		cells := notation.Bars(units, most, levels)
		for column := range guides { // seen where nothing else is
			if cells[column] == ' ' {
				cells[column] = g.guide
			}
		}
		return string(cells)
	}
	row("offered", bars(r.Arrivals, most, g.levels))
	for _, l := range r.Lanes {
		row(l.Name, bars(l.ReleasedSlices, most, g.levels))
		if l.Denied > 0 {
			row("", paint(bars(l.DeniedSlices, 1, []rune{g.denied}), g.denied, look))
		}
	}
	axis := []rune(strings.Repeat(string(g.line), r.Axis.Count))
	for column := range guides {
		axis[column] = g.tick
	}
	row("", string(axis))
	row("", string(r.labels()))
	fmt.Fprintf(b, "\n%*s%c = %s in %s   %c = denied\n", Margin, "",
		g.levels[len(g.levels)-1], notation.Count(most, "unit"), clock(r.Axis.Slice), g.denied)
}

// most is the largest number of units in a slice, which is the height of a row.
func (r *Report) most() int64 {
	most := int64(1)
	for i, units := range r.Arrivals {
		most = max(most, units)
		for _, l := range r.Lanes {
			most = max(most, l.ReleasedSlices[i])
		}
	}
	return most
}

// guides are the columns that a tick stands in.
func (r *Report) guides() map[int]bool {
	columns := make(map[int]bool)
	for _, tick := range r.Axis.Ticks {
		columns[r.Axis.slice(tick.At)] = true
	}
	return columns
}

// paint makes the runs of denials red.
func paint(row string, denied rune, look Look) string {
	if !look.Color {
		return row
	}
	const red, plain = "\x1b[31m", "\x1b[0m"
	mark := string(denied)
	row = strings.ReplaceAll(row, mark, red+mark+plain)
	return strings.ReplaceAll(row, plain+red, "")
}

// labels writes the ticks' times under the axis, each from its column on.
func (r *Report) labels() []rune {
	var cells []rune
	for _, tick := range r.Axis.Ticks {
		column := r.Axis.slice(tick.At)
		if len(cells) > 0 && column <= len(cells) {
			continue
		}
		cells = append(cells, []rune(strings.Repeat(" ", column-len(cells))+tick.Label)...)
	}
	return cells
}

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
			Figure: r.picture(),
			Table:  &chart.Table{Head: rows[0], Rows: rows[1:]},
			Lines:  lines,
		})
	}
	return page.WriteHTML(w)
}

// picture is the timeline as a drawing: the same slices, and the budget besides.
func (r *Report) picture() *chart.Picture {
	p := &chart.Picture{
		Title: r.title(), Slices: r.Axis.Count,
		About: []string{notation.Cut(r.Traffic, 120, false), r.size()},
		Legend: []chart.Entry{
			{Ink: chart.Good, Text: "allowed"}, {Ink: chart.Bad, Text: "denied ×"}, {Ink: chart.Accent, Text: "remaining"},
		},
	}
	for _, tick := range r.Axis.Ticks {
		p.Ticks = append(p.Ticks, chart.Tick{
			Slice: float64(tick.At-r.Axis.Begin) / float64(r.Axis.Slice), Label: tick.Label,
		})
	}
	most := r.most()
	p.Lanes = append(p.Lanes, chart.Lane{
		Name: "offered", Most: most, Bars: []chart.Bars{{Ink: chart.Plain, Values: r.Arrivals}},
		Notes: []string{notation.Count(r.Offered, "unit"), fmt.Sprintf("full height: %d in %s", most, clock(r.Axis.Slice))},
	})
	delayed := false
	for i := range r.Lanes {
		p.Lanes = append(p.Lanes, r.Lanes[i].lane(most, nameOf(r.limit)))
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
