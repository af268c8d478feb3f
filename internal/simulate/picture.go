package simulate

import (
	"fmt"
	"io"

	"github.com/weirhq/weir/internal/duration"
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
		About: []string{cut(r.Traffic, 120, false), r.size()},
		Legend: []chart.Entry{
			{Ink: chart.Good, Text: "passed"}, {Ink: chart.Bad, Text: "refused ×"}, {Ink: chart.Accent, Text: "budget left"},
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
		Notes: []string{plural(r.Offered, "unit"), fmt.Sprintf("full height: %d in %s", most, clock(r.Axis.Slice))},
	})
	held := false
	for i := range r.Lanes {
		p.Lanes = append(p.Lanes, r.Lanes[i].lane(most, duration.Format(r.limit.Period)))
		held = held || r.Lanes[i].Held > 0
	}
	if held {
		p.Legend = append(p.Legend, chart.Entry{Ink: chart.Faint, Text: "came, and left later"})
	}
	return p
}

// lane draws one result. What was admitted and refused add up to what came; what
// was held stands where it came, faintly, and where it left.
func (l *Result) lane(most int64, period string) chart.Lane {
	lane := chart.Lane{
		Name: l.Name, Most: most, Marks: l.RefusedSlices,
		Notes: []string{
			fmt.Sprintf("%d passed, %d refused", l.Admitted, l.Refused),
			fmt.Sprintf("most in %s: %d (bound %d)", period, l.Worst, l.Bound),
		},
	}
	passed := chart.Bars{Ink: chart.Good, Values: l.AdmittedSlices}
	if l.Held > 0 {
		passed.Ink = chart.Faint
		lane.Over = &chart.Bars{Ink: chart.Good, Values: l.ReleasedSlices}
		lane.Notes = append(lane.Notes, "held up to "+clock(l.LongestHold))
	}
	lane.Bars = []chart.Bars{passed, {Ink: chart.Bad, Values: l.RefusedSlices}}
	for _, left := range l.RemainingSlices {
		lane.Line = append(lane.Line, float64(left)/float64(max(1, l.Capacity)))
	}
	return lane
}
