package httpapi

import (
	"context"
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
		q.wrong(fault.BadField.Of("to: the range ends before it begins; send an end at least one second after its start.").In("to").Coded("empty-range"))
	case to.Sub(from) > maxStretch:
		q.wrong(fault.BadField.Of("from: the range is longer than ten years, and nothing is kept for so long; send a later start.").In("from").Coded("range-too-long"))
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
	return time.Time{}, fault.BadField.Of("%s: %q is not a time since 1970; send Unix seconds, such as 1767225600, or 2026-01-01T00:00:00Z.", field, brief(text)).In(field).Coded("not-a-time", "value", brief(text))
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

// about is a question about a time, and a rule or a client.
type about struct {
	name     string
	from, to time.Time
	shares   []float64 // of GET /v1/stats/suggest
}

func askSummary(r *stats.Recorder, ctx context.Context, q about) (*stats.Summary, error) {
	return r.Summary(ctx, q.from, q.to)
}

func askClient(r *stats.Recorder, ctx context.Context, q about) (*stats.ClientSeries, error) {
	return r.ClientSeries(ctx, q.name, q.from, q.to)
}

func askUsage(r *stats.Recorder, ctx context.Context, q about) (*stats.Usage, error) {
	return r.Usage(ctx, q.name, q.from, q.to)
}

func askSuggest(r *stats.Recorder, ctx context.Context, q about) ([]stats.Suggestion, error) {
	return r.Suggest(ctx, q.name, q.from, q.to, q.shares...)
}

func (h *Handler) readSummary(c *call) (s about, err error) {
	q := c.query("from", "to")
	s.from, s.to = q.stretch(h.options.Clock(), time.Minute)
	return s, q.err
}

func (h *Handler) readSeries(c *call) (s stats.Query, err error) {
	q := c.query("from", "to", "step", "rule", "tier")
	s.From, s.To = q.stretch(h.options.Clock(), time.Hour)
	s.Step, s.Rule, s.Tier = q.step(), q.name("rule"), q.name("tier")
	if s.Tier != "" && s.Rule == "" {
		q.wrong(fault.BadField.Of("tier: a tier belongs to a rule; also send rule.").In("tier"))
	}
	return s, q.err
}

func (h *Handler) readRules(c *call) (s stats.RuleQuery, err error) {
	q := c.query("from", "to", "step", "by", "n")
	s = stats.RuleQuery{Step: q.step(), By: q.by(stats.ParseRuleBy), N: int(q.whole("n", 5, 1, stats.MaxSeriesRules))}
	s.From, s.To = q.stretch(h.options.Clock(), time.Hour)
	return s, q.err
}

func (h *Handler) readClients(c *call) (s stats.ClientsQuery, err error) {
	q := c.query("from", "to", "rule", "by", "n", "prefix")
	s = stats.ClientsQuery{Rule: q.name("rule"), By: q.by(stats.ParseBy), N: int(q.whole("n", 10, 1, stats.MaxClients)), Prefix: q.key("prefix")}
	s.From, s.To = q.stretch(h.options.Clock(), time.Hour)
	return s, q.err
}

func (h *Handler) readClient(c *call) (s about, err error) {
	q := c.query("key", "from", "to")
	if s.name = q.key("key"); s.name == "" {
		q.wrong(fault.BadField.Of("key: required; send the key of a client, as in ?key=user:alice.").In("key").Coded("required"))
	}
	s.from, s.to = q.stretch(h.options.Clock(), 24*time.Hour)
	return s, q.err
}

// readLatest reads which denials are asked for.
func (h *Handler) readLatest(c *call) (stats.LatestQuery, error) {
	q := c.query("rule", "key", "n")
	return q.latest(), q.err
}

// readWarnings reads which warnings are asked for.
func (h *Handler) readWarnings(c *call) (stats.LatestQuery, error) {
	q := c.query("rule", "key", "n", "min_period")
	s := q.latest()
	s.MinPeriod = q.duration("min_period", "leave it out for all limits")
	return s, q.err
}

func (q *query) latest() stats.LatestQuery {
	return stats.LatestQuery{Rule: q.name("rule"), Key: q.key("key"), N: int(q.whole("n", 20, 1, stats.MaxLatest))}
}

func (h *Handler) readUsage(c *call) (s about, err error) {
	q := c.query("rule", "from", "to")
	s.name = q.rule()
	s.from, s.to = q.stretch(h.options.Clock(), time.Hour)
	return s, q.err
}

func (h *Handler) readHolds(c *call) (s stats.HoldsQuery, err error) {
	q := c.query("rule", "from", "to", "step")
	s = stats.HoldsQuery{Rule: q.rule(), Step: q.step()}
	s.From, s.To = q.stretch(h.options.Clock(), time.Hour)
	return s, q.err
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
		q.wrong(fault.BadField.Of("%s: %q is not a duration; send seconds, such as 60, or 10s, 1m, 1h; %s.", field, brief(text), without).In(field).Coded("not-a-duration", "value", brief(text)))
	}
	return length
}

// name is a parameter with the name of a rule or a tier; "" if it is not there.
func (q *query) name(field string) string {
	text := q.text(field)
	if len(text) > manage.MaxWord {
		q.wrong(fault.BadField.Of("%s: %d bytes exceed the maximum of %d; send a name from the rules.", field, len(text), manage.MaxWord).In(field))
	}
	return text
}

func (h *Handler) readTop(c *call) (t stats.TopQuery, err error) {
	q := c.query("by", "window", "rule", "n")
	t = stats.TopQuery{By: q.by(stats.ParseBy), Window: stats.LastHour, N: 10}
	if text := q.text("window"); text != "" {
		if t.Window, err = stats.ParseWindow(text); err != nil {
			q.wrong(wrongQuery("window", err))
		}
	}
	if text := q.text("n"); text != "" {
		if t.N, err = strconv.Atoi(text); err != nil || t.N < 1 || t.N > archive.MaxRankedAll {
			q.wrong(fault.BadField.Of("n: %q is not a number of keys; send 1 to %d.", brief(text), archive.MaxRankedAll).In("n"))
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
	return fault.BadField.Of("%s: %s", field, manage.Ended(text)).In(field)
}

func (h *Handler) readSuggest(c *call) (s about, err error) {
	q := c.query("rule", "from", "to", "share")
	s.name = q.rule()
	s.from, s.to = q.stretch(h.options.Clock(), 7*24*time.Hour)
	text := q.text("share")
	if text == "" {
		s.shares = stats.DefaultShares
		return s, q.err
	}
	words := strings.Split(text, ",")
	if len(words) > maxShares {
		q.wrong(fault.BadField.Of("share: %d shares exceed the maximum of %d; send fewer.", len(words), maxShares).In("share"))
	}
	for _, word := range words {
		share, err := strconv.ParseFloat(word, 64)
		if err != nil || !(share >= 0 && share < 1) {
			q.wrong(fault.BadField.Of("share: %q is not a share; send 0.01 for one in a hundred, or several separated by commas.", brief(word)).In("share"))
		}
		s.shares = append(s.shares, share)
	}
	return s, q.err
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
		q.wrong(fault.BadField.Of("rule: required; send the id of a rule, as in ?rule=login.").In("rule").Coded("required"))
	}
	return id
}

// key is the key of a client, or the start of one; "" if it is not there.
func (q *query) key(field string) string {
	text := q.text(field)
	if len(text) > weir.MaxKeyLen {
		q.wrong(fault.BadField.Of("%s: %d bytes exceed the maximum of %d; send a key as /v1/stats/clients returns it.", field, len(text), weir.MaxKeyLen).In(field))
	}
	return text
}
