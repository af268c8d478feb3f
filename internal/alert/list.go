package alert

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// MaxPast is how many resolved alerts a list keeps.
const MaxPast = 200

// List contains the alerts that fire, and the last ones that were resolved. It is safe
// for concurrent use.
type List struct {
	clock   func() time.Time
	archive archive.Store
	sharing sync.Mutex // held by who tells of silences, or asks for them

	mu       sync.Mutex
	active   map[string]Alert
	past     []Alert // the newest last
	silences map[string]*silence
}

func newList(clock func() time.Time, a archive.Store) *List {
	return &List{clock: clock, archive: a, active: map[string]Alert{}, silences: map[string]*silence{}}
}

// Active returns the alerts that fire, newest first.
func (l *List) Active() []Alert {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Alert, 0, len(l.active))
	for _, a := range l.active {
		a.Silenced = l.silencedLocked(a)
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b Alert) int {
		return cmp.Or(b.StartsAt.Compare(a.StartsAt), strings.Compare(a.ID, b.ID))
	})
	return all
}

// Past returns the last resolved alerts, newest first.
func (l *List) Past() []Alert {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.past)
	slices.Reverse(all)
	return all
}

func (l *List) silencedLocked(a Alert) bool {
	return slices.ContainsFunc([]string{a.ID, string(a.Kind)}, func(id string) bool {
		s := l.silences[id]
		return s != nil && s.holds(l.clock())
	})
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
