package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// colour is how a terminal shows a text: parameters of ANSI's "select graphic rendition".
type colour string

const (
	plain  colour = ""
	strong colour = "1"
	faint  colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	alarm  colour = "1;31"
)

// piece is a part of a line in one colour. Its text is harmless: see cell.
type piece struct {
	text   string
	colour colour
}

// line is a line of a screen.
type line []piece

// text is a line that begins with a text.
func text(c colour, format string, args ...any) line { return line{{fmt.Sprintf(format, args...), c}} }

func (l *line) add(c colour, format string, args ...any) {
	*l = append(*l, piece{fmt.Sprintf(format, args...), c})
}

func (l line) width() int {
	n := 0
	for _, s := range l {
		n += textWidth(s.text)
	}
	return n
}

// render is the line within a width, with colours or without.
func (l line) render(width int, coloured bool) string {
	var b strings.Builder
	for _, s := range l {
		text := s.text
		if textWidth(text) > width {
			text = clipped(text, width)
		}
		width -= textWidth(text)
		if coloured && s.colour != plain && text != "" {
			fmt.Fprintf(&b, "\x1b[%sm%s\x1b[0m", s.colour, text)
		} else {
			b.WriteString(text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// cell is a text from elsewhere in a column: nothing that a terminal would obey, cut or
// filled up to a width.
func cell(text string, width int) string {
	text = clipped(printable(text), width)
	return text + strings.Repeat(" ", max(0, width-textWidth(text)))
}

// clipped cuts a text that is too wide. It also cuts one with many characters that take
// no room, which would be drawn over its neighbours.
func clipped(text string, width int) string {
	if textWidth(text) <= width && len(text) <= 8*width {
		return text
	}
	var b strings.Builder
	used, runes := 0, 0
	for _, r := range text {
		if runes++; used+runeWidth(r) > width-1 || runes > 2*width {
			break
		}
		used += runeWidth(r)
		b.WriteRune(r)
	}
	if width > 0 {
		b.WriteRune('…')
	}
	return b.String()
}

func textWidth(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

// wide are the scripts and signs that terminals draw two columns wide, roughly: a line
// may end early because of it, and does not run over.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x231b, Stride: 1}, {Lo: 0x23e9, Hi: 0x23f3, Stride: 1},
		{Lo: 0x25fd, Hi: 0x25fe, Stride: 1}, {Lo: 0x2614, Hi: 0x2615, Stride: 1}, {Lo: 0x2648, Hi: 0x2653, Stride: 1}, {Lo: 0x267f, Hi: 0x27bf, Stride: 1},
		{Lo: 0x2b1b, Hi: 0x2b55, Stride: 1}, {Lo: 0x2e80, Hi: 0xa4cf, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe10, Hi: 0xfe19, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x16fe0, Hi: 0x1b2ff, Stride: 1}, {Lo: 0x1f000, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// pencil is what graphs are made of.
type pencil struct{ levels, bar []rune }

var (
	unicodePencil = pencil{[]rune("▁▂▃▄▅▆▇█"), []rune("█░")}
	asciiPencil   = pencil{[]rune("_.-:=+*#"), []rune("#.")}
)

// spark draws values in a width, the latest at the right. Those below 0 are unknown. A
// width that is too small for all shows the highest of neighbours.
func (p pencil) spark(values []float64, width int) string {
	cells := min(width, len(values))
	if cells < 1 {
		return ""
	}
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	drawn := make([]rune, cells)
	for i := range drawn {
		v := -1.0
		for _, x := range values[i*len(values)/cells : (i+1)*len(values)/cells] {
			v = max(v, x)
		}
		switch {
		case v < 0:
			drawn[i] = ' '
		case v == 0 || top == 0:
			drawn[i] = p.levels[0]
		default:
			highest := float64(len(p.levels) - 1)
			drawn[i] = p.levels[int(max(1, math.Round(highest*v/top)))]
		}
	}
	return string(drawn)
}

// share draws a part of a whole.
func (p pencil) share(part float64, width int) string {
	full := int(math.Round(min(1, max(0, part)) * float64(width)))
	if part > 0 && width > 0 {
		full = max(1, full)
	}
	return strings.Repeat(string(p.bar[0]), full) + strings.Repeat(string(p.bar[1]), width-full)
}

// grouped writes a number as people read it: 12,345.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// perSecond is a rate: with a decimal if it is small. A server may say anything.
func perSecond(rate float64) string {
	if n := decimal(rate); n != "?" {
		return n + "/s"
	}
	return "?"
}

// decimal writes a number with a decimal if it is small.
func decimal(n float64) string {
	switch {
	case !(math.Abs(n) < 1e15):
		return "?"
	case n > 0 && n < 9.95:
		return fmt.Sprintf("%.1f", n)
	}
	return grouped(int64(math.Round(n)))
}

func percent(share float64) string {
	if !(math.Abs(share) < 1e6) {
		return "?"
	}
	if share > 0 && share < 0.0005 {
		return "< 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// micros writes a length of time in the unit that suits it.
func micros(us float64) string {
	switch {
	case !(us >= 0 && us < 1e15):
		return "?"
	case us < 9.95:
		return fmt.Sprintf("%.1f µs", us)
	case us < 999.5:
		return fmt.Sprintf("%.0f µs", us)
	case us < 9_950:
		return fmt.Sprintf("%.1f ms", us/1e3)
	case us < 999_500:
		return fmt.Sprintf("%.0f ms", us/1e3)
	}
	return fmt.Sprintf("%.1f s", us/1e6)
}
