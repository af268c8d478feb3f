// Package chart draws lanes of bars over one time axis, and curves, as SVG and as pages of
// HTML that need nothing from elsewhere.
//
// It knows nothing of rate limits. The same picture gives the same bytes, so that
// pictures can be kept beside the text that they belong to and compared.
package chart

import (
	"cmp"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
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

// sheet collects the text of a document.
type sheet struct{ b []byte }

func newSheet() *sheet { return &sheet{b: make([]byte, 0, 32<<10)} }

// raw appends pieces of markup: strings as they are, and numbers in the shortest
// form that is exact to a hundredth.
func (s *sheet) raw(pieces ...any) {
	for _, piece := range pieces {
		switch v := piece.(type) {
		case string:
			s.b = append(s.b, v...)
		case Ink:
			s.b = append(s.b, v...)
		case int:
			s.b = strconv.AppendInt(s.b, int64(v), 10)
		case float64:
			s.b = strconv.AppendFloat(s.b, math.Round(v*100)/100, 'f', -1, 64)
		}
	}
}

var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// Escape makes any text fit for SVG and HTML. What people may have written is
// shown as text: no markup, and nothing that turns the direction of reading or
// that no document may have.
func Escape(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar || r == 0xfffe || r == 0xffff {
			return '\u00b7'
		}
		return r
	}, strings.ToValidUTF8(text, "\u00b7"))
	return markup.Replace(text)
}

func (s *sheet) open(wide, high int, title string, alone bool) {
	s.raw(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 `, wide, " ", high, `" width="`, wide, `" height="`, high, `" role="img" aria-label="`, Escape(title), "\">\n")
	if alone {
		s.raw("<style>", sheetStyle, "</style>\n", `<rect class="page" width="`, wide, `" height="`, high, "\"/>\n")
	}
}

func (s *sheet) close() { s.raw("</svg>\n") }

func (s *sheet) text(class string, x, y float64, text string) {
	s.raw(`<text class="`, class, `" x="`, x, `" y="`, y, `">`, Escape(text), "</text>\n")
}

// heading writes what a figure is about.
func (s *sheet) heading(title string, about []string, top int) {
	y := float64(top + padding + 14)
	s.text("title", padding, y, title)
	for _, line := range about {
		y += 18
		s.text("about", padding, y, line)
	}
}

func (p *Picture) draw(s *sheet, top int) {
	s.heading(p.Title, p.About, top)
	first := top + p.lanesTop()
	at := first
	for i := range p.Lanes {
		s.lane(p, &p.Lanes[i], at)
		at += laneStep
	}
	s.axis(p, first, at-laneGap/2)
	s.legend(p, at+40)
}

// column is where a slice begins.
func (p *Picture) column(slice float64) float64 {
	return left + (right-left)*slice/float64(max(1, p.Slices))
}

func (s *sheet) lane(p *Picture, l *Lane, top int) {
	base := float64(top + laneHigh)
	s.text("name", padding, base-laneHigh/2+5, l.Name)
	for i, note := range l.Notes {
		s.text("note", right+14, float64(top+14+16*i), note)
	}
	s.raw(`<path class="base" d="M`, float64(left), " ", base, "H", float64(right), "\"/>\n")
	scale := laneHigh / float64(max(1, l.Most))
	below := make([]float64, p.Slices)
	for _, bars := range l.Bars {
		s.bars(p, &bars, below, base, scale, 0)
	}
	if l.Over != nil {
		s.bars(p, l.Over, make([]float64, p.Slices), base, scale, 0.2)
	}
	if l.Line != nil {
		s.line(p, l.Line, base)
	}
	s.crosses(p, l.Marks, base+3)
}

// bars draws one path. Each bar stands on what is below it, and is added to that.
func (s *sheet) bars(p *Picture, bars *Bars, below []float64, base, scale, inset float64) {
	d := &sheet{}
	for i, value := range bars.Values {
		// What is more than nothing is seen, as long as there is room above.
		high := min(max(1, float64(value)*scale), laneHigh-below[i])
		if value <= 0 || high <= 0 {
			continue
		}
		from := base - below[i]
		d.raw("M", p.column(float64(i)+inset), " ", from, "V", from-high, "H", p.column(float64(i+1)-inset), "V", from, "z")
		below[i] += high
	}
	s.path(bars.Ink, d)
}

// path draws what was collected, if that is anything.
func (s *sheet) path(class Ink, d *sheet) {
	if len(d.b) > 0 {
		s.raw(`<path class="`, class, `" d="`, string(d.b), "\"/>\n")
	}
}

// line draws steps, one for each slice.
func (s *sheet) line(p *Picture, values []float64, base float64) {
	s.raw(`<path class="accent" d="`)
	for i, value := range values {
		y := base - laneHigh*min(max(value, 0), 1)
		if i == 0 {
			s.raw("M", p.column(0), " ", y)
		} else {
			s.raw("V", y)
		}
		s.raw("H", p.column(float64(i+1)))
	}
	s.raw("\"/>\n")
}

// crosses draws a cross below the slices that have a mark, as many as have room.
func (s *sheet) crosses(p *Picture, marks []int64, top float64) {
	const size = 5
	free, d := 0.0, &sheet{}
	for i, n := range marks {
		x := (p.column(float64(i))+p.column(float64(i+1)))/2 - size/2.0
		if n <= 0 || x < free {
			continue
		}
		d.raw("M", x, " ", top, "l5 5m0-5l-5 5")
		free = x + size + 2
	}
	s.path("cross", d)
}

// axis draws the ticks through all lanes, and their labels below.
func (s *sheet) axis(p *Picture, top, bottom int) {
	s.raw(`<path class="guide" d="`)
	for _, t := range p.Ticks {
		s.raw("M", p.column(t.Slice), " ", top, "V", bottom)
	}
	s.raw("\"/>\n")
	free := 0.0
	for _, t := range p.Ticks {
		x := p.column(t.Slice)
		if x < free {
			continue
		}
		s.text("tick", x, float64(bottom+14), t.Label)
		free = x + 8*float64(len(t.Label)) + 8
	}
}

func (s *sheet) legend(p *Picture, y int) {
	x := float64(left)
	for _, e := range p.Legend {
		if e.Ink == Accent {
			s.raw(`<path class="accent" d="M`, x, " ", y-5, "h12\"/>\n")
		} else {
			s.raw(`<path class="`, e.Ink, `" d="M`, x, " ", y-10, "h10v10h-10z\"/>\n")
		}
		s.text("tick", x+16, float64(y), e.Text)
		x += 16 + 6.6*float64(len([]rune(e.Text))) + 18
	}
}
