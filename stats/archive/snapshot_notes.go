package archive

import (
	"bufio"
	"errors"
	"time"
)

// writeNotes writes all notes, also those whose time has passed, and returns how many.
func (m *Memory) writeNotes(out *bufio.Writer, word func(int64)) (count int64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for kind, all := range m.notes {
		for _, n := range all {
			word(2)
			word(n.Until.UnixMicro())
			for _, text := range []string{kind, n.ID, string(n.Text)} {
				word(int64(len(text)))
				out.WriteString(text)
			}
			count++
		}
	}
	return count
}

// readNote reads one. Whether its time has passed is seen when it is asked for.
func (m *Memory) readNote(in *summing) error {
	until := in.word()
	kind := string(in.bytes(in.word()))
	id := string(in.bytes(in.word()))
	text := in.bytes(in.word())
	if in.err != nil {
		return nil // which is told in the end
	}
	at := time.UnixMicro(until).UTC()
	n, err := Note{ID: id, Text: text, Until: at}.tidy(kind, at.Add(-1))
	if err != nil || len(m.notes[kind]) >= 2*MaxNotes {
		return errors.New("it is damaged, a note cannot be read")
	}
	if m.notes == nil {
		m.notes = map[string]notes{}
	}
	if m.notes[kind] == nil {
		m.notes[kind] = notes{}
	}
	m.notes[kind][id] = n
	return nil
}
