package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"

	"github.com/weirhq/weir/stats/frame"
)

// A snapshot is, all numbers little-endian words:
//
//	magic, version
//	for each slot: the word 1, kind, step, start, length of the frame, the frame
//	for each note, since version 2: the word 2, when it ends in Unix microseconds,
//	    and of its kind, id and text each the length and the bytes
//	the word 0, the number of slots and notes
//	CRC-64 of all that
//
// The step says which level it is, so that levels may be kept for longer or shorter
// than before. The checksum is against accidents, not against whoever may write the
// file.
const (
	snapshotMagic   = "weirstat"
	snapshotVersion = 2
)

// maxFrame is the longest frame that is read; none within its bounds comes near.
const maxFrame = 64 << 20

var crcTable = crc64.MakeTable(crc64.ECMA)

// Snapshot writes what is kept to w, so that it survives a restart. The archive stays
// in use meanwhile.
func (m *Memory) Snapshot(w io.Writer) error {
	sum := crc64.New(crcTable)
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	word := func(x int64) { out.Write(binary.LittleEndian.AppendUint64(nil, uint64(x))) } // Flush reports the error
	out.WriteString(snapshotMagic)
	word(snapshotVersion)
	count := int64(0)
	for kind := range m.levels {
		for level := range m.levels[kind] {
			step, all := m.copyShelf(kind, level)
			for _, p := range all {
				for _, x := range []int64{1, int64(kind), step, p.start, int64(len(p.frame))} {
					word(x)
				}
				out.Write(p.frame)
				count++
			}
		}
	}
	count += m.writeNotes(out, word)
	word(0)
	word(count)
	err := out.Flush()
	if err == nil {
		_, err = w.Write(binary.LittleEndian.AppendUint64(nil, sum.Sum64()))
	}
	if err != nil {
		return fmt.Errorf("archive: writing the snapshot: %w", err)
	}
	return nil
}

// copyShelf returns the slots of a level. Frames that are packed never change.
func (m *Memory) copyShelf(kind, level int) (step int64, all []packed) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s := &m.levels[kind][level]
	all = append(all, s.done...)
	if s.open.Frame != nil {
		all = append(all, packed{s.open.Start, s.open.Frame.Append(nil)})
	}
	return s.Step, all
}

// Restore fills an empty archive from a snapshot. When the snapshot is torn, foreign or
// damaged, it returns an error that says so and the archive is left as it was, empty
// and usable.
func (m *Memory) Restore(r io.Reader) error {
	restored := newMemory(m.ladders)
	if err := restored.read(bufio.NewReaderSize(r, 1<<16)); err != nil {
		return fmt.Errorf("archive: the snapshot cannot be used: %w", err)
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
	if len(m.notes) > 0 {
		return errInUse
	}
	m.levels, m.notes = restored.levels, restored.notes
	return nil
}

var errInUse = errors.New("archive: it is in use already; restore a snapshot before the first request")

func (m *Memory) read(r *bufio.Reader) error {
	in := &summing{r: r}
	if magic := in.bytes(int64(len(snapshotMagic))); in.err != nil || string(magic) != snapshotMagic {
		return errors.New("it is not a snapshot of weir's statistics")
	}
	if version := in.word(); in.err == nil && (version < 1 || version > snapshotVersion) {
		return fmt.Errorf("it is of version %d, this weir reads versions 1 to %d", version, snapshotVersion)
	}
	count := int64(0)
	what := in.word()
	for ; what == 1; what = in.word() {
		count++
		kind, step, start := in.word(), in.word(), in.word()
		blob := in.bytes(in.word())
		if in.err != nil {
			break
		}
		f, err := frame.Decode(blob)
		if err != nil || kind < 0 || kind >= int64(Kinds) {
			return errors.New("it is damaged, a frame cannot be read")
		}
		for i := range m.levels[kind] {
			if s := &m.levels[kind][i]; s.Step == step {
				s.add(start, f)
			}
		}
	}
	for ; what == 2; what = in.word() {
		count++
		if err := m.readNote(in); err != nil {
			return err
		}
	}
	said, sum := in.word(), in.sum
	switch checksum := in.word(); {
	case in.err != nil:
		return fmt.Errorf("it ends in the middle: %w", in.err)
	case said != count || uint64(checksum) != sum:
		return errors.New("it is damaged, the checksum does not fit")
	}
	if _, err := r.ReadByte(); err != io.EOF {
		return errors.New("it is damaged, something follows its end")
	}
	return nil
}

// summing reads until the first error, and sums up what was read.
type summing struct {
	r   *bufio.Reader
	sum uint64
	err error
}

// bytes reads as many as are announced and really there, so that a short file cannot
// ask for much memory.
func (s *summing) bytes(n int64) []byte {
	if s.err == nil && (n < 0 || n > maxFrame) {
		s.err = errors.New("a length is impossible")
	}
	if s.err != nil {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(s.r, n))
	if err == nil && int64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	s.err, s.sum = err, crc64.Update(s.sum, crcTable, b)
	return b
}

func (s *summing) word() int64 {
	b := s.bytes(8)
	if s.err != nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(b))
}
