package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
)

var statsRoutes = []route{
	{"GET", "/v1/stats/summary", reading, (*Handler).statsSummary},
	{"GET", "/v1/stats/series", reading, (*Handler).statsSeries},
	{"GET", "/v1/stats/top", reading, (*Handler).statsTop},
	{"GET", "/v1/stats/suggest", reading, (*Handler).statsSuggest},
	{"GET", "/v1/stats/stream", reading, (*Handler).statsStream},
}

const (
	// maxConsult is how long the archive may take for everything that an answer needs.
	maxConsult = 10 * time.Second

	// maxConsulting is how many calls read the archive at once. Adding up an hour of
	// seconds takes memory and time, which are first of all for deciding. The others wait
	// for their turn: a page asks several questions at once.
	maxConsulting = 4
)

// errNoTurn is that others read the archive all the time.
var errNoTurn = errors.New("httpapi: there was no turn")

// asked is who remembers what happened, and what a call wants to know of it. If there is
// nobody, or the query has other parameters, the call is answered.
func (h *Handler) asked(c *call, known ...string) (*stats.Recorder, url.Values, bool) {
	if h.options.Stats == nil {
		c.refuse(notKept.of("This server keeps no statistics; ask one that does."))
		return nil, nil, false
	}
	query, p := c.query(known...)
	if p != nil {
		c.refuse(p)
		return nil, nil, false
	}
	return h.options.Stats, query, true
}

// consult reads the archive, and reports whether that has worked. If not, the call is
// answered; a question that makes no sense does so because of the field.
func (h *Handler) consult(c *call, field string, read func(context.Context) error) bool {
	err := h.inTurn(c.r.Context(), maxConsult, read)
	var wrong *stats.QueryError
	switch own := c.r.Context().Err(); {
	case err == nil:
		return true
	case errors.As(err, &wrong):
		c.refuse(wrongQuery(field, wrong))
	case own != nil:
		c.gone(own)
	case errors.Is(err, errNoTurn):
		c.Header().Set("Retry-After", "1")
		c.refuse(busy.of("Others read the statistics, and the rest of the machine is for deciding; try again."))
	default:
		h.options.Logger.Warn("the statistics could not be read", "route", c.name, "request_id", c.id, "error", err)
		c.Header().Set("Retry-After", outage)
		c.refuse(storeGone.of("The statistics cannot be read just now; try again soon."))
	}
	return false
}

// inTurn reads the archive when there is a turn, all within a time.
func (h *Handler) inTurn(ctx context.Context, most time.Duration, read func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	select {
	case h.consulting <- struct{}{}:
		defer func() { <-h.consulting }()
	case <-ctx.Done():
		return errNoTurn
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return read(ctx)
}

// statsSummary answers GET /v1/stats/summary.
func (h *Handler) statsSummary(c *call) {
	recorder, query, ok := h.asked(c, "from", "to")
	if !ok {
		return
	}
	from, to, p := stretch(query, h.options.Clock(), time.Minute)
	if p != nil {
		c.refuse(p)
		return
	}
	var s *stats.Summary
	if h.consult(c, "from", func(ctx context.Context) (err error) { s, err = recorder.Summary(ctx, from, to); return err }) {
		answer := h.summary(s)
		for i := range s.Rules {
			latency := latencyOf(s.Rules[i].Decision)
			answer.Rules[i].Latency = &latency
		}
		c.answer(http.StatusOK, answer)
	}
}

// statsSeries answers GET /v1/stats/series.
func (h *Handler) statsSeries(c *call) {
	recorder, query, ok := h.asked(c, "from", "to", "step", "rule", "tier")
	if !ok {
		return
	}
	q, p := seriesQuery(query, h.options.Clock())
	if p != nil {
		c.refuse(p)
		return
	}
	var s *stats.Series
	if !h.consult(c, "step", func(ctx context.Context) (err error) { s, err = recorder.Series(ctx, q); return err }) {
		return
	}
	some := slices.ContainsFunc(s.Points, func(p stats.Point) bool { return p.Requests.Total() > 0 })
	if some || h.knownRule(c, q.Rule) {
		c.answer(http.StatusOK, seriesAnswer(s, q.Rule))
	}
}

// statsTop answers GET /v1/stats/top.
func (h *Handler) statsTop(c *call) {
	recorder, query, ok := h.asked(c, "by", "window", "rule", "n")
	if !ok {
		return
	}
	q, p := topQuery(query)
	if p != nil {
		c.refuse(p)
		return
	}
	var top *stats.Top
	if !h.consult(c, "n", func(ctx context.Context) (err error) { top, err = recorder.Top(ctx, q); return err }) {
		return
	}
	if len(top.Keys) > 0 || h.knownRule(c, q.Rule) {
		c.answer(http.StatusOK, topAnswer(top, q, recorder.Health().Sampling))
	}
}

// statsSuggest answers GET /v1/stats/suggest.
func (h *Handler) statsSuggest(c *call) {
	recorder, query, ok := h.asked(c, "rule", "from", "to", "share")
	if !ok {
		return
	}
	q, p := suggestQuery(query, h.options.Clock())
	if p != nil {
		c.refuse(p)
		return
	}
	var all []stats.Suggestion
	if !h.consult(c, "share", func(ctx context.Context) (err error) {
		all, err = recorder.Suggest(ctx, q.rule, q.from, q.to, q.shares...)
		return err
	}) {
		return
	}
	if len(all) > 0 || h.knownRule(c, q.rule) {
		c.answer(http.StatusOK, suggestAnswer(all, q))
	}
}

// knownRule reports whether there is such a rule; "" stands for all. If not, the call is
// answered. What is remembered outlives rules, so it is asked only if nothing is.
func (h *Handler) knownRule(c *call, id string) bool {
	table, _ := h.options.Engine.Rules()
	if id == "" || h.options.Stats.Counts(id) || slices.ContainsFunc(table.Rules(), func(r *rule.Entry) bool { return r.ID == id }) {
		return true
	}
	c.refuse(noRule.of("There is no rule %q, and nothing is remembered of one; GET /v1/rules lists all.", id).in("rule"))
	return false
}
