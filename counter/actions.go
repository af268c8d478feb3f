package counter

import (
	"context"
	"time"
)

// Actions counts the actions of users per hour and per day. It works with any store:
// each count is a counter in the group "user:" plus the user, named after the action,
// with the windows Hour and Day.
type Actions struct {
	Store Store

	// Zone is the time zone of hours and days. Default UTC.
	Zone *time.Location
}

// Tally is how often a user performed an action.
type Tally struct {
	Action string `json:"action"`
	Hour   int64  `json:"hour"` // in the current hour
	Day    int64  `json:"day"`  // on the current day
}

// Track is how often a user performed an action in each window.
type Track struct {
	Action string  `json:"action"`
	Points []Point `json:"points"` // earliest first
}

// key is the counter of an action. An empty user must not be: all would share it.
func (a Actions) key(user, action string, w Window) Key {
	return Key{Group: "user:" + user, Name: action, Window: w, Zone: a.Zone}
}

// checkActions finds what the store cannot: a group that is no more than its prefix has
// no user, and every action is two counters.
func checkActions(user string, actions []string) error {
	if user == "" {
		return invalid("user", "it is empty; identify the user")
	}
	if len(user) > MaxNameLen-len("user:") {
		return invalid("user", "it has %d bytes; at most %d are allowed", len(user), MaxNameLen-len("user:"))
	}
	return checkNames("action", actions, MaxBatch/2)
}

// Record counts each of the actions once for a user, and returns the counts of this
// hour and this day.
func (a Actions) Record(ctx context.Context, user string, actions ...string) ([]Tally, error) {
	if err := checkActions(user, actions); err != nil {
		return nil, err
	}
	deltas := make([]Delta, 0, 2*len(actions))
	for _, action := range actions {
		deltas = append(deltas, Delta{Key: a.key(user, action, Hour), By: One}, Delta{Key: a.key(user, action, Day), By: One})
	}
	return tallies(actions)(a.Store.Add(ctx, deltas...))
}

// Read returns how often a user performed each of the actions.
func (a Actions) Read(ctx context.Context, user string, actions ...string) ([]Tally, error) {
	if err := checkActions(user, actions); err != nil {
		return nil, err
	}
	keys := make([]Key, 0, 2*len(actions))
	for _, action := range actions {
		keys = append(keys, a.key(user, action, Hour), a.key(user, action, Day))
	}
	return tallies(actions)(a.Store.Get(ctx, keys...))
}

func tallies(actions []string) func([]Amount, error) ([]Tally, error) {
	return func(amounts []Amount, err error) ([]Tally, error) {
		if err != nil {
			return nil, err
		}
		all := make([]Tally, len(actions))
		for i, action := range actions {
			all[i] = Tally{Action: action, Hour: amounts[2*i].Round(), Day: amounts[2*i+1].Round()}
		}
		return all, nil
	}
}

// History returns how often a user performed each of the actions in the last n hours or
// days.
func (a Actions) History(ctx context.Context, user string, w Window, n int, actions ...string) ([]Track, error) {
	if err := checkActions(user, actions); err != nil {
		return nil, err
	}
	if w != Hour && w != Day {
		return nil, invalid("window", "actions are not counted by %v; use Hour or Day", w)
	}
	keys := make([]Key, len(actions))
	for i, action := range actions {
		keys[i] = a.key(user, action, w)
	}
	series, err := a.Store.History(ctx, n, keys...)
	if err != nil {
		return nil, err
	}
	tracks := make([]Track, len(actions))
	for i, action := range actions {
		tracks[i] = Track{Action: action, Points: series[i]}
	}
	return tracks, nil
}
