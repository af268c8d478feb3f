// Package override keeps temporary overrides: another limit for one client under one rule,
// until a time. They are kept apart from the document of rules, and together in one document
// of their own. The packages below are the places where it can be.
package override

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Override is another limit for one client under one rule, until it ends.
type Override struct {
	ID     string   `json:"id"`
	Rule   string   `json:"rule"`
	Key    string   `json:"key"`    // the client, as stores know it: secrets are hashed
	Limits []string `json:"limits"` // as rules write them: "500/1m", or "unlimited"
	Burst  int64    `json:"burst,omitempty"`

	Reason    string    `json:"reason"`
	Author    string    `json:"author"`
	CreatedAt time.Time `json:"created_at"`
	EndsAt    time.Time `json:"ends_at"`

	// How it ended before its time.
	EndedAt    time.Time `json:"ended_at,omitzero"`
	EndedBy    string    `json:"ended_by,omitempty"`
	ReplacedBy string    `json:"replaced_by,omitempty"` // the id of another for the same client
}

// State is what has become of an override.
type State string

// The states.
const (
	Active   State = "active"
	Expired  State = "expired"  // it has ended by itself
	Ended    State = "ended"    // somebody has ended it before
	Replaced State = "replaced" // by another for the same client
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

// End returns when it ended, or will.
func (o *Override) End() time.Time {
	if o.EndedAt.IsZero() {
		return o.EndsAt
	}
	return o.EndedAt
}

// Bounds on what is kept.
const (
	MaxActive   = 1000
	MaxPast     = 1000
	MaxPastTime = 90 * 24 * time.Hour
	MaxDocument = 4 << 20 // bytes; past ones have to make room
	MaxReason   = 500     // bytes
	MaxLength   = 366 * 24 * time.Hour
)

// ErrFull is that there are as many active overrides as can be kept.
var ErrFull = errors.New("override: too many overrides are active; end some, or put clients into a tier")

// List is all overrides that are kept, the newest first.
type List []Override

// Add puts an override in force, in the place of one for the same client and rule.
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

// EndNow ends an override. One that has ended stays as it is. It is nil if there is none with
// this id.
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

// document is how a list is kept.
type document struct {
	Overrides []json.RawMessage `json:"overrides"`
}

// Encode writes the list as a document, without what is too old or too much. The error is
// ErrFull if the active ones alone are.
func (l List) Encode(now time.Time) ([]byte, error) {
	// Active ones first, and then those that ended last.
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
			break // and all that ended before
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

// Decode reads a document. None at all is an empty list.
func Decode(source []byte) (List, error) {
	if len(source) == 0 {
		return nil, nil
	}
	if len(source) > MaxDocument {
		return nil, fmt.Errorf("override: the document has %d bytes, at most %d are read", len(source), MaxDocument)
	}
	var kept document
	err := json.Unmarshal(source, &kept)
	if n := len(kept.Overrides); n > MaxActive+MaxPast {
		err = fmt.Errorf("it has %d overrides, at most %d are kept", n, MaxActive+MaxPast)
	}
	list := make(List, len(kept.Overrides))
	for i := 0; i < len(list) && err == nil; i++ {
		err = json.Unmarshal(kept.Overrides[i], &list[i])
	}
	if err != nil {
		return nil, fmt.Errorf("override: the document is damaged, and not used; remove it: %w", err)
	}
	return list, nil
}
