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
			// There are as many as there may be, all made while this one could not
			// be told of. It would hold on one instance, and nobody would know why.
			full = fmt.Errorf("%w; that of %q is dropped", errTooMany, s.ID)
			delete(l.silences, s.ID)
		}
		l.mu.Unlock()
	}
	return full
}

// merge takes over the notes, and returns what the archive is to be offered, by id.
//
// A note counts more than what is known here, unless this instance was told something
// that the archive does not know yet, and nobody else has said anything since. A silence
// whose note is gone before its time was lost by the archive: one that is ended leaves
// a note behind.
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
