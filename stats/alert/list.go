package alert

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds on what a list remembers.
const (
	MaxPast     = 200
	MaxSilences = 100
	maxComment  = 500 // bytes
)

// Silence keeps alerts from being sent for a while. They are still listed.
type Silence struct {
	ID      string    `json:"id"`    // of an alert, or a kind for all of it
	Until   time.Time `json:"until"` // when it ends
	Author  string    `json:"author,omitempty"`
	Comment string    `json:"comment,omitempty"`
}

// List is the alerts that fire, and the last ones that did. It is safe for concurrent
// use.
type List struct {
	clock func() time.Time

	mu       sync.Mutex
	active   map[string]Alert
	past     []Alert // the newest last
	silences map[string]Silence
}

func newList(clock func() time.Time) *List {
	return &List{clock: clock, active: map[string]Alert{}, silences: map[string]Silence{}}
}

// Active returns the alerts that fire, the newest first.
func (l *List) Active() []Alert {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Alert, 0, len(l.active))
	for _, a := range l.active {
		a.Silenced = l.silencedLocked(a)
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b Alert) int {
		if c := b.StartsAt.Compare(a.StartsAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// Past returns the last alerts that were resolved, the newest first.
func (l *List) Past() []Alert {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.past)
	slices.Reverse(all)
	return all
}

// Silence keeps an alert, or all of a kind, from being sent until a time; one that has
// passed ends the silence.
func (l *List) Silence(s Silence) error {
	if s.ID == "" {
		return errors.New("alert: a silence needs the id of an alert, or a kind")
	}
	if len(s.ID) > 1200 || len(s.Author) > maxComment || len(s.Comment) > maxComment {
		return errors.New("alert: the silence is too long; say it in fewer words")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	for id, old := range l.silences {
		if !old.Until.After(now) {
			delete(l.silences, id)
		}
	}
	if !s.Until.After(now) {
		delete(l.silences, s.ID)
		return nil
	}
	if _, there := l.silences[s.ID]; !there && len(l.silences) >= MaxSilences {
		return errors.New("alert: there are too many silences; end some, or silence a kind")
	}
	l.silences[s.ID] = s
	return nil
}

// Silences returns those that have not ended, by id.
func (l *List) Silences() []Silence {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Silence
	for _, s := range l.silences {
		if s.Until.After(l.clock()) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Silence) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (l *List) silencedLocked(a Alert) bool {
	for _, id := range []string{a.ID, string(a.Kind)} {
		if s, ok := l.silences[id]; ok && s.Until.After(l.clock()) {
			return true
		}
	}
	return false
}

// update takes over what fires, and what was resolved.
func (l *List) update(firing, changed []Alert) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.active)
	for _, a := range firing {
		l.active[a.ID] = a
	}
	for _, a := range changed {
		if a.State == Resolved {
			a.Silenced = l.silencedLocked(a)
			l.past = append(l.past, a)
		}
	}
	if n := len(l.past) - MaxPast; n > 0 {
		l.past = slices.Clone(l.past[n:])
	}
}

// audible returns those of the alerts that are not silenced.
func (l *List) audible(alerts []Alert) []Alert {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Alert
	for _, a := range alerts {
		if !l.silencedLocked(a) {
			all = append(all, a)
		}
	}
	return all
}
