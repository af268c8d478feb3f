package chart

import "io"

// Ink is what a mark stands for, and so how it is painted. The names are classes
// in the style sheet.
type Ink string

const (
	Plain  Ink = "plain"  // what came, and nothing became of it yet
	Good   Ink = "good"   // what passed
	Bad    Ink = "bad"    // what was refused
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
	padding   = 20
)

// WriteSVG writes pictures one below the other, as one document.
func WriteSVG(w io.Writer, pictures ...*Picture) error {
	s := newSheet()
	high := 0
	for _, p := range pictures {
		high += p.height()
	}
	s.open(width, high, describe(pictures), true)
	top := 0
	for _, p := range pictures {
		s.picture(p, top)
		top += p.height()
	}
	s.close()
	_, err := w.Write(s.b)
	return err
}

func describe(pictures []*Picture) string {
	if len(pictures) == 0 {
		return ""
	}
	return pictures[0].Title
}

// height is how much room the picture needs.
func (p *Picture) height() int {
	h := p.lanesTop()
	for i := range p.Lanes {
		h += p.Lanes[i].height()
	}
	return h + 30 + 24 + padding // the axis, and the legend
}

// lanesTop is where the first lane begins, below the title.
func (p *Picture) lanesTop() int {
	return padding + 22 + 18*len(p.About) + 14
}

func (l *Lane) height() int { return laneHigh + crossHigh + laneGap }
