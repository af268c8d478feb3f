package notation

import (
	"fmt"
	"math"
	"slices"
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

// NameHere returns what is called by a well-known word elsewhere: its name here, or "".
// Elsewhere is by that word in small letters with underscores; case, dashes and spaces
// make no difference.
func NameHere(word string, elsewhere map[string]string) string {
	const longest = 64
	if len(word) > longest {
		return ""
	}
	return elsewhere[strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(word))]
}

// Hint is what to say of a word that is unknown: which one was probably meant, or else what
// otherwise helps.
func Hint(word string, known []string, otherwise string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

// Nearest returns the candidate closest to word, or "" when none is near
// enough to be worth suggesting: a third of the letters may be wrong.
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", max(1, (len(word)+1)/3)+1
	for _, c := range candidates {
		if d := distance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete, replace or swap with the next between a
// and b. Words longer than any sensible name are simply far apart, so that
// hostile input costs nothing.
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return math.MaxInt
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			replaced := row[j]
			if a[i] != b[j] {
				replaced++
			}
			next[j+1] = min(replaced, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}

// Setting is one of them.
type Setting struct {
	Name, Value string
	Options     []Option
}

// Option is something that is said besides.
type Option struct{ Name, Value string }

// Bounds on a text that is read.
const (
	maxText     = 64 << 10
	maxSettings = 1000
)

// ParseSettings reads settings that are separated by semicolons. Blanks around words do not
// matter.
func ParseSettings(text string) ([]Setting, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("more than %d characters; shorten it", maxText)
	}
	var all []Setting
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		if len(all) == maxSettings {
			return nil, fmt.Errorf("more than %d settings; write fewer", maxSettings)
		}
		s, err := one(part)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func one(text string) (s Setting, err error) {
	for i, word := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(word, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !ok || name == "" || value == "":
			return Setting{}, fmt.Errorf("%q is invalid; write name=value", strings.TrimSpace(word))
		case i == 0:
			s.Name, s.Value = name, value
			continue
		case slices.ContainsFunc(s.Options, func(o Option) bool { return o.Name == name }):
			return Setting{}, fmt.Errorf("%q sets %s twice; write it once", strings.TrimSpace(text), name)
		}
		s.Options = append(s.Options, Option{name, value})
	}
	return s, nil
}
