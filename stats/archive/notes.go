package archive

import (
	"bytes"
	"errors"
	"fmt"
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
