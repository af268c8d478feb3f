package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Note is a short text that all instances share until a time, such as a silence of an
// alert.
//
// A note that is ended before its time is kept without its text. So if a note is
// absent, the archive has lost it, and an instance may offer it again.
type Note struct {
	ID    string
	Text  []byte    // empty if the note was ended
	Until time.Time // to the microsecond
}

// Bounds on notes.
const (
	MaxNotes    = 100 // per kind; as many ended notes are kept
	MaxNoteID   = 2048
	MaxNoteText = 8 << 10
	MaxNoteTime = 366 * 24 * time.Hour
)

// maxNoteKind is the maximum length of the name of a kind. The program chooses the
// kinds.
const maxNoteKind = 64

// ErrNoRoom is returned if the maximum number of notes is reached.
var ErrNoRoom = fmt.Errorf("archive: there are %d notes already; end some", MaxNotes)

// Ended reports whether the note was ended before its time.
func (n *Note) Ended() bool { return len(n.Text) == 0 }

// Is reports whether both notes are equal.
func (n *Note) Is(other *Note) bool {
	return n.ID == other.ID && n.Until.UnixMicro() == other.Until.UnixMicro() && bytes.Equal(n.Text, other.Text)
}

// Tidy returns the note as it is stored, or an error if it cannot be stored. A note
// whose time has passed becomes an ended note.
func (n Note) Tidy(kind string, now time.Time) (Note, error) {
	switch {
	case kind == "" || len(kind) > maxNoteKind:
		return n, fmt.Errorf("archive: a kind of notes has a name of 1 to %d bytes", maxNoteKind)
	case n.ID == "" || len(n.ID) > MaxNoteID:
		return n, fmt.Errorf("archive: the id of a note has %d bytes; 1 to %d are kept", len(n.ID), MaxNoteID)
	case len(n.Text) > MaxNoteText:
		return n, fmt.Errorf("archive: the note has %d bytes; at most %d are kept", len(n.Text), MaxNoteText)
	case n.Until.Sub(now) > MaxNoteTime:
		return n, errors.New("archive: the note lasts too long; the maximum is a year")
	}
	n.Text = bytes.Clone(n.Text)
	n.Until = time.UnixMicro(max(n.Until.UnixMicro(), 0)).UTC()
	if !n.Until.After(now) {
		n.Text = nil
	}
	return n, nil
}

// Alive reports whether a stored note is valid: its time has not passed, and is not
// further in the future than an instance could have set it, even if the clocks differ.
func (n *Note) Alive(now time.Time) bool {
	return n.Until.After(now) && n.Until.Sub(now) <= 2*MaxNoteTime
}

// SortNotes sorts notes by id.
func SortNotes(all []Note) {
	slices.SortFunc(all, func(a, b Note) int { return strings.Compare(a.ID, b.ID) })
}

// notes are those of a kind, by id.
type notes map[string]Note

// SetNote implements [Store].
func (m *Memory) SetNote(_ context.Context, kind string, n Note, now time.Time) error {
	return m.setNote(kind, n, nil, now)
}

// OfferNote implements [Store].
func (m *Memory) OfferNote(_ context.Context, kind string, n, was Note, now time.Time) error {
	return m.setNote(kind, n, &was, now)
}

func (m *Memory) setNote(kind string, n Note, was *Note, now time.Time) error {
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
	maps.DeleteFunc(all, func(_ string, old Note) bool { return !old.Alive(now) })
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
	m.notes[kind] = all
	return nil
}

// Notes implements [Store].
func (m *Memory) Notes(_ context.Context, kind string, now time.Time) ([]Note, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all []Note
	for _, n := range m.notes[kind] {
		if n.Alive(now) {
			n.Text = bytes.Clone(n.Text)
			all = append(all, n)
		}
	}
	SortNotes(all)
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
