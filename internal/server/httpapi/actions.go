package httpapi

import (
	"github.com/weirhq/weir/counter"
)

// ActionsRequest is the body of POST /v1/actions: what a user has done, each once.
type ActionsRequest struct {
	User    string   `json:"user"`
	Actions []string `json:"actions"`
	Zone    string   `json:"zone,omitempty"` // whose hours and days they are, as an IANA name; default UTC
}

// ActionsAnswer is how often a user has done things, in the order in which they were
// named.
type ActionsAnswer struct {
	User    string         `json:"user"`
	Actions []ActionAnswer `json:"actions"`
}

// ActionAnswer is how often a user has done something in this hour, and on this day.
type ActionAnswer struct {
	Action string `json:"action"`
	Hour   int64  `json:"hour"`
	Day    int64  `json:"day"`
}

// ActionHistoryAnswer is what GET /v1/actions/history answers.
type ActionHistoryAnswer struct {
	User    string        `json:"user"`
	Actions []ActionTrack `json:"actions"`
}

// ActionTrack is how often a user has done something in each window, the earliest first.
type ActionTrack struct {
	Action string        `json:"action"`
	Points []PointAnswer `json:"points"`
}

// maxActions is how many actions one call names: each is two counters.
const maxActions = counter.MaxBatch / 2

// recordActions answers POST /v1/actions.
func (h *Handler) recordActions(c *call, want *ActionsRequest) (any, error) {
	if err := batch("actions", len(want.Actions), maxActions); err != nil {
		return nil, err
	}
	for i, action := range want.Actions {
		if err := invalidIn(counter.ValidateKeys([]counter.Key{{Name: action}}), itemOf("actions", i)); err != nil {
			return nil, err
		}
	}
	zone, err := h.zone(want.Zone, "zone")
	if err != nil {
		return nil, err
	}
	tallies, err := counter.Actions{Store: h.options.Counters, Zone: zone}.Record(c.r.Context(), want.User, want.Actions...)
	return talliedOf(want.User, tallies), err
}

// getActions answers GET /v1/actions.
func (h *Handler) getActions(c *call) (any, error) {
	q, actions, names := h.actionsAsked(c)
	if q.err != nil {
		return nil, q.err
	}
	tallies, err := actions.Read(c.r.Context(), q.text("user"), names...)
	return talliedOf(q.text("user"), tallies), err
}

// getActionHistory answers GET /v1/actions/history.
func (h *Handler) getActionHistory(c *call) (any, error) {
	q, actions, names := h.actionsAsked(c, "window", "n")
	window := q.window(counter.Hour)
	if window != counter.Hour && window != counter.Day {
		q.wrong(badField.of("window: actions are not counted by %v; write hour or day.", window).in("window"))
	}
	n := q.windows(window)
	if q.err != nil {
		return nil, q.err
	}
	tracks, err := actions.History(c.r.Context(), q.text("user"), window, n, names...)
	answer := ActionHistoryAnswer{User: q.text("user"), Actions: make([]ActionTrack, len(tracks))}
	for i, track := range tracks {
		answer.Actions[i] = ActionTrack{Action: track.Action, Points: pointsOf(track.Points)}
	}
	return answer, err
}

// actionsAsked are the actions that a query is about.
func (h *Handler) actionsAsked(c *call, more ...string) (q *query, in counter.Actions, names []string) {
	q = c.queryOfTexts("action", append([]string{"user", "zone"}, more...)...)
	names = q.list("action", maxActions)
	zone, err := h.zone(q.text("zone"), "zone")
	q.wrong(err)
	return q, counter.Actions{Store: h.options.Counters, Zone: zone}, names
}

func talliedOf(user string, tallies []counter.Tally) ActionsAnswer {
	answer := ActionsAnswer{User: user, Actions: make([]ActionAnswer, len(tallies))}
	for i, t := range tallies {
		answer.Actions[i] = ActionAnswer{Action: t.Action, Hour: t.Hour, Day: t.Day}
	}
	return answer
}
