package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/stats/frame"
)

// view is all that weir top knows.
type view struct {
	server  string
	past    history
	news                          // of the last minute
	second  httpapi.SummaryAnswer // the last event
	follows bool                  // there was one
	trouble string                // why there is no news; "" if there is
	stale   string                // why rankings and alerts are old; "" if they are not
}

// look is how a screen is drawn.
type look struct {
	width, height int // no bound on the height if it is 0
	coloured      bool
	pencil        pencil
	live          bool
}

// lines are a screen.
func (v *view) lines(k look, now time.Time) []string {
	all := v.head(k, now)
	all = append(all, v.firing(k)...)
	all = append(all, v.warned(k)...)
	all = append(all, v.figures(k)...)
	rules, keys := v.past.rules(), max(len(v.denied.Entries), len(v.allowed.Entries))
	roomForRules, roomForKeys := divide(k.height-len(all)-1, len(rules), keys, k.width < narrow)
	if k.height == 0 {
		roomForRules, roomForKeys = 20, 10
	}
	all = append(all, v.busiest(k, rules, roomForRules)...)
	all = append(all, v.rankings(k, roomForKeys)...)
	if k.live {
		for len(all) < k.height-1 {
			all = append(all, nil)
		}
		all = append(all[:max(0, min(len(all), k.height-1))], v.foot())
	}
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = l.render(k.width, k.coloured)
	}
	return texts
}

const (
	narrow = 64 // columns; with fewer, the rankings stand one below the other
	tall   = 40 // lines; with fewer, warnings take less room, and with fewer than usual, one line
	usual  = 24
)

// divide gives the rows that are left to rules and keys. Each has a heading and an empty
// line before it.
func divide(rows, rules, keys int, stacked bool) (forRules, forKeys int) {
	const heading = 2
	rankings := 1
	if stacked {
		rankings = 2
	}
	rows -= heading + rankings*heading
	if forKeys = min(keys, max(0, rows*2/5/rankings)); forKeys == 0 {
		return max(0, min(rules, rows+rankings*heading)), 0
	}
	forRules = min(rules, rows-rankings*forKeys)
	return forRules, min(keys, (rows-forRules)/rankings)
}

func (v *view) head(k look, now time.Time) []line {
	var left, right line
	s := v.latest()
	since, why := outage(s)
	if since == nil {
		right.add(green, "store available")
	} else {
		right.add(alarm, "store unavailable since %s", time.Unix(*since, 0).Format(time.TimeOnly))
	}
	left.add(strong, "weir top")
	const others = len("weir top    15:04:05  ")
	left.add(faint, "  %s  %s  ", clipped(printable(v.server), max(0, k.width-others-right.width())), now.Format(time.TimeOnly))
	if room := k.width - left.width() - right.width(); room > 0 {
		left.add(plain, "%s", strings.Repeat(" ", room))
	}
	var notes []string
	if s.Local {
		notes = append(notes, "figures of this instance only")
	}
	if why != "" {
		notes = append(notes, printable(why))
	}
	if n := s.NotLoaded; n != nil {
		notes = append(notes, fmt.Sprintf("stored rules not loaded since %s: %s", time.Unix(n.Since, 0).Format(time.TimeOnly), printable(n.Error)))
	}
	all := []line{append(left, right...)}
	if len(notes) > 0 {
		all = append(all, line{{strings.Join(notes, "; "), yellow}})
	}
	return all
}

// outage is since when the store of limits, or else the archive of the statistics, has
// been unavailable, and why; nil if both are available.
func outage(s *httpapi.SummaryAnswer) (since *int64, why string) {
	if !s.Store.Up {
		return cmp.Or(s.Store.UnavailableSince, new(int64)), s.Store.Error
	}
	return s.Recorder.UnavailableSince, s.Recorder.Error
}

// latest is the last event, or the last minute as long as there is none.
func (v *view) latest() *httpapi.SummaryAnswer {
	if v.follows {
		return &v.second
	}
	return &v.minute
}

