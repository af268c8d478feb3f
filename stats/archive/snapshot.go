package archive

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/disk"
)

// A snapshot is:
//
//	for each slot: the word 1, kind, step, start, the frame
//	for each note, since version 2: the word 2, when it ends in Unix microseconds,
//	    its kind, id and text
//	the word 0, the number of slots and notes
//
// Since version 3, a frame may have denials, and since version 4 there are slots of what was spent. The step says which level it is, so that levels may be kept for longer or shorter
// than before.
var format = disk.Format{Package: "archive", Magic: "weirstat", Of: "statistics", Version: 4, Oldest: 1}

// maxFrame is the longest frame that is read; none within its bounds comes near.
const maxFrame = 64 << 20

// Snapshot writes the archive to w, so that it survives a restart. The archive stays in
// use meanwhile.
func (m *Memory) Snapshot(w io.Writer) error {
	return format.Write(w, func(out *disk.Writer) {
		count := int64(0)
		for kind := range m.levels {
			for level := range m.levels[kind] {
				m.mu.RLock()
				all := m.allLocked(kind, level)
				m.mu.RUnlock()
				for _, p := range all {
					out.Words(1, int64(kind), m.kept[kind][level].Step, p.start, int64(len(p.frame)))
					out.Raw(p.frame)
					count++
				}
			}
		}
		out.Words(0, count+m.writeNotes(out))
	})
}

// writeNotes writes all notes, also those whose time has passed, and returns how many.
func (m *Memory) writeNotes(out *disk.Writer) (count int64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for kind, all := range m.notes {
		for _, n := range all {
			out.Words(2, n.Until.UnixMicro())
			out.Texts(kind, n.ID, string(n.Text))
			count++
		}
	}
	return count
}

// Restore fills an empty archive from a snapshot. If the snapshot is truncated, damaged
// or not a snapshot, Restore returns an error that says so, and the archive stays empty
// and usable.
func (m *Memory) Restore(r io.Reader) error {
	restored := empty(m.kept)
	if err := format.Read(r, restored.read); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, levels := range m.levels {
		for i := range levels {
			if levels[i].open.Frame != nil || len(levels[i].done) > 0 {
				return errInUse
			}
		}
	}
	if len(m.notes) > 0 || slices.ContainsFunc(m.drafts[:], func(all []draft) bool { return len(all) > 0 }) {
		return errInUse
	}
	m.levels, m.notes = restored.levels, restored.notes
	return nil
}

var errInUse = errors.New("archive: the archive is already in use; restore a snapshot before the first request")

// read reads what Snapshot has written: slots, and then notes.
func (m *Memory) read(in *disk.Reader) {
	count, what := int64(0), in.Between(0, 2)
	for ; what == 1; what = in.Between(0, 2) {
		count++
		m.readSlot(in)
	}
	for ; what == 2; what = in.Between(0, 2) {
		count++
		m.readNote(in)
	}
	in.Must(what == 0 && in.Word() == count)
}

func (m *Memory) readSlot(in *disk.Reader) {
	kind, step, start := in.Between(0, int64(Kinds)-1), in.Word(), in.Word()
	blob := in.Bytes(0, maxFrame)
	if in.Err != nil {
		return
	}
	f, err := Decode(blob)
	if err != nil {
		in.Must(false)
		return
	}
	for i := range m.levels[kind] {
		if s := &m.levels[kind][i]; s.Step == step {
			s.add(start, f)
		}
	}
}

// readNote reads one. Whether its time has passed is seen when it is asked for.
func (m *Memory) readNote(in *disk.Reader) {
	const most = MaxNoteText // Tidy knows better
	at := time.UnixMicro(in.Word()).UTC()
	kind, n := in.Text(0, most), Note{ID: in.Text(0, most), Text: in.Bytes(0, most), Until: at}
	if in.Err != nil {
		return
	}
	n, err := n.Tidy(kind, at.Add(-1))
	if err != nil || len(m.notes[kind]) >= 2*MaxNotes {
		in.Must(false)
		return
	}
	if m.notes[kind] == nil {
		m.notes[kind] = notes{}
	}
	m.notes[kind][n.ID] = n
}
