package httpapi

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
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
		q.wrong(fault.Field("to", "the range ends before it begins; send an end at least one second after its start.").Coded("empty-range"))
	case to.Sub(from) > maxStretch:
		q.wrong(fault.Field("from", "the range is longer than ten years, and nothing is kept for so long; send a later start.").Coded("range-too-long"))
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
	return time.Time{}, fault.Field(field, "%q is not a time since 1970; send Unix seconds, such as 1767225600, or 2026-01-01T00:00:00Z.", brief(text)).Coded("not-a-time", "value", brief(text))
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

// latest is which denials or warnings are asked for.
func (q *query) latest() stats.LatestQuery {
	return stats.LatestQuery{Rule: q.name("rule"), Key: q.key("key"), N: int(q.whole("n", 20, 1, stats.MaxLatest))}
}

// step is the length of the steps of a series. 0 leaves it open.
func (q *query) step() time.Duration { return q.duration("step", "leave it out, and weir chooses one") }

// duration is a number of seconds, or a length of time such as 10s; 0 if it is not there, for
// which the remedy says what that means.
func (q *query) duration(field, without string) time.Duration {
	text := q.text(field)
	if text == "" {
		return 0
	}
	if digits(text) {
		text += "s"
	}
	length, err := notation.ParseDuration(text)
	if err != nil || length > maxStretch {
		q.wrong(fault.Field(field, "%q is not a duration; send seconds, such as 60, or 10s, 1m, 1h; %s.", brief(text), without).Coded("not-a-duration", "value", brief(text)))
	}
	return length
}

// name is a parameter with the name of a rule or a tier; "" if it is not there.
func (q *query) name(field string) string {
	text := q.text(field)
	if len(text) > manage.MaxWord {
		q.wrong(fault.Field(field, "%d bytes exceed the maximum of %d; send a name from the rules.", len(text), manage.MaxWord))
	}
	return text
}

// period is the window of a ranking.
func (q *query) period() stats.Window {
	text := q.text("window")
	if text == "" {
		return stats.LastHour
	}
	w, err := stats.ParseWindow(text)
	if err != nil {
		q.wrong(wrongQuery("window", err))
	}
	return w
}

// ranked is how many keys a ranking has.
func (q *query) ranked() int {
	text := q.text("n")
	if text == "" {
		return 10
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > archive.MaxRankedAll {
		q.wrong(fault.Field("n", "%q is not a number of keys; send 1 to %d.", brief(text), archive.MaxRankedAll))
	}
	return n
}

// wrongQuery is a question that makes no sense because of a parameter.
func wrongQuery(field string, err error) error {
	text := err.Error()
	if wrong, ok := errors.AsType[*stats.QueryError](err); ok {
		text = wrong.Reason
	}
	return fault.Field(field, "%s", manage.Ended(text))
}

// shares are the denied shares for which limits are suggested.
func (q *query) shares() (shares []float64) {
	text := q.text("share")
	if text == "" {
		return stats.DefaultShares
	}
	words := strings.Split(text, ",")
	if len(words) > maxShares {
		q.wrong(fault.Field("share", "%d shares exceed the maximum of %d; send fewer.", len(words), maxShares))
	}
	for _, word := range words {
		share, err := strconv.ParseFloat(word, 64)
		if err != nil || !(share >= 0 && share < 1) {
			q.wrong(fault.Field("share", "%q is not a share; send 0.01 for one in a hundred, or several separated by commas.", brief(word)))
		}
		shares = append(shares, share)
	}
	return shares
}

// by is what counts in a ranking; denials if the query does not say.
func (q *query) by(parse func(string) (stats.By, error)) stats.By {
	text := q.text("by")
	if text == "" {
		return stats.ByDenied
	}
	by, err := parse(text)
	if err != nil {
		q.wrong(wrongQuery("by", err))
	}
	return by
}

// rule is the id of a rule, which is required.
func (q *query) rule() string {
	id := q.name("rule")
	if id == "" {
		q.wrong(fault.Field("rule", "required; send the id of a rule, as in ?rule=login.").Coded("required"))
	}
	return id
}

// key is the key of a client, or the start of one; "" if it is not there.
func (q *query) key(field string) string {
	text := q.text(field)
	if len(text) > weir.MaxKeyLen {
		q.wrong(fault.Field(field, "%d bytes exceed the maximum of %d; send a key as /v1/stats/clients returns it.", len(text), weir.MaxKeyLen))
	}
	return text
}
