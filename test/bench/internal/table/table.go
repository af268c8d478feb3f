// Package table writes tables that are Markdown and also line up as they are.
package table

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Write writes a header and rows of as many cells. The first column is text and
// goes to the left; the others are figures, except those whose title begins
// with "<", which is cut off.
func Write(w io.Writer, header []string, rows [][]string) error {
	titles, left, widths := columns(header)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	line(&b, titles, left, widths)
	for i, width := range widths {
		if left[i] {
			fmt.Fprintf(&b, "|%s", strings.Repeat("-", width+2))
		} else {
			fmt.Fprintf(&b, "|%s:", strings.Repeat("-", width+1))
		}
	}
	b.WriteString("|\n")
	for _, row := range rows {
		line(&b, row, left, widths)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func columns(header []string) (titles []string, left []bool, widths []int) {
	for i, title := range header {
		text, marked := strings.CutPrefix(title, "<")
		titles = append(titles, text)
		left = append(left, i == 0 || marked)
		widths = append(widths, max(3, utf8.RuneCountInString(text)))
	}
	return titles, left, widths
}

func line(b *strings.Builder, cells []string, left []bool, widths []int) {
	for i, cell := range cells {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if left[i] {
			fmt.Fprintf(b, "| %s%s ", cell, pad)
		} else {
			fmt.Fprintf(b, "| %s%s ", pad, cell)
		}
	}
	b.WriteString("|\n")
}

// Count writes a whole number with its thousands apart: 1 000 000.
func Count(n int64) string {
	s := fmt.Sprint(n)
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
	return Count(int64(n)) + " " + what + "s"
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

// WriteAims writes a table of aims which are all of one kind. The title of the column for
// where they were measured may be empty.
func WriteAims(w io.Writer, where string, aims []Aim) error {
	header := []string{"aim", "at most", "measured"}
	if len(aims) > 0 && aims[0].AtLeast {
		header[1] = "at least"
	}
	if where != "" {
		header = append(header, "<"+where)
	}
	var rows [][]string
	for _, a := range aims {
		row := []string{a.What, fmt.Sprintf("%.2f", a.Bound), fmt.Sprintf("%.2f", a.Measured)}
		if where != "" {
			row = append(row, a.Where)
		}
		rows = append(rows, append(row, a.Verdict()))
	}
	return Write(w, append(header, "<verdict"), rows)
}
