package chart

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Curves are lines between two logarithmic axes. Equal steps are equal factors, so a cost that
// does not grow is a horizontal line, and one that grows as fast as x has the slope of the
// guides.
type Curves struct {
	Title string
	About []string // lines below the title
	X, Y  string   // what the axes are, with units
	Lines []Curve
}

// Curve is one line, from left to right. Its name is written at its end.
type Curve struct {
	Name   string
	Ink    Ink
	Points []Point
}

// Point has coordinates above 0.
type Point struct{ X, Y float64 }

// Measures of curves, in pixels.
const (
	curvesLeft  = 76
	curvesRight = 720
	curvesHigh  = 260
	nameHigh    = 15 // of the text at the end of a line
)

const curvesStyle = `.curve{stroke-width:2;fill:none}.curve.plain{stroke:var(--plain)}.curve.good{stroke:var(--good)}.curve.bad{stroke:var(--bad)}.curve.accent{stroke:var(--accent)}circle.accent{fill:var(--accent)}`

func (c *Curves) name() string { return c.Title }

func (c *Curves) top() int { return padding + 22 + 18*len(c.About) + 22 }

func (c *Curves) height() int { return c.top() + curvesHigh + 50 }

// span is what an axis shows: logarithms to base 10, and where they are drawn.
type span struct{ least, most, from, to float64 }

func (s span) at(value float64) float64 {
	return s.from + (s.to-s.from)*(math.Log10(value)-s.least)/(s.most-s.least)
}

// ticks are round numbers within the span: powers of ten, and if these are few, twice and five
// times as many, too.
func (s span) ticks() (out []float64) {
	steps := []float64{1}
	if s.most-s.least < 2.5 {
		steps = []float64{1, 2, 5}
	}
	const near = 1e-9
	for decade := math.Floor(s.least); decade <= s.most; decade++ {
		for _, step := range steps {
			if l := decade + math.Log10(step); l >= s.least-near && l <= s.most+near {
				out = append(out, step*math.Pow(10, decade))
			}
		}
	}
	return out
}

// spans are the axes: x as wide as the points, y with room to see small differences as small.
func (c *Curves) spans(top int) (x, y span) {
	x = span{math.Inf(1), math.Inf(-1), curvesLeft, curvesRight}
	y = span{math.Inf(1), math.Inf(-1), float64(top + curvesHigh), float64(top)}
	for _, l := range c.Lines {
		for _, p := range l.Points {
			x.least, x.most = min(x.least, math.Log10(p.X)), max(x.most, math.Log10(p.X))
			y.least, y.most = min(y.least, math.Log10(p.Y)), max(y.most, math.Log10(p.Y))
		}
	}
	const room = 0.1
	y.least, y.most = y.least-room, y.most+room
	if missing := 1.5 - (y.most - y.least); missing > 0 {
		y.least, y.most = y.least-missing/2, y.most+missing/2
	}
	if x.most-x.least < room {
		x.least, x.most = x.least-room, x.most+room
	}
	return x, y
}

func (c *Curves) draw(s *sheet, top int) {
	s.raw("<style>", curvesStyle, "</style>\n")
	s.heading(c.Title, c.About, top)
	top += c.top()
	bottom := float64(top + curvesHigh)
	x, y := c.spans(top)
	s.text("tick", padding, float64(top-10), c.Y)
	for _, t := range y.ticks() {
		s.raw(`<path class="guide" d="M`, curvesLeft, " ", y.at(t), "H", curvesRight, "\"/>\n")
		s.text("tick", padding, y.at(t)+4, short(t))
	}
	for _, t := range x.ticks() {
		s.raw(`<path class="base" d="M`, x.at(t), " ", bottom, "v5\"/>\n")
		s.text("tick", x.at(t)-4, bottom+18, short(t))
	}
	s.raw(`<path class="base" d="M`, curvesLeft, " ", bottom, "H", curvesRight, "\"/>\n")
	s.text("tick", curvesLeft, bottom+36, c.X)
	for _, l := range c.Lines {
		s.curve(&l, x, y)
	}
	for i, at := range c.names(y) {
		s.text("note", curvesRight+14, at+4, c.Lines[i].Name)
		s.raw(`<path class="curve `, c.Lines[i].Ink, `" d="M`, curvesRight+3, " ", at, "h8\"/>\n")
	}
}

func (s *sheet) curve(l *Curve, x, y span) {
	s.raw(`<path class="curve `, l.Ink, `" d="`)
	for i, p := range l.Points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		s.raw(command, x.at(p.X), " ", y.at(p.Y))
	}
	s.raw("\"/>\n")
	for _, p := range l.Points {
		s.raw(`<circle class="`, l.Ink, `" cx="`, x.at(p.X), `" cy="`, y.at(p.Y), "\" r=\"2.5\"/>\n")
	}
}

// names are the heights of the lines' names: at their ends, but none over another.
func (c *Curves) names(y span) []float64 {
	heights, order := make([]float64, len(c.Lines)), make([]int, len(c.Lines))
	for i, l := range c.Lines {
		heights[i], order[i] = y.at(l.Points[len(l.Points)-1].Y), i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(heights[i], heights[j]) })
	for k := 1; k < len(order); k++ {
		heights[order[k]] = max(heights[order[k]], heights[order[k-1]]+nameHigh)
	}
	return heights
}

// short writes a round number: 200, 5 k, 10 M.
func short(n float64) string {
	unit := ""
	for _, larger := range []string{" k", " M", " G"} {
		if n < 1000-1e-6 {
			break
		}
		n, unit = n/1000, larger
	}
	return strconv.FormatFloat(n, 'g', 4, 64) + unit
}
