package simulate

import (
	"fmt"
	"io"

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
		About: []string{phrase.Cut(r.Traffic, 120, false), r.size()},
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
		Notes: []string{phrase.Count(r.Offered, "unit"), fmt.Sprintf("full height: %d in %s", most, clock(r.Axis.Slice))},
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
