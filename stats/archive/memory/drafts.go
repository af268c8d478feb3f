package memory

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/stats/frame"
)

// draft is a part that may still be replaced by a later revision. It is merged into the
// slots that it belongs to whenever they are read.
type draft struct {
	id       string
	revision int64
	start    int64
	frame    *frame.Frame // never changed
}

// draftTime is after how many seconds a draft is added for good: by then it has its last revision.
const draftTime = 20

// revise puts a revision in the place of the one before.
func (m *Store) revise(p *archive.Part, f *frame.Frame) {
	kept := slices.DeleteFunc(m.drafts[p.Kind], func(d draft) bool {
		age := p.Start - d.start
		if d.id == p.ID || -draftTime < age && age < draftTime {
			return false
		}
		m.settle(p.Kind, d.start, d.frame)
		return true
	})
	i := slices.IndexFunc(kept, func(d draft) bool { return d.id == p.ID })
	switch next := (draft{p.ID, p.Revision, p.Start, f}); {
	case i < 0:
		kept = append(kept, next)
	case kept[i].revision < p.Revision:
		kept[i] = next
	}
	m.drafts[p.Kind] = kept
}

// settle adds a frame to all levels.
func (m *Store) settle(kind archive.Kind, start int64, f *frame.Frame) {
	for level := range m.levels[kind] {
		m.levels[kind][level].add(start, f)
	}
}

// slotsLocked returns the slots of a level that begin in a range, in order, drafts
// included. Bytes that are packed never change.
func (m *Store) slotsLocked(kind, level int, from, to int64) []packed {
	s := &m.levels[kind][level]
	first, _ := s.find(from)
	end, _ := s.find(to)
	found := slices.Clone(s.done[first:max(first, end)])
	put := func(start int64, f *frame.Frame) {
		i, ok := slices.BinarySearchFunc(found, start, func(p packed, start int64) int { return cmp.Compare(p.start, start) })
		if ok {
			found[i].frame = f.Append(nil)
		} else {
			found = slices.Insert(found, i, packed{start, f.Append(nil)})
		}
	}
	if o := s.open; o.Frame != nil && from <= o.Start && o.Start < to {
		put(o.Start, o.Frame)
	}
	sums := map[int64]*frame.Frame{}
	for _, d := range m.drafts[kind] {
		start := s.Start(d.start)
		if start < from || to <= start {
			continue
		}
		if sums[start] == nil {
			sums[start] = &frame.Frame{}
			if i := slices.IndexFunc(found, func(p packed) bool { return p.start == start }); i >= 0 {
				sums[start] = found[i].unpack()
			}
		}
		sums[start].Merge(d.frame)
	}
	for start, sum := range sums {
		sum.Trim()
		put(start, sum)
	}
	return found
}

// allLocked returns all slots of a level.
func (m *Store) allLocked(kind, level int) []packed {
	return m.slotsLocked(kind, level, math.MinInt64, math.MaxInt64)
}