// firing are the alerts that fire, the first of them.
func (v *view) firing(k look) (all []line) {
	const most = 3
	for i, a := range v.alerts.Active {
		if i == most && len(v.alerts.Active) > most+1 {
			return append(all, text(alarm, "! and %d more; weir alerts lists them", len(v.alerts.Active)-most))
		}
		c, note := alarm, ""
		if a.Silenced {
			c, note = faint, ", silenced"
		}
		l := text(c, "! %s", cell(string(a.Kind), 10))
		l.add(plain, " %s", printable(a.Summary))
		l.add(faint, " (since %s%s)", a.StartsAt.Local().Format(time.TimeOnly), note)
		all = append(all, l.cut(k.width))
	}
	return all
}

// cut shortens the sentence of a line that is too wide, but not when it was.
func (l line) cut(width int) line {
	if excess := l.width() - width; excess > 0 {
		l[1].text = clipped(l[1].text, max(8, textWidth(l[1].text)-excess))
	}
	return l
}

// warned are the clients that have reached a threshold in the last ten minutes, the first of
// them.
func (v *view) warned(k look) (all []line) {
	most := 3
	switch { // so that there is room for figures, and for rules
	case k.height == 0:
	case k.height < usual:
		most = 0
	case k.height < tall:
		most = 1
	}
	recent := v.warnings.Warnings
	for i, w := range recent {
		if w.At < float64(v.minute.To)-600 {
			recent = recent[:i]
			break
		}
	}
	for i, w := range recent {
		if i == most && len(recent) > most+1 {
			more := "~ and %d more clients near their limits"
			if most == 0 {
				more = "~ %d clients near their limits"
			}
			return append(all, text(yellow, more, len(recent)-most))
		}
		l := text(yellow, "~ %s", cell(fmt.Sprintf("%d %%", w.Threshold), 10))
		l.add(plain, " %s has used %s of %s of %s", printable(w.Key), grouped(w.Used), grouped(w.Limit), printable(w.Rule))
		l.add(faint, " (at %s)", time.UnixMicro(int64(w.At*1e6)).Format(time.TimeOnly))
		all = append(all, l.cut(k.width))
	}
	return all
}

// figures are what became of requests, and how long it took.
func (v *view) figures(k look) []line {
	sum, known := v.past.sum()
	rate := func(n int64) float64 { return float64(n) / float64(max(1, known)) }
	last, live := v.past.latest()
	all := []line{nil, text(faint, "%-12s%12s%14s", "", "now", "last minute")}
	row := func(name string, c colour, of func(frame.Counts) int64, always bool) {
		if of(sum) == 0 && !always {
			return
		}
		l := text(plain, "%-12s", name)
		now := "-"
		if live {
			now = perSecond(float64(of(last.all)))
		}
		l.add(c, "%12s", now)
		l.add(plain, "%14s  ", perSecond(rate(of(sum))))
		values := v.past.values(func(s *second) float64 { return float64(of(s.all)) })
		l.add(c, "%s", k.pencil.spark(values, k.width-l.width()))
		all = append(all, l)
	}
	row("requests", plain, frame.Counts.Total, true)
	row("allowed", green, func(c frame.Counts) int64 { return c.Allowed }, true)
	row("denied", red, func(c frame.Counts) int64 { return c.Denied }, true)
	row("shadow", yellow, func(c frame.Counts) int64 { return c.ShadowDenied }, false)
	row("soft", yellow, func(c frame.Counts) int64 { return c.SoftDenied }, false)
	row("degraded", yellow, func(c frame.Counts) int64 { return c.DegradedAllowed }, false)
	row("failed", alarm, func(c frame.Counts) int64 { return c.DegradedDenied }, false)
	row("blocked", red, func(c frame.Counts) int64 { return c.Blocked }, false)

	denied := text(plain, "%-12s", "denied share")
	now := "-"
	if live {
		now = percent(last.all.DeniedShare())
	}
	denied.add(plain, "%12s%14s  ", now, percent(sum.DeniedShare()))
	values := v.past.values(func(s *second) float64 { return s.all.DeniedShare() })
	denied.add(red, "%s", k.pencil.spark(values, k.width-denied.width()))
	all = append(append(all, denied), v.priorities()...)
	return append(all, v.latencies()...)
}

