package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
)

var statsRoutes = []route{
	{"GET", "/v1/stats/summary", reading, counted((*Handler).statsSummary)},
	{"GET", "/v1/stats/series", reading, counted((*Handler).statsSeries)},
	{"GET", "/v1/stats/top", reading, counted((*Handler).statsTop)},
	{"GET", "/v1/stats/rules", reading, counted((*Handler).statsRules)},
	{"GET", "/v1/stats/clients", reading, counted((*Handler).statsClients)},
	{"GET", "/v1/stats/client", reading, counted((*Handler).statsClient)},
	{"GET", "/v1/stats/denials", reading, counted((*Handler).statsDenials)},
	{"GET", "/v1/stats/warnings", reading, counted((*Handler).statsWarnings)},
	{"GET", "/v1/stats/usage", reading, counted((*Handler).statsUsage)},
	{"GET", "/v1/stats/holds", reading, counted((*Handler).statsHolds)},
	{"GET", "/v1/stats/suggest", reading, counted((*Handler).statsSuggest)},
	{"GET", "/v1/stats/stream", reading, counted(withoutQuery((*Handler).statsStream))},
}

// counted makes a handler of one that needs to know what happened.
func counted(serve handler) handler {
	return func(h *Handler, c *call) (any, error) {
		if h.options.Stats == nil {
			return nil, notEnabled.of("Statistics are not enabled on this server.").coded("statistics-off")
		}
		return serve(h, c)
	}
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

// consult reads the archive. A question that makes no sense does so because of the field.
func consult[A any](h *Handler, c *call, field string, read func(context.Context) (A, error)) (answer A, err error) {
	err = h.inTurn(c.r.Context(), maxConsult, func(ctx context.Context) (err error) {
		answer, err = read(ctx)
		return err
	})
	var wrong *stats.QueryError
	switch own := c.r.Context().Err(); {
	case err == nil:
		return answer, nil
	case errors.As(err, &wrong):
		err = wrongQuery(field, wrong)
	case own != nil:
		err = own
	case errors.Is(err, errNoTurn):
		err = busy.of("Too many calls read the statistics at the same time; try again.").after("1").coded("statistics-busy")
	default:
		err = h.unavailable(c, slog.LevelWarn, "cannot read statistics", err, storeGone.of("The statistics are unavailable; try again soon.").coded("statistics-unavailable"))
	}
	return answer, err
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
func (h *Handler) statsSummary(c *call) (any, error) {
	q := c.query("from", "to")
	from, to := q.stretch(h.options.Clock(), time.Minute)
	if q.err != nil {
		return nil, q.err
	}
	s, err := consult(h, c, "from", func(ctx context.Context) (*stats.Summary, error) { return h.options.Stats.Summary(ctx, from, to) })
	if err != nil {
		return nil, err
	}
	answer := h.summary(s)
	for i := range s.Rules {
		latency := latencyOf(s.Rules[i].Decision)
		answer.Rules[i].Latency = &latency
	}
	return answer, nil
}

// statsSeries answers GET /v1/stats/series.
func (h *Handler) statsSeries(c *call) (any, error) {
	q, err := seriesQuery(c, h.options.Clock())
	if err != nil {
		return nil, err
	}
	s, err := consult(h, c, "step", func(ctx context.Context) (*stats.Series, error) { return h.options.Stats.Series(ctx, q) })
	if err != nil {
		return nil, err
	}
	some := slices.ContainsFunc(s.Points, func(p stats.Point) bool { return p.Requests.Total() > 0 })
	return seriesAnswer(s, q.Rule), h.knownRule(q.Rule, some)
}

// statsTop answers GET /v1/stats/top.
func (h *Handler) statsTop(c *call) (any, error) {
	q, err := topQuery(c)
	if err != nil {
		return nil, err
	}
	top, err := consult(h, c, "n", func(ctx context.Context) (*stats.Top, error) { return h.options.Stats.Top(ctx, q) })
	if err != nil {
		return nil, err
	}
	return topAnswer(top, q, h.options.Stats.Health().Sampling), h.knownRule(q.Rule, len(top.Keys) > 0)
}

// statsSuggest answers GET /v1/stats/suggest.
func (h *Handler) statsSuggest(c *call) (any, error) {
	q, err := suggestQuery(c, h.options.Clock())
	if err != nil {
		return nil, err
	}
	all, err := consult(h, c, "share", func(ctx context.Context) ([]stats.Suggestion, error) {
		return h.options.Stats.Suggest(ctx, q.rule, q.from, q.to, q.shares...)
	})
	if err != nil {
		return nil, err
	}
	return suggestAnswer(all, q), h.knownRule(q.rule, len(all) > 0)
}

// knownRule returns an error if there is no rule with this id; "" stands for all rules.
// Statistics are kept after a rule is removed: if there are any, there is no error.
func (h *Handler) knownRule(id string, remembered bool) error {
	table, _ := h.options.Engine.Rules()
	if remembered || id == "" || h.options.Stats.Counts(id) || slices.ContainsFunc(table.Rules(), func(r *rule.Entry) bool { return r.ID == id }) {
		return nil
	}
	return noRule.of("There is no rule %q, and there are no statistics of a removed rule with this id; GET /v1/rules lists all rules.", id).in("rule").coded("", "rule", id)
}
