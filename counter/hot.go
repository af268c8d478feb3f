package counter

import (
	"cmp"
	"math"
	"time"
)

const (
	// MaxEvents is the number of events that are kept for a hot list; older ones are
	// dropped.
	MaxEvents = 1000

	// EventsKept is how long a hot list without hits is kept after its window has
	// passed. Until then its events include the items that have cooled.
	EventsKept = 24 * time.Hour

	// Latest is the end of the events. Events after Latest are empty, and their Next is
	// where to continue.
	Latest int64 = math.MaxInt64
)

// HotList identifies a list of items, and defines which of them are hot: an item
// becomes hot with Threshold hits within the Window, and cools when it has fewer than
// Cool. The same name with another window is another list. All processes that share a
// list should use the same values.
//
// A hot list has room for as many items as a leaderboard has for members, and drops the
// lowest in the same way.
type HotList struct {
	// Name is any bytes; at least one.
	Name string

	// Window is the length of the sliding window, in whole seconds. It moves in Steps,
	// so a hit counts up to a twentieth longer.
	Window time.Duration

	// Threshold is the number of hits from which an item is hot; at least 1.
	Threshold int64

	// Cool is the number of hits below which a hot item cools. Default Threshold. A
	// lower value keeps an item near the threshold from becoming hot again and again.
	Cool int64
}

// Heat is the state of an item.
type Heat struct {
	Item  string    `json:"item"`
	Hits  int64     `json:"hits"` // hits within the window
	Hot   bool      `json:"hot"`
	Since time.Time `json:"since,omitzero"` // when the item became hot; zero if it is not hot

	// Turned is true if this hit made the item hot. Among all processes, exactly one call
	// gets true.
	Turned bool `json:"turned,omitempty"`
}

// Event records that an item became hot or cooled. The call that detects the change
// records it once. A cooled item is detected by the next call; a Watch calls every
// second.
type Event struct {
	ID   int64     `json:"id"` // larger than the IDs of all earlier events on the list
	Item string    `json:"item"`
	Hot  bool      `json:"hot"` // true if the item became hot, false if it cooled
	Hits int64     `json:"hits"`
	At   time.Time `json:"at"`
}

// Events are the events of a hot list.
type Events struct {
	Events []Event `json:"events"` // earliest first
	Next   int64   `json:"next"`   // value of after for the next call
	Missed bool    `json:"missed"` // some of the requested events are no longer kept
}

// CoolBelow returns Cool, or its default.
func (l *HotList) CoolBelow() int64 {
	return cmp.Or(l.Cool, l.Threshold)
}

// Validate checks a list, for stores.
func (l *HotList) Validate() error {
	if err := cmp.Or(checkName("list", l.Name), checkSliding("window", l.Window)); err != nil {
		return err
	}
	switch {
	case l.Threshold < 1 || l.Threshold > int64(MaxScore):
		return invalid("threshold", "%d is too low; write 1 or more", l.Threshold)
	case l.Cool < 0 || l.Cool > l.Threshold:
		return invalid("cool", "an item that is hot from %d hits on cannot cool below %d; write 1 to %d, or leave it 0", l.Threshold, l.Cool, l.Threshold)
	}
	return nil
}

// ValidateHit checks the arguments of Hit, for stores.
func (l *HotList) ValidateHit(items []string) error {
	return cmp.Or(l.Validate(), checkNames("item", items, MaxBatch))
}

// ValidateHot checks the arguments of Hot, for stores.
func (l *HotList) ValidateHot(n int) error {
	return cmp.Or(l.Validate(), checkTop(n))
}
