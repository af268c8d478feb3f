package httpapi

import (
	"errors"
	"net/url"
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
func stretch(query url.Values, now time.Time, usual time.Duration) (from, to time.Time, p *Problem) {
	to = now
	if text := query.Get("to"); text != "" {
		if to, p = instant("to", text); p != nil {
			return from, to, p
		}
	}
	from = to.Add(-usual)
	if text := query.Get("from"); text != "" {
		if from, p = instant("from", text); p != nil {
			return from, to, p
		}
	}
	switch {
	case to.Unix() <= from.Unix():
		p = badField.of("to: the time ends before it begins; send an end that is at least a second later.").in("to")
	case to.Sub(from) > maxStretch:
		p = badField.of("from: that is more than ten years before the end, and nothing is kept for so long; send a later one.").in("from")
	}
	return from, to, p
}

// instant reads Unix seconds, or a time as RFC 3339 has it.
func instant(field, text string) (time.Time, *Problem) {
	if seconds, fraction, _ := strings.Cut(text, "."); digits(seconds) && (fraction == "" || digits(fraction)) {
		if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && n < endOfTime {
			return time.Unix(n, 0), nil
		}
	} else if t, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "+", 1)); err == nil && t.Unix() >= 0 {
		return t, nil // a plus that was not escaped is a space
	}
	return time.Time{}, badField.of("%s: %q is no time since 1970; send Unix seconds, such as 1767225600, or 2026-01-01T00:00:00Z.", field, brief(text)).in(field)
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
func seriesQuery(query url.Values, now time.Time) (q stats.Query, p *Problem) {
	if q.From, q.To, p = stretch(query, now, time.Hour); p != nil {
		return q, p
	}
	if q.Step, p = step(query.Get("step")); p != nil {
		return q, p
	}
	if q.Rule, p = name(query, "rule"); p != nil {
		return q, p
	}
	if q.Tier, p = name(query, "tier"); p == nil && q.Tier != "" && q.Rule == "" {
		p = badField.of("tier: a tier is one of a rule; send the rule, too.").in("tier")
	}
	return q, p
}

// step reads a number of seconds, or a length of time such as 10s. 0 leaves it open.
func step(text string) (time.Duration, *Problem) {
	if text == "" {
		return 0, nil
	}
	if digits(text) {
		text += "s"
	}
	length, err := duration.Parse(text)
	if err != nil || length > maxStretch {
		return 0, badField.of("step: %q is no length of time; send seconds, such as 60, or 10s, 1m, 1h; or nothing, and one is chosen.", brief(text)).in("step")
	}
	return length, nil
}

// name is a parameter with the name of a rule or a tier; "" if it is not there.
func name(query url.Values, field string) (string, *Problem) {
	text := query.Get(field)
	if len(text) > manage.MaxWord {
		return "", badField.of("%s: it has %d bytes, at most %d are taken; send a name that is in the rules.", field, len(text), manage.MaxWord).in(field)
	}
	return text, nil
}

// topQuery reads the query of GET /v1/stats/top.
func topQuery(query url.Values) (q stats.TopQuery, p *Problem) {
	q = stats.TopQuery{By: stats.ByDenied, Window: stats.LastHour, N: 10}
	var err error
	if text := query.Get("by"); text != "" {
		if q.By, err = stats.ParseBy(text); err != nil {
			return q, wrongQuery("by", err)
		}
	}
	if text := query.Get("window"); text != "" {
		if q.Window, err = stats.ParseWindow(text); err != nil {
			return q, wrongQuery("window", err)
		}
	}
	if text := query.Get("n"); text != "" {
		if q.N, err = strconv.Atoi(text); err != nil || q.N < 1 || q.N > frame.MaxRankedAll {
			return q, badField.of("n: %q cannot be used; send how many keys to show, 1 to %d.", brief(text), frame.MaxRankedAll).in("n")
		}
	}
	q.Rule, p = name(query, "rule")
	return q, p
}

// wrongQuery is a question that makes no sense because of a parameter.
func wrongQuery(field string, err error) *Problem {
	text := err.Error()
	if wrong, ok := errors.AsType[*stats.QueryError](err); ok {
		text = wrong.Reason
	}
	return badField.of("%s: %s.", field, text).in(field)
}

// suggestion is what GET /v1/stats/suggest asks.
type suggestion struct {
	rule     string
	from, to time.Time
	shares   []float64
}

// suggestQuery reads the query of GET /v1/stats/suggest.
func suggestQuery(query url.Values, now time.Time) (q suggestion, p *Problem) {
	if q.rule, p = name(query, "rule"); p != nil {
		return q, p
	}
	if q.rule == "" {
		return q, badField.of("rule: it is missing; send the id of a rule, as in ?rule=login.").in("rule")
	}
	if q.from, q.to, p = stretch(query, now, 7*24*time.Hour); p != nil {
		return q, p
	}
	text := query.Get("share")
	if text == "" {
		q.shares = stats.DefaultShares
		return q, nil
	}
	words := strings.Split(text, ",")
	if len(words) > maxShares {
		return q, badField.of("share: there are %d, at most %d are looked for at once; send fewer.", len(words), maxShares).in("share")
	}
	for _, word := range words {
		share, err := strconv.ParseFloat(word, 64)
		if err != nil || !(share >= 0 && share < 1) {
			return q, badField.of("share: %q is none; send 0.01 for one in a hundred, or several with commas between.", brief(word)).in("share")
		}
		q.shares = append(q.shares, share)
	}
	return q, nil
}