func (v *view) latencies() []line {
	l := text(plain, "%-12s", "decisions")
	if v.minute.Requests > 0 {
		l.add(plain, "%s", percentiles(v.minute.Latency))
	} else {
		l.add(plain, "%12s", "-")
	}
	all := []line{l}
	if u := v.minute.Upstream; u != nil {
		l := text(plain, "%-12s", "upstream")
		l.add(plain, "%s", percentiles(u.Latency))
		c := plain
		if u.Errors > 0 {
			c = red
		}
		l.add(c, "   errors %s", percent(u.ErrorShare))
		all = append(all, l)
	}
	return slices.Concat(all, v.adaptive(), v.protect(), v.inFlight())
}

func percentiles(l httpapi.StatsLatency) string {
	return fmt.Sprintf("%12s   p90 %s   p99 %s", "p50 "+micros(l.P50), micros(l.P90), micros(l.P99))
}

// busiest are the rules that were asked most in the last minute.
func (v *view) busiest(k look, rules []ruleShown, rows int) []line {
	if rows < 1 || len(rules) == 0 {
		return nil
	}
	_, known := v.past.sum()
	most := rules[0].counts.Total()
	name := min(28, max(8, k.width-40))
	const bar = 12
	all := []line{nil, text(faint, "%s%12s%9s", cell("rule", name), "last minute", "denied")}
	for _, r := range rules[:min(rows, len(rules))] {
		l := text(strong, "%s", cell(r.name, name))
		l.add(plain, "%12s", perSecond(float64(r.counts.Total())/float64(max(1, known))))
		c := plain
		if r.counts.Denied > 0 {
			c = red
		}
		denied := float64(r.counts.Denied+r.counts.DegradedDenied) / float64(r.counts.Total())
		l.add(c, "%9s  ", percent(denied))
		l.add(plain, "%s  ", k.pencil.share(float64(r.counts.Total())/float64(most), min(bar, max(0, k.width-l.width()))))
		values := v.past.values(func(s *second) float64 { return float64(s.rules[r.name].Total()) })
		l.add(green, "%s", k.pencil.spark(values, k.width-l.width()))
		all = append(all, l)
	}
	return all
}

// rankings are the clients with the most denied and the most allowed requests.
func (v *view) rankings(k look, rows int) []line {
	if rows < 1 {
		return nil
	}
	if k.width < narrow {
		return append(ranking("denied", red, &v.denied, k.width, rows), ranking("allowed", green, &v.allowed, k.width, rows)...)
	}
	const gap = 2
	half := (k.width - gap) / 2
	left, right := ranking("denied", red, &v.denied, half, rows), ranking("allowed", green, &v.allowed, half, rows)
	var all []line
	for i := range max(len(left), len(right)) {
		var l line
		if i < len(left) {
			l = append(l, left[i]...)
		}
		if i < len(right) && len(right[i]) > 0 {
			l.add(plain, "%s", strings.Repeat(" ", max(0, half+gap-l.width())))
			l = append(l, right[i]...)
		}
		all = append(all, l)
	}
	return all
}

// ranking is one of them. A count that may be too high has a tilde.
func ranking(name string, c colour, top *httpapi.TopAnswer, width, rows int) []line {
	if len(top.Entries) == 0 {
		return nil
	}
	note := ""
	if top.Sampling > 1 {
		note = fmt.Sprintf(" (1 in %d)", top.Sampling)
	}
	all := []line{nil, text(faint, "%s", cell("most "+name+", last minute"+note, width))}
	for _, e := range top.Entries[:min(rows, len(top.Entries))] {
		count := grouped(e.Count)
		if e.Error > 0 {
			count = "~" + count
		}
		l := text(c, "%10s", count)
		l.add(plain, "  %s", cell(e.Key, max(1, width-12)))
		all = append(all, l)
	}
	return all
}

func (v *view) foot() line {
	switch {
	case v.trouble != "":
		return text(alarm, "%s", printable(v.trouble))
	case v.stale != "":
		return text(yellow, "%s", printable(v.stale))
	}
	return text(faint, "q: quit")
}
