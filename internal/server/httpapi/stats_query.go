package httpapi

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/duration"
	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/frame"
)

const (
	// maxStretch is how much time a question may be about. Nothing is kept for longer.
	maxStretch = 3660 * 24 * time.Hour

	// endOfTime is where times stop making sense, and sums of them stay far from where
	// numbers end: the year 10000.
	endOfTime = 253_402_300_800

	maxShares = 10
)

// stretch is the time that a question is about: what the query says, or so much until
// now.
func (q *query) stretch(now time.Time, usual time.Duration) (from, to time.Time) {
	to = q.instant("to", now)
	from = q.instant("from", to.Add(-usual))
	switch {
	case to.Unix() <= from.Unix():
		q.wrong(badField.of("to: the range ends before it begins; send an end at least one second after its start.").in("to").coded("empty-range"))
	case to.Sub(from) > maxStretch:
		q.wrong(badField.of("from: the range is longer than ten years, and nothing is kept for so long; send a later start.").in("from").coded("range-too-long"))
	}
	return from, to
}

// instant is a time that the query says, or the usual one.
func (q *query) instant(field string, usual time.Time) time.Time {
	text := q.text(field)
	if text == "" {
		return usual
	}
	t, err := instant(field, text)
	q.wrong(err)
	return t
}

// instant reads Unix seconds, or a time as RFC 3339 has it.
func instant(field, text string) (time.Time, error) {
	if seconds, fraction, _ := strings.Cut(text, "."); digits(seconds) && (fraction == "" || digits(fraction)) {
		if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && n < endOfTime {
			return time.Unix(n, 0), nil
		}
	} else if t, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "+", 1)); err == nil && t.Unix() >= 0 {
		return t, nil // a plus that was not escaped is a space
	}
	return time.Time{}, badField.of("%s: %q is not a time since 1970; send Unix seconds, such as 1767225600, or 2026-01-01T00:00:00Z.", field, brief(text)).in(field).coded("not-a-time", "value", brief(text))
}

// brief is as much of a value as is quoted, so that there is room for the remedy.
func brief(text string) string {
	if len(text) <= 64 {
		return text
	}
	return strings.ToValidUTF8(text[:64], "") + "…"
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// seriesQuery reads the query of GET /v1/stats/series.
func seriesQuery(c *call, now time.Time) (s stats.Query, err error) {
	q := c.query("from", "to", "step", "rule", "tier")
	s.From, s.To = q.stretch(now, time.Hour)
	s.Step, s.Rule, s.Tier = q.step(), q.name("rule"), q.name("tier")
	if s.Tier != "" && s.Rule == "" {
		q.wrong(badField.of("tier: a tier belongs to a rule; also send rule.").in("tier"))
	}
	return s, q.err
}

// step is a number of seconds, or a length of time such as 10s. 0 leaves it open.
func (q *query) step() time.Duration {
	text := q.text("step")
	if text == "" {
		return 0
	}
	if digits(text) {
		text += "s"
	}
	length, err := duration.Parse(text)
	if err != nil || length > maxStretch {
		q.wrong(badField.of("step: %q is not a duration; send seconds, such as 60, or 10s, 1m, 1h; leave it out, and weir chooses one.", brief(text)).in("step").coded("not-a-duration", "value", brief(text)))
	}
	return length
}

// name is a parameter with the name of a rule or a tier; "" if it is not there.
func (q *query) name(field string) string {
	text := q.text(field)
	if len(text) > manage.MaxWord {
		q.wrong(badField.of("%s: %d bytes exceed the maximum of %d; send a name from the rules.", field, len(text), manage.MaxWord).in(field))
	}
	return text
}

// topQuery reads the query of GET /v1/stats/top.
func topQuery(c *call) (t stats.TopQuery, err error) {
	q := c.query("by", "window", "rule", "n")
	t = stats.TopQuery{By: q.by(stats.ParseBy), Window: stats.LastHour, N: 10}
	if text := q.text("window"); text != "" {
		if t.Window, err = stats.ParseWindow(text); err != nil {
			q.wrong(wrongQuery("window", err))
		}
	}
	if text := q.text("n"); text != "" {
		if t.N, err = strconv.Atoi(text); err != nil || t.N < 1 || t.N > frame.MaxRankedAll {
			q.wrong(badField.of("n: %q is not a number of keys; send 1 to %d.", brief(text), frame.MaxRankedAll).in("n"))
		}
	}
	t.Rule = q.name("rule")
	return t, q.err
}

// wrongQuery is a question that makes no sense because of a parameter.
func wrongQuery(field string, err error) error {
	text := err.Error()
	if wrong, ok := errors.AsType[*stats.QueryError](err); ok {
		text = wrong.Reason
	}
	return badField.of("%s: %s", field, manage.Ended(text)).in(field)
}

// suggestion is what GET /v1/stats/suggest asks.
type suggestion struct {
	rule     string
	from, to time.Time
	shares   []float64
}

// suggestQuery reads the query of GET /v1/stats/suggest.
func suggestQuery(c *call, now time.Time) (s suggestion, err error) {
	q := c.query("rule", "from", "to", "share")
	if s.rule = q.name("rule"); s.rule == "" {
		q.wrong(badField.of("rule: required; send the id of a rule, as in ?rule=login.").in("rule").coded("required"))
	}
	s.from, s.to = q.stretch(now, 7*24*time.Hour)
	text := q.text("share")
	if text == "" {
		s.shares = stats.DefaultShares
		return s, q.err
	}
	words := strings.Split(text, ",")
	if len(words) > maxShares {
		q.wrong(badField.of("share: %d shares exceed the maximum of %d; send fewer.", len(words), maxShares).in("share"))
	}
	for _, word := range words {
		share, err := strconv.ParseFloat(word, 64)
		if err != nil || !(share >= 0 && share < 1) {
			q.wrong(badField.of("share: %q is not a share; send 0.01 for one in a hundred, or several separated by commas.", brief(word)).in("share"))
		}
		s.shares = append(s.shares, share)
	}
	return s, q.err
}
