package notation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Count says how many there are of a thing.
func Count[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Join puts the names of things together.
func Join[T fmt.Stringer](things []T, between string) string {
	names := make([]string, len(things))
	for i, thing := range things {
		names[i] = thing.String()
	}
	return strings.Join(names, between)
}

// Cut shortens what people may have written at any length, and spells out what would
// upset a terminal.
func Cut(s string, width int, ascii bool) string {
	quoted, dots := strconv.QuoteToGraphic(s), "…"
	if ascii {
		quoted, dots = strconv.QuoteToASCII(s), "..."
	}
	if quoted[1:len(quoted)-1] != s {
		s = quoted
	}
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	keep := max(0, width-utf8.RuneCountInString(dots))
	return string([]rune(s)[:keep]) + dots
}

// Wrap breaks a sentence into lines.
func Wrap(s string, width int) string {
	var b strings.Builder
	used := 0
	for _, word := range strings.Fields(s) {
		length := utf8.RuneCountInString(word)
		switch {
		case used == 0:
		case used+1+length > width:
			b.WriteByte('\n')
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += length
	}
	return b.String() + "\n"
}

// Grid writes rows of as many cells each. The first columns, so many, are flush left, and
// the others, which are numbers, flush right.
func Grid(rows [][]string, left int) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if i < left {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// Blocks are the characters of Bars.
var Blocks = []rune("▁▂▃▄▅▆▇█")

// Bars draws a row of values, the most of which is as high as a line, with characters from low
// to high. What is more than nothing is seen, however small.
func Bars[N int64 | float64](values []N, most N, levels []rune) []rune {
	cells := make([]rune, len(values))
	for i, v := range values {
		cells[i] = ' '
		if v > 0 {
			level := int(math.Ceil(float64(v) / float64(most) * float64(len(levels))))
			cells[i] = levels[min(max(level, 1), len(levels))-1]
		}
	}
	return cells
}

// Span writes a length of time without the units of which there are none: 1h, not 1h0m0s.
func Span(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
