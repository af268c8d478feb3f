// Package chart draws lanes of bars over one time axis, and curves, as SVG and as pages of
// HTML that need nothing from elsewhere.
//
// It knows nothing of rate limits. The same picture gives the same bytes, so that
// pictures can be kept beside the text that they belong to and compared.
package chart

import (
	"cmp"
	"io"
)

// Ink is what a mark stands for, and so how it is painted. The names are classes
// in the style sheet.
type Ink string

const (
	Plain  Ink = "plain"  // what came, and nothing became of it yet
	Good   Ink = "good"   // what passed
	Bad    Ink = "bad"    // what was denied
	Faint  Ink = "faint"  // what passed later
	Accent Ink = "accent" // a line across the bars
)

// Picture is lanes one below the other. All have the same slices of time.
type Picture struct {
	Title string
	About []string // lines below the title

	Slices int
	Ticks  []Tick
	Lanes  []Lane
	Legend []Entry
}

// Tick is an instant that is written on the axis.
type Tick struct {
	Slice float64 // where, in slices from the left
	Label string
}

// Lane is one row of the picture.
type Lane struct {
	Name  string
	Notes []string // to the right of it, at most three

	// Bars are stacked upon each other in their order. A bar as high as Most fills
	// the lane; at least 1.
	Bars []Bars
	Most int64

	// Over are bars before the stack, narrower than it.
	Over *Bars

	// Marks are the slices that get a cross below.
	Marks []int64

	// Line goes across the lane, from 0 at the bottom to 1 at the top; nil for none.
	Line []float64
}

// Bars are one number for each slice.
type Bars struct {
	Ink    Ink
	Values []int64
}

// Entry explains an ink.
type Entry struct {
	Ink  Ink
	Text string
}

// Measures of a picture, in pixels.
const (
	width     = 960
	left      = 168 // of the lanes
	right     = 752
	laneHigh  = 46
	crossHigh = 10
	laneGap   = 12
	laneStep  = laneHigh + crossHigh + laneGap
	padding   = 20
)

// Figure is a Picture or Curves.
type Figure interface {
	name() string
	height() int            // how much room it needs
	draw(s *sheet, top int) // from a height on
}

// WriteSVG writes figures one below the other, as one document.
func WriteSVG[F Figure](w io.Writer, figures ...F) error {
	s := newSheet()
	high, title := 0, ""
	for _, f := range figures {
		high += f.height()
		title = cmp.Or(title, f.name())
	}
	s.open(width, high, title, true)
	top := 0
	for _, f := range figures {
		f.draw(s, top)
		top += f.height()
	}
	s.close()
	_, err := w.Write(s.b)
	return err
}

func (p *Picture) name() string { return p.Title }

func (p *Picture) height() int {
	return p.lanesTop() + laneStep*len(p.Lanes) + 30 + 24 + padding // the axis, and the legend
}

// lanesTop is where the first lane begins, below the title.
func (p *Picture) lanesTop() int {
	return padding + 22 + 18*len(p.About) + 14
}

// colours are those of a light page, and of a dark one for who prefers that.
const colours = `:root{--page:#fff;--ink:#1c2733;--soft:#5b6b7b;--rule:#d5dce3;--plain:#9aa9b8;--good:#2f7ed8;--faint:#b7d3f3;--bad:#d9483b;--accent:#b7791f}
@media (prefers-color-scheme:dark){:root{--page:#12181f;--ink:#e6edf3;--soft:#9aa7b4;--rule:#2f3a45;--plain:#6b7a89;--good:#4c9bf0;--faint:#274a70;--bad:#f0685a;--accent:#e0b050}}
`

// marks is how what is drawn is painted.
const marks = `text{font:12px ui-sans-serif,system-ui,sans-serif;fill:var(--ink)}
.title{font-size:15px;font-weight:600}.about,.note,.tick{fill:var(--soft)}.note,.tick{font-size:11px}.name{font-family:ui-monospace,monospace}
.page{fill:var(--page)}.base{stroke:var(--rule);fill:none}.guide{stroke:var(--rule);stroke-dasharray:2 3;fill:none}
.plain{fill:var(--plain)}.good{fill:var(--good)}.faint{fill:var(--faint)}.bad{fill:var(--bad)}
.accent{stroke:var(--accent);stroke-width:1.5;fill:none}.cross{stroke:var(--bad);stroke-width:1.3;fill:none}
`

const sheetStyle = colours + marks

const pageStyle = colours + marks + `body{margin:0 auto;max-width:1000px;padding:24px 16px;background:var(--page);color:var(--ink);font:15px/1.5 ui-sans-serif,system-ui,sans-serif}
h1{font-size:20px}h2{font-size:16px;margin-top:28px}svg{max-width:100%;height:auto}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:13px}th,td{padding:4px 12px 4px 0;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child,td:first-child,td.word,th.word{text-align:left}th{color:var(--soft);font-weight:500}p{max-width:72ch}
`
