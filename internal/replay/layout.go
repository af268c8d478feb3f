package replay

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// grid prints rows; columns from words on are flush right, those before flush left.
func grid(b *bytes.Buffer, rows [][]string, words int) {
	words = max(words, 2)
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if i < words {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// stamp writes an instant for people, to the second.
func stamp(i Instant) string { return i.time().Format(time.DateTime) }

// clockText is an end of the axis: the time of day, or the day if slices are long.
func clockText(i Instant, slice int64) string {
	if slice >= 3600*1_000_000 {
		return i.time().Format(time.DateOnly)
	}
	return i.time().Format(time.TimeOnly)
}

// length writes microseconds for people: 250ms, 29m46s, 3h, 2d4h.
func length(micros int64) string {
	d := time.Duration(micros) * time.Microsecond
	switch {
	case d >= 48*time.Hour:
		d = d.Round(time.Hour)
		hours := int64(d.Hours())
		if hours%24 == 0 {
			return fmt.Sprintf("%dd", hours/24)
		}
		return fmt.Sprintf("%dd%dh", hours/24, hours%24)
	case d >= time.Minute:
		d = d.Round(time.Second)
	}
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// cut shortens what people may have written at any length, and spells out what
// would upset a terminal.
func cut(s string, width int) string {
	if quoted := strconv.QuoteToGraphic(s); quoted[1:len(quoted)-1] != s {
		s = quoted
	}
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(0, width-1)]) + "…"
}

// wrap breaks a sentence into lines.
func wrap(s string, width int) string {
	var b strings.Builder
	used := 0
	for _, word := range strings.Fields(s) {
		n := utf8.RuneCountInString(word)
		if used > 0 && used+1+n > width {
			b.WriteByte('\n')
			used = 0
		} else if used > 0 {
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String() + "\n"
}
