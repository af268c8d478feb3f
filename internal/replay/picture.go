package replay

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/phrase"
	"github.com/weirhq/weir/internal/simulate/chart"
)

const (
	pictureColumns = 146
	pictureLanes   = 8 // rules that get a lane; all are in the table
)

// WriteSVG draws requests and refusals over time.
func (r *Report) WriteSVG(w io.Writer) error { return chart.WriteSVG(w, r.picture()) }

// WriteHTML writes the report as a page.
func (r *Report) WriteHTML(w io.Writer) error {
	page := chart.Page{Title: "weir replay", Parts: []chart.Part{{Picture: r.picture()}}}
	table := func(heading string, rows [][]string) {
		if len(rows) > 1 {
			t := &chart.Table{Head: rows[0], Rows: rows[1:], Words: map[int]bool{1: true}}
			page.Parts = append(page.Parts, chart.Part{Heading: heading, Table: t})
		}
	}
	table("Rules", r.ruleRows())
	table("Refused most", r.topRows())
	table("Which limit would have refused how much", r.limitRows())
	var lines []string
	for _, bad := range r.BadLines {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", bad.Log, bad.Line, bad.Reason))
	}
	if r.Bad > 0 {
		page.Parts = append(page.Parts, chart.Part{Heading: phrase.Count(r.Bad, "line") + " could not be understood", Lines: lines})
	}
	if notes := append(r.inexact(), r.Notes...); len(notes) > 0 {
		page.Parts = append(page.Parts, chart.Part{Heading: "Notes", Lines: notes})
	}
	return page.WriteHTML(w)
}

// picture has a lane for all requests, and one for each of the rules that refused
// the most.
func (r *Report) picture() *chart.Picture {
	o := r.over(pictureColumns)
	p := &chart.Picture{
		Title: "requests and refusals", Slices: len(o.Requests),
		About: []string{
			phrase.Cut(strings.Join(r.Logs, ", "), 120, false),
			fmt.Sprintf("%s to %s UTC: %s, %d refused (%s)", stamp(r.From), stamp(r.To), phrase.Count(r.Requests, "request"), r.Refused, percent(share(r.Refused, r.Requests))),
		},
		Legend: []chart.Entry{
			{Ink: chart.Good, Text: "admitted"}, {Ink: chart.Bad, Text: "refused ×"}, {Ink: chart.Accent, Text: "refused share of the requests"},
		},
	}
	every := max(1, (len(o.Requests)+5)/6)
	for slice := 0; slice < len(o.Requests); slice += every {
		p.Ticks = append(p.Ticks, chart.Tick{Slice: float64(slice), Label: clockText(o.Begin+Instant(int64(slice)*o.Slice), o.Slice)})
	}
	admitted := make([]int64, len(o.Requests))
	all := chart.Lane{Name: "all requests", Most: most(o.Requests), Marks: o.Refused}
	for i, n := range o.Requests {
		admitted[i] = n - o.Refused[i]
		all.Line = append(all.Line, share(o.Refused[i], n))
	}
	all.Bars = []chart.Bars{{Ink: chart.Good, Values: admitted}, {Ink: chart.Bad, Values: o.Refused}}
	all.Notes = []string{
		fmt.Sprintf("%d admitted, %d refused", r.Admitted, r.Refused),
		fmt.Sprintf("full height: %d in %s", all.Most, length(o.Slice)),
	}
	p.Lanes = append(p.Lanes, all)
	for _, rule := range r.busiest(o) {
		counts := o.Rules[rule.ID]
		p.Lanes = append(p.Lanes, chart.Lane{
			Name: phrase.Cut(rule.ID, 20, false), Most: most(counts), Marks: counts, Bars: []chart.Bars{{Ink: chart.Bad, Values: counts}},
			Notes: []string{
				fmt.Sprintf("%d of %d refused (%s)", rule.Refused, rule.Applied, percent(share(rule.Refused, rule.Applied))),
				fmt.Sprintf("full height: %d in %s", most(counts), length(o.Slice)),
			},
		})
	}
	return p
}

// busiest are the rules that refused the most, those first.
func (r *Report) busiest(o Over) []*RuleReport {
	var rules []*RuleReport
	for i := range r.Rules {
		if len(o.Rules[r.Rules[i].ID]) > 0 {
			rules = append(rules, &r.Rules[i])
		}
	}
	slices.SortStableFunc(rules, func(a, b *RuleReport) int { return int(min(max(b.Refused-a.Refused, -1), 1)) })
	return rules[:min(len(rules), pictureLanes)]
}

func most(counts []int64) int64 { return max(1, slices.Max(append([]int64{0}, counts...))) }

// WriteCSV writes a line for each slice of time, with the refusals of each rule that
// had any in a column of its own.
func (r *Report) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	ids := slices.Sorted(maps.Keys(r.Over.Rules))
	c.Write(append([]string{"time", "requests", "refused"}, ids...))
	for i, n := range r.Over.Requests {
		at, _ := (r.Over.Begin + Instant(int64(i)*r.Over.Slice)).MarshalText()
		row := []string{string(at), strconv.FormatInt(n, 10), strconv.FormatInt(r.Over.Refused[i], 10)}
		for _, id := range ids {
			row = append(row, strconv.FormatInt(r.Over.Rules[id][i], 10))
		}
		c.Write(row)
	}
	c.Flush()
	return c.Error()
}
