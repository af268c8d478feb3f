package httpapi

import (
	"strings"

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
func (h *Handler) recordActions(c *call) (any, *Problem) {
	var want ActionsRequest
	if p := c.decode(MaxCountBody, &want, "user", "actions", "zone"); p != nil {
		return nil, p
	}
	if p := batch("actions", len(want.Actions), maxActions); p != nil {
		return nil, p
	}
	for i, action := range want.Actions {
		where := strings.TrimSuffix(within("actions", i)(""), ".")
		if p := invalidIn(counter.ValidateKeys([]counter.Key{{Name: action}}), func(string) string { return where }); p != nil {
			return nil, p
		}
	}
	zone, p := h.zone(want.Zone, "zone")
	if p != nil {
		return nil, p
	}
	tallies, err := counter.Actions{Store: h.options.Counters, Zone: zone}.Record(c.r.Context(), want.User, want.Actions...)
	if err != nil {
		return nil, h.countTrouble(c, err, itself)
	}
	return talliedOf(want.User, tallies), nil
}

// getActions answers GET /v1/actions.
func (h *Handler) getActions(c *call) (any, *Problem) {
	query, actions, p := h.actionsAsked(c)
	if p != nil {
		return nil, p
	}
	user := query.text("user")
	tallies, err := actions.Read(c.r.Context(), user, query["action"]...)
	if err != nil {
		return nil, h.countTrouble(c, err, itself)
	}
	return talliedOf(user, tallies), nil
}

// getActionHistory answers GET /v1/actions/history.
func (h *Handler) getActionHistory(c *call) (any, *Problem) {
	query, actions, p := h.actionsAsked(c, "window", "n")
	if p != nil {
		return nil, p
	}
	window, p := query.window(counter.Hour)
	if p != nil {
		return nil, p
	}
	if window != counter.Hour && window != counter.Day {
		return nil, badField.of("window: actions are not counted by %v; write hour or day.", window).in("window")
	}
	n, p := query.windows(window)
	if p != nil {
		return nil, p
	}
	user := query.text("user")
	tracks, err := actions.History(c.r.Context(), user, window, n, query["action"]...)
	if err != nil {
		return nil, h.countTrouble(c, err, itself)
	}
	answer := ActionHistoryAnswer{User: user, Actions: make([]ActionTrack, len(tracks))}
	for i, track := range tracks {
		answer.Actions[i] = ActionTrack{Action: track.Action, Points: pointsOf(track.Points)}
	}
	return answer, nil
}

// actionsAsked are the actions that a query is about.
func (h *Handler) actionsAsked(c *call, more ...string) (asked, counter.Actions, *Problem) {
	query, p := c.asked("action", append([]string{"user", "zone"}, more...)...)
	if p != nil {
		return nil, counter.Actions{}, p
	}
	if p := batch("action", len(query["action"]), maxActions); p != nil {
		return nil, counter.Actions{}, p
	}
	zone, p := h.zone(query.text("zone"), "zone")
	return query, counter.Actions{Store: h.options.Counters, Zone: zone}, p
}

func talliedOf(user string, tallies []counter.Tally) ActionsAnswer {
	answer := ActionsAnswer{User: user, Actions: make([]ActionAnswer, len(tallies))}
	for i, t := range tallies {
		answer.Actions[i] = ActionAnswer{Action: t.Action, Hour: t.Hour, Day: t.Day}
	}
	return answer
}
