package archive

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Memory keeps frames in this process. It adds every part to all levels immediately, so
// RollUp has nothing to do. It is safe for concurrent use.
type Memory struct {
	kept [Kinds][]Level

	mu     sync.RWMutex
	levels [Kinds][]shelf
	drafts [Kinds][]draft
	last   [Kinds]string // ID of the part that was added last
	notes  map[string]notes
}

// shelf is one level: the slots that are done, as bytes, and the one that is being
// added to, as a frame.
type shelf struct {
	Level
	done []packed // by start
	open Slot     // nil frame if there is none
}

type packed struct {
	start int64
	frame []byte
}

// NewMemory returns an empty archive that keeps the levels of the series so long.
func NewMemory(keep Keep) (*Memory, error) {
	kept, err := keep.Levels()
	if err != nil {
		return nil, err
	}
	return empty(kept), nil
}

func empty(kept [Kinds][]Level) *Memory {
	m := &Memory{kept: kept, notes: map[string]notes{}}
	for kind, levels := range kept {
		for _, level := range levels {
			m.levels[kind] = append(m.levels[kind], shelf{Level: level})
		}
	}
	return m
}

// Levels implements [Store].
func (m *Memory) Levels(kind Kind) []Level { return m.kept[kind] }

// Lag implements [Store]. It returns 0.
func (m *Memory) Lag() time.Duration { return 0 }

// Lead implements [Store]. It always returns true.
func (m *Memory) Lead(context.Context, string, time.Duration) (bool, error) { return true, nil }

// RollUp does nothing.
func (m *Memory) RollUp(context.Context, time.Time) error { return nil }

// Add adds parts to all levels. It ignores a part that is the same as the last one that
// was added.
func (m *Memory) Add(_ context.Context, parts []Part) error {
	frames := make([]*Frame, len(parts))
	for i := range parts {
		var err error
		if frames[i], err = Decode(parts[i].Frame); err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range parts {
		p := &parts[i]
		if p.Revision > 0 {
			m.revise(p, frames[i])
			continue
		}
		if m.last[p.Kind] != p.ID {
			m.last[p.Kind] = p.ID
			m.settle(p.Kind, p.Start, frames[i])
		}
	}
	return nil
}

func (s *shelf) add(at int64, f *Frame) {
	start := s.Start(at)
	if s.open.Frame == nil || s.open.Start != start {
		s.put()
		s.open = Slot{Start: start, Frame: s.take(start)}
		s.expire(start)
	}
	s.open.Frame.Merge(f)
	s.open.Frame.Trim()
}

// put packs the open slot away.
func (s *shelf) put() {
	if s.open.Frame == nil {
		return
	}
	p := packed{s.open.Start, slices.Clip(s.open.Frame.Append(nil))}
	i, _ := s.find(p.start)
	s.done = slices.Insert(s.done, i, p)
	s.open = Slot{}
}

// take unpacks a slot, or begins one.
func (s *shelf) take(start int64) *Frame {
	i, found := s.find(start)
	if !found {
		return &Frame{}
	}
	f := s.done[i].unpack()
	s.done = slices.Delete(s.done, i, i+1)
	return f
}

func (s *shelf) find(start int64) (int, bool) {
	return slices.BinarySearchFunc(s.done, start, func(p packed, start int64) int {
		return cmp.Compare(p.start, start)
	})
}

// expire forgets what is too old, and moves the rest when half of the room is unused.
func (s *shelf) expire(now int64) {
	i, _ := s.find(now - s.Keep + 1)
	clear(s.done[:i])
	s.done = s.done[i:]
	if cap(s.done) > 2*len(s.done)+64 {
		s.done = slices.Clone(s.done)
	}
}

// unpack reads what this process has written itself, or Restore has read before.
func (p packed) unpack() *Frame {
	f, err := Decode(p.frame)
	if err != nil {
		panic(fmt.Sprintf("archive: a frame in memory cannot be read: %v", err))
	}
	return f
}

// Read implements [Store].
func (m *Memory) Read(_ context.Context, kind Kind, level int, from, to int64) ([]Slot, error) {
	from, to, err := m.kept[kind][level].Span(from, to)
	if err != nil {
		return nil, err
	}
	m.mu.RLock()
	found := m.slotsLocked(int(kind), level, from, to)
	m.mu.RUnlock()
	slots := make([]Slot, len(found))
	for i, p := range found {
		slots[i] = Slot{Start: p.start, Frame: p.unpack()}
	}
	return slots, nil
}

// Size is the size of an archive in memory.
type Size struct {
	Slots int
	Bytes int64 // bytes of frames; each slot needs another 40 bytes or so
}

// Size returns the current size.
func (m *Memory) Size() Size {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var size Size
	for kind := range m.levels {
		for level := range m.levels[kind] {
			for _, p := range m.allLocked(kind, level) {
				size.Slots++
				size.Bytes += int64(len(p.frame))
			}
		}
	}
	return size
}

// draft is a part that may still be replaced by a later revision. It is merged into the
// slots that it belongs to whenever they are read.
type draft struct {
	id       string
	revision int64
	start    int64
	frame    *Frame // never changed
}

// draftTime is after how many seconds a draft is added for good: by then it has its last revision.
const draftTime = 20

// revise puts a revision in the place of the one before.
func (m *Memory) revise(p *Part, f *Frame) {
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
func (m *Memory) settle(kind Kind, start int64, f *Frame) {
	for level := range m.levels[kind] {
		m.levels[kind][level].add(start, f)
	}
}

// slotsLocked returns the slots of a level that begin in a range, in order, drafts
// included. Bytes that are packed never change.
func (m *Memory) slotsLocked(kind, level int, from, to int64) []packed {
	s := &m.levels[kind][level]
	first, _ := s.find(from)
	end, _ := s.find(to)
	found := slices.Clone(s.done[first:max(first, end)])
	put := func(start int64, f *Frame) {
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
	sums := map[int64]*Frame{}
	for _, d := range m.drafts[kind] {
		start := s.Start(d.start)
		if start < from || to <= start {
			continue
		}
		if sums[start] == nil {
			sums[start] = &Frame{}
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
func (m *Memory) allLocked(kind, level int) []packed {
	return m.slotsLocked(kind, level, math.MinInt64, math.MaxInt64)
}
