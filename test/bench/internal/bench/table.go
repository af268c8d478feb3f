package bench

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Table is Markdown and also lines up as it is. The first column is text and goes to the left; the
// others are figures, except those whose title begins with "<", which is cut off.
type Table struct {
	header []string
	rows   [][]string
}

// NewTable returns a table with these columns.
func NewTable(header ...string) *Table { return &Table{header: header} }

// Row adds a row, whose cells a bar divides.
func (t *Table) Row(format string, args ...any) {
	t.Cells(strings.Split(fmt.Sprintf(format, args...), "|"))
}

// Cells adds a row.
func (t *Table) Cells(cells []string) { t.rows = append(t.rows, cells) }

// String is the table, as it is written.
func (t *Table) String() string {
	var w strings.Builder
	titles, left, widths := make([]string, len(t.header)), make([]bool, len(t.header)), make([]int, len(t.header))
	for i, title := range t.header {
		titles[i], left[i] = strings.CutPrefix(title, "<")
		left[i] = left[i] || i == 0
		widths[i] = max(3, utf8.RuneCountInString(titles[i]))
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	line := func(cells []string) {
		for i, cell := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if left[i] {
				fmt.Fprintf(&w, "| %s%s ", cell, pad)
			} else {
				fmt.Fprintf(&w, "| %s%s ", pad, cell)
			}
		}
		w.WriteString("|\n")
	}
	line(titles)
	for i, width := range widths {
		if left[i] {
			fmt.Fprintf(&w, "|%s", strings.Repeat("-", width+2))
		} else {
			fmt.Fprintf(&w, "|%s:", strings.Repeat("-", width+1))
		}
	}
	w.WriteString("|\n")
	for _, row := range t.rows {
		line(row)
	}
	return w.String()
}

// Count writes a whole number with its thousands apart: 1 000 000.
func Count[N int | int64 | float64](n N) string {
	s := fmt.Sprint(int64(n))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// Things are so many of something: 1 key, 10 000 keys.
func Things(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Count(n) + " " + what + "s"
}

// Aim is a figure that is to stay below a bound or, where a suite says so, above it.
type Aim struct {
	What            string
	Bound, Measured float64
	AtLeast         bool
	Where           string // it was measured, if that is worth a column
}

// Verdict says whether the aim is met.
func (a Aim) Verdict() string {
	if a.Measured <= a.Bound && !a.AtLeast || a.Measured >= a.Bound && a.AtLeast {
		return "met"
	}
	return "missed"
}

// Worst lets a measurement replace the worst so far.
func (a *Aim) Worst(measured float64, where string) {
	if a.Where == "" || (measured < a.Measured) == a.AtLeast && measured != a.Measured {
		a.Measured, a.Where = measured, where
	}
}

// Aims returns a table of aims which are all of one kind. The title of the column for
// where they were measured may be empty.
func Aims(where string, aims []Aim) *Table {
	header := []string{"aim", "at most", "measured", "<verdict"}
	if len(aims) > 0 && aims[0].AtLeast {
		header[1] = "at least"
	}
	if where != "" {
		header = append(header[:3], "<"+where, "<verdict")
	}
	t := NewTable(header...)
	for _, a := range aims {
		if where == "" {
			t.Row("%s|%.2f|%.2f|%s", a.What, a.Bound, a.Measured, a.Verdict())
		} else {
			t.Row("%s|%.2f|%.2f|%s|%s", a.What, a.Bound, a.Measured, a.Where, a.Verdict())
		}
	}
	return t
}
