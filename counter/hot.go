package counter

import (
	"cmp"
	"math"
	"time"
)

const (
	// MaxEvents is how many events of a hot list are kept, the latest.
	MaxEvents = 1000

	// EventsKept is how long a hot list that nobody hits is remembered once its
	// window has passed. Whoever asks for its events by then learns what has cooled.
	EventsKept = 24 * time.Hour

	// Latest is the end of the events, whatever has happened: Events after it are
	// none, and tell where to go on.
	Latest int64 = math.MaxInt64
)

// HotList names a list of items that are hit, and says which are hot: those with at
// least Threshold hits within the Window, until they have fewer than Cool. The same
// name with another window is another list. All who share it should say the same.
//
// It has room for as many items as a leaderboard has for members, and drops the lowest
// as that does.
type HotList struct {
	// Name is any bytes; at least one.
	Name string

	// Window slides, in Steps: a hit counts as long, or up to a twentieth longer. Whole
	// seconds.
	Window time.Duration

	// Threshold is from how many hits on an item is hot; at least 1.
	Threshold int64

	// Cool is below how many hits it is so no longer. Default Threshold. A lower one
	// keeps an item around the threshold from turning hot again and again.
	Cool int64
}

// Heat is how an item stands.
type Heat struct {
	Item  string    `json:"item"`
	Hits  int64     `json:"hits"` // within the window
	Hot   bool      `json:"hot"`
	Since time.Time `json:"since,omitzero"` // when it turned hot; zero if it is not

	// Turned is true if this hit made it hot. Of all who hit it, in all processes,
	// exactly one is told so.
	Turned bool `json:"turned,omitempty"`
}

// Event is an item that turned hot, or cooled. It is recorded once, by whoever's call
// found it; so nobody is told twice, and that something has cooled is found when
// somebody next asks. A Watch asks every second.
type Event struct {
	ID   int64     `json:"id"` // larger than those of all events before it on the list
	Item string    `json:"item"`
	Hot  bool      `json:"hot"` // it turned hot; else it cooled
	Hits int64     `json:"hits"`
	At   time.Time `json:"at"`
}

// Events are what happened on a hot list.
type Events struct {
	Events []Event `json:"events"` // the earliest first
	Next   int64   `json:"next"`   // after which to ask the next time
	Missed bool    `json:"missed"` // some that were asked for are no longer kept
}

// CoolBelow is Cool, or what it stands for.
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
		return invalid("threshold", "%d hits make nothing hot; write 1 or more", l.Threshold)
	case l.Cool < 0 || l.Cool > l.Threshold:
		return invalid("cool", "an item that is hot from %d hits on cannot cool below %d; write 1 to %d, or leave it 0", l.Threshold, l.Cool, l.Threshold)
	}
	return nil
}

// ValidateHit checks a call, for stores.
func (l *HotList) ValidateHit(items []string) error {
	return cmp.Or(l.Validate(), checkNames("item", items, MaxBatch))
}

// ValidateHot checks a call, for stores.
func (l *HotList) ValidateHot(n int) error {
	return cmp.Or(l.Validate(), checkTop(n))
}
