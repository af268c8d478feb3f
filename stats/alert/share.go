package alert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirhq/weir/stats/archive"
)

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
