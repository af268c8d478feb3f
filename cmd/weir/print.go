package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// printJSON prints an answer as it came, but for people, too.
func printJSON(w io.Writer, body []byte) error {
	var raw json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return errors.New("the response is not JSON; check --server")
	}
	return writeJSON(w, raw)
}

// writeJSON writes a value for programs, and for people who look at it.
func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// printable is a text from elsewhere, without anything that a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != ' ' {
			return '\uFFFD'
		}
		return r
	}, text)
}

// printableAll is printable, line by line.
func printableAll(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printable(strings.ReplaceAll(line, "\t", " "))
	}
	return strings.Join(lines, "\n")
}

// column cuts a text that would break a table.
func column(text string) string {
	const most = 60
	text = printable(text)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// say prints to standard output.
func say(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format, args...)
	return err
}

// printTable prints rows of cells below the names of their columns.
func printTable(b *strings.Builder, columns []string, rows [][]string) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{columns}, rows...) {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush() // a builder has no errors
}

// printList prints a row for each of some things below the names of the columns, or that there are none.
func printList[T any](b *strings.Builder, none string, columns []string, all []T, row func(*T) []string) {
	if len(all) == 0 {
		b.WriteString(none + "\n")
		return
	}
	rows := make([][]string, len(all))
	for i := range all {
		rows[i] = row(&all[i])
	}
	printTable(b, columns, rows)
}

// localTime is an instant by the clocks of this machine.
func localTime(t time.Time) string { return t.Local().Format(time.DateTime) }

// terminal is the height of the terminal that somebody looks at, and whether it is one that can
// be drawn on.
func terminal(w io.Writer) (rows int, ok bool) {
	file, isFile := w.(*os.File)
	if !isFile || os.Getenv("TERM") == "dumb" {
		return 0, false
	}
	return terminalRows(file)
}

// isTerminal reports whether a person looks on, who does not mind colours.
func isTerminal(w io.Writer) bool {
	_, ok := terminal(w)
	return ok && os.Getenv("NO_COLOR") == ""
}

// units are what a length of time is said in.
var units = []struct {
	length time.Duration
	name   string
}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}}

// span is a length of time to wait, as one would say it: rounded up, in at most two
// units.
func span(ms int64) string {
	d := time.Duration(min(ms, math.MaxInt64/int64(2*time.Millisecond))) * time.Millisecond
	up := func(to time.Duration) time.Duration { return (d + to - 1) / to * to }
	switch {
	case d < time.Second:
		return d.String()
	case d < 10*time.Second:
		return up(100 * time.Millisecond).String()
	}
	i := 0
	for d < units[i].length {
		i++
	}
	large, small := units[i], units[min(i+1, len(units)-1)]
	d = up(small.length)
	text := fmt.Sprintf("%d%s", d/large.length, large.name)
	if rest := d % large.length; rest > 0 {
		text += fmt.Sprintf("%d%s", rest/small.length, small.name)
	}
	return text
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

// decimal writes a number with a decimal if it is small. A server may say anything.
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
