package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	return slices.DeleteFunc(slices.Clone(alerts), l.silencedLocked)
}

// Bounds on silences.
const (
	MaxSilences = archive.MaxNotes
	maxID       = 1200 // bytes: a kind and the longest key
	maxComment  = 500  // bytes
)

// noteKind is what silences are called in the archive.
const noteKind = "silences"

// Silence suppresses notifications for a while. Silenced alerts are still listed.
type Silence struct {
	ID      string    `json:"id"`    // id of an alert, or a kind for all its alerts
	Until   time.Time `json:"until"` // end, to the microsecond
	Author  string    `json:"author,omitempty"`
	Comment string    `json:"comment,omitempty"`
}

// ErrNotShared is returned if the silence works on this instance, but the archive is
// unavailable, so that the other instances do not have it yet. They get it when the
// archive is available again.
var ErrNotShared = errors.New("alert: the silence is not shared with the other instances yet")

var errTooMany = fmt.Errorf("alert: there are already %d silences, the maximum; end some, or silence a kind", MaxSilences)

// silence is one as this instance knows it.
type silence struct {
	Silence
	ended   bool         // before its time, and remembered until then
	pending bool         // the archive does not know of it
	shared  archive.Note // what the archive had when it was last seen; zero if nothing
}

func (s *silence) holds(now time.Time) bool { return !s.ended && s.Until.After(now) }

// remark is a silence's text in the archive. The id is not in it: it may be any bytes.
type remark struct {
	Author  string `json:"author,omitempty"`
	Comment string `json:"comment,omitempty"`
}

func (s *silence) note() archive.Note {
	n := archive.Note{ID: s.ID, Until: s.Until}
	if s.ended {
		return n
	}
	text, err := json.Marshal(remark{s.Author, s.Comment})
	if err != nil {
		panic(err) // texts have a notation
	}
	n.Text = text
	return n
}

// silenceOf reads a note, which anybody may have written who can write to the archive.
func silenceOf(n archive.Note) (*silence, bool) {
	s := &silence{Silence: Silence{ID: n.ID, Until: n.Until}, ended: n.Ended(), shared: n}
	if s.ended {
		return s, len(s.ID) <= maxID
	}
	var r remark
	if err := json.Unmarshal(n.Text, &r); err != nil {
		return nil, false
	}
	s.Author, s.Comment = r.Author, r.Comment
	return s, s.validate() == nil
}

func (s *Silence) validate() error {
	if s.ID == "" {
		return errors.New("alert: a silence requires the id of an alert, or a kind")
	}
	if len(s.ID) > maxID || len(s.Author) > maxComment || len(s.Comment) > maxComment {
		return errors.New("alert: the id, author or comment of the silence is too long; shorten it")
	}
	return nil
}

// endFor is for how long it is remembered that a silence is to be ended of which only
// others know, while they cannot be told.
const endFor = time.Hour

// Silence suppresses the notifications of an alert, or of all alerts of a kind, until a
// time. A time in the past ends the silence. All instances that share the archive
// follow within about ten seconds. If the archive is unavailable, the error is
// ErrNotShared.
func (l *List) Silence(ctx context.Context, want Silence) error {
	if err := want.validate(); err != nil {
		return err
	}
	l.sharing.Lock()
	defer l.sharing.Unlock()
	now := l.clock()
	if want.Until.Sub(now) > archive.MaxNoteTime {
		return errors.New("alert: the silence is too long; the maximum is a year")
	}
	s := l.next(want, now)
	err := l.archive.SetNote(ctx, noteKind, s.note(), now)
	if errors.Is(err, archive.ErrNoRoom) {
		return errTooMany
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		s.shared = s.note()
		if l.silences[s.ID] = s; s.ended {
			delete(l.silences, s.ID) // the archive remembers it
		}
		return nil
	}
	s.pending = true
	if s.ended {
		s.Until = later(s.Until, now.Add(endFor))
	}
	switch room := l.roomLocked(s); {
	case room:
		l.silences[s.ID] = s
	case s.ended:
		delete(l.silences, s.ID)
	default:
		return errTooMany
	}
	return fmt.Errorf("%w: %w", ErrNotShared, err)
}

// next is a silence that replaces what is known. One that ends another is remembered for
// as long as that was to be.
func (l *List) next(want Silence, now time.Time) *silence {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expireLocked(now)
	s := &silence{Silence: want, ended: !want.Until.After(now)}
	s.Until = s.Until.Truncate(time.Microsecond).UTC()
	old := l.silences[s.ID]
	if old != nil {
		s.shared = old.shared
	}
	if s.ended {
		s.Until = now.Truncate(time.Microsecond).UTC()
		if old != nil {
			s.Until = later(s.Until, old.Until)
		}
	}
	return s
}

func (l *List) expireLocked(now time.Time) {
	maps.DeleteFunc(l.silences, func(_ string, s *silence) bool { return !s.Until.After(now) })
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// roomLocked reports whether a silence can be kept here until the archive is back, which
// bounds them otherwise.
func (l *List) roomLocked(s *silence) bool {
	n := 0
	for id, other := range l.silences {
		if id != s.ID && other.ended == s.ended {
			n++
		}
	}
	return n < MaxSilences
}

// Silences returns the silences that have not ended, ordered by id.
func (l *List) Silences() []Silence {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Silence
	for _, s := range l.silences {
		if s.holds(l.clock()) {
			all = append(all, s.Silence)
		}
	}
	slices.SortFunc(all, func(a, b Silence) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// share takes over what other instances have said, and offers the archive what it does
// not know. After an error it is to be called again.
func (l *List) share(ctx context.Context) error {
	l.sharing.Lock()
	defer l.sharing.Unlock()
	notes, err := l.archive.Notes(ctx, noteKind, l.clock())
	if err != nil {
		return err
	}
	var full error
	for _, s := range l.merge(notes) {
		err := l.archive.OfferNote(ctx, noteKind, s.note(), s.shared, l.clock())
		if err != nil && !errors.Is(err, archive.ErrNoRoom) {
			return err
		}
		l.mu.Lock()
		if s.pending = false; err != nil {
			// The archive has the maximum number of silences, all created while this one could
			// not be shared. It would apply to one instance only, without a visible reason.
			full = fmt.Errorf("%w; that of %q is dropped", errTooMany, s.ID)
			delete(l.silences, s.ID)
		}
		l.mu.Unlock()
	}
	return full
}

// merge takes over the notes, and returns what the archive is to be offered, by id.
//
// A note takes precedence over the local silence, unless this instance has a change
// that the archive does not have yet, and no other instance has changed the note since.
// If a note disappears before its time, the archive has lost it: a silence that was
// ended leaves a note.
func (l *List) merge(notes []archive.Note) []*silence {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expireLocked(l.clock())
	there := map[string]bool{}
	for i := range notes {
		n := &notes[i]
		s, ok := silenceOf(*n)
		if !ok {
			continue
		}
		there[n.ID] = true
		if old := l.silences[n.ID]; old == nil || !old.pending || !n.Is(&old.shared) {
			l.silences[n.ID] = s
		}
	}
	var offers []*silence
	for _, id := range slices.Sorted(maps.Keys(l.silences)) {
		s := l.silences[id]
		if !there[id] && !s.ended {
			s.pending = true
		}
		if s.pending {
			offers = append(offers, s)
		}
	}
	return offers
}
