package httpapi

import (
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
)

// ActionsRequest is the body of POST /v1/actions: what a user has done, each once.
type ActionsRequest struct {
	User    string   `json:"user"`
	Actions []string `json:"actions"`
	Zone    string   `json:"zone,omitempty"` // whose hours and days they are, as an IANA name; default UTC
}

// ActionsAnswer is how often a user has done things in this hour, and on this day, in the
// order in which they were named.
type ActionsAnswer struct {
	User    string          `json:"user"`
	Actions []counter.Tally `json:"actions"`
}

// ActionHistoryAnswer is what GET /v1/actions/history answers: how often a user has done
// things in each window, the earliest first.
type ActionHistoryAnswer struct {
	User    string          `json:"user"`
	Actions []counter.Track `json:"actions"`
}

// maxActions is how many actions one call names: each is two counters.
const maxActions = counter.MaxBatch / 2

// recordActions answers POST /v1/actions.
func (h *Handler) recordActions(c *call, want *ActionsRequest) (any, error) {
	if err := fault.Length("actions", len(want.Actions), maxActions); err != nil {
		return nil, err
	}
	if err := fault.Wrong(manage.CheckNames("actions", want.Actions)); err != nil {
		return nil, err
	}
	zone, bad := manage.Zone(want.Zone, "zone")
	if bad != nil {
		return nil, fault.Wrong(bad)
	}
	tallies, err := counter.Actions{Store: h.options.Counters, Zone: zone}.Record(c.r.Context(), want.User, want.Actions...)
	return ActionsAnswer{User: want.User, Actions: tallies}, err
}

// getActions answers GET /v1/actions.
func (h *Handler) getActions(c *call) (any, error) {
	q, actions, names := h.actionsAsked(c)
	if q.err != nil {
		return nil, q.err
	}
	tallies, err := actions.Read(c.r.Context(), q.text("user"), names...)
	return ActionsAnswer{User: q.text("user"), Actions: tallies}, err
}

// getActionHistory answers GET /v1/actions/history.
func (h *Handler) getActionHistory(c *call) (any, error) {
	q, actions, names := h.actionsAsked(c, "window", "n")
	window := q.window(counter.Hour)
	if window != counter.Hour && window != counter.Day {
		q.wrong(fault.BadField.Of("window: actions are not counted per %v; write hour or day.", window).In("window"))
	}
	n := q.windows(window)
	if q.err != nil {
		return nil, q.err
	}
	tracks, err := actions.History(c.r.Context(), q.text("user"), window, n, names...)
	return ActionHistoryAnswer{User: q.text("user"), Actions: tracks}, err
}

// actionsAsked are the actions that a query is about.
func (h *Handler) actionsAsked(c *call, more ...string) (q *query, in counter.Actions, names []string) {
	q = c.queryOfTexts("action", append([]string{"user", "zone"}, more...)...)
	names = q.list("action", maxActions)
	zone, bad := manage.Zone(q.text("zone"), "zone")
	q.wrong(fault.Wrong(bad))
	return q, counter.Actions{Store: h.options.Counters, Zone: zone}, names
}
