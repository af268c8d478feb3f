// Package memory keeps the archive of statistics in the process.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/stats/frame"
)

// Options configures an archive. The zero value is ready to use.
type Options struct {
	// Keep configures how long each level of the series is kept.
	Keep archive.Keep
}

// Store keeps frames in this process. It adds every part to all levels immediately, so
// RollUp has nothing to do. It is safe for concurrent use.
type Store struct {
	kept [archive.Kinds][]archive.Level

	mu     sync.RWMutex
	levels [archive.Kinds][]shelf
	drafts [archive.Kinds][]draft
	last   [archive.Kinds]string // ID of the part that was added last
	notes  map[string]notes
}

// shelf is one level: the slots that are done, as bytes, and the one that is being
// added to, as a frame.
type shelf struct {
	archive.Level
	done []packed     // by start
	open archive.Slot // nil frame if there is none
}

type packed struct {
	start int64
	frame []byte
}

// New returns an empty archive.
func New(o Options) (*Store, error) {
	kept, err := o.Keep.Levels()
	if err != nil {
		return nil, err
	}
	return empty(kept), nil
}

func empty(kept [archive.Kinds][]archive.Level) *Store {
	m := &Store{kept: kept, notes: map[string]notes{}}
	for kind, levels := range kept {
		for _, level := range levels {
			m.levels[kind] = append(m.levels[kind], shelf{Level: level})
		}
	}
	return m
}

// Levels implements archive.Store.
func (m *Store) Levels(kind archive.Kind) []archive.Level { return m.kept[kind] }

// Lag implements archive.Store. It returns 0.
func (m *Store) Lag() time.Duration { return 0 }

// Lead implements archive.Store. It always returns true.
func (m *Store) Lead(context.Context, string, time.Duration) (bool, error) { return true, nil }

// RollUp does nothing.
func (m *Store) RollUp(context.Context, time.Time) error { return nil }

// Add adds parts to all levels. It ignores a part that is the same as the last one that
// was added.
func (m *Store) Add(_ context.Context, parts []archive.Part) error {
	frames := make([]*frame.Frame, len(parts))
	for i := range parts {
		var err error
		if frames[i], err = frame.Decode(parts[i].Frame); err != nil {
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

func (s *shelf) add(at int64, f *frame.Frame) {
	start := s.Start(at)
	if s.open.Frame == nil || s.open.Start != start {
		s.put()
		s.open = archive.Slot{Start: start, Frame: s.take(start)}
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
	s.open = archive.Slot{}
}

// take unpacks a slot, or begins one.
func (s *shelf) take(start int64) *frame.Frame {
	i, found := s.find(start)
	if !found {
		return &frame.Frame{}
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
func (p packed) unpack() *frame.Frame {
	f, err := frame.Decode(p.frame)
	if err != nil {
		panic(fmt.Sprintf("archive: a frame in memory cannot be read: %v", err))
	}
	return f
}

// Read implements archive.Store.
func (m *Store) Read(_ context.Context, kind archive.Kind, level int, from, to int64) ([]archive.Slot, error) {
	from, to, err := m.kept[kind][level].Span(from, to)
	if err != nil {
		return nil, err
	}
	m.mu.RLock()
	found := m.slotsLocked(int(kind), level, from, to)
	m.mu.RUnlock()
	slots := make([]archive.Slot, len(found))
	for i, p := range found {
		slots[i] = archive.Slot{Start: p.start, Frame: p.unpack()}
	}
	return slots, nil
}

// Size is the size of an archive in memory.
type Size struct {
	Slots int
	Bytes int64 // bytes of frames; each slot needs another 40 bytes or so
}

// Size returns the current size.
func (m *Store) Size() Size {
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
