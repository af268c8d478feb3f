package rule

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// follow makes a limit one of the calendar, if its period is or zone or start say so. The
// default algorithm is for the limits that are not. So is a burst, if there are some.
func (r *Rule) follow(l *weir.Limit, q Quota, rate Rate) (err error) {
	if !r.isCalendar(q, rate) {
		return nil
	}
	l.Starts = r.startOf(q, l.Period)
	name := r.zoneOf(q)
	if name == "" && rate.Currency != "" {
		name = "UTC"
	}
	if name != "" {
		if l.Zone, err = notation.LoadZone(name); err != nil {
			return invalidQuota("zone", "%v", err)
		}
	}
	if l.Algorithm == weir.TokenBucket {
		l.Algorithm = weir.FixedWindow
	}
	if slices.ContainsFunc(q.Rates, func(rate Rate) bool { return !r.isCalendar(q, rate) }) {
		l.Burst = 0
	}
	return nil
}

func (r *Rule) isCalendar(q Quota, rate Rate) bool {
	return rate.Period == weir.Month || rate.Period == weir.Year || r.startOf(q, rate.Period) != "" ||
		(r.zoneOf(q) != "" || r.isBudget(rate)) && weir.CanFollowCalendar(rate.Period)
}

// isBudget reports whether a limit is one of money, which ends with its period: a token bucket of 20 dollars a day allows
// nearly 40 in a day.
func (r *Rule) isBudget(rate Rate) bool {
	return rate.Currency != "" && (r.Algorithm == weir.TokenBucket || r.Algorithm == weir.FixedWindow)
}

func (r *Rule) zoneOf(q Quota) string {
	if q.Zone != "" {
		return q.Zone
	}
	return r.Quota.Zone
}

// startOf is where a period starts: each start is for one period only.
func (r *Rule) startOf(q Quota, period time.Duration) string {
	for _, starts := range []string{q.Starts, r.Quota.Starts} {
		if starts != "" && weir.StartsFor(period, starts) {
			return starts
		}
	}
	return ""
}

func (p *parser) zone(e *document.Element, field string, q *Quota) {
	if name, ok := p.text(e, field, maxName); ok {
		if _, err := notation.LoadZone(name); err != nil {
			p.errorf("E032", e.Position, field, "%v", err)
		} else {
			q.Zone = name
		}
	}
}

func (p *parser) starts(e *document.Element, field string, q *Quota) {
	if starts, ok := p.text(e, field, maxName); ok && !isStart(starts) {
		p.errorf("E032", e.Position, field, "%s", noStart(starts))
	} else {
		q.Starts = starts
	}
}

// checkCalendars finds zones and starts that have no effect. What stands on the rule may be
// for any of its tiers and overrides.
func (p *parser) checkCalendars(r *pending) {
	var all []Rate
	for _, q := range r.quotas {
		all = append(all, q.Rates...)
	}
	for _, q := range r.quotas {
		rates := q.Rates
		if q.whose == "" {
			rates = all
		}
		if q.Zone != "" && len(rates) > 0 && !hasCalendar(rates) {
			p.errorf("E032", q.zone.Position, q.whose+"zone", "%s", noPeriod("zone", rates))
		}
		if q.Starts != "" && len(rates) > 0 && !startsOne(rates, q.Starts) {
			p.errorf("E032", q.starts.Position, q.whose+"starts", "%s", noneStarts(q.Starts, rates))
		}
	}
}

// validateCalendar is the same for a quota by itself.
func (q *Quota) validateCalendar() error {
	if q.Zone != "" {
		if _, err := notation.LoadZone(q.Zone); err != nil {
			return invalidQuota("zone", "%v", err)
		}
		if !hasCalendar(q.Rates) {
			return invalidQuota("zone", "%s", noPeriod("zone", q.Rates))
		}
	}
	switch {
	case q.Starts == "":
		return nil
	case len(q.Starts) > maxName || !isStart(q.Starts):
		return invalidQuota("starts", "%s", noStart(q.Starts))
	case !startsOne(q.Rates, q.Starts):
		return invalidQuota("starts", "%s", noneStarts(q.Starts, q.Rates))
	}
	return nil
}

// calendarPeriods are those that can start somewhere else.
var calendarPeriods = []time.Duration{24 * time.Hour, 7 * 24 * time.Hour, weir.Month, weir.Year}

func isStart(text string) bool {
	return slices.ContainsFunc(calendarPeriods, func(period time.Duration) bool { return weir.StartsFor(period, text) })
}

func startsOne(rates []Rate, text string) bool {
	return slices.ContainsFunc(rates, func(r Rate) bool { return weir.StartsFor(r.Period, text) })
}

func hasCalendar(rates []Rate) bool {
	return slices.ContainsFunc(rates, func(r Rate) bool { return weir.CanFollowCalendar(r.Period) })
}

func noStart(text string) string {
	return fmt.Sprintf("%s is not where a period can start; write a day of the month (1 to 31), a month and a day (04-01), a weekday (monday) or a time (06:00)", document.Quote(document.Clip(text, 40)))
}

func noPeriod(field string, rates []Rate) string {
	return fmt.Sprintf("it has no effect, because %s is not a period of the calendar; write hour, day, week, month or year, or remove %s", notation.FormatDuration(rates[0].Period), field)
}

// noneStarts says how the first rate could start.
func noneStarts(text string, rates []Rate) string {
	first := rates[max(0, slices.IndexFunc(rates, func(r Rate) bool { return weir.CanFollowCalendar(r.Period) }))]
	return reason(weir.Limit{Algorithm: weir.FixedWindow, N: 1, Period: first.Period, Starts: text}.Validate())
}

func otherAlgorithm(a weir.Algorithm) string {
	return fmt.Sprintf("a period of the calendar is a fixed_window, and the rule says %s; remove algorithm, and limits with other periods are token buckets, or give the calendar limit a rule of its own", a)
}

// startElement writes a day of the month as a number.
func startElement(text string) *document.Element {
	if day, err := strconv.ParseInt(text, 10, 64); err == nil {
		return document.NewInteger(day)
	}
	return document.NewText(text)
}
