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
	{"GET", "/v1/stats/summary", reading, consulting("from", (*Handler).readSummary, askSummary, (*Handler).statsSummary)},
	{"GET", "/v1/stats/series", reading, consulting("step", (*Handler).readSeries, (*stats.Recorder).Series, (*Handler).statsSeries)},
	{"GET", "/v1/stats/top", reading, consulting("n", (*Handler).readTop, (*stats.Recorder).Top, (*Handler).statsTop)},
	{"GET", "/v1/stats/rules", reading, consulting("step", (*Handler).readRules, (*stats.Recorder).RuleSeries, (*Handler).statsRules)},
	{"GET", "/v1/stats/clients", reading, consulting("from", (*Handler).readClients, (*stats.Recorder).Clients, (*Handler).statsClients)},
	{"GET", "/v1/stats/client", reading, consulting("from", (*Handler).readClient, askClient, (*Handler).statsClient)},
	{"GET", "/v1/stats/denials", reading, consulting("n", (*Handler).readLatest, (*stats.Recorder).Denials, (*Handler).statsDenials)},
	{"GET", "/v1/stats/warnings", reading, consulting("n", (*Handler).readWarnings, (*stats.Recorder).Warnings, (*Handler).statsWarnings)},
	{"GET", "/v1/stats/usage", reading, consulting("from", (*Handler).readUsage, askUsage, (*Handler).statsUsage)},
	{"GET", "/v1/stats/holds", reading, consulting("step", (*Handler).readHolds, (*stats.Recorder).Holds, (*Handler).statsHolds)},
	{"GET", "/v1/stats/suggest", reading, consulting("share", (*Handler).readSuggest, askSuggest, (*Handler).statsSuggest)},
	{"GET", "/v1/spend", reading, consulting("n", (*Handler).readSpend, askSpend, (*Handler).spend)},
	{"GET", "/v1/stats/stream", reading, counted(withoutQuery((*Handler).statsStream))},
}

// counted makes a handler of one that needs to know what happened.
var counted = having(func(o *Options) bool { return o.Stats != nil }, "statistics-off", "Statistics are not enabled on this server.")

// consulting makes a handler of a question to the recorder: how its query is read, how it is
// put, and how the answer is written. A question that makes no sense does so because of
// the field.
func consulting[Q, A any](field string, read func(*Handler, *call) (Q, error), ask func(*stats.Recorder, context.Context, Q) (A, error), write func(*Handler, Q, A) (any, error)) handler {
	return counted(func(h *Handler, c *call) (any, error) {
		q, err := read(h, c)
		if err != nil {
			return nil, err
		}
		var answer A
		err = h.inTurn(c.r.Context(), maxConsult, func(ctx context.Context) (err error) {
			answer, err = ask(h.options.Stats, ctx, q)
			return err
		})
		var wrong *stats.QueryError
		switch own := c.r.Context().Err(); {
		case err == nil:
			return write(h, q, answer)
		case errors.As(err, &wrong):
			return nil, wrongQuery(field, wrong)
		case own != nil:
			return nil, own
		case errors.Is(err, errNoTurn):
			return nil, fault.Busy.Of("Too many calls read the statistics at the same time; try again.").After(time.Second).Coded("statistics-busy")
		}
		return nil, h.trouble(c).Unavailable(slog.LevelWarn, "cannot read statistics", err, fault.StoreUnavailable.Of("The statistics are unavailable; try again soon.").Coded("statistics-unavailable"))
	})
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
