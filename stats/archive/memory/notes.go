package memory

import (
	"bytes"
	"context"
	"maps"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// notes are those of a kind, by id.
type notes map[string]archive.Note

// SetNote implements archive.Store.
func (m *Store) SetNote(_ context.Context, kind string, n archive.Note, now time.Time) error {
	return m.setNote(kind, n, nil, now)
}

// OfferNote implements archive.Store.
func (m *Store) OfferNote(_ context.Context, kind string, n, was archive.Note, now time.Time) error {
	return m.setNote(kind, n, &was, now)
}

func (m *Store) setNote(kind string, n archive.Note, was *archive.Note, now time.Time) error {
	n, err := n.Tidy(kind, now)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.notes[kind]
	if all == nil {
		all = notes{}
	}
	maps.DeleteFunc(all, func(_ string, old archive.Note) bool { return !old.Alive(now) })
	old, there := all[n.ID]
	if was != nil && there && !old.Is(was) {
		return nil
	}
	switch {
	case n.Ended():
		if there && old.Until.After(n.Until) {
			n.Until = old.Until
		}
		if !n.Until.After(now) {
			return nil // there is nothing to be remembered
		}
	case all.count(false) >= archive.MaxNotes && (!there || old.Ended()):
		return archive.ErrNoRoom
	}
	all[n.ID] = n
	if all.count(true) > archive.MaxNotes {
		all.forget(n.ID)
	}
	m.notes[kind] = all
	return nil
}

// Notes implements archive.Store.
func (m *Store) Notes(_ context.Context, kind string, now time.Time) ([]archive.Note, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []archive.Note
	for _, n := range m.notes[kind] {
		if n.Alive(now) {
			n.Text = bytes.Clone(n.Text)
			all = append(all, n)
		}
	}
	archive.SortNotes(all)
	return all, nil
}

// count is how many were ended, or were not.
func (all notes) count(ended bool) int {
	n := 0
	for _, note := range all {
		if note.Ended() == ended {
			n++
		}
	}
	return n
}

// forget removes, of those that were ended, the one whose time passes first, but for the
// one that was ended just now.
func (all notes) forget(but string) {
	first := archive.Note{}
	for id, n := range all {
		if !n.Ended() || id == but {
			continue
		}
		if c := n.Until.Compare(first.Until); first.ID == "" || c < 0 || c == 0 && id < first.ID {
			first = n
		}
	}
	delete(all, first.ID)
}
