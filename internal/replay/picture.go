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
		page.Parts = append(page.Parts, chart.Part{Heading: phrase.Count(r.Bad, "line") + " could not be parsed", Lines: lines})
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
			phrase.Cut(strings.Join(r.Logs, ", "), 120, false),
			fmt.Sprintf("%s to %s UTC: %s, %d denied (%s)", stamp(r.From), stamp(r.To), phrase.Count(r.Requests, "request"), r.Denied, percent(share(r.Denied, r.Requests))),
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
			Name: phrase.Cut(rule.ID, 20, false), Most: most(counts), Marks: counts, Bars: []chart.Bars{{Ink: chart.Bad, Values: counts}},
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
