package manage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Override is a temporary override.
type Override struct {
	ID     string   `json:"id"`
	Rule   string   `json:"rule"`
	Key    string   `json:"key"`    // the client, as in a store: secrets are hashed
	Limits []string `json:"limits"` // as in a rule: "500/1m", or "unlimited"
	Burst  int64    `json:"burst,omitempty"`
	Zone   string   `json:"zone,omitempty"` // instead of the rule's, for limits of the calendar
	Starts string   `json:"starts,omitempty"`

	Reason    string    `json:"reason"`
	Author    string    `json:"author"`
	CreatedAt time.Time `json:"created_at"`
	EndsAt    time.Time `json:"ends_at"`

	// Set if the override ended before EndsAt.
	EndedAt    time.Time `json:"ended_at,omitzero"`
	EndedBy    string    `json:"ended_by,omitempty"`
	ReplacedBy string    `json:"replaced_by,omitempty"` // the id of the override that replaced it
}

// OverrideState is the state of an override.
type OverrideState string

// The states.
const (
	OverrideActive   OverrideState = "active"
	OverrideExpired  OverrideState = "expired"  // it ended at EndsAt
	OverrideEnded    OverrideState = "ended"    // a caller ended it before EndsAt
	OverrideReplaced OverrideState = "replaced" // by another override for the same rule and client
)

// State returns the state at a time.
func (o *Override) State(now time.Time) OverrideState {
	switch {
	case o.ReplacedBy != "":
		return OverrideReplaced
	case !o.EndedAt.IsZero():
		return OverrideEnded
	case now.Before(o.EndsAt):
		return OverrideActive
	}
	return OverrideExpired
}

// End returns the time at which the override ended or will end.
func (o *Override) End() time.Time {
	if o.EndedAt.IsZero() {
		return o.EndsAt
	}
	return o.EndedAt
}

// Bounds on overrides.
const (
	MaxOverrides        = 1000
	MaxPastOverrides    = 1000
	MaxPastOverrideTime = 90 * 24 * time.Hour
	MaxOverrideBytes    = 4 << 20 // bytes; past overrides are dropped to make room
	MaxOverrideReason   = 500     // bytes
	MaxOverrideLength   = 366 * 24 * time.Hour
)

// ErrManyOverrides is returned if there are already too many active overrides.
var ErrManyOverrides = errors.New("override: too many overrides are active; end some, or put clients into a tier")

// OverrideList holds all overrides that are kept, newest first.
type OverrideList []Override

// Add adds an override. It replaces an active override for the same rule and client.
func (l OverrideList) Add(o Override) OverrideList {
	next := OverrideList{o}
	for _, other := range l {
		if other.Rule == o.Rule && other.Key == o.Key && other.State(o.CreatedAt) == OverrideActive {
			other.EndedAt, other.EndedBy, other.ReplacedBy = o.CreatedAt, o.Author, o.ID
		}
		next = append(next, other)
	}
	return next
}

// EndNow ends an override and returns it. An override that has already ended does not
// change. EndNow returns nil if there is no override with this id.
func (l OverrideList) EndNow(id, author string, now time.Time) (OverrideList, *Override) {
	next := slices.Clone(l)
	for i := range next {
		o := &next[i]
		if o.ID != id {
			continue
		}
		if o.State(now) == OverrideActive {
			o.EndedAt, o.EndedBy = now, author
		}
		return next, o
	}
	return l, nil
}

// overrideDocument is the stored form of a list.
type overrideDocument struct {
	Overrides []json.RawMessage `json:"overrides"`
}

// Encode returns the list as a overrideDocument. It drops past overrides that are too old or for
// which there is no room. If there are too many active overrides, the error is ErrManyOverrides.
func (l OverrideList) Encode(now time.Time) ([]byte, error) {
	// OverrideActive overrides first, then the past ones, latest end first.
	order := make([]int, len(l))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(l[a].rank(now), l[b].rank(now)), l[b].End().Compare(l[a].End()))
	})
	texts := make([]json.RawMessage, len(l))
	size, active, past := len(`{"overrides":[]}`), 0, 0
	for _, i := range order {
		text, err := json.Marshal(&l[i])
		if err != nil {
			return nil, fmt.Errorf("override: %w", err)
		}
		size += len(text) + 1
		if l[i].State(now) == OverrideActive {
			if active++; active > MaxOverrides || size > MaxOverrideBytes {
				return nil, ErrManyOverrides
			}
		} else if past++; past > MaxPastOverrides || size > MaxOverrideBytes || now.Sub(l[i].End()) > MaxPastOverrideTime {
			break // all following overrides ended earlier
		}
		texts[i] = text
	}
	texts = slices.DeleteFunc(texts, func(text json.RawMessage) bool { return text == nil })
	return json.Marshal(overrideDocument{texts})
}

func (o *Override) rank(now time.Time) int {
	if o.State(now) == OverrideActive {
		return 0
	}
	return 1
}

// DecodeOverrides parses a overrideDocument. An empty overrideDocument is an empty list.
func DecodeOverrides(source []byte) (OverrideList, error) {
	if len(source) == 0 {
		return nil, nil
	}
	if len(source) > MaxOverrideBytes {
		return nil, fmt.Errorf("override: the overrideDocument has %d bytes; the maximum is %d", len(source), MaxOverrideBytes)
	}
	var kept overrideDocument
	err := json.Unmarshal(source, &kept)
	if n := len(kept.Overrides); n > MaxOverrides+MaxPastOverrides {
		err = fmt.Errorf("it has %d overrides; the maximum is %d", n, MaxOverrides+MaxPastOverrides)
	}
	list := make(OverrideList, len(kept.Overrides))
	for i := 0; i < len(list) && err == nil; i++ {
		err = json.Unmarshal(kept.Overrides[i], &list[i])
	}
	if err != nil {
		return nil, fmt.Errorf("override: the overrideDocument of overrides is damaged; remove it: %w", err)
	}
	return list, nil
}
