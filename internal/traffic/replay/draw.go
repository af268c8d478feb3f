package replay

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/traffic/chart"
)

// maxRows bounds the rules in a table for people; programs get all of them.
const maxRows = 50

// WriteText writes the report for people, on a page of so many characters.
func (r *Report) WriteText(w io.Writer, width int) error {
	var b bytes.Buffer
	r.head(&b, width)
	if r.Requests > 0 {
		b.WriteByte('\n')
		b.WriteString(notation.Grid(r.ruleRows(), 2))
		r.timeline(&b, width)
		if len(r.Top) > 0 {
			b.WriteString("\nclients denied most\n")
			b.WriteString(notation.Grid(r.topRows(), 2))
		}
		if rows := r.limitRows(); len(rows) > 1 {
			b.WriteString("\nlimits and their denied share\n")
			b.WriteString(notation.Grid(rows, 2))
		}
	}
	r.foot(&b, width)
	_, err := w.Write(b.Bytes())
	return err
}

func (r *Report) head(b *bytes.Buffer, width int) {
	line := func(name, text string) {
		fmt.Fprintf(b, "%-10s%s\n", name, notation.Cut(text, width-10, false))
	}
	line("log", fmt.Sprintf("%s: %s", strings.Join(r.Logs, ", "), notation.Count(r.Lines, "line")))
	if r.Requests > 0 {
		line("time", fmt.Sprintf("%s to %s UTC, %s", stamp(r.From), stamp(r.To), length(int64(r.To-r.From))))
	}
	line("requests", fmt.Sprintf("%d: %d allowed, %d denied (%s)", r.Requests, r.Allowed, r.Denied, percent(share(r.Denied, r.Requests))))
	var besides []string
	for _, part := range []struct {
		n    int64
		text string
	}{
		{r.Exempt, "exempt"}, {r.Blocked, "blocked"}, {r.Free, "without a rule"}, {r.Delayed, "delayed for up to " + length(r.Longest)},
	} {
		if part.n > 0 {
			besides = append(besides, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	if len(besides) > 0 {
		line("", "of them "+strings.Join(besides, ", "))
	}
}

// ruleRows is the table of rules.
func (r *Report) ruleRows() [][]string {
	rows := [][]string{{"rule", "limits", "applied", "denied", "share", "clients denied"}}
	for i, rule := range r.Rules {
		if i == maxRows {
			rows = append(rows, []string{fmt.Sprintf("and %d more", len(r.Rules)-i), "", "", "", "", ""})
			break
		}
		name := rule.ID
		if mode := rule.Mode.String(); mode != "enforce" {
			name += " (" + mode + ")"
		}
		clients := strconv.FormatInt(rule.Clients, 10)
		if rule.ClientsMore {
			clients = "≥ " + clients
		}
		rows = append(rows, []string{
			name, notation.Cut(strings.Join(rule.Limits, ", "), 40, false), strconv.FormatInt(rule.Applied, 10), strconv.FormatInt(rule.Denied, 10),
			percent(share(rule.Denied, rule.Applied)), clients,
		})
		for _, l := range rule.Levels {
			rows = append(rows, []string{
				"  " + l.Level, notation.Cut(strings.Join(l.Limits, ", "), 40, false), strconv.FormatInt(l.Applied, 10), strconv.FormatInt(l.Denied, 10),
				percent(share(l.Denied, l.Applied)), "",
			})
		}
	}
	return rows
}

func (r *Report) topRows() [][]string {
	rows := [][]string{{"client", "rule", "denied", "first", "last"}}
	when := stamp
	if r.From.time().Format(time.DateOnly) == r.To.time().Format(time.DateOnly) {
		when = func(i Instant) string { return i.time().Format(time.TimeOnly) } // the day stands above
	}
	for _, t := range r.Top {
		count := strconv.FormatInt(t.Denied, 10)
		if t.TooHigh > 0 {
			count = fmt.Sprintf("%d to %d", t.Denied-t.TooHigh, t.Denied)
		}
		rows = append(rows, []string{notation.Cut(t.Client, 50, false), t.Rule, count, when(t.First), when(t.Last)})
	}
	return rows
}

// levelName is a rule, or one of its levels.
func levelName(rule, level string) string {
	if level == "" {
		return rule
	}
	return rule + ":" + level
}

// limitRows is the table of suggestions.
func (r *Report) limitRows() [][]string {
	rows := [][]string{{"rule", "limit", "alone"}}
	for _, rule := range r.Rules {
		for _, s := range rule.Suggestions {
			if len(rows) == 1 {
				for _, f := range s.For {
					rows[0] = append(rows[0], "for "+percent(f.Share))
				}
			}
			if len(rows) > maxRows {
				return rows
			}
			row := []string{levelName(rule.ID, s.Level), s.Limit, percent(s.Share)}
			for _, f := range s.For {
				_, brief, _ := strings.Cut(f.Limit, " ") // without the algorithm, which is that of the limit
				row = append(row, cmp.Or(brief, "none"))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// timeline draws requests and the denied share over time.
func (r *Report) timeline(b *bytes.Buffer, width int) {
	const margin = 10
	o := r.over(max(10, width-margin))
	most := most(o.Requests)
	shares, top := make([]float64, len(o.Requests)), 0.0
	for i, n := range o.Requests {
		shares[i] = share(o.Denied[i], n)
		top = max(top, shares[i])
	}
	row := func(name string, bars []rune) {
		fmt.Fprintf(b, "%-*s%s\n", margin, name, strings.TrimRight(string(bars), " "))
	}
	b.WriteByte('\n')
	row("requests", notation.Bars(o.Requests, most, notation.Blocks))
	row("denied", notation.Bars(shares, top, notation.Blocks))
	from, to := clockText(o.Begin, o.Slice), clockText(o.Begin+Instant(o.Slice*int64(len(o.Requests))), o.Slice)
	axis := from
	if gap := len(o.Requests) - len(from) - len(to); gap > 0 {
		axis += strings.Repeat(" ", gap) + to
	}
	fmt.Fprintf(b, "%*s%s\n%*s█ = %s in %s, or %s of them denied\n", margin, "", axis,
		margin, "", notation.Count(most, "request"), length(o.Slice), percent(top))
}

func (r *Report) foot(b *bytes.Buffer, width int) {
	if r.Bad > 0 {
		fmt.Fprintf(b, "\n%s could not be parsed:\n", notation.Count(r.Bad, "line"))
		for _, bad := range r.BadLines {
			fmt.Fprintf(b, "  %s\n", notation.Cut(fmt.Sprintf("%s:%d: %s", bad.Log, bad.Line, bad.Reason), max(width, 160), false))
			if bad.Text != `""` {
				fmt.Fprintf(b, "    %s\n", bad.Text)
			}
		}
	}
	notes := append(r.inexact(), r.Notes...)
	if len(notes) > 0 {
		b.WriteByte('\n')
	}
	for _, note := range notes {
		b.WriteString(notation.Wrap("Note: "+note, width))
	}
}

// inexact tells which suggestions rest on a part of the log.
func (r *Report) inexact() (notes []string) {
	for _, rule := range r.Rules {
		for _, s := range rule.Suggestions {
			if s.Until != nil {
				notes = append(notes, fmt.Sprintf("the limits for %s are from the log until %s, because memory was full after that.", rule.ID, stamp(*s.Until)))
			}
			if s.Forgotten > 0 {
				notes = append(notes, fmt.Sprintf("for the limits of %s, clients with at most %s were dropped at times, to save memory.", rule.ID, notation.Count(s.Forgotten, "request")))
			}
		}
		if len(notes) > maxIdle {
			return notes[:maxIdle]
		}
	}
	return notes
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
	return notation.Span(d)
}

const (
	pictureColumns = 146
	pictureLanes   = 8 // rules that get a lane; all are in the table
)

// WriteSVG draws requests and denials over time.
func (r *Report) WriteSVG(w io.Writer) error { return chart.WriteSVG(w, r.picture()) }

// WriteHTML writes the report as a page.
func (r *Report) WriteHTML(w io.Writer) error {
	page := chart.Page{Title: "weir replay", Parts: []chart.Part{{Figure: r.picture()}}}
	table := func(heading string, rows [][]string) {
		if len(rows) > 1 {
			t := &chart.Table{Head: rows[0], Rows: rows[1:], Words: map[int]bool{1: true}}
			page.Parts = append(page.Parts, chart.Part{Heading: heading, Table: t})
		}
	}
	table("Rules", r.ruleRows())
	table("Clients denied most", r.topRows())
	table("Limits and their denied share", r.limitRows())
	var lines []string
	for _, bad := range r.BadLines {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", bad.Log, bad.Line, bad.Reason))
	}
	if r.Bad > 0 {
		page.Parts = append(page.Parts, chart.Part{Heading: notation.Count(r.Bad, "line") + " could not be parsed", Lines: lines})
	}
	if notes := append(r.inexact(), r.Notes...); len(notes) > 0 {
		page.Parts = append(page.Parts, chart.Part{Heading: "Notes", Lines: notes})
	}
	return page.WriteHTML(w)
}

// picture has a lane for all requests, and one for each of the rules that denied
// the most.
func (r *Report) picture() *chart.Picture {
	o := r.over(pictureColumns)
	p := &chart.Picture{
		Title: "requests and denials", Slices: len(o.Requests),
		About: []string{
			notation.Cut(strings.Join(r.Logs, ", "), 120, false),
			fmt.Sprintf("%s to %s UTC: %s, %d denied (%s)", stamp(r.From), stamp(r.To), notation.Count(r.Requests, "request"), r.Denied, percent(share(r.Denied, r.Requests))),
		},
		Legend: []chart.Entry{
			{Ink: chart.Good, Text: "allowed"}, {Ink: chart.Bad, Text: "denied ×"}, {Ink: chart.Accent, Text: "denied share of the requests"},
		},
	}
	every := max(1, (len(o.Requests)+5)/6)
	for slice := 0; slice < len(o.Requests); slice += every {
		p.Ticks = append(p.Ticks, chart.Tick{Slice: float64(slice), Label: clockText(o.Begin+Instant(int64(slice)*o.Slice), o.Slice)})
	}
	allowed := make([]int64, len(o.Requests))
	all := chart.Lane{Name: "all requests", Most: most(o.Requests), Marks: o.Denied}
	for i, n := range o.Requests {
		allowed[i] = n - o.Denied[i]
		all.Line = append(all.Line, share(o.Denied[i], n))
	}
	all.Bars = []chart.Bars{{Ink: chart.Good, Values: allowed}, {Ink: chart.Bad, Values: o.Denied}}
	all.Notes = []string{
		fmt.Sprintf("%d allowed, %d denied", r.Allowed, r.Denied),
		fmt.Sprintf("full height: %d in %s", all.Most, length(o.Slice)),
	}
	p.Lanes = append(p.Lanes, all)
	for _, rule := range r.busiest(o) {
		counts := o.Rules[rule.ID]
		p.Lanes = append(p.Lanes, chart.Lane{
			Name: notation.Cut(rule.ID, 20, false), Most: most(counts), Marks: counts, Bars: []chart.Bars{{Ink: chart.Bad, Values: counts}},
			Notes: []string{
				fmt.Sprintf("%d of %d denied (%s)", rule.Denied, rule.Applied, percent(share(rule.Denied, rule.Applied))),
				fmt.Sprintf("full height: %d in %s", most(counts), length(o.Slice)),
			},
		})
	}
	return p
}

// busiest are the rules that denied the most, those first.
func (r *Report) busiest(o Over) []*RuleReport {
	var rules []*RuleReport
	for i := range r.Rules {
		if len(o.Rules[r.Rules[i].ID]) > 0 {
			rules = append(rules, &r.Rules[i])
		}
	}
	slices.SortStableFunc(rules, func(a, b *RuleReport) int { return int(min(max(b.Denied-a.Denied, -1), 1)) })
	return rules[:min(len(rules), pictureLanes)]
}

func most(counts []int64) int64 { return max(1, slices.Max(append([]int64{0}, counts...))) }

// WriteCSV writes a line for each slice of time, with the denials of each rule that
// had any in a column of its own.
func (r *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	ids := slices.Sorted(maps.Keys(r.Over.Rules))
	c.Write(append([]string{"time", "requests", "denied"}, ids...))
	for i, n := range r.Over.Requests {
		at, _ := (r.Over.Begin + Instant(int64(i)*r.Over.Slice)).MarshalText()
		row := []string{string(at), strconv.FormatInt(n, 10), strconv.FormatInt(r.Over.Denied[i], 10)}
		for _, id := range ids {
			row = append(row, strconv.FormatInt(r.Over.Rules[id][i], 10))
		}
		c.Write(row)
	}
	c.Flush()
	return c.Error()
}
