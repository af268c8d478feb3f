package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/fault"
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
	{"GET", "/v1/spend", reading, counted((*Handler).getSpend)},
	{"GET", "/v1/stats/stream", reading, counted(withoutQuery((*Handler).statsStream))},
}

// counted makes a handler of one that needs to know what happened.
var counted = having(func(o *Options) bool { return o.Stats != nil }, "statistics-off", "Statistics are not enabled on this server.")

// consult puts a question to the recorder, unless something is wrong with its query. A question
// that makes no sense does so because of the field.
func consult[Q, A any](h *Handler, c *call, q *query, field string, want Q, ask func(*stats.Recorder, context.Context, Q) (A, error)) (answer A, err error) {
	if q.err != nil {
		return answer, q.err
	}
	err = h.inTurn(c.r.Context(), maxConsult, func(ctx context.Context) (err error) {
		answer, err = ask(h.options.Stats, ctx, want)
		return err
	})
	var wrong *stats.QueryError
	switch own := c.r.Context().Err(); {
	case err == nil:
		return answer, nil
	case errors.As(err, &wrong):
		return answer, wrongQuery(field, wrong)
	case own != nil:
		return answer, own
	case errors.Is(err, errNoTurn):
		return answer, fault.Busy.Of("Too many calls read the statistics at the same time; try again.").After(time.Second).Coded("statistics-busy")
	}
	return answer, h.trouble(c).Unavailable(slog.LevelWarn, "cannot read statistics", err, fault.StoreUnavailable.Of("The statistics are unavailable; try again soon.").Coded("statistics-unavailable"))
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

// ruleInForce returns a rule, or nil.
func (h *Handler) ruleInForce(id string) *rule.Entry {
	table, _ := h.options.Engine.Rules()
	if i := slices.IndexFunc(table.Rules(), func(r *rule.Entry) bool { return r.ID == id }); i >= 0 {
		return table.Rules()[i]
	}
	return nil
}

// knownRule returns an error if there is no rule with this id; "" stands for all rules.
// Statistics are kept after a rule is removed: if there are any, there is no error.
func (h *Handler) knownRule(id string, remembered bool) error {
	if remembered || id == "" || h.options.Stats.Counts(id) || h.ruleInForce(id) != nil {
		return nil
	}
	return fault.NoRule.Of("There is no rule %q, and there are no statistics of a removed rule with this id; GET /v1/rules lists all rules.", id).In("rule").Coded("", "rule", id)
}
