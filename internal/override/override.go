// Package override defines temporary overrides. A temporary override gives one client
// another limit under one rule until a given time. All overrides are in one document, which
// is not the document of rules; a repo.Store keeps it, in a file or in Redis.
package override

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

// State is the state of an override.
type State string

// The states.
const (
	Active   State = "active"
	Expired  State = "expired"  // it ended at EndsAt
	Ended    State = "ended"    // a caller ended it before EndsAt
	Replaced State = "replaced" // by another override for the same rule and client
)

// State returns the state at a time.
func (o *Override) State(now time.Time) State {
	switch {
	case o.ReplacedBy != "":
		return Replaced
	case !o.EndedAt.IsZero():
		return Ended
	case now.Before(o.EndsAt):
		return Active
	}
	return Expired
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
	MaxActive   = 1000
	MaxPast     = 1000
	MaxPastTime = 90 * 24 * time.Hour
	MaxDocument = 4 << 20 // bytes; past overrides are dropped to make room
	MaxReason   = 500     // bytes
	MaxLength   = 366 * 24 * time.Hour
)

// ErrFull is returned if there are already too many active overrides.
var ErrFull = errors.New("override: too many overrides are active; end some, or put clients into a tier")

// List holds all overrides that are kept, newest first.
type List []Override

// Add adds an override. It replaces an active override for the same rule and client.
func (l List) Add(o Override) List {
	next := List{o}
	for _, other := range l {
		if other.Rule == o.Rule && other.Key == o.Key && other.State(o.CreatedAt) == Active {
			other.EndedAt, other.EndedBy, other.ReplacedBy = o.CreatedAt, o.Author, o.ID
		}
		next = append(next, other)
	}
	return next
}

// EndNow ends an override and returns it. An override that has already ended does not
// change. EndNow returns nil if there is no override with this id.
func (l List) EndNow(id, author string, now time.Time) (List, *Override) {
	next := slices.Clone(l)
	for i := range next {
		o := &next[i]
		if o.ID != id {
			continue
		}
		if o.State(now) == Active {
			o.EndedAt, o.EndedBy = now, author
		}
		return next, o
	}
	return l, nil
}

// document is the stored form of a list.
type document struct {
	Overrides []json.RawMessage `json:"overrides"`
}

// Encode returns the list as a document. It drops past overrides that are too old or for
// which there is no room. If there are too many active overrides, the error is ErrFull.
func (l List) Encode(now time.Time) ([]byte, error) {
	// Active overrides first, then the past ones, latest end first.
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
		if l[i].State(now) == Active {
			if active++; active > MaxActive || size > MaxDocument {
				return nil, ErrFull
			}
		} else if past++; past > MaxPast || size > MaxDocument || now.Sub(l[i].End()) > MaxPastTime {
			break // all following overrides ended earlier
		}
		texts[i] = text
	}
	texts = slices.DeleteFunc(texts, func(text json.RawMessage) bool { return text == nil })
	return json.Marshal(document{texts})
}

func (o *Override) rank(now time.Time) int {
	if o.State(now) == Active {
		return 0
	}
	return 1
}

// Decode parses a document. An empty document is an empty list.
func Decode(source []byte) (List, error) {
	if len(source) == 0 {
		return nil, nil
	}
	if len(source) > MaxDocument {
		return nil, fmt.Errorf("override: the document has %d bytes; the maximum is %d", len(source), MaxDocument)
	}
	var kept document
	err := json.Unmarshal(source, &kept)
	if n := len(kept.Overrides); n > MaxActive+MaxPast {
		err = fmt.Errorf("it has %d overrides; the maximum is %d", n, MaxActive+MaxPast)
	}
	list := make(List, len(kept.Overrides))
	for i := 0; i < len(list) && err == nil; i++ {
		err = json.Unmarshal(kept.Overrides[i], &list[i])
	}
	if err != nil {
		return nil, fmt.Errorf("override: the document of overrides is damaged; remove it: %w", err)
	}
	return list, nil
}
