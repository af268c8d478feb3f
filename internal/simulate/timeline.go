package simulate

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/weirhq/weir/internal/phrase"
)

// glyphs are the characters of a timeline.
type glyphs struct {
	levels []rune // from a little to the most
	denied rune
	guide  rune // where a window ends and nothing happens
	line   rune // the axis
	tick   rune
}

var (
	blocks = glyphs{levels: []rune("▁▂▃▄▅▆▇█"), denied: '×', guide: '┊', line: '─', tick: '┴'}
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
	row := func(name string, cells []rune) {
		fmt.Fprintf(b, "%-*s%s\n", Margin, name, strings.TrimRight(string(cells), " "))
	}
	row("offered", g.bars(r.Arrivals, most, guides))
	for _, l := range r.Lanes {
		row(l.Name, g.bars(l.ReleasedSlices, most, guides))
		if l.Denied > 0 {
			b.WriteString(paint(l.denials(g, guides), g.denied, look))
		}
	}
	axis := []rune(strings.Repeat(string(g.line), r.Axis.Count))
	for column := range guides {
		axis[column] = g.tick
	}
	row("", axis)
	row("", r.labels())
	fmt.Fprintf(b, "\n%*s%c = %s in %s   %c = denied\n", Margin, "",
		g.levels[len(g.levels)-1], phrase.Count(most, "unit"), clock(r.Axis.Slice), g.denied)
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

// bars draws units as levels. What is more than nothing is seen, however small.
func (g *glyphs) bars(units []int64, most int64, guides map[int]bool) []rune {
	cells := g.blank(len(units), guides)
	for i, n := range units {
		if n > 0 {
			level := int(math.Ceil(float64(n) / float64(most) * float64(len(g.levels))))
			cells[i] = g.levels[min(max(level, 1), len(g.levels))-1]
		}
	}
	return cells
}

func (g *glyphs) blank(columns int, guides map[int]bool) []rune {
	cells := make([]rune, columns)
	for i := range cells {
		cells[i] = ' '
		if guides[i] {
			cells[i] = g.guide
		}
	}
	return cells
}

func (l *Result) denials(g glyphs, guides map[int]bool) string {
	cells := g.blank(len(l.DeniedSlices), guides)
	for i, n := range l.DeniedSlices {
		if n > 0 {
			cells[i] = g.denied
		}
	}
	return strings.Repeat(" ", Margin) + strings.TrimRight(string(cells), " ") + "\n"
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
