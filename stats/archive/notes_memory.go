package archive

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// notes are those of a kind, by id.
type notes map[string]Note

// SetNote keeps a note until its time, instead of one with the same id. Without a text, or
// if its time has passed, it ends the one that is there.
func (m *Memory) SetNote(_ context.Context, kind string, n Note, now time.Time) error {
	return m.setNote(kind, n, nil, now)
}

// OfferNote is SetNote unless there is a note with that id which is not the one that was
// there before: then somebody else has said something meanwhile, and that counts.
func (m *Memory) OfferNote(_ context.Context, kind string, n, was Note, now time.Time) error {
	return m.setNote(kind, n, &was, now)
}

func (m *Memory) setNote(kind string, n Note, was *Note, now time.Time) error {
	n, err := n.tidy(kind, now)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.notes[kind]
	if all == nil {
		all = notes{}
	}
	maps.DeleteFunc(all, func(_ string, old Note) bool { return !old.alive(now) })
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
	case all.count(false) >= MaxNotes && (!there || old.Ended()):
		return ErrNoRoom
	}
	all[n.ID] = n
	if all.count(true) > MaxNotes {
		all.forget(n.ID)
	}
	if m.notes == nil {
		m.notes = map[string]notes{}
	}
	m.notes[kind] = all
	return nil
}

// Notes returns those of a kind whose time has not passed, by id; also those that were
// ended.
func (m *Memory) Notes(_ context.Context, kind string, now time.Time) ([]Note, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []Note
	for _, n := range m.notes[kind] {
		if n.alive(now) {
			n.Text = bytes.Clone(n.Text)
			all = append(all, n)
		}
	}
	sortNotes(all)
	return all, nil
}

func sortNotes(all []Note) {
	slices.SortFunc(all, func(a, b Note) int { return strings.Compare(a.ID, b.ID) })
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
	first := Note{}
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
