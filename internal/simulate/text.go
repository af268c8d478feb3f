package simulate

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/weirhq/weir/internal/phrase"
)

// Look is how a report is drawn.
type Look struct {
	Width int  // of the page, in characters
	ASCII bool // for terminals and fonts without block characters
	Color bool // denials in red
}

// Margin is how much of a page the names of the lanes take from the timeline.
const Margin = 20

// WriteText draws the report: what was asked, a table, and a timeline.
func (r *Report) WriteText(w io.Writer, look Look) error {
	var b bytes.Buffer
	line := func(name, value string) {
		fmt.Fprintf(&b, "%-9s%s\n", name, phrase.Cut(value, look.Width-9, look.ASCII))
	}
	line("limit", r.title())
	line("traffic", r.Traffic)
	line("offered", r.size())
	b.WriteByte('\n')
	rows := r.rows()
	rows[0][0] = fmt.Sprintf("%-*s", Margin-2, rows[0][0]) // as wide as the names beside the timeline
	b.WriteString(phrase.Grid(rows, 1))
	b.WriteByte('\n')
	r.timeline(&b, look)
	b.WriteByte('\n')
	for _, note := range r.Notes {
		b.WriteString(phrase.Wrap("Note: "+note, look.Width))
	}
	for _, l := range r.Lanes {
		if l.Delayed > 0 {
			note := fmt.Sprintf("%s delayed %s, the longest for %s.", l.Name, phrase.Count(l.Delayed, "unit"), clock(l.LongestDelay))
			b.WriteString(phrase.Wrap(note, look.Width))
		}
	}
	b.WriteString(phrase.Wrap(r.Summary, look.Width))
	_, err := w.Write(b.Bytes())
	return err
}

// title is the limit, with its name if there are several.
func (r *Report) title() string {
	if r.Name == "" {
		return r.Limit
	}
	return r.Name + ": " + r.Limit
}

// size is how much there was, and when.
func (r *Report) size() string {
	size := phrase.Count(int64(r.Requests), "request")
	if r.Offered != int64(r.Requests) {
		size += " for " + phrase.Count(r.Offered, "unit")
	}
	if r.Keys > 1 {
		size += " from " + phrase.Count(int64(r.Keys), "key")
	}
	return fmt.Sprintf("%s, seen from %s to %s", size, r.periods.instant(r.Axis.Begin), r.periods.instant(r.Axis.end()))
}

// rows is the head of the table and one row for each lane. What was offered is the
// same for all, and stands in the head of the page.
func (r *Report) rows() [][]string {
	rows := [][]string{{
		"algorithm", "allowed", "denied", "delayed",
		"most in " + nameOf(r.limit), "bound", "first denial",
	}}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, l := range r.Lanes {
		first := "-"
		if l.FirstDenial != nil {
			first = r.periods.instant(*l.FirstDenial)
		}
		rows = append(rows, []string{
			l.Name, number(l.Allowed), number(l.Denied), number(l.Delayed),
			number(l.Worst), number(l.Bound), first,
		})
	}
	return rows
}

// WriteCSV writes a line for each limit, algorithm and slice of time, which is
// named by its beginning in seconds from the start.
func WriteCSV(w io.Writer, reports []*Report) error {
	c := csv.NewWriter(w)
	c.Write([]string{"limit", "algorithm", "at", "offered", "allowed", "denied", "released", "remaining"})
	for _, r := range reports {
		for i := range r.Lanes {
			for slice := range r.Axis.Count {
				c.Write(r.record(&r.Lanes[i], slice))
			}
		}
	}
	c.Flush()
	return c.Error()
}

func (r *Report) record(l *Result, slice int) []string {
	at := int64(r.Axis.Begin) + int64(slice)*int64(r.Axis.Slice)
	fields := []string{r.title(), l.Name, strconv.FormatFloat(float64(at)/1e6, 'f', -1, 64)}
	for _, n := range []int64{
		r.Arrivals[slice], l.AllowedSlices[slice], l.DeniedSlices[slice], l.ReleasedSlices[slice], l.RemainingSlices[slice],
	} {
		fields = append(fields, strconv.FormatInt(n, 10))
	}
	return fields
}
